# SPDX-License-Identifier: Apache-2.0
"""Arithmetic as machines do it: wrapping, saturation, rounding, NaN, division, and every intrinsic."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundel.interp import lanes, run_prim_func
from roundel.ir import tir
from roundel.ir.dtype import DType
from roundel.ir.errors import InterpretError


def compute(fn, *arrays, out=None):
    """``fn`` of the elements of 1-d arrays, by one loop."""
    n = len(arrays[0])
    buffers = [tir.decl_buffer(n, DType(a.dtype), f"x{k}") for k, a in enumerate(arrays)]
    i = tir.Var("i", DType("int64"))
    value = fn(*(b[i] for b in buffers))
    result = tir.decl_buffer(n, value.dtype, "y")
    params = [tir.Var(b.name, DType("handle")) for b in (*buffers, result)]
    loop = tir.For(i, tir.index_const(0), tir.index_const(n), tir.ForKind.SERIAL, tir.BufferStore(result, value, (i,)))
    y = np.zeros(n, value.dtype.numpy)
    run_prim_func(tir.PrimFunc(tuple(params), loop, tuple(zip(params, (*buffers, result)))), [*arrays, y])
    return y


INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTS)
def test_integers_wrap(dtype):
    info = np.iinfo(dtype)
    a = np.array([info.max, info.min, info.max, 3], dtype)
    b = np.array([1, 1, info.max, 5], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compute(lambda x, y: x + y, a, b), a + b)
        np.testing.assert_array_equal(compute(lambda x, y: x - y, a, b), a - b)
        np.testing.assert_array_equal(compute(lambda x, y: x * y, a, b), a * b)
        np.testing.assert_array_equal(compute(lambda x: tir.const(0, dtype) - x, a), np.negative(a))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_four_divisions(dtype):
    a = np.array([7, -7, 7, -7, 6, 0, np.iinfo(dtype).min], dtype)
    b = np.array([2, 2, -2, -2, 3, 5, 2], dtype)
    np.testing.assert_array_equal(compute(tir.floordiv, a, b), a // b)
    np.testing.assert_array_equal(compute(tir.floormod, a, b), a % b)
    quotient = [math.trunc(int(x) / int(y)) if abs(int(x)) < 2**50 else -(-int(x) // int(y)) for x, y in zip(a, b)]
    np.testing.assert_array_equal(compute(tir.truncdiv, a, b), np.array(quotient, dtype))
    np.testing.assert_array_equal(compute(tir.truncmod, a, b), np.fmod(a, b))


def test_division_by_zero_and_its_guard():
    a, b = np.arange(4, dtype="int32"), np.array([1, 0, 2, 3], "int32")
    with pytest.raises(InterpretError, match="division by zero"):
        compute(tir.floordiv, a, b)
    guarded = compute(lambda x, y: tir.if_then_else(tir.ne(y, 0), tir.floordiv(x, y), -1), a, b)
    assert guarded.tolist() == [0, -1, 1, 1]


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_float_to_int_saturates(dtype, source):
    x = np.array([np.nan, np.inf, -np.inf, 1.9, -1.9, 3e4, -3e4, 0.0], source)
    info = np.iinfo(dtype)
    want = [
        0 if np.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
        for v in x.astype("float64")
    ]
    assert compute(lambda v: tir.cast(v, dtype), x).tolist() == want


def test_min_max_propagate_nan():
    a, b = np.array([1, np.nan, 2, np.nan], "float32"), np.array([np.nan, 1, 3, np.nan], "float32")
    for fn, ref in ((tir.max_, np.maximum), (tir.min_, np.minimum)):
        np.testing.assert_array_equal(compute(fn, a, b), ref(a, b))


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_narrow_floats_round_after_every_operation(dtype):
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(64).astype(dtype) for _ in range(3))
    np.testing.assert_array_equal(compute(lambda x, y, z: x * y + z, a, b, c), a * b + c)
    want = np.exp(a.astype("float32")).astype(dtype)
    np.testing.assert_array_equal(compute(lambda x: tir.call("exp", x), a), want)


UNARY = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: 10.0**x,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "nearbyint": np.rint,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "lgamma": np.vectorize(math.lgamma),
    "tgamma": np.vectorize(math.gamma),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unary_intrinsics(name, dtype):
    x = np.linspace(1.1, 4, 13) if name == "acosh" else np.linspace(0.05, 0.95, 13)
    with np.errstate(all="ignore"):
        want = UNARY[name](x)
    tolerance = 1e-6 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(
        compute(lambda v: tir.call(name, v), x.astype(dtype)), want.astype(dtype), rtol=tolerance, atol=tolerance
    )


def test_rounding_classes_and_bits():
    x = np.array([0.5, 1.5, 2.5, -0.5, -2.5, np.nan, np.inf], "float32")
    for name in ("round", "nearbyint"):  # ties to even, as generated code does
        assert compute(lambda v, name=name: tir.call(name, v), x).tolist()[:5] == [0, 2, 2, 0, -2]
    assert compute(lambda v: tir.call("isnan", v), x).tolist() == [False] * 5 + [True, False]
    assert compute(lambda v: tir.call("isfinite", v), x).tolist() == [True] * 5 + [False, False]
    n = np.array([1, 0, 255, 128], "uint8")
    assert compute(lambda v: tir.call("popcount", v), n).tolist() == [1, 0, 8, 1]
    assert compute(lambda v: tir.call("clz", v), n).tolist() == [7, 8, 0, 0]
    assert compute(lambda v: tir.call("ctz", v), n).tolist() == [0, 8, 0, 7]
    bits = compute(lambda v: tir.call("reinterpret", v, dtype="uint32"), x)
    np.testing.assert_array_equal(bits, x.view("uint32"))
    m = np.array([-8, 7, 1, 0], "int32")
    assert compute(lambda v: v >> 1, m).tolist() == [-4, 3, 0, 0]
    assert compute(lambda v: (v << 3) ^ (v & 6), m).tolist() == [(k << 3) ^ (k & 6) for k in m.tolist()]


def test_fma_rounds_once():
    a = np.array([1 + 2.0**-12], "float32")
    c = np.array([-(1 + 2.0**-11)], "float32")
    assert compute(lambda x, y: tir.call("fma", x, x, y), a, c)[0] == np.float32(2.0**-24)


def test_bool_logic_and_select():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    np.testing.assert_array_equal(compute(lambda x, y: tir.logical_and(x, tir.logical_not(y)), a, b), a & ~b)
    np.testing.assert_array_equal(compute(lambda x, y: tir.logical_or(x, y), a, b), a | b)
    v = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(compute(lambda x, y: tir.select(x, y, tir.const(-1.0)), a, v), np.where(a, v, -1))


index = st.recursive(
    st.one_of(st.integers(-9, 9), st.sampled_from(["i", "j"])),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]), inner, inner),
    max_leaves=7,
)


def _evaluate(e, i, j):
    if isinstance(e, int):
        return e
    if isinstance(e, str):
        return {"i": i, "j": j}[e]
    op, a, b = e[0], _evaluate(e[1], i, j), _evaluate(e[2], i, j)
    if op in ("//", "%"):
        b = 7 if isinstance(b, lanes.Lin | np.ndarray) or b == 0 else b
    table = {
        "+": lanes.add,
        "-": lanes.sub,
        "*": lanes.mul,
        "//": lanes.floordiv,
        "%": lanes.floormod,
        "min": lanes.minimum,
        "max": lanes.maximum,
    }
    return table[op](a, b)


def _scalar(e, i, j, symbolic):
    if isinstance(e, int):
        return e
    if isinstance(e, str):
        return {"i": i, "j": j}[e]
    a, b = _scalar(e[1], i, j, symbolic), _scalar(e[2], i, j, symbolic)
    if e[0] in ("//", "%"):
        divisor = _evaluate(e[2], *symbolic)
        b = 7 if isinstance(divisor, lanes.Lin | np.ndarray) or b == 0 else b
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
    }[e[0]]()


@given(index, st.integers(1, 5), st.integers(1, 4), st.integers(-5, 5))
@settings(max_examples=200, deadline=None)
def test_lane_arithmetic_is_exact(e, n, m, base):
    i, j = lanes.lane(1, n, base), lanes.lane(2, m, 1, 3)
    got = _evaluate(e, i, j)
    lo, hi = lanes.bounds(got)
    full = (
        np.broadcast_to(np.asarray(lanes.dense(got)).reshape(np.shape(lanes.dense(got))), (m, n, 1))
        if np.ndim(lanes.dense(got))
        else np.full((m, n, 1), got)
    )
    for x in range(m):
        for y in range(n):
            want = _scalar(e, base + y, 1 + 3 * x, (i, j))
            assert full[x, y, 0] == want and lo <= want <= hi
