# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions, scans and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import graph
from ...ops import make
from ...ops.dims import static
from .rules import RULES, Step, number, rule, zeros


def spread(s: Step, value: Any) -> Any:
    """What stands for each reduced group, so that it broadcasts with the operand."""
    if s.attrs["keepdims"] or not s.axes():
        return value
    shape = tuple(1 if k in s.axes() else d for k, d in enumerate(s.args[0].sinfo.shape))
    return s.emit(make("reshape", value, graph.ShapeExpr(shape)))


def count(x: Any, axes: Sequence[int]) -> Any:
    """How many elements of x are reduced to one: a scalar."""
    sizes = [static(x.sinfo.shape[k]) for k in axes]
    if None not in sizes:
        total = 1
        for n in sizes:
            total *= n  # type: ignore[operator]
        return number(float(total), x)
    return make("sum", make("ones_like", x), axis=list(axes), keepdims=True)


def _same_groups(s: Step, chosen: Any) -> Any:
    """1 for each element that equals its group's result, divided by how many do."""
    hit = s.emit(make("astype", make("equal", s.args[0], chosen), dtype=s.out.sinfo.dtype))
    return hit / make("sum", hit, axis=s.axes(), keepdims=True)


def _variance(s: Step, x: Any, y: Any) -> Any:
    return (x - make("mean", x, axis=s.axes(), keepdims=True)) * 2.0 / count(x, s.axes())


def _spread_over(s: Step, value: Any) -> Any:
    """What stands for each group, given to each of its elements."""
    return make("broadcast_to", spread(s, value), graph.ShapeExpr(s.args[0].sinfo.shape))


_FACTORS: dict[str, Callable[[Step, Any, Any], Any]] = {  # of x and the result y, which broadcasts with x
    "sum": lambda s, x, y: None,
    "mean": lambda s, x, y: make("reciprocal", count(x, s.axes())),
    "variance": _variance,
    "std": lambda s, x, y: _variance(s, x, y) * 0.5 / y,
    "max": lambda s, x, y: _same_groups(s, y),
    "min": lambda s, x, y: _same_groups(s, y),
    "reduce_l1": lambda s, x, y: make("sign", x),
    "reduce_l2": lambda s, x, y: x / y,
    "reduce_log_sum": lambda s, x, y: make("exp", -y),
    "reduce_log_sum_exp": lambda s, x, y: make("exp", x - y),
    "reduce_sum_square": lambda s, x, y: x * 2.0,
}
_NEEDS_RESULT = {"std", "max", "min", "reduce_l2", "reduce_log_sum", "reduce_log_sum_exp"}


def _reduction(s: Step, g: Any) -> Sequence[Any]:
    name = s.call.op.name
    g = _spread_over(s, g)
    factor = _FACTORS[name](s, s.args[0], spread(s, s.out) if name in _NEEDS_RESULT else s.out)
    return (g if factor is None else g * factor,)


RULES.update(dict.fromkeys(_FACTORS, _reduction))


@rule("prod")
def prod(s: Step, g: Any) -> Sequence[Any]:
    """Axis by axis: the product of the others is that of those before times that of those behind, so that zeros are no exception"""
    values, factors = s.args[0], []
    for axis in s.axes():
        before = make("cumprod", values, axis=axis, exclusive=True)
        behind = make("flip", make("cumprod", make("flip", values, axis=axis), axis=axis, exclusive=True), axis=axis)
        factors.append(s.emit(before * behind))
        values = s.emit(make("prod", values, axis=axis, keepdims=True))
    out = spread(s, g)
    for factor in reversed(factors):
        out = s.emit(out * factor)
    return (out,)


@rule("cumsum")
def cumsum(s: Step, g: Any) -> Sequence[Any]:
    """Each element counts in all sums behind it: a sum from the other end"""
    x, axis = s.args[0], s.attrs["axis"]
    back = make("flip", make("cumsum", make("flip", g, axis=axis or 0), axis=axis or 0, exclusive=s.attrs["exclusive"]), axis=axis or 0)
    return (back if axis is not None else make("reshape", back, graph.ShapeExpr(x.sinfo.shape)),)


@rule("sort")
def sort(s: Step, g: Any) -> Sequence[Any]:
    """Each element's goes to where it came from"""
    (x,), axis = s.args, s.attrs["axis"]
    order = make("argsort", x, axis=axis, descending=s.attrs["descending"], dtype="int64")
    return (make("scatter_elements", zeros(x), order, g, axis=axis),)


@rule("topk")
def topk(s: Step, g: Any) -> Sequence[Any]:
    """Each of the largest elements' goes to where it came from"""
    x, kind = s.args[0], s.attrs["ret_type"]
    values = g[0] if kind == "both" else g
    if kind == "indices" or values is None:
        return [None] * len(s.args)
    found = make("topk", *s.args, **{**s.attrs, "ret_type": "indices", "dtype": "int64"})
    return (make("scatter_elements", zeros(x), found, values, axis=s.attrs["axis"]), *[None] * (len(s.args) - 1))


@rule("nn.softmax")
def softmax(s: Step, g: Any) -> Sequence[Any]:
    """y (g - sum(g y))"""
    weighted = s.emit(g * s.out)
    return (weighted - s.out * make("sum", weighted, axis=s.attrs["axis"], keepdims=True),)


@rule("nn.log_softmax")
def log_softmax(s: Step, g: Any) -> Sequence[Any]:
    """g - softmax(x) sum(g)"""
    return (g - make("exp", s.out) * make("sum", g, axis=s.attrs["axis"], keepdims=True),)


