# SPDX-License-Identifier: Apache-2.0
"""Calls that scripts for other machines make, and what callers know of a program."""

from __future__ import annotations

import pytest

from roundel.ir import assert_structural_equal
from roundel.ir.errors import ScriptError
from roundel.script import parse


def program(body, params='A: T.Buffer((4, 4), "float32")', returns="", names=None):
    lines = "\n".join("    " + line for line in body.split("\n"))
    return parse(f"@T.prim_func\ndef f({params}){returns}:\n{lines}\n", names)


@pytest.mark.parametrize("call", [
    'T.evaluate(T.isnullptr(A.data, dtype="bool"))',
    "T.evaluate(T.isnullptr(A.data))",
    'T.evaluate(T.call_llvm_pure_intrin("uint8", T.llvm_lookup_intrinsic_id("llvm.ctpop.i8"), T.uint32(1), T.uint8(3)))',
    "T.evaluate(T.TVMBackendAllocWorkspace(1, 0, T.uint64(64), 2, 32))",
    "T.evaluate(T.address_of(A))",
    "T.assume(A[0, 0] > 0.0)",
])
def test_they_read_back(call):
    func = program(call)
    assert_structural_equal(parse(func.script()), func)


def test_the_address_of_a_buffer_is_that_of_its_first_element():
    assert_structural_equal(program("T.evaluate(T.address_of(A))"), program("T.evaluate(T.address_of(A[0, 0]))"))


def test_bits_read_as_the_type_they_have_are_themselves():
    assert_structural_equal(program('A[0, 0] = T.reinterpret("float32", A[0, 1])'), program("A[0, 0] = A[0, 1]"))


def test_memory_is_evaluated_as_a_pointer_and_a_buffer_is_not():
    assert "v.data" in program('v = T.allocate([4], "float32", "global")\nT.evaluate(v)').script()
    with pytest.raises(ScriptError):
        program("T.evaluate(A)")


def test_an_object_may_declare_buffers_as_it_is_made():
    class Scratch:
        def __init__(self, like):
            self.memory = T.alloc_buffer(like.shape, like.dtype)

    from roundel.script import tir as T

    func = program("s = T.meta_var(Scratch(A))\ns.memory[0, 0] = A[0, 0]", names={"Scratch": Scratch})
    assert [b.name for b in func.body.block.alloc_buffers] == ["memory"]


def test_several_names_of_one_meta_value_bind_nothing():
    func = program("n, m = T.meta_var(A.shape)\nfor i, j in T.grid(n, m):\n    A[i, j] = 1.0")
    assert_structural_equal(func, program("for i, j in T.grid(4, 4):\n    A[i, j] = 1.0"))


def test_an_attribute_may_be_about_several_things():
    for declared in ('B = T.decl_buffer((4,), "float32")', 'B = T.Buffer((4,), "float32")'):
        func = program(f'{declared}\nT.attr([A, B], "buffer_bind_scope", 1)\nT.evaluate(A[0, 0])')
        assert_structural_equal(parse(func.script()), func)


def test_an_attribute_may_be_about_a_pointer_that_is_bound_below():
    func = program('B = T.Buffer((4,), "float32")\nT.attr(B.data, "storage_scope", "global")\n'
                   "with T.LetStmt(T.TVMBackendAllocWorkspace(1, 0, T.uint64(64), 2, 32), var=B.data):\n    B[0] = A[0, 0]")
    assert_structural_equal(parse(func.script()), func)


@pytest.mark.parametrize("body, returns, pure", [("return A[0, 0]", " -> T.float32", True), ("A[0, 0] = 1.0", "", False)])
def test_callers_know_whether_a_program_has_effects(body, returns, pure):
    assert program(body, returns=returns).struct_info.pure == pure
