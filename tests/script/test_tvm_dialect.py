# SPDX-License-Identifier: Apache-2.0
"""The dialect of TVM's printer: what is written otherwise, and that it reads back."""

from __future__ import annotations

import pytest

from roundel.ir import assert_structural_equal, tir
from roundel.ir.dtype import INT32
from roundel.script import parse
from script_programs import ALL, HEADER
from tvm_programs import GRAPH, TENSOR

MATMUL = parse('''
@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), b: T.handle):
    n = T.int64()
    B = T.match_buffer(b, (64, n), "float16")
    C = T.alloc_buffer((64, n), "float32")
    for i, j, k in T.grid(64, n, 64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            vj = T.axis.spatial(n, j)
            vk = T.axis.reduce(64, k)
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * T.Cast("float32", B[vk, vj])
''')


def test_a_function_as_tvm_prints_it():
    assert MATMUL.script(dialect="tvm") == '''# from tvm.script import tir as T

@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), b: T.handle):
    n = T.int64()
    B = T.match_buffer(b, (64, n), "float16")
    # with T.block("root"):
    C = T.alloc_buffer((64, n))
    for i, j, k in T.grid(64, n, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * T.Cast("float32", B[vk, vj])'''


def test_the_newer_names_of_blocks_by_choice():
    text = MATMUL.script(dialect="tvm", block="sblock")
    assert 'with T.sblock("C")' in text and "T.sblock_alloc_buffer" in text and "T.block" not in text


def test_without_sugar_every_loop_and_axis_stands_alone():
    text = MATMUL.script(dialect="tvm", syntax_sugar=False)
    assert "T.grid" not in text and "remap" not in text and 'with T.block("root"):' in text and "# with" not in text
    assert "var_A: T.handle" in text and "A = T.match_buffer(var_A, (64, 64))" in text


def test_plain_numbers_are_those_of_the_type_asked_for():
    three32, three64 = tir.IntImm(3, "int32"), tir.IntImm(3, "int64")
    assert three32.script(dialect="tvm") == three64.script(dialect="tvm") == "3"
    assert three64.script(dialect="tvm", int_dtype="int32") == "T.int64(3)"
    assert three32.script(dialect="tvm", int_dtype="int64") == "T.int32(3)"
    assert tir.FloatImm(1.5, "float32").script(dialect="tvm", float_dtype="float32") == "1.5"


def test_a_fragment_declares_what_it_uses():
    store = MATMUL.body.block.body.body.body.body.block.init
    text = store.script(dialect="tvm")
    assert text.splitlines()[-1] == "C[vi, vj] = T.float32(0.0)" and "C = T.Buffer((64, n))" in text
    assert (tir.Var("a", INT32) + 1).script(dialect="tvm") == "a = T.int32()\na + 1"


@pytest.mark.parametrize("name", [*ALL, *TENSOR, *GRAPH])
def test_every_program_reads_back(name):
    source = HEADER + ALL[name] if name in ALL else {**TENSOR, **GRAPH}[name]
    program = parse(source if "import" in source else HEADER + source)
    again = parse(program.script(dialect="tvm", int_dtype="int64", show_meta=True))
    if name in ("pointers_2021", "allocate_pointer", "emit_te"):  # memory and its view are one declaration; functions in order of names
        assert again.script(dialect="tvm") == program.script(dialect="tvm")
    else:
        assert_structural_equal(again, program)


def test_texts_of_several_lines_and_constants_stand_in_the_metadata():
    func = parse('@T.prim_func\ndef f():\n    T.call_extern("int32", "say", "one\\ntwo")\n    T.call_extern("int32", "say", "one\\ntwo")\n')
    text = func.script(dialect="tvm")
    assert text.count('metadata["tir.StringImm"][0]') == 2 and "Metadata omitted" in text
    assert_structural_equal(parse(func.script(dialect="tvm", show_meta=True)), func)


def test_graph_functions_leave_out_what_follows():
    mod = parse('''
@R.function
def main(x: R.Tensor((4, "n"), "float32")) -> R.Tensor((4, "n"), "float32"):
    n = T.int64()
    y: R.Tensor((4, n), "float32") = R.exp(x)
    return y
''')
    assert 'y: R.Tensor((4, n), dtype="float32") = R.exp(x)' in mod.script(dialect="tvm")
    assert "    y = R.exp(x)" in mod.script(dialect="tvm", show_all_struct_info=False)
