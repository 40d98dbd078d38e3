# SPDX-License-Identifier: Apache-2.0
"""Programs built by Python statements are those that the script with the same words is."""

from __future__ import annotations

import pytest

from roundel.ir import assert_structural_equal
from roundel.ir.errors import BuilderError, ScriptError
from roundel.script import parse
from roundel.script.ir_builder import IRBuilder
from roundel.script.ir_builder import ir as I
from roundel.script.ir_builder import tir as T


def built(make, *, module=False):
    with IRBuilder() as ib, T.prim_func():
        T.func_name("f")
        make(ib)
    return ib.get()


def same(make, text):
    assert_structural_equal(built(make), parse(f"@T.prim_func\n{text}"))


def test_loops_blocks_axes_and_init():
    def make(ib):
        A = T.arg("A", T.Buffer((16, 8), "float32"))
        B = T.arg("B", T.Buffer((16,), "float32"))
        with T.grid(16, 8) as (i, k):
            ib.name_many(["i", "k"], [i, k])
            with T.block("sum"):
                vi, vk = ib.name_many(["vi", "vk"], T.axis.remap("SR", [i, k]))
                T.block_attr({"note": 1})
                with T.init():
                    T.buffer_store(B, 0.0, [vi])
                T.buffer_store(B, B[vi] + A[vi, vk], [vi])

    same(make, '''
def f(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.block_attr({"note": 1})
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
''')


def test_scopes_branches_and_memory():
    def make(ib):
        n = T.arg("n", T.int64())
        A = T.match_buffer(T.arg("a", T.handle()), (n,), "int32", name="A")
        T.func_attr({"tir.noalias": True})
        with T.decl_buffer((4,), "int32") as C:
            ib.name("C", C)
            with T.LetStmt(T.int32(3)) as x:
                ib.name("x", x)
                T.buffer_store(C, x, [0])
            with T.If(A[0] > 1):
                with T.Then():
                    T.buffer_store(A, C[0], [0])
                with T.Else():
                    T.evaluate(0)
        with T.While(A[0] < 5):
            T.buffer_store(A, A[0] + 1, [0])
        with T.attr("scope", "pragma", 1):
            T.evaluate(T.call_extern("int32", "g"))

    same(make, '''
def f(n: T.int64(is_size_var=False), a: T.handle):
    A = T.match_buffer(a, (n,), "int32")
    T.func_attr({"tir.noalias": True})
    with T.decl_buffer((4,), "int32") as C:
        with T.LetStmt(T.int32(3)) as x:
            C[0] = x
        if A[0] > 1:
            A[0] = C[0]
        else:
            T.evaluate(0)
    while A[0] < 5:
        A[0] = A[0] + 1
    with T.attr("scope", "pragma", 1):
        T.call_extern("int32", "g")
'''.replace("T.int64(is_size_var=False)", "T.int64"))


def test_statements_and_modules_alone():
    with IRBuilder() as ib, T.serial(4):
        T.evaluate(1)
    assert ib.get().script() == "for i in range(4):\n    T.evaluate(1)"
    with IRBuilder() as ib, I.ir_module():
        for name in ("f", "g"):
            with T.prim_func():
                T.func_name(name)
                T.func_ret(T.int32)
                T.evaluate(T.ret(T.int32(1)))
    assert [*ib.get()] == ["f", "g"] and ib.get()["g"].ret_dtype == "int32"


def test_rules_are_those_of_the_script():
    with pytest.raises(ScriptError, match="outside of a block"):
        built(lambda ib: T.axis.spatial(4, 0))
    with pytest.raises(BuilderError, match="no branch"):
        built(branch_without_cases)


def branch_without_cases(ib):
    with T.If(T.arg("m", T.int32()) > 1):
        pass


def test_nothing_is_built_outside_or_before_the_end():
    with pytest.raises(BuilderError, match="IRBuilder"):
        T.buffer_store(None, 0, [])
    with IRBuilder() as ib, pytest.raises(BuilderError, match="behind the with"):
        ib.get()
    assert not IRBuilder.is_in_scope()


def test_values_of_the_script_need_no_builder():
    assert T.float16(1).script() == "T.float16(1.0)" and T.exp(T.float32(1)).script() == "T.exp(T.float32(1.0))"
