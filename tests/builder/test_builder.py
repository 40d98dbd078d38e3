# SPDX-License-Identifier: Apache-2.0
"""BlockBuilder makes modules with Relax's meaning."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.builder import BlockBuilder
from roundel.ir import graph
from roundel.ir.equal import assert_structural_equal
from roundel.ir.errors import RoundelError


def add_one(x):
    return te.compute(x.shape, lambda *i: x(*i) + 1.0, "y")


def build(bb, x, *fns):
    with bb.function("main", [x]):
        with bb.dataflow():
            v = x
            for fn in fns:
                v = bb.emit_te(fn, v)
            out = bb.emit_output(v)
        bb.emit_func_output(out)
    return bb.finalize()


def test_equal_programs_are_shared_and_shapes_stay_implicit():
    n = te.size_var("n")
    mod = build(BlockBuilder(), graph.Var("x", graph.TensorInfo((n, 4), "float32")), add_one, add_one)
    assert list(mod) == ["add_one", "main"]
    f = mod["add_one"]
    assert len(f.params) == 2 and f.buffer_params[0].shape[0] is not n and "global_symbol" not in f.attrs
    block = mod["main"].body.blocks[0]
    assert isinstance(block, graph.DataflowBlock) and [b.var.name for b in block.bindings] == ["lv", "lv1", "gv"]
    assert mod["main"].ret_sinfo == graph.TensorInfo((n, 4), "float32")


def test_a_program_that_was_replaced_is_not_shared_any_more():
    bb = BlockBuilder()
    mod = build(bb, graph.Var("x", graph.TensorInfo((4,), "float32")), add_one)
    one, copy = mod["add_one"], mod["add_one"].replace(attrs=mod["add_one"].attrs | {"fuse_kind": 8})
    assert bb.add_func(one, "again").name == "add_one"
    bb.update_func("add_one", copy)
    assert bb.add_func(one, "again").name == "again" and bb.get()["add_one"] is copy and bb.get()["again"] is one


def test_a_variable_that_is_no_dimension_is_passed_as_scalar():
    n = te.size_var("n")
    x = graph.Var("x", graph.TensorInfo((n * 2,), "float32"))
    bb = BlockBuilder()
    mod = build(bb, x, lambda t: te.compute((t.shape[0] // 2,), lambda i: t[i * 2], "even"))
    call = mod["main"].body.bindings[0].value
    assert call.args[2].values == (n,) and len(mod["compute"].params) == 3


def test_a_variable_that_the_function_itself_holds_is_that_of_the_operands():
    n = te.size_var("n")
    programs = [build(BlockBuilder(), graph.Var("x", graph.TensorInfo((n,), "float32")), fn)["compute"] for fn in (
        lambda t: te.compute((n,), lambda i: t(n - 1 - i)), lambda t: te.compute(t.shape, lambda i: t(t.shape[0] - 1 - i)))]
    assert_structural_equal(*programs)
    assert len(programs[0].params) == 2


def test_constants_of_one_element_are_literals_and_operands_are_not_repeated():
    x = graph.Var("x", graph.TensorInfo((3,), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        out = bb.emit_te(
            lambda a, b, c: te.compute((3,), lambda i: a[i] * b[i] + c[0], "y"),
            x,
            x,
            graph.Constant.of(np.ones(1, "float32")),
        )
        bb.emit_func_output(out)
    assert len(bb.get()["compute"].params) == 2


def test_several_results_are_a_tuple_and_an_operand_returned_is_copied():
    x = graph.Var("x", graph.TensorInfo((3,), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        out = bb.emit_te(lambda a: [a, add_one(a)], x)
        bb.emit_func_output(graph.TupleGetItem(out, 0))
    assert isinstance(out.sinfo, graph.TupleInfo) and len(bb.get()["compute"].params) == 3


def test_match_cast_binds_new_dimensions():
    m = te.size_var("m")
    x = graph.Var("x", graph.TensorInfo(dtype="float32", ndim=1))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        y = bb.match_cast(x, graph.TensorInfo((m,), "float32"))
        bb.emit_func_output(bb.emit_te(add_one, y))
    assert bb.get()["main"].body.body.sinfo.shape == (m,)


def test_misuse_is_explained():
    x = graph.Var("x", graph.TensorInfo(dtype="float32", ndim=1))
    bb = BlockBuilder()
    with pytest.raises(RoundelError, match="no function to emit into"):
        bb.emit(x)
    with pytest.raises(RoundelError, match="does not tell its sizes"), bb.function("f", [x]):
        bb.emit_te(add_one, x)
    with pytest.raises(RoundelError, match="has no result"), bb.function("f", [x]):
        pass


@pytest.mark.parametrize("misuse", ["two results", "parameters twice", "no parameters"])
def test_functions_are_built_in_order(misuse):
    x = graph.Var("x", graph.TensorInfo((4,), "float32"))
    bb = BlockBuilder()
    with pytest.raises(RuntimeError), bb.function("f", None if misuse == "no parameters" else [x]):
        bb.emit_func_output(x, [x] if misuse == "parameters twice" else None)
        bb.emit_func_output(x)


def test_calls_of_functions_know_their_results():
    """Of the module, of a variable, and of a foreign function that says what it gives."""
    n, m = te.size_var("n"), te.size_var("m")
    x, y = graph.Var("x", graph.TensorInfo((n,), "float32")), graph.Var("y", graph.TensorInfo((m * 2,), "float32"))
    bb = BlockBuilder()
    with bb.function("f", [x]):
        bb.emit_func_output(x)
    g = graph.Var("g", graph.FuncInfo((x.sinfo,), x.sinfo))
    with bb.function("main", [y, g]):
        a = bb.emit(graph.Call(graph.GlobalVar("f"), (y,)))
        b = bb.emit(graph.Call(g, [y]))
        c = bb.emit(graph.Call(graph.ExternFunc("h"), (y,), None, sinfo_args=[y.sinfo]))
        bb.emit_func_output(c)
    assert [v.sinfo for v in (a, b, c)] == [y.sinfo] * 3
