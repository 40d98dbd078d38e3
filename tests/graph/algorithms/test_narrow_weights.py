# SPDX-License-Identifier: Apache-2.0
"""Narrow weights stay narrow in memory and are widened where they are multiplied; the option makes wide ones narrow."""

import numpy as np
import pytest

import roundel as rd
from roundel.graph.algorithms.narrow_weights import narrow_weights
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.fold_constants import fold_constants
from roundel.ir import graph, options
from roundel.ir.dtype import DType
from roundel.ops import make

from ..functions import calls, function, same_results

RNG = np.random.default_rng(11)
X = RNG.standard_normal((3, 128)).astype("float32")


def _const(dtype="float32", shape=(128, 130)):
    return graph.Constant.of(RNG.standard_normal(shape).astype(DType(dtype).numpy))


def _narrowed(mod):
    return eliminate_dead_code(fold_constants(narrow_weights(mod)))


def _constants(mod):
    found, stack = [], [b.value for b in mod["main"].body.bindings]
    while stack:
        value = stack.pop()
        found += [str(value.data.dtype)] if isinstance(value, graph.Constant) else []
        stack += getattr(value, "args", ()) or getattr(value, "fields", ())
    return sorted(found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_widened_constant_is_widened_in_the_product(dtype, turned):
    def body(bb, x):
        wide = bb.emit(make("astype", _const(dtype, (130, 128) if turned else (128, 130)), dtype="float32"))
        return make("matmul", x, bb.emit(make("permute_dims", wide)) if turned else wide)

    mod = function([graph.TensorInfo((3, 128), "float32")], body)
    out = _narrowed(mod)
    assert calls(out) == ["matmul"] and _constants(out) == [dtype]
    same_results(mod, out, X, rtol=1e-5)
    np.testing.assert_allclose(rd.build(out)["main"](X), rd.interpret(mod)["main"](X), rtol=1e-4, atol=1e-4)


def test_results_and_constants_of_other_types_stay():
    mod = function([graph.TensorInfo((3, 128), "float32")], lambda bb, x: make("matmul", x, _const()))
    assert narrow_weights(mod)["main"] is mod["main"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_option_rounds_large_weights_of_products_and_tables(dtype):
    table, weight, small = _const(shape=(200, 128)), _const(), _const(shape=(130, 5))

    def body(bb, x, rows):
        both = bb.emit(make("add", x, bb.emit(make("take", table, rows, axis=0))))
        return make("matmul", bb.emit(make("matmul", both, weight)), small)

    mod = function([graph.TensorInfo((3, 128), "float32"), graph.TensorInfo((3,), "int64")], body)
    with options.override(weights=dtype):
        out = _narrowed(mod)
    assert _constants(out) == sorted([dtype, dtype, "float32"])
    rows = np.array([0, 199, 7])
    narrow = DType(dtype).numpy
    rounded = [c.data.numpy().astype(narrow).astype("float32") for c in (table, weight)]
    np.testing.assert_allclose(rd.interpret(out)["main"](X, rows), (X + rounded[0][rows]) @ rounded[1] @ small.data.numpy(), rtol=2e-4, atol=2e-3)


def test_values_beyond_the_narrow_range_saturate():
    values = np.full((128, 130), 1e6, "float32")
    values[0, :2] = np.inf, np.nan
    mod = function([graph.TensorInfo((3, 128), "float32")], lambda bb, x: make("matmul", x, graph.Constant.of(values)))
    with options.override(weights="float16"):
        stored = narrow_weights(mod)["main"].body.bindings[-1].value.args[1].data.numpy()
    assert stored.dtype == np.float16 and stored[1, 0] == np.finfo(np.float16).max and np.isinf(stored[0, 0]) and np.isnan(stored[0, 1])
