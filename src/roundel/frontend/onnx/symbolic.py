# SPDX-License-Identifier: Apache-2.0
"""Integer tensors whose elements are known as expressions: what models compute their shapes with.

The content of such a tensor is a NumPy object array of ints and index expressions; a table maps ONNX operators to
functions on contents. A tensor is only made from a content when something needs it as a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from ...arith import Analyzer
from ...ir import tir
from ...ir.visit import walk

LARGEST = 4096
"""Elements of a tensor whose content is kept."""

_MOST = 1 << 63
_MOST_NODES = 1000  # of an expression
_an = Analyzer()


def content(items: Any) -> np.ndarray:
    """An object array of ints and expressions (constants unwrapped, expressions simplified)."""
    array = np.asarray(items, dtype=object)
    flat = [_plain(v) for v in array.reshape(-1)]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(array.shape)


def _plain(v: Any) -> Any:
    if isinstance(v, tir.IntImm):
        return v.value
    if isinstance(v, tir.Expr):
        s = _an.simplify(v)
        return s.value if isinstance(s, tir.IntImm) else s
    if isinstance(v, bool | np.bool_):
        return bool(v)
    return float(v) if isinstance(v, float | np.floating) else int(v)


def is_static(array: np.ndarray) -> bool:
    """Whether all elements are numbers."""
    return not any(isinstance(v, tir.Expr) for v in array.reshape(-1))


def _each(fn: Callable[..., Any]) -> Callable[..., np.ndarray]:
    ufunc = np.frompyfunc(fn, fn.__code__.co_argcount, 1)

    def apply(node: Any, *args: np.ndarray) -> np.ndarray:
        if math.prod(np.broadcast_shapes(*(a.shape for a in args))) > LARGEST:
            raise Unknown
        return _sizes(ufunc(*args))

    return apply


def _sizes(items: Any) -> np.ndarray:
    """A content whose numbers fit 64 bits, where tensors wrap around, and whose expressions are no larger than shapes need; else Unknown."""
    found = content(items)
    for v in found.reshape(-1):
        if isinstance(v, int) and not -_MOST <= v < _MOST:
            raise Unknown
        if isinstance(v, tir.Expr) and next(islice(walk(v), _MOST_NODES, None), None) is not None:
            raise Unknown
    return found


def _both(number: Callable[[Any, Any], Any], symbol: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    return _each(lambda a, b: symbol(a, b) if isinstance(a, tir.Expr) or isinstance(b, tir.Expr) else number(a, b))


def _div(a: Any, b: Any) -> Any:
    """Integer division rounds toward zero in ONNX; sizes are not negative, where it is the floor."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b if b else math.nan
    if b == 0:
        raise Unknown
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _sym_div(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b == 0:
        raise Unknown
    a, b = tir.as_index(a), tir.as_index(b)
    if _an.prove(tir.ge(a, 0)) and _an.prove(tir.gt(b, 0)):
        return tir.floordiv(a, b)
    raise Unknown


class Unknown(Exception):
    """A content cannot be told at compile time; the operator runs on tensors instead."""


def _decided(build: Callable[[Any, Any], tir.Expr]) -> Callable[[Any, Any], bool]:
    def decide(a: Any, b: Any) -> bool:
        condition = build(tir.as_index(a), tir.as_index(b))
        if _an.prove(condition):
            return True
        if _an.prove(tir.logical_not(condition)):
            return False
        raise Unknown

    return decide


def _where(c: Any, a: Any, b: Any) -> Any:
    return a if c else b


def _gather(node: Any, data: np.ndarray, index: np.ndarray) -> np.ndarray:
    if not is_static(index):
        raise Unknown
    return np.take(data, index.astype(np.int64), axis=node.attr("axis", 0))


def _slice(node: Any, data: np.ndarray, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> np.ndarray:
    starts = np.asarray(node.attr("starts")) if starts is None else starts
    ends = np.asarray(node.attr("ends")) if ends is None else ends
    axes = np.asarray(node.attr("axes", list(range(np.size(starts))))) if axes is None else axes
    steps = np.ones(np.size(starts), dtype=object) if steps is None else steps
    if not all(is_static(np.asarray(v, dtype=object)) for v in (starts, ends, axes, steps)):
        raise Unknown
    index = [slice(None)] * data.ndim
    for s, e, a, k in zip(*(np.asarray(v, dtype=object).reshape(-1) for v in (starts, ends, axes, steps)), strict=True):
        index[int(a)] = slice(int(s), None if int(e) < -(1 << 31) else int(e), int(k))
    return data[tuple(index)]


def _unsqueeze(node: Any, data: np.ndarray, axes: Any = None) -> np.ndarray:
    axes = [int(a) for a in np.reshape(node.attr("axes") if axes is None else axes, -1)]
    return np.expand_dims(data, tuple(axes))


def _squeeze(node: Any, data: np.ndarray, axes: Any = None) -> np.ndarray:
    axes = node.attr("axes", None) if axes is None else axes
    return np.squeeze(data, None if axes is None else tuple(int(a) for a in np.reshape(axes, -1)))


def _reshape(node: Any, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
    if not is_static(shape):
        raise Unknown
    return data.reshape([data.shape[i] if s == 0 and not node.attr("allowzero", 0) else int(s) for i, s in enumerate(shape)])


def _cast(node: Any, data: np.ndarray) -> np.ndarray:
    to = node.attr("to")
    if to in (6, 7, 9, 2, 3, 12, 13):
        if any(isinstance(v, float) for v in data.reshape(-1)):
            return content(np.frompyfunc(lambda v: math.trunc(v) if isinstance(v, float) else v, 1, 1)(data))
        return data if to != 9 or is_static(data) else _unknown()
    if to in (1, 11) and is_static(data):
        return content(np.frompyfunc(float, 1, 1)(data))
    raise Unknown


def _unknown() -> Any:
    raise Unknown


def _range(node: Any, start: Any, limit: Any, delta: Any) -> np.ndarray:
    if not all(is_static(v) for v in (start, limit, delta)):
        raise Unknown
    first, end, step = start.item(), limit.item(), delta.item()
    return content(np.arange(first, end, step)) if abs(end - first) <= 64 * abs(step) and step else _unknown()


def _reduce(fn: Callable[[list[Any]], Any]) -> Callable[..., np.ndarray]:
    def apply(node: Any, data: np.ndarray, axes: Any = None) -> np.ndarray:
        if data.ndim != 1:
            raise Unknown
        out = _sizes(fn(list(data)))
        return out.reshape(1) if node.attr("keepdims", 1) else out

    return apply


def _product(items: list[Any]) -> Any:
    out: Any = 1
    for v in items:
        out = out * v
    return out


def _constant_of_shape(node: Any, shape: np.ndarray) -> np.ndarray:
    if not is_static(shape) or math.prod(shape.reshape(-1)) > 64:
        raise Unknown
    value = node.attr("value", None)
    fill = 0.0 if value is None else value.numpy().item()
    if isinstance(fill, float) or value.dtype != "int64":
        raise Unknown
    return np.full(tuple(int(s) for s in shape), fill, dtype=object)


def _expand(node: Any, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
    if not is_static(shape):
        raise Unknown
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(int(s) for s in shape)))


TABLE: dict[str, Callable[..., np.ndarray]] = {
    "Add": _each(lambda a, b: a + b), "Sub": _each(lambda a, b: a - b), "Mul": _each(lambda a, b: a * b),
    "Div": _both(_div, _sym_div), "Mod": _both(lambda a, b: a % b if b else _unknown(), lambda a, b: tir.floormod(a, b)),
    "Min": _both(min, tir.min_), "Max": _both(max, tir.max_), "Neg": _each(lambda a: 0 - a), "Identity": lambda node, x: x,
    "Abs": _each(lambda a: abs(a) if not isinstance(a, tir.Expr) else a if _an.prove(tir.ge(a, 0)) else _unknown()),
    "Equal": _each(_decided(tir.eq)), "Less": _each(_decided(tir.lt)), "Greater": _each(_decided(tir.gt)),
    "LessOrEqual": _each(_decided(tir.le)), "GreaterOrEqual": _each(_decided(tir.ge)),
    "Not": _each(lambda a: not a), "And": _each(lambda a, b: bool(a) and bool(b)), "Or": _each(lambda a, b: bool(a) or bool(b)),
    "Where": _each(_where), "Gather": _gather, "Slice": _slice, "Concat": lambda node, *xs: np.concatenate(xs, axis=node.attr("axis")),
    "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Reshape": _reshape, "Cast": _cast, "Range": _range,
    "ReduceProd": _reduce(_product), "ReduceSum": _reduce(sum), "ConstantOfShape": _constant_of_shape, "Expand": _expand,
    "Floor": _each(lambda a: math.floor(a) if isinstance(a, float) else a), "Ceil": _each(lambda a: math.ceil(a) if isinstance(a, float) else a),
    "Flatten": lambda node, x: x.reshape(1, -1) if node.attr("axis", 1) == 0 else _unknown(),
    "Transpose": lambda node, x: x if x.ndim < 2 else _unknown(),
}
