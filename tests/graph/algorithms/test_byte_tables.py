# SPDX-License-Identifier: Apache-2.0
"""Functions of bytes become tables of their 256 values, and give what the operators gave."""

import numpy as np
import pytest

import roundel as rd
from roundel.driver import prepare
from roundel.graph.algorithms.byte_tables import byte_tables
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ops import make
from roundel.target import Target

from ..functions import calls, function
from ..running import agree

ALL = np.arange(256, dtype=np.uint8)
F = np.float32


def _emitter(bb):
    return lambda *a, **k: bb.emit(make(*a, **k))


def _quantised(emit, x, scale, zero):
    """What QuantizeLinear makes of floats, still as floats."""
    return emit("minimum", emit("maximum", emit("add", emit("round", emit("multiply", x, F(1 / scale))), F(zero)), F(0)), F(255))


def _floats(emit, q, scale, zero):
    return emit("multiply", emit("subtract", q, F(zero)), F(scale))


def _gelu(shape, dtype="uint8", weights=None):
    """GELU as quantisers write it, rounded after each operator; of bytes, or of a product of them with weights."""

    def body(bb, x):
        emit = _emitter(bb)
        if weights is not None:
            sums = emit("astype", emit("matmul", x, graph.Constant.of(weights), out_dtype="int32"), dtype="float32")
            q = _quantised(emit, emit("multiply", sums, F(6e-5)), 0.03, 128)
        else:
            q = emit("astype", x, dtype="float32")
        y = _floats(emit, q, 0.03, 128 if dtype == "uint8" else -3)
        inner = _quantised(emit, emit("multiply", y, F(0.5**0.5)), 0.02, 127)
        erf = _quantised(emit, emit("erf", _floats(emit, inner, 0.02, 127)), 2 / 255, 128)
        one = _quantised(emit, emit("add", _floats(emit, erf, 2 / 255, 128), F(1)), 2 / 255, 0)
        out = emit("multiply", emit("multiply", y, _floats(emit, one, 2 / 255, 0)), F(0.5))
        return emit("astype", _quantised(emit, out, 0.016, 11), dtype="uint8")

    return function([graph.TensorInfo(shape, dtype)], body)


def _on(mod, target):
    return byte_tables(mod.replace(attrs=mod.attrs | {"target": Target(target)}))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_chain_of_roundings_from_bytes_to_bytes_is_one_table(dtype):
    mod = _gelu((4, 64), dtype)
    x = ALL.view(dtype).reshape(4, 64)
    made = _on(mod, "znver4")
    assert "nn.byte_table" in calls(made)
    np.testing.assert_array_equal(interpret(made)["main"](x), interpret(mod)["main"](x))
    assert "erf" not in prepare(mod, target=Target("znver4")).script()


@pytest.mark.parametrize("columns", [64, 61, 16, 3])
def test_tables_are_looked_up_behind_products(columns):
    """In the vectors of a product's results, whole ones and rests. A sum in the middle between two bytes may be rounded to either."""
    rng = np.random.default_rng(columns)
    mod = _gelu((37, 64), weights=rng.integers(-127, 128, (64, columns)).astype(np.int8))
    x = rng.integers(0, 256, (37, 64)).astype(np.uint8)
    want = interpret(mod)["main"](x)
    assert len(np.unique(want)) > 25
    for target in ("host", "x86-64-v3"):
        made = rd.compile(mod, target=target)(x)
        assert (made == want).mean() > 0.98
        assert np.abs(made.astype(int) - want).max() <= 4


@pytest.mark.parametrize("size", [1, 15, 16, 64, 100, 1000])
def test_tables_of_vectors_of_any_length(size):
    mod = _gelu((size,))
    agree(mod, (np.resize(ALL[::-1], size),))


def test_short_chains_and_other_machines_keep_their_operators():
    def short(bb, x):
        emit = _emitter(bb)
        return _quantised(emit, _floats(emit, emit("astype", x, dtype="float32"), 0.1, 3), 0.2, 7)

    mod = function([graph.TensorInfo((64,), "uint8")], short)
    assert _on(mod, "znver4")["main"] is mod["main"]
    assert _on(_gelu((64,)), "skylake")["main"] is not None and "nn.byte_table" not in calls(_on(_gelu((64,)), "skylake"))


def test_functions_of_two_tensors_are_no_tables():
    def both(bb, x, y):
        emit = _emitter(bb)
        a, b = (_floats(emit, emit("astype", v, dtype="float32"), 0.1, 3) for v in (x, y))
        return _quantised(emit, emit("tanh", emit("multiply", a, b)), 0.2, 7)

    mod = function([graph.TensorInfo((64,), "uint8")] * 2, both)
    assert _on(mod, "znver4")["main"] is mod["main"]
