# SPDX-License-Identifier: Apache-2.0
"""Relay's reductions and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..importer import NodeContext
from ..registry import converter


def axes(node: NodeContext, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction is over: those given, or with ``exclude`` all others; none given means all."""
    given = node.attr("axis", None)
    if given is None or given == []:
        return tuple(range(ndim))
    found = tuple(a % ndim for a in node.ints("axis"))
    return tuple(a for a in range(ndim) if a not in found) if node.flag("exclude") else found


def _reduce(op: str) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Any) -> Any:
        over = axes(node, x.sinfo.ndim)
        return node.make(op, x, axis=over, keepdims=node.flag("keepdims")) if over else x

    return convert


for _op in ("sum", "mean", "max", "min", "prod", "all", "any"):
    converter(_op)(_reduce(_op))
converter("logsumexp")(_reduce("reduce_log_sum_exp"))


@converter("variance")
def _variance(node: NodeContext, x: Any, mean: Any) -> Any:
    over, keep = axes(node, x.sinfo.ndim), node.flag("keepdims")
    if mean.sinfo.ndim != x.sinfo.ndim:
        mean = node.make("expand_dims", mean, axis=over)
    squares = node.make("square", node.make("subtract", x, mean))
    if not node.flag("unbiased"):
        return node.make("mean", squares, axis=over, keepdims=keep)
    count = 1
    for a in over:
        count = count * x.sinfo.shape[a].value
    return node.make("divide", node.make("sum", squares, axis=over, keepdims=keep), node.like(count - 1, x))


@converter("argmax", "argmin")
def _arg(node: NodeContext, x: Any) -> Any:
    """The first place of the extreme value (the last by ``select_last_index``), int32; over all axes that of the flattened tensor."""
    over, ndim = axes(node, x.sinfo.ndim), x.sinfo.ndim
    keep = node.flag("keepdims")
    if len(over) > 1:
        if len(over) != ndim:
            raise node.unsupported(f"{node.kind} over axes {over} of {ndim}; over one or all it is supported")
        flat = node.reshape(x, [_product(x.sinfo.shape)])
        out = _place(node, flat, 0, False)
        return node.reshape(out, [1] * ndim) if keep else out
    return _place(node, x, over[0], keep)


def _place(node: NodeContext, x: Any, axis: int, keep: bool) -> Any:
    if not node.flag("select_last_index"):
        return node.make("astype", node.make(node.kind, x, axis=axis, keepdims=keep), dtype="int32")
    backwards = node.make(node.kind, node.make("flip", x, axis=axis), axis=axis, keepdims=keep)
    if not hasattr(x.sinfo.shape[axis], "value"):
        raise node.unsupported("select_last_index along an axis whose size is not known")
    last = node.like(x.sinfo.shape[axis].value - 1, backwards)
    return node.make("astype", node.make("subtract", last, backwards), dtype="int32")


def _product(dims: Any) -> Any:
    count: Any = 1
    for d in dims:
        count = d * count
    return count


@converter("cumsum", "cumprod")
def _scan(node: NodeContext, x: Any) -> Any:
    if node.attr("axis", None) is None:
        x = node.reshape(x, [_product(x.sinfo.shape)])
    return node.make(node.kind, x, axis=node.attr("axis", 0), dtype=node.attr("dtype", x.sinfo.dtype), exclusive=node.flag("exclusive"))
