# SPDX-License-Identifier: Apache-2.0
"""The float64 shadow: a module run with every float as a float64 value and a magnitude, for comparing with a fair
tolerance.

The magnitude of a result is the size of what was added up on the way (``|a| + |b|`` for a sum however much cancels), so
rounding errors of any evaluation order are a small multiple of machine epsilon times it. A pair is kept as a
complex128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.errors import RoundelError
from ..ir.module import IRModule
from . import numeric
from .numeric import Machine
from .runtime import Runtime

PAIR = np.dtype(np.complex128)
STEP = 2.0**-20  # relative step of the numeric derivatives that carry magnitudes through functions


@dataclass(frozen=True)
class Shadowed:
    """Results in float64 (integers as they are) and their magnitudes, in the structure of the results."""

    value: Any
    magnitude: Any


def pair(value: Any, magnitude: Any) -> Any:
    """Values with their magnitudes."""
    out = np.empty(np.broadcast_shapes(np.shape(value), np.shape(magnitude)), PAIR)
    out.real, out.imag = value, magnitude
    return out[()]


def _is_pair(x: Any) -> bool:
    return getattr(x, "dtype", None) == PAIR


class Shadow(Machine):
    """Arithmetic on pairs; integers are as on the machine. Storage has 16 bytes for each byte, so any element fits its
    place.
    """

    scale = 16

    def numpy(self, dtype: DType) -> np.dtype:
        """The NumPy type of an element with its magnitude."""
        return PAIR if dtype.is_float else dtype.numpy

    def itemsize(self, dtype: DType) -> int:
        """Bytes of an element with its magnitude."""
        return super().itemsize(dtype) * self.scale

    def lift(self, array: np.ndarray) -> np.ndarray:
        """An array as float64 values with their magnitudes."""
        if _is_pair(array) or not DType(array.dtype).is_float:
            return array
        wide = np.asarray(array).astype(np.float64)
        return pair(wide, np.abs(wide))

    def lower(self, array: np.ndarray, dtype: DType) -> np.ndarray:
        """The values alone, in their own type."""
        return array.real.astype(dtype.numpy) if _is_pair(array) else array

    def blank(self, dtype: DType) -> Any:
        """Memory that nothing was written to."""
        return complex(np.nan, np.nan) if dtype.is_float else super().blank(dtype)

    def const(self, value: Any, dtype: DType) -> Any:
        """A constant, whose magnitude is its absolute value."""
        return pair(float(value), abs(float(value))) if dtype.is_float else super().const(value, dtype)

    def from_index(self, value: Any, dtype: DType) -> Any:
        """An index as data."""
        return (
            pair(np.asarray(value, np.float64), np.abs(value)) if dtype.is_float else super().from_index(value, dtype)
        )

    def binary(self, name: str, a: Any, b: Any, dtype: DType) -> Any:
        """The result of an operator of two operands; the magnitude of a sum is the sum of magnitudes."""
        if not dtype.is_float:
            return super().binary(name, a, b, dtype)
        if name in ("Add", "Sub"):
            return a + b if name == "Add" else a - np.conj(b)
        if name == "Mul":
            value = a.real * b.real
            return pair(value, np.maximum(a.imag * b.imag, np.abs(value)))
        if name in ("Min", "Max"):
            pick = np.minimum if name == "Min" else np.maximum
            return pair(pick(a.real, b.real), np.where(pick(a.real, b.real) == a.real, a.imag, b.imag))
        return self._through(numeric.FLOAT_DIVIDE[name], (a, b))

    def _through(self, fn: Callable, args: Sequence[Any]) -> Any:
        """Any function: its value, and how much it moves when its operands move by their magnitudes."""
        values = [x.real if _is_pair(x) else x for x in args]
        value = np.asarray(fn(*values))
        if value.dtype == np.bool_:
            return value[()]
        magnitude = np.abs(value)
        for k, x in enumerate(args):
            if _is_pair(x):
                moved = fn(*values[:k], x.real + STEP * x.imag, *values[k + 1 :])
                magnitude = magnitude + np.abs(moved - value) / STEP
        return pair(value, np.where(np.isnan(magnitude) & ~np.isnan(value), np.inf, magnitude))

    def compare(self, name: str, a: Any, b: Any) -> Any:
        """A comparison of the values; magnitudes play no part."""
        return super().compare(name, a.real if _is_pair(a) else a, b.real if _is_pair(b) else b)

    def intrinsic(self, name: str, args: list[Any], dtype: DType, result: DType) -> Any:
        """The result of a function of floating-point numbers."""
        if not dtype.is_float:
            return super().intrinsic(name, args, dtype, result)
        if name in ("neg", "abs"):
            return pair(numeric.ANY[name](args[0].real), args[0].imag)
        fn = numeric.ANY.get(name) or numeric.FLOAT.get(name)
        return super().intrinsic(name, args, dtype, result) if fn is None else self._through(fn, args)

    def fma(self, a: Any, b: Any, c: Any, dtype: DType) -> Any:
        """``a * b + c``; in float64 the rounding between does not matter."""
        return self.binary("Add", self.binary("Mul", a, b, dtype), c, dtype) if dtype.is_float else a * b + c

    def cast(self, x: Any, source: DType, to: DType) -> Any:
        """The values in another type; between floating-point types they stay float64."""
        if source.is_float and to.is_float:
            return x
        if source.is_float:
            return super().cast(x.real, DType("float64"), to)
        if to.is_float:
            wide = np.asarray(x).astype(np.float64)
            return pair(wide, np.abs(wide))
        return super().cast(x, source, to)

    def reinterpret(self, x: Any, source: DType, to: DType) -> Any:
        """The bits of the values as another type of the same width."""
        if source.is_float:
            x = x.real.astype(source.numpy)
        out = np.asarray(x).view(to.numpy)[()]
        return self.lift(np.asarray(out))[()] if to.is_float else out

    def reduce(self, name: str, x: np.ndarray) -> Any:
        """A reduction over lanes."""
        if not _is_pair(x):
            return super().reduce(name, x)
        op = {"reduce_add": "Add", "reduce_mul": "Mul", "reduce_max": "Max", "reduce_max_number": "Max", "reduce_min": "Min"}[name]
        out = x[..., :1]
        for k in range(1, x.shape[-1]):
            out = self.binary(op, out, x[..., k : k + 1], DType("float64"))
        return out

    def operator(self, fn: Callable, args: tuple, attrs: Any) -> Any:
        """Magnitudes through an operator: how far results move when operands move at random by their magnitudes."""
        rng = np.random.default_rng(0)
        value = fn(_map(args, lambda x: x.real.copy()), attrs)
        spread = [_moved(fn, args, attrs, rng) for _ in range(3)]
        return _pairs(value, *spread)


def _map(args: Any, fn: Callable) -> Any:
    if isinstance(args, tuple):
        return type(args)(_map(a, fn) for a in args)
    return fn(args) if _is_pair(args) else args


def _moved(fn: Callable, args: tuple, attrs: Any, rng: np.random.Generator) -> Any:
    return fn(_map(args, lambda x: x.real + STEP * x.imag * rng.standard_normal(np.shape(x))), attrs)


def _pairs(value: Any, *moved: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_pairs(v, *(m[k] for m in moved)) for k, v in enumerate(value))
    value = np.asarray(value)
    if not DType(value.dtype).is_float:
        return value
    wide = value.astype(np.float64)
    with np.errstate(all="ignore"):
        shift = sum(np.nan_to_num(np.abs(np.asarray(m).astype(np.float64) - wide)) for m in moved) / STEP
    return pair(wide, np.abs(wide) + 2 * shift)


def shadow_call(
    mod: IRModule, name: str, args: Sequence[Any], *, packed: Mapping[str, Callable] | None = None
) -> Shadowed | None:
    """The results of ``mod[name](*args)`` in float64 with magnitudes (for a tensor program: of all its array
    arguments).

    None when the program cannot be shadowed (foreign functions that insist on their types).
    """
    runtime = Runtime(mod, Shadow(), packed)
    lifted = [_lift(runtime.machine, a) for a in args]
    try:
        out = runtime.call(name, lifted)
    except (RoundelError, TypeError):
        return None
    if out is None:
        out = tuple(a for a in lifted if isinstance(a, np.ndarray))
    return Shadowed(_part(out, lambda x: x.real), _part(out, lambda x: x.imag))


def _lift(machine: Machine, a: Any) -> Any:
    return (
        tuple(_lift(machine, x) for x in a) if type(a) is tuple else machine.lift(a) if isinstance(a, np.ndarray) else a
    )


def _part(out: Any, pick: Callable) -> Any:
    if isinstance(out, tuple):
        return tuple(_part(x, pick) for x in out)
    return pick(out) if _is_pair(out) else out
