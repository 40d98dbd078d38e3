# SPDX-License-Identifier: Apache-2.0
"""Graphs built in Python the way TVM's documentation builds them."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import relax, te
from roundel.ir import assert_structural_equal, graph
from roundel.script import parse
from roundel.script import relax as R


def te_matmul(a, b):
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "matmul")


def test_mlp():
    n, m = te.var("n", "int64"), 8
    x = relax.Var("x", relax.TensorStructInfo([n, 4], "float32"))
    w = relax.Var("w", R.Tensor((4, m), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            lv0 = bb.emit_te(te_matmul, x, w)
            lv1 = bb.emit(relax.op.nn.relu(lv0), name_hint="relu")
            lv2 = bb.emit(relax.op.add(lv1, relax.const(1, "float32")))
            lv3 = bb.emit((lv2 * 2.0 - lv1) / lv2.astype("float32"))
            pair = bb.emit(relax.Tuple((lv3, lv2)))
            gv = bb.emit_output(relax.op.nn.softmax(pair[0] + relax.TupleGetItem(pair, 1), axis=-1))
            assert bb.current_block_is_dataflow() and isinstance(bb.lookup_binding(lv1), graph.Call)
        bb.emit_func_output(gv)
    mod = bb.get()
    assert_structural_equal(parse(mod.script()), mod)
    assert gv.struct_info == graph.TensorInfo((n, m), "float32")
    a, b = np.random.default_rng(0).random((3, 4), "float32"), np.random.default_rng(1).random((4, 8), "float32")
    np.testing.assert_allclose(np.asarray(rd.build(mod)["main"](a, b)), rd.interpret(mod)["main"](a, b), rtol=1e-5)


def test_match_cast_and_parameters_given_at_the_end():
    n = te.var("k", "int64")
    x = relax.Var("x", relax.TensorStructInfo(dtype="float32", ndim=1))
    bb = relax.BlockBuilder()
    with bb.function("f", attrs={"a": 1}, private=True):
        y = bb.match_cast(x, relax.TensorStructInfo((n,), "float32"))
        z = bb.emit(relax.op.exp(y))
        s = bb.emit(relax.ShapeExpr((n,)))
        bb.emit_func_output(relax.Tuple([z, s]), params=x)
    with bb.function("g", x):
        bb.emit_func_output(bb.normalize(relax.op.negative(x)))
    mod = bb.finalize()
    assert mod["f"].params == (x,) and mod["f"].attrs["a"] == 1 and "global_symbol" not in mod["f"].attrs
    assert mod["f"].ret_sinfo.fields[1] == relax.ShapeStructInfo(ndim=1)  # callers do not know k
    assert_structural_equal(parse(mod.script()), mod)


def test_text_dimensions_need_a_script():
    with pytest.raises(TypeError, match="size_var"):
        relax.Var("x", R.Tensor(("n",), "float32"))
