# SPDX-License-Identifier: Apache-2.0
"""Blocks outside of functions, sequences that are emitted, calls of functions that the module has."""

from __future__ import annotations

import pytest

from roundel import relax
from roundel.ir import graph
from roundel.ir.errors import BuilderError, RoundelError
from roundel.passes.well_formed import well_formed
from roundel.script import parse

INFO = relax.TensorStructInfo((4,), "float32")
MODULE = """
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, x)
    @T.prim_func
    def g(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                b[v] = a[v] + T.float32(1)
"""


def test_blocks_without_a_function():
    bb, x = relax.BlockBuilder(), relax.Var("x", INFO)
    bb.begin_scope()
    y = bb.emit(relax.op.add(x, x))
    bb.begin_scope(dataflow=True)
    z = bb.emit(relax.op.add(y, y))
    assert isinstance(z, graph.DataflowVar) and bb.current_block_is_dataflow()
    inner = bb.end_scope()
    outer = bb.end_scope()
    assert isinstance(inner, graph.DataflowBlock) and [b.var for b in inner.bindings] == [z]
    assert not isinstance(outer, graph.DataflowBlock) and [b.var for b in outer.bindings] == [y]
    assert bb.get().functions == {}


def test_the_builder_whose_function_is_open():
    bb = relax.BlockBuilder()
    assert relax.BlockBuilder.current() is None
    with pytest.raises(BuilderError), bb.function("f", []):
        assert relax.BlockBuilder.current() is bb
    assert relax.BlockBuilder.current() is None
    with bb.testing_scope():
        assert bb.emit(relax.const(1)).sinfo.ndim == 0
    assert bb.get().functions == {}


@pytest.mark.parametrize("inner_dataflow", [False, True])
@pytest.mark.parametrize("outer_dataflow", [False, True])
def test_sequences_are_emitted_binding_by_binding(inner_dataflow, outer_dataflow):
    def function(emit, dataflow):
        bb = relax.BlockBuilder()
        with bb.function("func", []):
            if dataflow:
                with bb.dataflow():
                    out = bb.emit_output(emit(bb))
            else:
                out = bb.emit(emit(bb))
            bb.emit_func_output(out)
        return bb.finalize()["func"]

    inner = function(lambda bb: relax.op.add(bb.emit(relax.const(1, "int64"), "a"), relax.const(2, "int64")), inner_dataflow).body
    made = function(lambda bb: bb.emit(inner, "e"), outer_dataflow)
    assert well_formed(graph_module(made)) == []
    assert [b.var.name for b in made.body.bindings] == ["a", inner.body.name, "e", made.body.body.name]


def test_a_sequence_that_parts_a_dataflow_block_hides_its_variables():
    bb = relax.BlockBuilder()
    with bb.function("func", [relax.Var("p", INFO)]):
        bb.emit_func_output(bb.emit(relax.op.add(bb._frames[-1].params[0], relax.const(1.0, "float32")), "a"))
    func = bb.finalize()["func"]
    bb = relax.BlockBuilder()
    with pytest.raises(BuilderError, match="a uses local, which ends with its dataflow block"), bb.function("main", [relax.Var("x", INFO)]):
        with bb.dataflow():
            local = bb.emit(bb._frames[-1].params[0] * 2.0, "local")
            out = bb.emit_output(func.bind_params({"p": local}).body, "f")
        bb.emit_func_output(out)


def graph_module(func):
    from roundel.ir import IRModule

    return IRModule({"func": func})


def test_calls_know_the_results_of_functions_of_the_module():
    bb, x = relax.BlockBuilder(parse(MODULE)), relax.Var("x", INFO)
    with bb.function("main", [x]):
        y = bb.emit(relax.Call(relax.GlobalVar("f"), (x,)))
        assert y.sinfo == INFO
        with pytest.raises(BuilderError, match="f takes 1 arguments, 2 were given"):
            bb.emit(relax.Call(relax.GlobalVar("f"), (x, x)))
        with pytest.raises(BuilderError, match=r"g is a tensor program.*\n.*call_tir"):
            bb.emit(relax.Call(relax.GlobalVar("g"), (x,)))
        assert bb.emit_func_output(y) == relax.GlobalVar("main")


def test_operands_in_dicts_are_operands():
    from roundel import te

    bb, x, y = relax.BlockBuilder(), relax.Var("x", INFO), relax.Var("y", INFO)
    with bb.function("main", [x, y]):
        out = bb.emit_te(lambda pair, more: te.compute((4,), lambda i: pair[0][i] - more["y"][i]), [x], {"y": y})
        bb.emit_func_output(out)
    assert len(bb.get()["main"].body.bindings[0].value.args[1].fields) == 2


def test_what_is_no_function_is_not_called():
    with pytest.raises(RoundelError, match="x is called, and is no function"):
        relax.Call(relax.Var("x", INFO), [])
    with pytest.raises(IndexError, match="Tuple index out of range: 2 of 1"):
        relax.Tuple((relax.Var("x", INFO),))[2]
    with pytest.raises(ValueError, match="one of shape and ndim"):
        relax.TensorStructInfo((1, 2), "int8", ndim=2)
