# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose borders are conditions of loops: no padded copy, no condition in an inner loop, the right results."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import build_module, prepare
from roundel.interp import interpret
from roundel.ir import IRModule, Var, graph, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import statements
from roundel.lower import lower
from roundel.ops import make
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(0)
H, W = Var("h", INT64, True), Var("w", INT64, True)

CASES = [
    ((1, 16, 14, 14), (32, 3, 3), {"strides": 2, "padding": 1}),
    ((2, 16, 9, 30), (16, 5, 5), {"padding": 2}),
    ((1, 32, 7, 29), (48, 3, 3), {"dilation": 3, "padding": 3}),
    ((1, 3, 23, 40), (16, 7, 7), {"strides": 2, "padding": 3}),
    ((1, 16, 11, 61), (16, 3, 4), {"strides": (1, 3), "padding": (0, 2, 1, 5), "dilation": (1, 2)}),
    ((1, 24, 1, 70), (40, 1, 9), {"padding": (0, 4)}),
    ((1, 16, 3, 2), (16, 2, 3), {"padding": 3, "strides": 2}),
    ((1, 32, 10, 17), (32, 3, 3), {"groups": 2, "padding": 1, "strides": 2}),
    ((1, 16, H, 20), (16, 5, 3), {"padding": (2, 1), "strides": 2}),
]


def _module(shape: tuple, kernel: tuple[int, int, int], attrs: dict) -> IRModule:
    weight = RNG.standard_normal((kernel[0], shape[1] // attrs.get("groups", 1), *kernel[1:])).astype("f") / 8
    bias = graph.Constant.of(RNG.standard_normal((1, kernel[0], 1, 1)).astype("f"))

    def body(bb, x):
        return bb.emit(make("nn.relu", bb.emit(make("add", bb.emit(make("nn.conv2d", x, graph.Constant.of(weight), **attrs)), bias))))

    return function([graph.TensorInfo(shape, "float32")], body)


@pytest.mark.parametrize("shape, kernel, attrs", CASES, ids=str)
def test_equals_the_interpreter(shape, kernel, attrs):
    mod = _module(shape, kernel, attrs)
    native = build_module(mod)["main"]
    for h in (1, 2, 7, 16) if shape[2] is H else (shape[2],):
        x = RNG.standard_normal((*shape[:2], h, shape[3])).astype("f")
        np.testing.assert_allclose(native(x), interpret(mod)["main"](x), rtol=1e-4, atol=1e-5)


def test_infinite_weights_beside_the_border_give_no_nan():
    mod = function([graph.TensorInfo((1, 1, 5, 5), "float32")],
                   lambda bb, x: bb.emit(make("nn.conv2d", x, graph.Constant.of(np.full((16, 1, 5, 5), np.inf, "f")), padding=2)))
    assert np.isposinf(build_module(mod)["main"](np.ones((1, 1, 5, 5), "f"))).all()


@pytest.mark.parametrize("shape, kernel, attrs", CASES[:5], ids=str)
def test_nothing_is_copied_and_nothing_asked_inside(shape, kernel, attrs):
    """A kernel has one memory less, and its innermost loops are straight code."""
    mod = prepare(_module(shape, kernel, attrs), target=Target("llvm -mcpu=skylake-avx512"))
    kernels = {n: f for n, f in mod.items() if isinstance(f, tir.PrimFunc) and "conv" in n}
    assert len(kernels) == 1 and "_pad" not in mod.script()
    loops = [s for f in lower(IRModule(kernels).replace(attrs=mod.attrs)).functions.values() for s in statements(f.body) if type(s) is tir.For]
    inner = [s for s in loops if not any(type(n) is tir.For for n in statements(s.body))]
    assert inner and not any(type(n) is tir.If for s in inner for n in statements(s.body))


@pytest.mark.parametrize("shape, kernel, attrs", [
    ((1, 16, H, W), (24, 2, 2), {"padding": (0, 0, 1, 1)}),
    ((1, 24, H, W), (40, 3, 3), {"strides": 2, "padding": 1}),
    ((1, 16, H, W), (12, 2, 3), {"strides": (1, 3), "padding": (0, 3, 1, 2), "dilation": (1, 2)}),
], ids=str)
def test_pictures_of_any_width(shape, kernel, attrs):
    """Vectors and rows of the register tile are whole wherever they are."""
    mod = _module(shape, kernel, attrs)
    native, reference = build_module(mod)["main"], interpret(mod)["main"]
    for h, w in ((1, 1), (2, 3), (5, 17), (3, 40)):
        x = RNG.standard_normal((*shape[:2], h, w)).astype("f")
        np.testing.assert_allclose(native(x), reference(x), rtol=1e-4, atol=1e-5)
    mod = prepare(mod, target=Target("llvm -mcpu=skylake-avx512"))
    conv = {n: f for n, f in mod.items() if isinstance(f, tir.PrimFunc) and "conv" in n}
    loops = [s for f in lower(IRModule(conv).replace(attrs=mod.attrs)).functions.values() for s in statements(f.body) if type(s) is tir.For]
    inner = [list(statements(s.body)) for s in loops if not any(type(n) is tir.For for n in statements(s.body))]
    sums = [s for s in inner if any(type(n) is tir.BufferStore and n.buffer.scope == "local" for n in s)]
    assert sums and not any(type(n) is tir.If or (type(n) is tir.BufferStore and _keeps_lanes(n.value)) for s in sums for n in s)


def _keeps_lanes(value: tir.Expr) -> bool:
    """Whether some lanes of what is stored are those that were there."""
    return type(value) is tir.Select and type(value.false_value) is tir.BufferLoad


@pytest.mark.parametrize("window", [
    lambda x: make("nn.conv2d", x, graph.Constant.of(RNG.standard_normal((16, 1, 5, 5)).astype("f")), padding=2, groups=16, data_layout="NHWC"),
    lambda x: make("nn.max_pool2d", x, pool_size=(5, 5), padding=2, layout="NHWC"),
], ids=["depthwise", "maximum"])
def test_rows_of_a_window_are_a_loop_that_leaves_out_the_border(window):
    mod = function([graph.TensorInfo((1, H, W, 16), "float32")], lambda bb, x: bb.emit(window(x)))
    native, reference = build_module(mod)["main"], interpret(mod)["main"]
    for h, w in ((1, 1), (6, 9)):
        x = RNG.standard_normal((1, h, w, 16)).astype("f") - 3
        np.testing.assert_allclose(native(x), reference(x), rtol=1e-4, atol=1e-5)
    kernels = [f for _, f in lower(prepare(mod, target=Target.host())).items() if isinstance(f, tir.PrimFunc)]
    # 5 x 8 steps, whole, at edges, and for tiles of half the height; not 5 x 5 x 8 each
    assert sum(type(s) is tir.BufferStore for f in kernels for s in statements(f.body)) < 650
