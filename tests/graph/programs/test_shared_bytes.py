# SPDX-License-Identifier: Apache-2.0
"""What goes from kernel to kernel of a quantised model with residual connections: bytes."""

import numpy as np
import pytest

from roundel.driver import LOWER, OPTIMIZE, build_module
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.op import CALL_TIR
from roundel.ops import make
from roundel.passes import run
from roundel.target import Target

from ..functions import function

RNG = np.random.default_rng(0)
WITH = Target({"kind": "llvm", "mcpu": "znver4"})
CHANNELS = 32
SCALE = np.float32(2.0**-4)  # by which nothing is rounded before it is rounded to units


def _residual(low, zero, blocks, pooled=False):
    """Convolutions between pairs of quantising and dequantising, each added to what it is of. ``pooled``: maxima of windows come before."""
    def units(emit, x):
        whole = emit("add", emit("round", emit("multiply", x, np.float32(1) / SCALE)), np.float32(zero))
        return emit("minimum", emit("maximum", whole, np.float32(low)), np.float32(low + 255))

    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        floats = lambda q: emit("multiply", emit("subtract", q, np.float32(zero)), SCALE)
        def convolved(q, size):
            weights = graph.Constant.of(RNG.integers(-9, 9, (CHANNELS, CHANNELS, size, size)).astype(np.int32))
            total = emit("nn.conv2d", emit("subtract", emit("astype", q, dtype="int32"), np.int32(zero)), weights, padding=size // 2)
            return units(emit, emit("multiply", emit("astype", total, dtype="float32"), np.float32(2.0**-9)))

        q = convolved(units(emit, x), 1)
        q = units(emit, emit("nn.max_pool2d", floats(q), pool_size=3, strides=2, padding=1)) if pooled else q
        for _ in range(blocks):
            q = units(emit, emit("nn.relu", emit("add", floats(convolved(convolved(q, 3), 1)), floats(q))))
        return floats(q)

    return function([graph.TensorInfo((1, CHANNELS, 9, 7), "float32")], body)


@pytest.mark.parametrize("low, zero, pooled", [(-128, -128, True), (-128, -13, False), (0, 0, False), (0, 131, True)])
def test_residuals_and_maxima_are_of_bytes(low, zero, pooled):
    mod = _residual(low, zero, blocks=2, pooled=pooled)
    fused = run(mod.replace(attrs=mod.attrs | {"target": WITH}), [*OPTIMIZE, *LOWER])
    made = [b.var.sinfo for b in fused["main"].body.bindings if isinstance(b.value, graph.Call) and b.value.op is CALL_TIR]
    assert {str(info.dtype) for info in made[:-2]} <= {"int8", "uint8"}  # at last comes the model's result, and its order of axes
    x = (RNG.standard_normal((1, CHANNELS, 9, 7)) * 4).astype(np.float32)
    want = interpret(mod)["main"](x)
    np.testing.assert_array_equal(interpret(fused)["main"](x), want)
    np.testing.assert_array_equal(build_module(mod)["main"](x), want)


def test_what_no_product_of_bytes_reads_stays_as_it_is():
    """NaN, too."""
    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        whole = emit("minimum", emit("maximum", emit("round", x), np.float32(0)), np.float32(255))
        return emit("add", emit("multiply", whole, np.float32(0.5)), emit("nn.softmax", whole))

    mod = function([graph.TensorInfo((3, 50), "float32")], body)
    assert "int8" not in run(mod.replace(attrs=mod.attrs | {"target": WITH}), [*OPTIMIZE, *LOWER]).script()
