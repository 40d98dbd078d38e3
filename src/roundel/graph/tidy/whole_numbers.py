# SPDX-License-Identifier: Apache-2.0
"""Rules for floats that are whole numbers between known bounds, as quantised models have them between their integers.

    astype(astype(v, int), float)              -> v             where v is whole and fits the integers
    astype(astype(v, int32) - k, float)        -> v - float(k)
    round(x / c)                               -> round(x * (1 / c))   not with strict accuracy
    mean(v * c)                                -> mean(v) * c          and so of a sum, which is exact

A pair of QuantizeLinear and DequantizeLinear becomes a few operations on floats. NaN, which has no integer, stays NaN.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ...ir import graph, options
from ...ir.dtype import DType
from ...ops import make
from ..pattern import Match, commutative, is_const, is_op, wildcard

_EXACT = 1 << 24  # whole numbers that float32 holds
_MOST = 4096  # elements of a constant that is looked at
Bounds = tuple[float, float]

x, y, k = wildcard(), wildcard(), is_const()


def bounds(value: Any, m: Match) -> Bounds | None:
    """The least and greatest value of a tensor of whole numbers, as far as its expression tells; None where it may have fractions."""
    if isinstance(value, graph.Constant):
        return _of_constant(value)
    call = m.lookup(value)
    if not isinstance(call, graph.Call):
        return _of_type(value)
    rule = _BOUNDS.get(getattr(call.op, "name", ""))
    found = None if rule is None else rule(call, m)
    return _of_type(value) if found is None else found


def _of_constant(value: graph.Constant) -> Bounds | None:
    if value.data.nbytes > 4 * _MOST or not (value.data.dtype.is_float or value.data.dtype.is_int):
        return None
    array = value.data.numpy().astype(np.float64)
    whole = array.size and np.isfinite(array).all() and (array == np.rint(array)).all()
    return (float(array.min()), float(array.max())) if whole else None


def _of_type(value: Any) -> Bounds | None:
    dtype = getattr(value.sinfo, "dtype", None)
    if dtype is None or not dtype.is_int or dtype.bits > 32:
        return None
    return (0.0, 2.0**dtype.bits - 1) if dtype.kind == "uint" else (-(2.0 ** (dtype.bits - 1)), 2.0 ** (dtype.bits - 1) - 1)


def _is_float(value: Any) -> bool:
    dtype = getattr(value.sinfo, "dtype", None)
    return dtype is not None and dtype.is_float


def _both(call: graph.Call, m: Match) -> tuple[Bounds, Bounds] | None:
    a, b = (bounds(v, m) for v in call.args[:2])
    return None if a is None or b is None or not _is_float(call) else (a, b)


def _sum(call: graph.Call, m: Match, sign: int = 1) -> Bounds | None:
    found = _both(call, m)
    if found is None:
        return None
    (low, high), other = found
    least, most = sorted((sign * other[0], sign * other[1]))
    return low + least, high + most


def _extreme(call: graph.Call, m: Match, choose: Any) -> Bounds | None:
    found = _both(call, m)
    return None if found is None else (choose(found[0][0], found[1][0]), choose(found[0][1], found[1][1]))


def _same(call: graph.Call, m: Match) -> Bounds | None:
    """Of a conversion between floats and of numbers to a type that holds them."""
    found = bounds(call.args[0], m)
    return found if found is not None and fits(found, call.sinfo.dtype) else None


_BOUNDS = {
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), lambda call, m: (-math.inf, math.inf)),
    "add": _sum, "subtract": lambda call, m: _sum(call, m, -1),
    "maximum": lambda call, m: _extreme(call, m, max), "minimum": lambda call, m: _extreme(call, m, min), "astype": _same,
}


def fits(found: Bounds, dtype: DType) -> bool:
    """Whether numbers within these bounds are exact in the type."""
    if dtype.is_float:
        return dtype.bits >= 32 and max(map(abs, found)) <= _EXACT
    if not dtype.is_int or dtype.bits > 32:
        return dtype.is_int
    signed = dtype.kind != "uint"
    return found[0] >= (-(2 ** (dtype.bits - 1)) if signed else 0) and found[1] < 2 ** (dtype.bits - signed)


def are_whole(array: np.ndarray) -> bool:
    """Whether all of an array's numbers are whole; asks a few first."""
    return all(bool((part == np.rint(part)).all()) for part in (array.reshape(-1)[:64], array))


def bounds_of_product(weights: np.ndarray, summed: tuple[int, ...], data: Bounds) -> Bounds:
    """Between which numbers all sums of products of whole weights with data lie, also while they are summed, in whatever order."""
    wide = weights.astype(np.float64)
    above, below = np.maximum(wide, 0).sum(summed), np.minimum(wide, 0).sum(summed)
    low, high = min(data[0], 0.0), max(data[1], 0.0)
    return float((above * low + below * high).min()), float((above * high + below * low).max())


_narrow = is_op("astype")(x)
_wide = is_op("astype")(_narrow)


def _through(m: Match) -> Any:
    """Two conversions of which the first changes nothing are the second."""
    source, middle, out = m[x], m.call(_narrow).sinfo.dtype, m.call(_wide).sinfo.dtype
    found = bounds(source, m) if _is_float(source) and middle.is_int else None
    if found is None or not fits(found, middle) or not fits(found, source.sinfo.dtype):
        return None
    return source if out == source.sinfo.dtype else make("astype", source, dtype=out)


_whole = is_op("astype")(x)
_less = is_op("subtract")(_whole, k)
_back = is_op("astype")(_less)


def _subtract_as_floats(m: Match) -> Any:
    """Whole numbers are subtracted as floats."""
    source, out = m[x], m.call(_back).sinfo.dtype
    if source.sinfo.dtype != out or out.bits < 32 or not out.is_float or m.call(_whole).sinfo.dtype != "int32":
        return None
    found, zero = bounds(source, m), _of_constant(m[k])
    if found is None or zero is None or not fits((found[0] - zero[1], found[1] - zero[0]), DType("float32")) or not fits(found, DType("float32")):
        return None
    return make("subtract", source, graph.Constant.of(m[k].data.numpy().astype(out.numpy)))


_ratio = is_op("divide")(x, k)
_rounded = is_op("round")(_ratio)


def _scale_to_units(m: Match) -> Any:
    """In units of a constant, by multiplication."""
    data = m[k].data
    if options.get("accuracy") == "strict" or data.nbytes > 4 * _MOST or m[x].sinfo.dtype != "float32" or data.dtype != "float32":
        return None
    value = data.numpy()
    with np.errstate(all="ignore"):
        inverse = (1 / value.astype(np.float64)).astype(np.float32)
    if not (np.isfinite(inverse).all() and (np.abs(inverse) > np.finfo(np.float32).tiny).all()):
        return None
    return make("round", make("multiply", m[x], graph.Constant.of(inverse)))


_sums = {name: is_op(name)(_scaled) for name in ("sum", "mean") for _scaled in (commutative("multiply", x, k),)}


def _scale_sum(m: Match, name: str) -> Any:
    """A sum of whole numbers, which is exact, scaled by one number rather than their products with it."""
    call, scale = m.call(_sums[name]), m[k].data
    found = bounds(m[x], m) if _is_float(m[x]) else None
    one = len(scale.shape) <= m[x].sinfo.ndim and all(n == 1 for n in scale.shape) and scale.dtype == "float32"
    if found is None or not fits(found, DType("float32")) or not one or m[x].sinfo.dtype != "float32" or m.use_count.get(call.args[0], 0) > 1:
        return None
    total = make(name, m[x], **dict(call.attrs))
    return make("multiply", total, graph.Constant.of(scale.numpy().reshape(())))


WHOLE: list[tuple[Any, Any]] = [(_wide, _through), (_back, _subtract_as_floats), (_rounded, _scale_to_units),
         *((pattern, partial(_scale_sum, name=name)) for name, pattern in _sums.items())]
