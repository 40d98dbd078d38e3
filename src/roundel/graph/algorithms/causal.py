# SPDX-License-Identifier: Apache-2.0
"""Masks that let a row see the keys up to its own index plus a number: recognised in constants and in comparisons of positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ops.dims import static

LOWEST = -1e30  # a score of which the exponential is zero beside any other
Lookup = Callable[[Any], Any]
_SHAPED = ("reshape", "expand_dims", "squeeze", "astype")
# comparisons as "first <= second + this", or "second <= first + this" where turned
_ORDER = {"less_equal": (False, 0), "less": (False, -1), "greater_equal": (True, 0), "greater": (True, -1)}
_OPPOSITE = {"less_equal": "greater", "less": "greater_equal", "greater_equal": "less", "greater": "less_equal"}


@dataclass(frozen=True)
class Sight:
    """Row ``r`` sees the keys up to ``r + reach``; others get a score of -infinity (``infinite``) or of about the lowest number."""

    reach: tir.Expr
    infinite: bool

    def always_sees(self) -> bool:
        """Whether every row sees a key."""
        return Analyzer().prove(self.reach >= 0)


def added(lookup: Lookup, mask: Any, shape: Any) -> Sight | None:
    """What a mask that is added to scores of this shape (..., rows, keys) says, if it is zero for keys that are seen."""
    made = _unwrapped(lookup, mask, shape)
    if isinstance(made, graph.Constant):
        value = _plane(made, shape)
        if value is None or value.dtype.kind == "b":
            return None
        hidden = value[value != 0]
        return _of_plane(value == 0, bool(np.isneginf(hidden).all())) if hidden.size and hidden.max() <= LOWEST else None
    if _name(made) != "where":
        return None
    condition, yes, no = made.args
    for low, zero, negated in ((no, yes, False), (yes, no, True)):
        if _number(zero) == 0 and (number := _number(low)) is not None and number <= LOWEST:
            reach = reach_of(lookup, condition, shape, negated)
            return None if reach is None else Sight(reach, math.isinf(number))
    return None


def masked(lookup: Lookup, call: graph.Call, shape: Any) -> Iterator[tuple[Any, Sight]]:
    """Of an operator that masks scores of this shape (..., rows, keys): the scores, and what the mask says."""
    if call.op.name == "add":
        for scores, mask in (call.args, call.args[::-1]):
            if (sight := added(lookup, mask, shape)) is not None:
                yield scores, sight
    elif call.op.name == "where":
        condition, scores, low = call.args
        number = _number(low)
        reach = reach_of(lookup, condition, shape) if number is not None and number <= LOWEST else None
        if reach is not None:
            yield scores, Sight(reach, math.isinf(number))  # type: ignore[arg-type]


def keeps_lowest(call: graph.Call) -> bool:
    """Whether scores that no row may see stay so under an operator that makes others of them."""
    return call.op.name == "add" or (call.op.name == "where" and (number := _number(call.args[2])) is not None and number <= LOWEST)


def reach_of(lookup: Lookup, condition: Any, shape: Any, negated: bool = False) -> tir.Expr | None:
    """How far beyond its own index a row sees, where a condition (or its opposite) says just that."""
    made = _unwrapped(lookup, condition, shape)
    if isinstance(made, graph.Constant):
        value = _plane(made, shape)
        found = None if value is None or value.dtype.kind != "b" else _of_plane(value != negated, True)
        return None if found is None else found.reach
    if _name(made) == "logical_not":
        return reach_of(lookup, made.args[0], shape, not negated)
    if _name(made) not in _ORDER:
        return None
    turned, more = _ORDER[_OPPOSITE[made.op.name] if negated else made.op.name]
    key, row = (_positions(lookup, a) for a in (reversed(made.args) if turned else made.args))
    if key is None or row is None or key[0] != -1 or row[0] != -2 or key[2] is not shape[-1] or row[2] is not shape[-2]:
        return None
    return Analyzer().simplify(row[1] - key[1] + more)


def _of_plane(seen: np.ndarray, infinite: bool) -> Sight | None:
    row, key = np.indices(seen.shape)
    reach = int(seen[0].sum()) - 1
    return Sight(tir.index_const(reach), infinite) if not seen.all() and np.array_equal(seen, key <= row + reach) else None


def _plane(made: graph.Constant, shape: Any) -> np.ndarray | None:
    """The rows and keys of a constant that is the same for all heads."""
    value = made.data.numpy()
    if value.ndim < 2 or value.shape[-2:] != tuple(map(static, shape[-2:])) or not value.size:
        return None
    planes = value.reshape(-1, *value.shape[-2:])
    return planes[0] if len(planes) == 1 or bool((planes == planes[:1]).all()) else None


def _positions(lookup: Lookup, value: Any) -> tuple[int, tir.Expr, tir.Expr] | None:
    """Of consecutive numbers along one axis: the axis from the end, the first number, how many."""
    made = lookup(value) if isinstance(value, graph.Var) else value
    if isinstance(made, graph.Constant):
        numbers = made.data.numpy()
        flat = numbers.reshape(-1)
        if numbers.dtype.kind not in "iu" or flat.size < 2 or (np.diff(flat) != 1).any() or numbers.ndim - numbers.shape.count(1) != 1:
            return None
        return _axis(made.sinfo.shape), tir.index_const(int(flat[0])), tir.index_const(flat.size)  # type: ignore[return-value]
    name = _name(made)
    if name == "arange":
        start, end, step = (*made.args, None, None)[:3]
        if end is None:
            start, end = graph.PrimValue(tir.index_const(0)), start
        whole = all(isinstance(p, graph.PrimValue) and p.value.dtype.is_int for p in (start, end))
        if not whole or (step is not None and static(getattr(step, "value", None)) != 1) or made.sinfo.shape is None:
            return None
        return -1, tir.as_index(start.value), made.sinfo.shape[0]
    if name in _SHAPED:
        inner, axis = _positions(lookup, made.args[0]), _axis(made.sinfo.shape)
        return None if inner is None or axis is None else (axis, *inner[1:])
    if name in ("add", "subtract"):
        inner, more = _positions(lookup, made.args[0]), _number(made.args[1])
        if inner is None or more is None or not float(more).is_integer():
            return None
        return inner[0], inner[1] + (int(more) if name == "add" else -int(more)), inner[2]
    return None


def _axis(shape: Any) -> int | None:
    """The only dimension that is not 1, from the end."""
    long = [k for k, n in enumerate(shape or ()) if static(n) != 1]
    return long[0] - len(shape) if len(long) == 1 else None


def _unwrapped(lookup: Lookup, value: Any, shape: Any) -> Any:
    """What makes a value, before leading dimensions were added."""
    made = lookup(value) if isinstance(value, graph.Var) else value
    while _name(made) in ("reshape", "expand_dims", "broadcast_to") and made.args[0].sinfo.ndim >= 2:
        before, after = made.args[0].sinfo.shape, made.sinfo.shape
        if before is None or after is None or before[-2:] != after[-2:] or after[-2:] != shape[-2:]:
            break
        made = lookup(made.args[0]) if isinstance(made.args[0], graph.Var) else made.args[0]
    return made


def _name(made: Any) -> str:
    return str(getattr(made.op, "name", "")) if isinstance(made, graph.Call) else ""


def _number(value: Any) -> float | None:
    """The one value of a constant."""
    if not isinstance(value, graph.Constant) or value.data.nbytes > 4096:
        return None
    numbers = value.data.numpy().reshape(-1)
    return float(numbers[0]) if numbers.size and (numbers == numbers[0]).all() else None
