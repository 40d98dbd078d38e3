# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on typed values as machines do it: integers wrap at their width, floats round after every operation.

Values are NumPy scalars or arrays of exactly the expression's type. ``Machine`` is the table of operations the
evaluator asks; ``shadow.Shadow`` replaces it for float64 with magnitudes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.errors import InterpretError


def _exactly(fn: Callable) -> Callable:
    """A function of Python floats over arrays, in float64."""
    lifted = np.frompyfunc(fn, 1, 1)
    return lambda x: np.asarray(lifted(np.asarray(x, np.float64)), np.float64)[()]


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except (ValueError, OverflowError):
        return math.nan if x < 0 or math.isnan(x) else math.copysign(math.inf, x)


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _exp_flushed(x: Any) -> Any:
    value = np.exp(x)
    return np.where(value < np.finfo(value.dtype).tiny, value.dtype.type(0), value)[()]


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))[()]


erf, erfc, lgamma, tgamma = _exactly(math.erf), _exactly(math.erfc), _exactly(_lgamma), _exactly(_gamma)

FLOAT: dict[str, Callable] = {  # computed in at least float32
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp": np.exp,
    "exp_flushed": _exp_flushed,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
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
    "erf": erf,
    "erfc": erfc,
    "sigmoid": _sigmoid,
    "lgamma": lgamma,
    "tgamma": tgamma,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "nearbyint": np.rint,
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "ldexp": lambda x, n: np.ldexp(x, np.asarray(n).astype(np.int32)),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def _bits(x: Any) -> tuple[Any, int]:
    x = np.asarray(x)
    width = x.dtype.itemsize * 8
    return x.view(f"u{x.dtype.itemsize}"), width


def _clz(x: Any) -> Any:
    u, width = _bits(x)
    count = np.zeros(u.shape, np.int64)
    open_ = np.ones(u.shape, bool)
    for k in range(width - 1, -1, -1):
        open_ = open_ & ((u >> u.dtype.type(k)) & u.dtype.type(1) == 0)
        count = count + open_
    return count


def _ctz(x: Any) -> Any:
    u, width = _bits(x)
    count = np.zeros(u.shape, np.int64)
    open_ = np.ones(u.shape, bool)
    for k in range(width):
        open_ = open_ & ((u >> u.dtype.type(k)) & u.dtype.type(1) == 0)
        count = count + open_
    return count


def _power(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    negative = b < 0
    out = np.power(a, np.where(negative, 0, b).astype(b.dtype))
    unit = (
        np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(out.dtype)
        if np.any(negative)
        else out
    )
    return np.where(negative, unit, out)[()]


def _shift(fn: Callable) -> Callable:
    def apply(a: Any, b: Any) -> Any:
        width = np.asarray(a).dtype.itemsize * 8
        return fn(a, np.asarray(b & (width - 1)).astype(np.asarray(a).dtype))

    return apply


INTEGER: dict[str, Callable] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "shift_left": _shift(np.left_shift),
    "shift_right": _shift(np.right_shift),
    "popcount": lambda x: np.bitwise_count(_bits(x)[0]),
    "clz": _clz,
    "ctz": _ctz,
    "pow": _power,
    "floor": np.positive,
    "ceil": np.positive,
    "trunc": np.positive,
    "round": np.positive,
    "nearbyint": np.positive,
    "isnan": lambda x: np.zeros(np.shape(x), bool)[()],
    "isinf": lambda x: np.zeros(np.shape(x), bool)[()],
    "isfinite": lambda x: np.ones(np.shape(x), bool)[()],
}
ANY: dict[str, Callable] = {"neg": np.negative, "abs": np.abs, "sign": np.sign}
BINARY: dict[str, Callable] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
}
FLOAT_DIVIDE: dict[str, Callable] = {"Div": np.divide, "Mod": np.fmod, "FloorDiv": np.floor_divide, "FloorMod": np.mod}
COMPARE: dict[str, Callable] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _trunc_mod(a: Any, b: Any) -> Any:
    return np.fmod(a, b)


def _trunc_div(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    floor = np.floor_divide(a, b)
    inexact = (floor * b != a) & ((a < 0) != (b < 0)) & (b != 0)  # as in NumPy and in compiled code, a / 0 is 0
    return (floor + inexact.astype(floor.dtype)).astype(a.dtype)[()]


INT_DIVIDE: dict[str, Callable] = {
    "Div": _trunc_div,
    "Mod": _trunc_mod,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
}
DIVISIONS = frozenset(INT_DIVIDE)


def _saturate(x: Any, to: np.dtype) -> Any:
    """Float to integer: truncates, clamps to the range, NaN gives 0."""
    info = np.iinfo(to)
    x = np.trunc(np.asarray(x, np.float64))
    above, below = x >= float(info.max) + (1.0 if info.max < 2**53 else 0.0), x <= float(info.min)
    safe = np.where(above | below | np.isnan(x), 0.0, x)
    out = safe.astype(to)
    return np.where(above, to.type(info.max), np.where(below, to.type(info.min), out)).astype(to)[()]


class Machine:
    """Machine arithmetic. ``scale``: bytes of storage per byte of the program's memory."""

    scale = 1

    def numpy(self, dtype: DType) -> np.dtype:
        """The type that elements are kept as."""
        return dtype.numpy

    def itemsize(self, dtype: DType) -> int:
        """Bytes between elements in storage (1 for packed types, which ``memory`` unpacks)."""
        return dtype.numpy.itemsize if dtype.storage_bits >= 8 else 1

    def lift(self, array: np.ndarray) -> np.ndarray:
        """The caller's elements as the machine keeps them."""
        return array

    def lower(self, array: np.ndarray, dtype: DType) -> np.ndarray:
        """Kept elements as the caller gets them."""
        return array

    def operator(self, fn: Callable, args: tuple, attrs: Any) -> Any:
        """What an operator's NumPy definition gives."""
        return fn(args, attrs)

    def blank(self, dtype: DType) -> Any:
        """What fresh outputs are filled with: NaN, or all bits set."""
        return np.nan if dtype.is_float else -1 if dtype.kind == "int" else 0

    def const(self, value: Any, dtype: DType) -> Any:
        """A Python number, wrapped to the type."""
        if dtype.is_int and dtype.bits >= 8:
            return (
                np.asarray(value & ((1 << dtype.bits) - 1), np.uint64)
                .astype(f"u{dtype.bits // 8}")
                .view(dtype.numpy)[()]
            )
        return np.asarray(value).astype(dtype.numpy)[()]

    def from_index(self, value: Any, dtype: DType) -> Any:
        """An exact integer (Python int or int64 array) as a typed value, wrapped."""
        return self.const(value, dtype) if type(value) is int else np.asarray(value).astype(self.numpy(dtype))[()]

    def binary(self, name: str, a: Any, b: Any, dtype: DType) -> Any:
        """Add, Sub, Mul, Min, Max, Div, Mod, FloorDiv, FloorMod; integer divisors are not 0."""
        fn = BINARY.get(name) or (FLOAT_DIVIDE if dtype.is_float else INT_DIVIDE)[name]
        if dtype.is_bool:
            return {"Add": np.logical_or, "Mul": np.logical_and, "Min": np.logical_and, "Max": np.logical_or}[name](
                a, b
            )
        if dtype.bits < 8:
            wide = np.float32 if dtype.is_float else np.int8 if dtype.kind == "int" else np.uint8
            return self.cast(fn(np.asarray(a, wide), np.asarray(b, wide)), DType(np.dtype(wide)), dtype)
        return (
            self._narrow(fn, (a, b), dtype) if dtype.bits < 32 and dtype.is_float and name not in BINARY else fn(a, b)
        )

    def _narrow(self, fn: Callable, args: tuple, dtype: DType) -> Any:
        out = fn(*(np.asarray(a, np.float32)[()] for a in args))
        return out if np.asarray(out).dtype == np.bool_ else np.asarray(out).astype(dtype.numpy)[()]

    def compare(self, name: str, a: Any, b: Any) -> Any:
        """EQ, NE, LT, LE, GT, GE."""
        return COMPARE[name](a, b)

    def intrinsic(self, name: str, args: list[Any], dtype: DType, result: DType) -> Any:
        """A pure math intrinsic on operands of ``dtype``; raises InterpretError when there is none of that name."""
        table = INTEGER if not dtype.is_float else FLOAT
        fn = ANY.get(name) or table.get(name)
        if fn is None:
            raise InterpretError(f"the interpreter has no {name} for {dtype}")
        if dtype.is_float and dtype.bits < 32 and name not in ANY:
            out = self._narrow(fn, tuple(args), dtype)
        else:
            out = fn(*args)
        want = np.dtype(bool) if result.is_bool else self.numpy(result)
        return out if getattr(out, "dtype", None) == want else np.asarray(out).astype(want)[()]

    def fma(self, a: Any, b: Any, c: Any, dtype: DType) -> Any:
        """a * b + c, in the next wider type so that it rounds once."""
        if dtype.is_float and dtype.bits < 64:
            wide = np.float64 if dtype.bits == 32 else np.float32
            return np.asarray(np.asarray(a, wide) * np.asarray(b, wide) + np.asarray(c, wide)).astype(dtype.numpy)[()]
        return a * b + c

    def cast(self, x: Any, source: DType, to: DType) -> Any:
        """Conversion: integers wrap, float to integer truncates and saturates."""
        if to.is_bool:
            return np.not_equal(x, 0) if not source.is_bool else x
        if source.is_float and to.is_int:
            if to.bits < 8:
                lo, hi = (
                    (-(1 << (to.bits - 1)), (1 << (to.bits - 1)) - 1) if to.kind == "int" else (0, (1 << to.bits) - 1)
                )
                return np.clip(_saturate(x, np.dtype(np.int16)), lo, hi).astype(np.int8).astype(to.numpy)[()]
            return _saturate(x, to.numpy)
        if to.is_int and to.bits < 8:
            low = np.asarray(x).astype(np.int64) & ((1 << to.bits) - 1)
            sign = 1 << (to.bits - 1)
            return (((low ^ sign) - sign) if to.kind == "int" else low).astype(np.int8).astype(to.numpy)[()]
        return np.asarray(x).astype(to.numpy)[()]

    def reinterpret(self, x: Any, source: DType, to: DType) -> Any:
        """The bits of ``x`` as another type of equal width."""
        return np.asarray(x).view(to.numpy)[()]

    def reduce(self, name: str, x: np.ndarray) -> Any:
        """Horizontal reduction over the last dimension, which is kept."""
        fn = {"reduce_add": np.add, "reduce_mul": np.multiply, "reduce_max": np.maximum, "reduce_max_number": np.maximum, "reduce_min": np.minimum}[name]
        out = x[..., :1]
        for k in range(1, x.shape[-1]):
            out = fn(out, x[..., k : k + 1])
        return out
