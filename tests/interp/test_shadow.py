# SPDX-License-Identifier: Apache-2.0
"""The float64 shadow and the tolerance it gives."""

from __future__ import annotations

import numpy as np

from roundel.interp import compare, interpret, run_prim_func, shadow_call
from roundel.ir import IRModule
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


@T.prim_func
def dot(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1,), "float32")):
    C[0] = 0.0
    for i in range(1000):
        C[0] = C[0] + A[i] * B[i]


def test_magnitude_measures_cancellation():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(1000).astype("float32")
    b = np.concatenate([a[500:], -a[:500]]).astype("float32")  # the dot product is exactly 0
    c = np.zeros(1, "float32")
    shadow = shadow_call(IRModule({"dot": dot}), "dot", [a, b, c])
    value, magnitude = shadow.value[2], shadow.magnitude[2]
    assert abs(value[0]) < 1e-10
    np.testing.assert_allclose(magnitude[0], np.abs(a.astype("float64") * b).sum(), rtol=1e-9)
    run_prim_func(dot, [a, b, c])
    assert compare((a, b, c), shadow.value, shadow.magnitude) is None
    wrong = c + np.float32(0.1)
    difference = compare((a, b, wrong), shadow.value, shadow.magnitude)
    assert difference is not None and difference.output == "output[2]"


def test_views_and_functions_in_the_shadow():
    @T.prim_func
    def softmax(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4, 9), "float32")):
        m = T.alloc_buffer((4,), "float32")
        s = T.alloc_buffer((4,), "float32")
        for i in range(4):
            m[i] = T.min_value("float32")
            s[i] = 0.0
            for j in range(9):
                m[i] = T.max(m[i], A[i, j])
            for j in range(9):
                s[i] = s[i] + T.exp(A[i, j] - m[i])
            for j in range(9):
                B[i, j] = T.exp(A[i, j] - m[i]) / s[i]

    a, b = np.random.default_rng(1).standard_normal((4, 9)).astype("float32"), np.zeros((4, 9), "float32")
    shadow = shadow_call(IRModule({"main": softmax}), "main", [a, b])
    wide = a.astype("float64")
    want = np.exp(wide - wide.max(1, keepdims=True))
    np.testing.assert_allclose(shadow.value[1], want / want.sum(1, keepdims=True), rtol=1e-12)
    run_prim_func(softmax, [a, b])
    assert compare((a, b), shadow.value, shadow.magnitude) is None
    assert compare((a, b * np.float32(1.01)), shadow.value, shadow.magnitude) is not None


def test_graph_functions():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((8,), "float32"), y: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            z = R.add(x, y)
            w = R.multiply(z, z)
            return w

    x = np.full(8, 1e6, "float32")
    y = -x + np.float32(0.5)
    shadow = shadow_call(Module, "main", [x, y])
    np.testing.assert_allclose(shadow.value, 0.25)
    assert (shadow.magnitude > 1e4).all()
    assert compare(interpret(Module)["main"](x, y), shadow.value, shadow.magnitude) is None


def test_compare_without_magnitude():
    x = np.array([1.0, np.nan, np.inf, -3.0], "float32")
    assert compare(x, x) is None
    assert compare(x, np.where(np.isnan(x), 0, x)).count == 1
    assert compare(x[:2], x) is not None
    assert compare(np.array([1, 2]), np.array([1, 3])).index == (1,)
    assert compare((x, x), (x,)) is not None
    assert str(compare(np.float32([1, 2]), np.float32([1, 3]))).startswith("output[1] is 2.0, expected 3.0")
