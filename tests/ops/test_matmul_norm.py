# SPDX-License-Identifier: Apache-2.0
"""Matrix products, reductions, normalisation."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel import te
from roundel.ir import graph
from roundel.ir.errors import TypeInferenceError
from roundel.ir.op import all_ops
from roundel.ops import make
from roundel.ops.reduce import Reduction

N = {"n": 3}
REDUCTIONS = {n: o for n, o in all_ops().items() if isinstance(o, Reduction)}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    dtypes = {"bool": ["bool"], "float": ["float32", "bfloat16"], "number": ["float32", "float16", "int32"]}[
        REDUCTIONS[name].accepts
    ]
    low = 0.1 if name == "reduce_log_sum" else -1.0
    for dtype in dtypes:
        for axis, keep in ((None, False), ((0, -1), True), (1, False)):
            opcheck(name, T("n", 5, 4, dtype=dtype, low=low, high=1.5), dims=N, axis=axis, keepdims=keep)
    opcheck(name, T(3, dtype=dtypes[0], low=low), axis=())
    if name not in ("reduce_log_sum_exp",):
        opcheck(name, T(2, 0, 3, dtype=dtypes[0]), axis=1)


def test_max_and_min_keep_nan():
    for name in ("max", "min"):
        opcheck(name, T(values=[[1.0, np.nan, 2.0], [3.0, -np.inf, np.inf]]), axis=1)


@pytest.mark.parametrize(
    "a, b",
    [
        ((5, 7), (7, 3)),
        (("n", 5, 7), (7, 3)),
        (("n", 1, 5, 7), (4, 7, 3)),
        ((7,), (7, 3)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        (("n", 5, 7), ("n", 7, 3)),
        ((2, "n", 7), (7,)),
        ((7,), (2, 7, "n")),
        ((2, 0), (0, 3)),
    ],
)
def test_matmul(a, b):
    opcheck("matmul", T(*a), T(*b), dims=N)


def test_matmul_types():
    opcheck("matmul", T(5, 70, dtype="float16"), T(70, 3, dtype="float16"))
    opcheck("matmul", T(5, 7, dtype="bfloat16"), T(7, 3, dtype="bfloat16"), out_dtype="float32")
    opcheck("matmul", T(2, "n", 33, dtype="float16"), T(2, 33, 40, dtype="float16"), dims=N)
    opcheck("matmul", T("n", 33, dtype="bfloat16"), T(3, 33, 17, dtype="bfloat16"), dims=N)
    opcheck("matmul", T(5, 70, dtype="int8", high=30), T(70, 3, dtype="int8", high=30), out_dtype="int32")
    opcheck("linear", T("n", 5), T(7, 5), T(7), dims=N)
    opcheck("linear", T("n", 2, 5), T(7, 5), dims=N)


@pytest.mark.parametrize(
    "subscripts, dims",
    [
        ("ij,jk->ik", [("n", 4), (4, 5)]),
        ("bij,bkj->bik", [(2, "n", 4), (2, 5, 4)]),
        ("ii->i", [(4, 4)]),
        ("ij->", [("n", 4)]),
        ("ij->ji", [("n", 4)]),
        ("...ij,...jk->...ik", [(2, "n", 4), (1, 4, 5)]),
        ("i,j", [("n",), (4,)]),
        ("bhqd,bhkd->bhqk", [(2, 2, "n", 3), (2, 2, 4, 3)]),
        ("ij,ij,ij->i", [(3, 4)] * 3),
    ],
)
def test_einsum(subscripts, dims):
    opcheck("einsum", tuple(T(*d) for d in dims), dims=N, subscripts=subscripts)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_norms(dtype):
    t = lambda *d, **kw: T(*d, dtype=dtype, **kw)
    opcheck("nn.layer_norm", t("n", 5, 7), t(7), t(7), dims=N)
    opcheck("nn.layer_norm", t("n", 5, 7), t(5, 7), t(5, 7), dims=N, axes=(-2, -1))
    opcheck("nn.layer_norm", t("n", 5, 7), dims=N, axes=(1, 2))
    opcheck("nn.rms_norm", t("n", 5, 7), t(7), dims=N)
    opcheck("nn.instance_norm", t("n", 4, 5, 2), t(4), t(4), dims=N)
    opcheck("nn.group_norm", t("n", 6, 5, 2), t(6), t(6), dims=N, num_groups=3)
    opcheck("nn.group_norm", t("n", 5, 6), t(6), t(6), dims=N, num_groups=2, channel_axis=-1)
    opcheck("nn.batch_norm", t("n", 4, 5), t(4), t(4), t(4), t(4, low=0.5), dims=N)
    opcheck("nn.batch_norm", t("n", 5, 4), t(4), t(4), t(4), t(4, low=0.5), dims=N, axis=-1, scale=False, center=False)
    opcheck("nn.batch_norm", t("n", 4, 5), t(4), t(4), t(4), t(4, low=0.5), dims=N, training=True)
    opcheck("nn.lrn", t("n", 7, 3), dims=N, size=4, alpha=0.1)
    opcheck("nn.lrn", t(2, 2, 3), size=5)
    opcheck("nn.l2_normalize", t("n", 5), dims=N)


def test_softmax():
    for name in ("nn.softmax", "nn.log_softmax"):
        opcheck(name, T("n", 5, 7), dims=N)
        opcheck(name, T("n", 5, 7, dtype="bfloat16"), dims=N, axis=0)
        opcheck(name, T(values=[[1e30, -1e30, 0.0], [-np.inf, 0.0, 1.0], [500.0, 499.0, 400.0]]))
        opcheck(name, T(values=[[np.nan, 1.0]]))


def test_misuse():
    n = te.size_var("n")
    x, y = graph.Var("x", graph.TensorInfo((n, 4), "float32")), graph.Var("y", graph.TensorInfo((5, n), "float32"))
    for call, message in (
        (lambda: make("matmul", x, y), "inner dimensions 4 and 5"),
        (lambda: make("sum", x, axis=2), "out of range"),
        (lambda: make("nn.layer_norm", x, y), "does not have the shape"),
        (lambda: make("einsum", (x, y), subscripts="ij,jk"), "do not broadcast"),
    ):
        with pytest.raises(TypeInferenceError, match=message):
            call()
