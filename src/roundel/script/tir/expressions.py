# SPDX-License-Identifier: Apache-2.0
"""Expressions of tensor programs that are not operators of Python: choices, vectors, limits, and exact forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ...ir import tir
from ...ir.dtype import DType
from ...ir.scalable import lanes_of
from ...ir.visit import substitute
from ..regions import operand
from .types import pair


def Range(start: Any, extent: Any) -> Any:
    """An index item of ``extent`` values from ``min``, where ``start:stop`` cannot say it."""
    return tir.Range(tir.as_index(start), tir.as_index(extent))


def _exact(cls: type) -> Callable[[Any, Any], Any]:
    def build(a: Any, b: Any) -> Any:
        return cls(*pair(a, b))

    build.__name__, build.__doc__ = cls.__name__, f"{cls.__doc__} Built as written, nothing folded."
    return build


Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or = (_exact(c) for c in tir.BINARY)


def _folding(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def build(a: Any, b: Any) -> Any:
        return fn(*pair(a, b))

    build.__name__, build.__doc__ = fn.__name__, fn.__doc__
    return build


truncdiv, truncmod, floordiv, floormod, ceildiv, min, max = (  # noqa: A001
    _folding(f) for f in (tir.truncdiv, tir.truncmod, tir.floordiv, tir.floormod, tir.ceildiv, tir.min_, tir.max_)
)


def Not(a: Any) -> tir.Expr:
    """Negation, built as written."""
    return tir.Not(tir.const(a))


def div(a: Any, b: Any) -> tir.Expr:
    """Division of floats; of integers rounded toward zero."""
    return truncdiv(operand(a), operand(b))


def cast(value: Any, dtype: Any) -> tir.Expr:
    """``value`` as ``dtype``."""
    return tir.cast(operand(value), getattr(dtype, "dtype", dtype))


def Cast(dtype: Any, value: Any) -> tir.Expr:
    """``value`` as ``dtype``, built as written."""
    return tir.Cast(DType(getattr(dtype, "dtype", dtype)), tir.const(operand(value)))


def Select(condition: Any, true_value: Any, false_value: Any) -> tir.Expr:
    """Eager choice."""
    return tir.Select(tir.ops._truth(operand(condition)), *pair(true_value, false_value))


def if_then_else(condition: Any, true_value: Any, false_value: Any, dtype: Any = None) -> tir.Expr:
    """Lazy choice: only the chosen value is evaluated."""
    return tir.IfThenElse(tir.ops._truth(operand(condition)), *pair(true_value, false_value))


def all(*conditions: Any) -> tir.Expr:  # noqa: A001  # TVM's name
    """Whether all of one or more conditions hold, as ``and`` between them says. Raises ValueError for none."""
    return _joined("all", tir.logical_and, conditions)


def any(*conditions: Any) -> tir.Expr:  # noqa: A001  # TVM's name
    """Whether one of one or more conditions holds, as ``or`` between them says. Raises ValueError for none."""
    return _joined("any", tir.logical_or, conditions)


def _joined(name: str, join: Callable[..., tir.Expr], conditions: Sequence[Any]) -> tir.Expr:
    if not conditions:
        raise ValueError(f"{name} of no conditions: give one at least")
    return join(*(tir.ops._truth(operand(c)) for c in conditions))


def Ramp(base: Any, stride: Any, lanes: Any) -> tir.Expr:
    """The vector ``base, base + stride, ...``; ``lanes`` may be ``T.vscale() * 4``."""
    base, stride = pair(base, stride)
    return tir.Ramp(base, stride, lanes_of(lanes))


def Broadcast(value: Any, lanes: Any) -> tir.Expr:
    """A vector of copies."""
    return tir.Broadcast(tir.const(operand(value)), lanes_of(lanes))


ramp, broadcast = Ramp, Broadcast


def get_active_lane_mask(dtype: Any, base: Any, limit: Any) -> tir.Expr:
    """A vector of truth values: in lane k whether ``base + k < limit``."""
    return tir.Call("get_active_lane_mask", pair(base, limit), DType(getattr(dtype, "dtype", dtype)))


def Shuffle(vectors: Sequence[Any], indices: Sequence[int]) -> tir.Expr:
    """Elements picked from the concatenation of vectors."""
    return tir.Shuffle(tuple(tir.const(operand(v)) for v in vectors), tuple(_int(i) for i in indices))


def vectorlow(dtype: Any, vec: Any) -> tir.Expr:
    """The lower half of a vector."""
    half = vec.dtype.lanes // 2
    return tir.Shuffle((vec,), tuple(range(half)))


def vectorhigh(dtype: Any, vec: Any) -> tir.Expr:
    """The upper half of a vector."""
    half = vec.dtype.lanes // 2
    return tir.Shuffle((vec,), tuple(range(half, 2 * half)))


def vectorcombine(dtype: Any, low: Any, high: Any) -> tir.Expr:
    """Two vectors one after another."""
    return tir.Shuffle((low, high), tuple(range(low.dtype.lanes + high.dtype.lanes)))


def _int(value: Any) -> int:
    return value.value if isinstance(value, tir.IntImm) else int(value)


def min_value(dtype: Any) -> tir.Expr:
    """The smallest finite value of a type."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return tir.const(float(_float_info(dtype).min) if dtype.is_float else dtype.limits[0], dtype)


def max_value(dtype: Any) -> tir.Expr:
    """The largest finite value of a type."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return tir.const(float(_float_info(dtype).max) if dtype.is_float else dtype.limits[1], dtype)


def infinity(dtype: Any) -> tir.Expr:
    """Positive infinity."""
    return tir.FloatImm(float("inf"), getattr(dtype, "dtype", dtype))


def _float_info(dtype: DType) -> Any:
    return ml_dtypes.finfo(dtype.numpy) if dtype.numpy.kind != "f" else np.finfo(dtype.numpy)


def comm_reducer(combine: Callable[..., Any], identity: Sequence[Any]) -> tir.CommReducer:
    """A commutative reduction: how two values combine, and the identity."""
    return tir.CommReducer.from_func(combine, identity)


def Let(expr: Any, where: Mapping[tir.Var, Any]) -> tir.Expr:
    """``expr`` with variables replaced by what they stand for (expressions bind nothing themselves). Raises TypeError for a value of
    another type."""
    for v, x in where.items():
        if isinstance(x, tir.Expr) and x.dtype is not v.dtype:
            raise TypeError(f"variable {v.name} is {v.dtype}, its value {x.dtype}: cast it, T.Cast({str(v.dtype)!r}, ...)")
    return substitute(tir.const(operand(expr)), {v: tir.cast(tir.const(operand(x)), v.dtype) for v, x in where.items()})


def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None, ndim: int | None = None) -> tir.IndexMap:
    """A map of indices, for layouts."""
    return tir.IndexMap.from_func(mapping, ndim)
