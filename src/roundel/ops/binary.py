# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparison and logic of two operands, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir

from .elementwise import binary, comparison


def _divide(x: Any, y: Any) -> Any:
    return x / y if x.dtype.is_float else tir.truncdiv(x, y)


def _np_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return x / y
    q = np.floor_divide(x, y)
    return q + ((x - q * y != 0) & ((x < 0) != (y < 0)) & (y != 0))  # x / 0 is 0


def _floor_divide(x: Any, y: Any) -> Any:
    return te.floor(x / y) if x.dtype.is_float else tir.floordiv(x, y)


def _mod(x: Any, y: Any) -> Any:
    """Remainder with the dividend's sign (C's)."""
    return tir.call("fmod", x, y) if x.dtype.is_float else tir.truncmod(x, y)


def _floor_mod(x: Any, y: Any) -> Any:
    """Remainder with the divisor's sign (Python's)."""
    if not x.dtype.is_float:
        return tir.floormod(x, y)
    r = tir.call("fmod", x, y)
    return te.select(te.logical_and(te.ne(r, 0.0), te.ne(r < 0.0, y < 0.0)), r + y, r)


def _power(x: Any, y: Any) -> Any:
    if x.dtype.is_float:
        return te.power(x, y)
    one = tir.const(1, x.dtype)
    out, base = one, x
    for bit in range(6):  # larger exponents overflow for every base but -1, 0 and 1
        out = out * te.select(te.ne((y >> bit) & 1, 0), base, one)
        base = base * base
    unit = te.select(
        te.eq(x, 1), one, te.select(te.eq(x, 0), tir.const(0, x.dtype), te.select(te.eq(y & 1, 0), one, x))
    )
    small = te.logical_and(x >= -1, x <= 1) if x.dtype.kind == "int" else x <= 1
    out = te.select(te.logical_and(small, te.ne(y, 0)), unit, te.select(y > 63, tir.const(0, x.dtype), out))
    return te.select(y < 0, te.select(small, unit, tir.const(0, x.dtype)), out)


def _np_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.power(x, y)
    flat = [_int_power(int(a), int(b), x.dtype) for a, b in zip(*map(np.ravel, np.broadcast_arrays(x, y)))]
    return np.array(flat, x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))


def _int_power(a: int, b: int, dtype: np.dtype) -> Any:
    """Wrapped to the width; exponents below 0 truncate, exponents above 63 of other bases than -1, 0, 1 give 0."""
    if b < 0:
        return (1 if b % 2 == 0 else a) if a in (1, -1) else 0
    value = a ** (b if abs(a) > 1 else b % 2 + 2 * (b > 0)) if b <= 63 or abs(a) <= 1 else 0
    return np.array(value & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").astype(dtype)


def _log_add_exp(x: Any, y: Any) -> Any:
    """Without overflow; of equal infinities that infinity."""
    far = te.max_(x, y)
    apart = te.select(te.eq(x, y), tir.const(0, x.dtype), te.abs(x - y))
    return far + te.log1p(te.exp(tir.const(0, x.dtype) - apart))


def _shift_left(x: Any, y: Any) -> Any:
    """Shifts outside the width leave nothing."""
    inside = te.logical_and(y >= 0, y < x.dtype.bits)
    return te.select(inside, x << te.select(inside, y, 0), tir.const(0, x.dtype))


def _shift_right(x: Any, y: Any) -> Any:
    """Of signed integers with their sign; shifts outside the width leave nothing but the sign."""
    bits = x.dtype.bits
    inside = te.logical_and(y >= 0, y < bits)
    out = x >> te.select(inside, y, bits - 1)
    return out if x.dtype.kind == "int" else te.select(inside, out, tir.const(0, x.dtype))


def _xor(x: Any, y: Any) -> Any:
    return te.ne(x, y) if x.dtype.is_bool else x ^ y


binary("add", lambda x, y: x + y, np.add, accepts="number", widen=False)
binary("subtract", lambda x, y: x - y, np.subtract, accepts="number", widen=False)
binary("multiply", lambda x, y: x * y, np.multiply, accepts="number", widen=False)
binary("divide", _divide, _np_divide, accepts="number", widen=False, doc="x1 / x2; of integers rounded toward zero")
binary(
    "trunc_divide",
    lambda x, y: te.trunc(x / y) if x.dtype.is_float else tir.truncdiv(x, y),
    lambda x, y: np.trunc(_np_divide(x, y)),
    accepts="number",
    doc="x1 / x2 rounded toward zero",
)
binary("floor_divide", _floor_divide, np.floor_divide, accepts="number", doc="x1 / x2 rounded down")
binary("mod", _mod, np.fmod, accepts="number", doc="remainder with the sign of x1")
binary("floor_mod", _floor_mod, np.mod, accepts="number", doc="remainder with the sign of x2")
binary("power", _power, _np_power, accepts="number")
binary("atan2", lambda x, y: tir.call("atan2", x, y), np.arctan2)
binary("log_add_exp", _log_add_exp, np.logaddexp, accepts="float", doc="log(e ** x1 + e ** x2), without overflow")
binary("maximum", te.max_, np.maximum, accepts="number", widen=False, doc="the larger; NaN when either is")
binary("minimum", te.min_, np.minimum, accepts="number", widen=False, doc="the smaller; NaN when either is")
binary("bitwise_and", lambda x, y: te.logical_and(x, y) if x.dtype.is_bool else x & y, np.bitwise_and, accepts="bits")
binary("bitwise_or", lambda x, y: te.logical_or(x, y) if x.dtype.is_bool else x | y, np.bitwise_or, accepts="bits")
binary("bitwise_xor", _xor, np.bitwise_xor, accepts="bits")
binary("left_shift", _shift_left, np.left_shift, accepts="int")
binary("right_shift", _shift_right, np.right_shift, accepts="int")
binary("logical_and", te.logical_and, np.logical_and, accepts="bool")
binary("logical_or", te.logical_or, np.logical_or, accepts="bool")
binary("logical_xor", te.ne, np.logical_xor, accepts="bool")

for _name, _fn, _ref in (("equal", te.eq, np.equal), ("not_equal", te.ne, np.not_equal)):
    comparison(_name, _fn, _ref)
for _name, _fn, _ref in (
    ("less", tir.lt, np.less),
    ("less_equal", tir.le, np.less_equal),
    ("greater", tir.gt, np.greater),
    ("greater_equal", tir.ge, np.greater_equal),
):
    comparison(_name, _fn, _ref, "number")
