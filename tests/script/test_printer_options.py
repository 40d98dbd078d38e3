# SPDX-License-Identifier: Apache-2.0
"""What may be asked of the printer: prefixes, underlining, comments, line numbers, addresses."""

from __future__ import annotations

import pytest

from roundel import Schedule
from roundel.ir import structural_equal
from roundel.script import parse, print_script

STEPS = parse('''
@T.prim_func
def steps(A: T.Buffer((8,), "int32"), n: T.int32):
    A[0] = n
    A[1] = n + T.int32(1)
    for i in range(8):
        A[i] = A[i] * n
''')


def below(text, line):
    """The line of ``^`` under a line of the text."""
    lines = text.split("\n")
    return lines[next(k for k, t in enumerate(lines) if t.strip().startswith(line)) + 1]


def test_whatever_is_printed_shows_script():
    block = parse('''
@T.prim_func
def f(A: T.Buffer((8,), "int32")):
    with T.block("b"):
        V = T.match_buffer(A[2:6], (4,), "int32")
        V[0] = 1
''').body.block
    assert repr(block.match_buffers[0]) == 'V = T.match_buffer(A[2:6], (4,), "int32")'
    assert repr(Schedule(STEPS)) == repr(Schedule(STEPS).mod) and "for i in range(8)" in repr(Schedule(STEPS))
    for node in (STEPS, STEPS.body, STEPS.body.stmts[0], STEPS.body.stmts[0].value, STEPS.params[1], STEPS.buffer_params[0], block.match_buffers[0].source):
        assert "object at" not in repr(node) and "unprintable" not in repr(node) and repr(node) == str(node)


def test_an_unknown_option_names_the_one_that_was_meant():
    with pytest.raises(TypeError, match="did you mean num_context_lines"):
        print_script(STEPS, num_context_line=2)


@pytest.mark.parametrize("options", [{"dialect": "relay"}, {"ir_prefix": "2I"}, {"int_dtype": "int7"}, {"block": "blocks"}])
def test_a_value_that_an_option_does_not_take_is_refused(options):
    with pytest.raises(ValueError, match=str(next(iter(options.values())))):
        print_script(STEPS, **options)


def test_prefixes_are_replaced_in_code_and_not_in_texts():
    noted = parse('@T.prim_func\ndef f():\n    T.func_attr({"text": "T.exp(T.x)"})\n    T.evaluate(T.int32(1))\n')
    text = noted.script(tir_prefix="tirx")
    assert "from roundel.script import tir as tirx" in text and "@tirx.prim_func" in text and '"T.exp(T.x)"' in text
    assert structural_equal(parse(text), noted)


def test_a_name_makes_room_for_a_prefix():
    func = parse('@T.prim_func\ndef f(X: T.Buffer((4,), "float32")):\n    X[0] = T.float32(1)\n')
    assert "X_1: X.Buffer" in func.script(tir_prefix="X")


def test_a_statement_is_underlined_as_a_whole_and_a_variable_where_it_is_used():
    text = STEPS.script(obj_to_underline=[STEPS.body.stmts[1], STEPS.params[1]])
    assert below(text, "A[1]") == "    ^^^^^^^^^^^^"
    assert below(text, "A[0]") == "           ^"
    assert "^" not in below(text, "def steps")


def test_a_path_means_one_place_although_expressions_are_shared():
    both = parse('@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), n: T.int32):\n    A[0] = n * n\n    A[1] = n * n\n')
    text = both.script(path_to_underline=[".body.stmts[1].value"])
    assert below(text, "A[1]") == "           ^^^^^" and "^" not in below(text, "A[0]")
    with pytest.raises(ValueError, match="leads nowhere"):
        both.script(path_to_underline=[".body.nothing"])


def test_comments_stand_behind_a_line_and_above_a_body():
    loop = STEPS.body.stmts[2]
    text = STEPS.script(obj_to_annotate={loop: "all of it"}, path_to_annotate={".body.stmts[0]": "first"})
    assert "    A[0] = n  # first\n" in text and "    # all of it\n    for i in range(8):" in text
    assert structural_equal(parse(text), STEPS)


def test_context_lines_and_their_numbers():
    text = STEPS.script(imports=False, print_line_numbers=True, num_context_lines=0, path_to_underline=[".body.stmts[1]"])
    assert text == "(... 3 lines skipped ...)\n4     A[1] = n + 1\n      ^^^^^^^^^^^^\n(... 2 lines skipped ...)"


def test_addresses_keep_variables_of_one_name_apart():
    text = STEPS.script(show_object_address=True)
    assert f"n_{id(STEPS.params[1]):#x}" in text and structural_equal(parse(text), STEPS)


def test_the_alias_of_the_module_may_be_another_or_none():
    mod = parse('''
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)
    @R.function
    def main() -> R.Tensor((4,), "float32"):
        y = R.call_tir(Module.f, (), out_sinfo=R.Tensor((4,), dtype="float32"))
        return y
''')
    assert "self_ = Module" in mod.script(module_alias="self_") and "self_.f" in mod.script(module_alias="self_")
    assert "call_tir(Module.f" in mod.script(module_alias="") and "cls" not in mod.script(module_alias="")
    assert structural_equal(parse(mod.script(module_alias="self_")), mod)
