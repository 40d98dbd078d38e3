# SPDX-License-Identifier: Apache-2.0
"""What the structural verifier finds."""

from __future__ import annotations

import pytest

from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ir.graph import GlobalVar
from roundel.ir.module import IRModule
from roundel.ir.op import get_op
from roundel.passes.well_formed import well_formed
from roundel.script import tir as T

A = tir.decl_buffer((4, 4), "float32", "A")
HANDLE = tir.Var("a", DType("handle"))
I = tir.Var("i", DType("int64"))


def program(body):
    return IRModule({"f": tir.PrimFunc((HANDLE,), body, ((HANDLE, A),))})


def loop(body, **kw):
    return tir.For(
        I, tir.index_const(0), tir.index_const(4), kw.get("kind", tir.ForKind.SERIAL), body, kw.get("thread")
    )


def at(*indices):
    return tuple(tir.as_index(k) for k in indices)


ONE = tir.const(1.0)
BAD_PROGRAMS = {
    "variable i is used before it is defined": tir.BufferStore(A, ONE, at(I, 0)),
    "buffer A has 2 dimensions, 1 indices are given": tir.BufferStore(A, ONE, at(0)),
    "buffer B is not a parameter, allocated or declared here": tir.BufferStore(
        tir.decl_buffer(4, "float32", "B"), ONE, at(0)
    ),
    "a int64 is stored into buffer A of float32": tir.BufferStore(A, tir.index_const(1), at(0, 0)),
    "loop variable i is defined twice": loop(loop(tir.BufferStore(A, ONE, at(I, 0)))),
    "loop i is thread_binding with thread None": loop(
        tir.BufferStore(A, ONE, at(I, 0)), kind=tir.ForKind.THREAD_BINDING
    ),
    "function g is called, but is not in the module": tir.Evaluate(tir.Call(GlobalVar("g"), (), DType("void"))),
    "Add of int64 and float32": tir.Evaluate(tir.Add(tir.index_const(1), ONE)),
    "block b has 1 iteration variables and 0 values": tir.BlockRealize(
        (),
        tir.const(True),
        tir.Block(
            (tir.IterVar(I, tir.Range.of(4), tir.IterKind.SPATIAL),), (), (), "b", tir.BufferStore(A, ONE, at(I, 0))
        ),
    ),
    "the condition of a If is int64": tir.If(tir.index_const(1), tir.BufferStore(A, ONE, at(0, 0))),
}


@pytest.mark.parametrize("message", BAD_PROGRAMS)
def test_bad_programs(message):
    assert any(message in p for p in well_formed(program(BAD_PROGRAMS[message])))


def test_good_program():
    @T.prim_func
    def good(a: T.handle, n: T.int64):
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        for i in T.thread_binding(n, thread="blockIdx.x"):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                row = T.alloc_buffer((m,), "float32", scope="local")
                for j in T.vectorized(m):
                    row[j] = A[vi, j] * 2.0
                for j in range(m):
                    A[vi, j] = row[j]

    assert well_formed(IRModule({"good": good})) == []


INFO = graph.TensorInfo((4,), "float32")
X, Y, L = graph.Var("x", INFO), graph.Var("y", INFO), graph.DataflowVar("lv", INFO)


def function(bindings, result, dataflow=False):
    block = (graph.DataflowBlock if dataflow else graph.BindingBlock)(
        tuple(graph.VarBinding(v, e) for v, e in bindings)
    )
    return IRModule({"main": graph.Function((X,), graph.SeqExpr((block,), result), INFO)})


def call(*args):
    return graph.Call(get_op("add"), args, sinfo=INFO)


N = tir.Var("n", DType("int64"), True)
BAD_GRAPHS = {
    "variable y is used before it is defined": function([], Y),
    "variable y is bound twice": function([(Y, call(X, X)), (Y, call(X, X))], Y),
    "dataflow variable lv is bound outside a dataflow block": function([(L, call(X, X))], X),
    "variable lv is used before it is defined": function([(L, call(X, X))], L, True),
    "symbolic dimension n in the struct info of y is not defined": function(
        [(graph.Var("y", graph.TensorInfo((N,), "float32")), call(X, X))], X
    ),
    "function g is referred to, but is not in the module": function(
        [(Y, graph.Call(get_op("call_tir"), (GlobalVar("g"), graph.Tuple((X,))), sinfo_args=(INFO,), sinfo=INFO))], Y
    ),
    "is not bound to a variable": function([(Y, call(call(X, X), X))], Y),
}


@pytest.mark.parametrize("message", BAD_GRAPHS)
def test_bad_graphs(message):
    assert any(message in p for p in well_formed(BAD_GRAPHS[message]))


def lets(*bodies):
    return IRModule({"f": tir.PrimFunc((), tir.Seq(tuple(bodies)))})


def test_a_let_binds_a_variable_once():
    inner = tir.Let(I, tir.index_const(1), tir.Evaluate(I))
    for mod, says in (
        (lets(inner, inner), "multiple definitions of variable i"),
        (lets(tir.Let(I, tir.index_const(2), inner)), "multiple nested definitions of variable i"),
        (lets(inner, tir.Evaluate(I)), "no longer in-scope"),
        (IRModule({"f": lets(inner)["f"], "g": lets(inner)["f"]}), "multiple definitions of variable i"),
    ):
        assert any(says in p for p in well_formed(mod))
    assert well_formed(lets(inner, inner), rebinding=True) == []


def test_a_block_with_axes_sees_no_loop_around_it():
    def block(used):
        v = tir.Var("v", DType("int64"))
        store = tir.BufferStore(A, T.float32(1.0), (used(v), v))
        made = tir.Block((tir.IterVar(v, tir.Range.of(4), tir.IterKind.SPATIAL),), (), (), "b", store)
        return program(loop(tir.BlockRealize((I,), tir.IntImm(1, "bool"), made)))

    assert well_formed(block(lambda v: v)) == []
    assert any("variable i of a loop around block b" in p for p in well_formed(block(lambda v: I)))


def test_good_graph():
    assert well_formed(function([(L, call(X, X)), (Y, call(L, X))], Y, True)) == []
