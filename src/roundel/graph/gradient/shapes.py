# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that move elements: where an element came from, its gradient goes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ...ir import graph, tir
from ...ops import make
from ...ops.dims import static
from .rules import Step, rule, shaped, zeros


@rule("reshape", "flatten", "nn.batch_flatten", "expand_dims", "squeeze")
def reshape(s: Step, g: Any) -> Sequence[Any]:
    """The same elements in the operand's shape"""
    return (shaped(g, s.args[0]),)


@rule("broadcast_to")
def broadcast_to(s: Step, g: Any) -> Sequence[Any]:
    """Broadcast, so that it is summed by the caller"""
    return g, None


@rule("permute_dims")
def permute_dims(s: Step, g: Any) -> Sequence[Any]:
    """The axes back"""
    ndim = s.args[0].sinfo.ndim
    axes = s.attrs["axes"] or tuple(range(ndim))[::-1]
    return (moved_back(g, [a % ndim for a in axes]),)


def moved_back(g: Any, axes: Sequence[int]) -> Any:
    """What ``permute_dims(axes=axes)`` was applied to."""
    return make("permute_dims", g, axes=tuple(sorted(range(len(axes)), key=axes.__getitem__)))


def part(x: Any, begin: Sequence[Any], end: Sequence[Any], axes: Sequence[int]) -> Any:
    """x[begin:end] along axes."""
    return make("strided_slice", x, tuple(axes), tuple(begin), tuple(end), assume_inbound=True)


def _fields(value: Any) -> Sequence[Any]:
    return value.fields if isinstance(value, graph.Tuple) else [graph.TupleGetItem(value, k) for k in range(len(value.sinfo.fields))]


@rule("concat")
def concat(s: Step, g: Any) -> Sequence[Any]:
    """A part to each tensor"""
    tensors = _fields(s.args[0])
    axis = (s.attrs["axis"] or 0) % s.out.sinfo.ndim
    ends = list(accumulate(t.sinfo.shape[axis] for t in tensors))
    return ([part(g, [begin], [end], [axis]) for begin, end in zip([tir.index_const(0), *ends], ends, strict=False)],)


@rule("stack")
def stack(s: Step, g: Any) -> Sequence[Any]:
    """A slice to each tensor"""
    tensors, axis = _fields(s.args[0]), s.attrs["axis"] % s.out.sinfo.ndim
    return ([shaped(part(g, [k], [k + 1], [axis]), t) for k, t in enumerate(tensors)],)


@rule("split")
def split(s: Step, g: Any) -> Sequence[Any]:
    """The parts one behind another, zeros for those that nothing uses"""
    parts = [zeros(graph.TupleGetItem(s.out, k)) if p is None else p for k, p in enumerate(g)]
    return (make("concat", parts, axis=s.attrs["axis"]),)


def placed(g: Any, like: Any, begin: Sequence[int], strides: Sequence[int], axes: Sequence[int]) -> Any:
    """Zeros in the shape of a tensor, with ``g`` at begin, begin + stride ... along each of the axes."""
    for axis, first, by in zip(axes, begin, strides, strict=True):
        shape = [like.sinfo.shape[k] if k == axis else d for k, d in enumerate(g.sinfo.shape)]
        count = static(g.sinfo.shape[axis]) or 0
        if by < 0:
            g, first, by = make("flip", g, axis=axis), first + (count - 1) * by, -by
        empty = make("zeros", graph.ShapeExpr(tuple(shape)), dtype=g.sinfo.dtype)
        g = empty if not count else make("slice_scatter", empty, g, first, first + (count - 1) * by + 1, by, axis=axis)
    return g


@rule("strided_slice")
def strided_slice(s: Step, g: Any) -> Sequence[Any]:
    """The part in zeros"""
    x, *bounds = s.args
    sizes, where = s.sizes(), [[static(v) for v in b.values] for b in bounds]
    if any(v is None for b in where for v in b):
        raise s.refuse("its bounds are no numbers")
    axes = [a % len(sizes) for a in where[0]]  # type: ignore[operator]
    steps = where[3] if len(where) > 3 else [1] * len(axes)
    begin = where[1] if s.attrs["assume_inbound"] else [slice(b, e, by).indices(sizes[a])[0]
                                                       for a, b, e, by in zip(axes, where[1], where[2], steps, strict=True)]
    return (placed(g, x, begin, steps, axes), *[None] * len(bounds))  # type: ignore[arg-type]


@rule("slice_scatter")
def slice_scatter(s: Step, g: Any) -> Sequence[Any]:
    """What was overwritten gets none, the source what is there"""
    x, source, *bounds = s.args
    axis = s.attrs["axis"] % x.sinfo.ndim
    start, end, step = [b.value for b in bounds] + ([1] if len(bounds) == 2 else [])
    taken = make("strided_slice", g, (axis,), (start,), (end,), (step,))
    return make("slice_scatter", g, zeros(source), *bounds, axis=axis), taken, *[None] * len(bounds)


@rule("nn.pad")
def pad(s: Step, g: Any) -> Sequence[Any]:
    """Without the padding"""
    if s.attrs["pad_mode"] != "constant":
        raise s.refuse(f"it pads by {s.attrs['pad_mode']}")
    x = s.args[0]
    before = s.args[1].values[::2]
    ends = [b + d for b, d in zip(before, x.sinfo.shape, strict=True)]
    return part(g, before, ends, range(x.sinfo.ndim)), *[None] * (len(s.args) - 1)


@rule("flip")
def flip(s: Step, g: Any) -> Sequence[Any]:
    """The same once more"""
    return (make("flip", g, axis=s.attrs["axis"]),)


@rule("roll")
def roll(s: Step, g: Any) -> Sequence[Any]:
    """The other way"""
    shift = s.attrs["shift"]
    return (make("roll", g, shift=-shift if isinstance(shift, int) else tuple(-n for n in shift), axis=s.attrs["axis"]),)


@rule("tril", "triu")
def triangle(s: Step, g: Any) -> Sequence[Any]:
    """Of the part that was kept"""
    return (make(str(s.call.op.name), g, **s.attrs),)


@rule("depth_to_space", "space_to_depth")
def blocks(s: Step, g: Any) -> Sequence[Any]:
    """The one is the inverse of the other"""
    other = {"depth_to_space": "space_to_depth", "space_to_depth": "depth_to_space"}[s.call.op.name]
    return (make(other, g, **s.attrs),)


@rule("repeat")
def repeat(s: Step, g: Any) -> Sequence[Any]:
    """The sum over the copies, which stand beside one another"""
    (x,), times, axis = s.args, s.attrs["repeats"], s.attrs["axis"]
    if not isinstance(times, int):
        raise s.refuse("elements are repeated a different number of times")
    shape = [tir.product_of(x.sinfo.shape)] if axis is None else list(x.sinfo.shape)
    at = 0 if axis is None else axis % x.sinfo.ndim
    apart = make("reshape", g, graph.ShapeExpr((*shape[: at + 1], tir.index_const(times), *shape[at + 1:])))
    return (shaped(make("sum", apart, axis=at + 1), x),)


@rule("take")
def take(s: Step, g: Any) -> Sequence[Any]:
    """Added up where the indices point"""
    x, indices = s.args
    axis, mode = s.attrs["axis"], s.attrs["mode"]
    if not isinstance(indices.sinfo, graph.TensorInfo):
        raise s.refuse("its index is no tensor")
    whole = x if axis is not None else make("reshape", x, (-1,))
    at = (axis or 0) % whole.sinfo.ndim
    size = make("astype", graph.Constant.of(static(whole.sinfo.shape[at]) or s.sizes()[at], "int64"), dtype=indices.sinfo.dtype)
    if mode == "clip":
        indices = make("minimum", make("maximum", indices, make("zeros_like", size)), size - 1)
    elif mode == "wrap":
        indices = make("floor_mod", indices, size)
    ndim, extra = whole.sinfo.ndim, indices.sinfo.ndim
    order = [at, *(k for k in range(ndim) if k != at)]  # of the operand, so that what is indexed stands first
    behind = [*range(at, at + extra), *range(at), *range(at + extra, ndim - 1 + extra)]
    front = zeros(make("permute_dims", whole, axes=order))
    summed = make("scatter_nd", front, make("expand_dims", indices, axis=[-1]), make("permute_dims", g, axes=behind) if behind else g, reduction="add")
    return shaped(moved_back(summed, order), x), None


@rule("gather_elements")
def gather_elements(s: Step, g: Any) -> Sequence[Any]:
    """Added up where the indices point"""
    x, indices = s.args
    return make("scatter_elements", zeros(x), indices, g, axis=s.attrs["axis"], reduction="add"), None


@rule("gather_nd")
def gather_nd(s: Step, g: Any) -> Sequence[Any]:
    """Added up where the indices point"""
    x, indices = s.args
    if s.attrs["batch_dims"]:
        raise s.refuse("batch_dims is not 0")
    return make("scatter_nd", zeros(x), indices, g, reduction="add"), None


@rule("scatter_elements", "scatter_nd")
def scatter(s: Step, g: Any) -> Sequence[Any]:
    """What was overwritten gets none; updates get what stands where they went (indices of an update without a sum are different)"""
    _, indices, updates = s.args
    how, name = s.attrs["reduction"], s.call.op.name
    if how not in ("update", "add"):
        raise s.refuse(f"its reduction is {how}")
    kept = g if how == "add" else make(str(name), g, indices, zeros(updates), **s.attrs)
    back = make("gather_elements", g, indices, axis=s.attrs["axis"]) if name == "scatter_elements" else make("gather_nd", g, indices)
    return kept, None, back


@rule("nn.dropout")
def dropout(s: Step, g: Any) -> Sequence[Any]:
    """Through: it drops nothing"""
    return (g[0],)


