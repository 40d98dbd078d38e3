# SPDX-License-Identifier: Apache-2.0
"""Questions about tensor programs, each answered for programs where the answer is known by hand."""

from __future__ import annotations

import pytest

from roundel import tir
from roundel.ir import IRModule
from roundel.ir.errors import BuildError, ScheduleError
from roundel.script import parse
from roundel.tir import analysis


def program(body, params="A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")", returns=""):
    return parse(f"@T.prim_func\ndef f({params}){returns}:\n" + "\n".join("    " + line for line in body.strip("\n").split("\n")))


# ---- effects


@pytest.mark.parametrize("body, effect", [
    ("T.evaluate(A[0])", None),
    ("T.evaluate(T.exp(A[0]))", None),
    ('T.evaluate(T.call_pure_extern("float32", "f", A[0]))', None),
    ("C = T.decl_buffer((4,), \"float32\")\nC[0] = A[0]", None),
    ("B[0] = A[0]", "writes buffer B"),
    ('T.evaluate(T.call_extern("float32", "f", A[0]))', "calls T.call_extern"),
])
def test_pure_is_what_no_caller_can_see(body, effect):
    func = program(body)
    assert analysis.is_pure_function(func) == (effect is None)
    if effect is None:
        assert analysis.assert_pure_function(func)
    else:
        with pytest.raises(analysis.purity.ImpureFunction, match=effect):
            analysis.assert_pure_function(func)


def test_a_view_of_a_parameter_is_no_memory_of_its_own():
    assert not analysis.is_pure_function(program('C = T.decl_buffer((16,), "float32", data=A.data)\nC[0] = 1.0'))


# ---- operations


@pytest.mark.parametrize("body, flops", [
    ("for i in range(16):\n    B[i] = A[i] * 2.0 + A[15 - i]", 32),
    ("for i in range(16):\n    if i % 3 == 0:\n        B[i] = A[i] + 1.0\n    else:\n        B[i] = A[i] * A[i] + 1.0", 32),
    ("for i in range(16):\n    j: T.int64 = i + 1\n    B[i] = A[j - 1]", 16),
    ("for i in range(4):\n    for j in range(i + 1):\n        B[j] = A[j] - B[j]", 16),
    ("B[0:8] = A[0:8] * T.Broadcast(T.float32(2), 8)", 8),
    ("B[0] = T.if_then_else(A[0] > T.float32(0), A[0] * T.float32(2), A[0])", 1),
])
def test_operations_are_those_on_values(body, flops):
    assert analysis.estimate_tir_flops(program(body)) == flops


def test_a_loop_without_bound_is_refused_unless_the_function_says_its_operations():
    func = program("for i in range(n):\n    B[0] = B[0] + A[0]", 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int64')
    with pytest.raises(BuildError, match="no upper bound"):
        analysis.estimate_tir_flops(func)
    assert analysis.estimate_tir_flops(IRModule({"f": func.with_attr("estimated_flops", 7), "g": func.with_attr("estimated_flops", 3)})) == 10


# ---- memory


def test_allocated_bytes_by_scope():
    func = program('''
C = T.alloc_buffer((4, 4), "float16")
D = T.alloc_buffer((8,), "int4", scope="shared")
for i in range(4):
    with T.block("b"):
        vi = T.axis.spatial(4, i)
        C[vi, 0] = T.Cast("float16", A[vi])
''')
    assert analysis.calculate_allocated_bytes(func) == {"f": {"global": 32, "shared": 4}}
    assert [b.name for b in analysis.allocated_buffers(func)] == ["C", "D"]


def test_workspace_is_shared_by_statements_one_after_another():
    func = program('''
with T.decl_buffer((100,), "int8") as C:
    C[0] = T.int8(1)
with T.decl_buffer((40,), "int8") as D:
    with T.decl_buffer((10,), "int8") as E:
        E[0] = D[0]
''')
    assert analysis.calculate_workspace_bytes(func) == 100
    assert analysis.calculate_workspace_bytes(func, 64) == 128


# ---- places


REDUCTION = program('''
for i in range(16):
    for k in range(8):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vk]
''')


def test_a_buffer_belongs_outside_of_the_loops_that_update_it():
    A, B = REDUCTION.buffer_params
    places = analysis.detect_buffer_access_lca(REDUCTION)
    loop_i = REDUCTION.body.block.body
    assert places[B] is loop_i and places[A] is loop_i.body.body.block
    assert analysis.find_anchor_block(REDUCTION).name == "s"


def test_two_uses_meet_at_the_loop_around_both_and_none_at_the_function():
    func = program("for i in range(4):\n    B[i] = A[i]\n    for j in range(4):\n        B[j] = T.float32(1)")
    places = analysis.detect_buffer_access_lca(func)
    assert all(places[b] is func.body for b in func.buffer_params)
    apart = program("B[0] = A[0]\nfor i in range(4):\n    B[i] = A[i]")
    assert analysis.detect_buffer_access_lca(apart)[apart.buffer_params[0]] is None


def test_global_memory_of_a_grid_belongs_outside_of_its_blocks():
    func = program('''
for b in T.thread_binding(4, thread="blockIdx.x"):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        B[b * 4 + t] = A[b * 4 + t]
''')
    assert all(place is func.body for place in analysis.detect_buffer_access_lca(func).values())


# ---- accesses


def test_pointers_that_go_elsewhere_are_opaque_accesses():
    func = program('''
with T.block("b"):
    T.reads(A[0:16])
    T.writes(B[0:16])
    B[1] = A[2]
    T.call_extern("int32", "f", A.access_ptr("r"))
''')
    A, B = func.buffer_params
    block = func.body.block
    pointers = {b.data: b for b in (A, B)}
    reads, writes, opaque = analysis.get_block_access_region(block, pointers)
    assert [r.script() for r in reads] == ["A[2]"] and [w.buffer for w in writes] == [B] and [o.buffer for o in opaque] == [A]


def test_an_access_pointer_says_what_it_is_for():
    func = program('with T.block("b"):\n    T.reads()\n    T.writes()\n    T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w"))')
    A, B = func.buffer_params
    reads, writes = analysis.get_block_read_write_region(func.body.block, {b.data: b for b in (A, B)})
    assert [r.buffer for r in reads] == [A] and [w.buffer for w in writes] == [B]


@pytest.mark.parametrize("body, outside", [
    ("B[0] = A[16]", "buffer A"),
    ("for i in range(17):\n    B[i] = A[0]", "buffer B"),
    ("for i in range(16):\n    B[i - 1] = A[0]", "buffer B"),
    ("for i in range(20):\n    if i < 16:\n        B[i] = A[i]", None),
    ("for i in range(16):\n    B[i] = T.if_then_else(i >= 1, A[i - 1], T.float32(0))", None),
    ("for i in range(8):\n    for j in range(i):\n        B[i - j] = A[i - j - 1]", None),
    ("for i in range(4):\n    B[A_index(i)] = A[0]".replace("A_index(i)", "T.Cast(\"int64\", A[i])"), None),
])
def test_only_accesses_that_are_outside_for_certain_are_errors(body, outside):
    mod = IRModule({"f": program(body)})
    if outside is None:
        assert analysis.OOBChecker()(mod) is mod
    else:
        with pytest.raises(ScheduleError, match=outside):
            analysis.OOBChecker()(mod)


# ---- variables


def test_a_variable_that_is_defined_twice_is_no_single_assignment():
    x, y = tir.Var("x", tir.DType("int32")), tir.Var("y", tir.DType("int32"))
    use = tir.Evaluate(x + y)
    assert analysis.verify_ssa(tir.PrimFunc([x, y], use))
    assert not analysis.verify_ssa(tir.PrimFunc([x, y], tir.Let(x, tir.const(1, "int32"), use)))
    assert analysis.undefined_vars(use) == [x, y] and analysis.undefined_vars(use, [y]) == [x]
    assert analysis.undefined_vars(tir.Let(x, y + 1, use)) == [y]


def test_an_ill_formed_program_names_its_fault():
    i = tir.Var("i", tir.DType("int32"))
    func = tir.PrimFunc([], tir.Evaluate(i + 1))
    assert not analysis.verify_well_formed(func, assert_mode=False)
    with pytest.raises(analysis.IllFormed, match="variable i"):
        analysis.verify_well_formed(func)
