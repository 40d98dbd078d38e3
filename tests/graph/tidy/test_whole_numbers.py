# SPDX-License-Identifier: Apache-2.0
"""What quantised models have between their integers becomes arithmetic on whole floats, with the same results."""

import numpy as np
import pytest

from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.simplify import simplify as rewrite
from roundel.ir import graph, options
from roundel.ops import make

from ..functions import calls, function, same_results


def simplify(mod):
    return eliminate_dead_code(rewrite(mod))


X = np.concatenate([np.linspace(-40, 40, 4001), [0.0, -0.0, 1e30, -1e30, np.inf, -np.inf]]).astype("float32")


def _pair(dtype, scale, zero):
    """QuantizeLinear and DequantizeLinear as they are imported."""
    info = np.iinfo(dtype)

    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        whole = emit("add", emit("round", emit("divide", x, np.float32(scale))), np.float32(zero))
        q = emit("astype", emit("minimum", emit("maximum", whole, np.float32(info.min)), np.float32(info.max)), dtype=dtype)
        wide = emit("subtract", emit("astype", q, dtype="int32"), graph.Constant.of(np.int32(zero)))
        return emit("multiply", emit("astype", wide, dtype="float32"), np.float32(scale))

    return function([graph.TensorInfo(X.shape, "float32")], body)


@pytest.mark.parametrize("dtype, zero", [("uint8", 128), ("int8", -3), ("uint8", 0), ("int16", 7)])
def test_a_pair_needs_no_integers(dtype, zero):
    mod = _pair(dtype, 0.25, zero)
    new = simplify(mod)
    assert "astype" not in calls(new)
    same_results(mod, new, X, rtol=0, atol=0)


def test_division_by_a_scale_becomes_a_product_unless_strict():
    mod = _pair("uint8", 0.3, 10)
    assert "divide" not in calls(simplify(mod))
    with options.override(accuracy="strict"):
        new = simplify(mod)
    assert "divide" in calls(new)
    same_results(mod, new, X, rtol=0, atol=0)


@pytest.mark.parametrize("low, high", [(0.5, 200.0), (0.0, 300.0), (-1.0, 255.0)])
def test_what_may_not_fit_is_converted(low, high):
    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        v = emit("minimum", emit("maximum", emit("round", x), np.float32(low)), np.float32(high))
        return emit("astype", emit("astype", v, dtype="uint8"), dtype="float32")

    mod = function([graph.TensorInfo(X.shape, "float32")], body)
    assert calls(simplify(mod)).count("astype") == 2


@pytest.mark.parametrize("total", ["sum", "mean"])
def test_whole_numbers_are_summed_before_they_are_scaled(total):
    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        whole = emit("minimum", emit("maximum", emit("round", x), np.float32(0)), np.float32(255))
        return emit(total, emit("multiply", emit("subtract", whole, np.float32(3)), np.float32(0.3)), axis=(1,))

    mod = function([graph.TensorInfo((5, 40), "float32")], body)
    new = simplify(mod)
    assert calls(new)[-2:] == [total, "multiply"]
    x = np.random.default_rng(1).uniform(-20, 300, (5, 40)).astype(np.float32)
    same_results(mod, new, x, rtol=1e-6)
