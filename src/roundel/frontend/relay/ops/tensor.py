# SPDX-License-Identifier: Apache-2.0
"""Relay's operators that move elements: shapes, slices, concatenation, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....arith import Analyzer
from ....ir import graph, tir
from ....ops.dims import equal
from ..importer import NodeContext
from ..registry import converter


def size_of(dims: Sequence[Any]) -> Any:
    """The number of elements of a shape."""
    count: Any = tir.index_const(1)
    for d in dims:
        count = count * d
    return Analyzer().simplify(count)


@converter("reshape", "dyn.reshape", "contrib_reverse_reshape")
def _reshape(node: NodeContext, x: Any, newshape: Any = None) -> Any:
    """0 keeps a dimension, -1 is what remains, -2 takes all that remain, -3 merges two, -4 splits one into the two numbers that follow."""
    wanted: list[Any] = list(node.ints("newshape")) if newshape is None else list(node.sizes(newshape, "the new shape"))
    wanted = [w.value if isinstance(w, tir.IntImm) else w for w in wanted]
    dims = list(x.sinfo.shape)
    backwards = node.kind == "contrib_reverse_reshape"
    if backwards:
        wanted, dims = wanted[::-1], dims[::-1]
    found = _new_shape(node, dims, wanted)
    return node.reshape(x, found[::-1] if backwards else found)


def _new_shape(node: NodeContext, dims: list[Any], wanted: list[Any]) -> list[Any]:
    out: list[Any] = []
    at, rest, k = 0, None, 0
    while k < len(wanted):
        w = wanted[k]
        k += 1
        if w == 0 and not node.flag("allowzero"):
            out.append(dims[at])
            at += 1
        elif w == -1:
            if rest is not None:
                raise node.error("the new shape has more than one -1")
            rest = len(out)
            out.append(None)
            at += 1
        elif w == -2:
            out.extend(dims[at:])
            at = len(dims)
        elif w == -3:
            out.append(Analyzer().simplify(dims[at] * dims[at + 1]))
            at += 2
        elif w == -4:
            first, second = wanted[k:k + 2]
            k += 2
            if first == -1:
                first = tir.floordiv(dims[at], second)
            if second == -1:
                second = tir.floordiv(dims[at], first)
            out.extend(Analyzer().simplify(tir.as_index(v)) for v in (first, second))
            at += 1
        else:
            out.append(tir.as_index(w))
            at += 1
    if rest is not None:
        known = size_of([d for d in out if d is not None])
        out[rest] = Analyzer().simplify(tir.floordiv(size_of(dims), known))
    return out


@converter("reshape_like")
def _reshape_like(node: NodeContext, x: Any, like: Any) -> Any:
    a, b = x.sinfo.shape, like.sinfo.shape
    first, last = node.attr("lhs_begin", 0), node.attr("lhs_end", None)
    begin, end = node.attr("rhs_begin", 0), node.attr("rhs_end", None)
    first, begin = first % (len(a) + 1) if first < 0 else first, begin % (len(b) + 1) if begin < 0 else begin
    last, end = len(a) if last is None else last, len(b) if end is None else end
    return node.reshape(x, [*a[:first], *b[begin:end], *a[last:]])


@converter("nn.batch_flatten")
def _batch_flatten(node: NodeContext, x: Any) -> Any:
    return node.reshape(x, [x.sinfo.shape[0], size_of(x.sinfo.shape[1:])])


@converter("transpose")
def _transpose(node: NodeContext, x: Any) -> Any:
    n = x.sinfo.ndim
    given = node.attr("axes", None)
    return node.make("permute_dims", x, axes=tuple(a % n for a in node.ints("axes")) if given else tuple(range(n))[::-1])


@converter("expand_dims")
def _expand_dims(node: NodeContext, x: Any) -> Any:
    axis, count = node.attr("axis"), node.attr("num_newaxis", 1)
    axis = axis if axis >= 0 else axis + x.sinfo.ndim + 1
    return node.reshape(x, [*x.sinfo.shape[:axis], *[1] * count, *x.sinfo.shape[axis:]])


@converter("squeeze")
def _squeeze(node: NodeContext, x: Any) -> Any:
    given = node.attr("axis", None)
    shape = x.sinfo.shape
    over = [a % len(shape) for a in node.ints("axis")] if given is not None else [a for a, d in enumerate(shape) if isinstance(d, tir.IntImm) and d.value == 1]
    for a in over:
        node.same_size(shape[a], 1, f"axis {a} is taken away, its size has to be 1")
    return node.reshape(x, [d for a, d in enumerate(shape) if a not in over])


@converter("concatenate")
def _concatenate(node: NodeContext, parts: tuple[Any, ...]) -> Any:
    return node.make("concat", graph.Tuple(parts), axis=node.attr("axis", 0))


@converter("stack")
def _stack(node: NodeContext, parts: tuple[Any, ...]) -> Any:
    return node.make("stack", graph.Tuple(parts), axis=node.attr("axis", 0))


@converter("split")
def _split(node: NodeContext, x: Any) -> Any:
    """Equal parts by their number, or parts that end at the given places."""
    axis = node.attr("axis", 0) % x.sinfo.ndim
    given = node.attr("indices_or_sections")
    parts = tuple(given) if isinstance(given, list | tuple) else given
    out = node.make("split", x, indices_or_sections=parts, axis=axis)
    count = len(parts) + 1 if isinstance(parts, tuple) else parts
    return tuple(node.emit(graph.TupleGetItem(out, k)) for k in range(count))


@converter("strided_slice", "dyn.strided_slice")
def _strided_slice(node: NodeContext, x: Any, *bounds: Any) -> Any:
    """``slice_mode`` ``size`` means that ``end`` holds lengths, -1 for all that remain."""
    names = ("begin", "end", "strides")
    given: list[Any] = [node.sizes(b, n) for b, n in zip(bounds, names)] if bounds else [list(node.ints(n, ())) for n in names]
    begin, end, strides = (*given, *[[]] * (3 - len(given)))
    axes = tuple(a % x.sinfo.ndim for a in node.ints("axes", ())) or tuple(range(len(begin)))
    if node.attr("slice_mode", "end") == "size":
        end = [x.sinfo.shape[a] if e == -1 else tir.as_index(b) + e for a, b, e in zip(axes, begin, end, strict=True)]
        strides = []
    end = [*end, *(x.sinfo.shape[a] for a in axes[len(end):])]
    strides = [*strides, *[strides[0] if len(strides) == 1 else 1] * (len(axes) - len(strides))]
    as_sizes = [tuple(map(tir.as_index, v)) for v in (begin, end, strides)]
    return node.make("strided_slice", x, axes=axes, begin=as_sizes[0], end=as_sizes[1], strides=as_sizes[2])


@converter("slice_like")
def _slice_like(node: NodeContext, x: Any, like: Any) -> Any:
    axes = tuple(a % x.sinfo.ndim for a in node.ints("axes", ())) or tuple(range(min(x.sinfo.ndim, like.sinfo.ndim)))
    axes = tuple(a for a in axes if not equal(x.sinfo.shape[a], like.sinfo.shape[a]))
    zero, one = tir.index_const(0), tir.index_const(1)
    if not axes:
        return x
    return node.make("strided_slice", x, axes=axes, begin=(zero,) * len(axes), end=tuple(like.sinfo.shape[a] for a in axes), strides=(one,) * len(axes))


@converter("reverse")
def _reverse(node: NodeContext, x: Any) -> Any:
    return node.make("flip", x, axis=node.attr("axis", 0) % x.sinfo.ndim)


@converter("repeat")
def _repeat(node: NodeContext, x: Any) -> Any:
    return node.make("repeat", x, repeats=node.attr("repeats"), axis=node.attr("axis", None))


@converter("tile")
def _tile(node: NodeContext, x: Any) -> Any:
    return node.make("tile", x, graph.ShapeExpr(node.ints("reps")))


@converter("broadcast_to", "dyn.broadcast_to")
def _broadcast_to(node: NodeContext, x: Any, shape: Any = None) -> Any:
    return node.make("broadcast_to", x, graph.ShapeExpr(node.ints("shape") if shape is None else node.sizes(shape, "the shape")))


@converter("broadcast_to_like")
def _broadcast_to_like(node: NodeContext, x: Any, like: Any) -> Any:
    return node.make("broadcast_to", x, graph.ShapeExpr(like.sinfo.shape))


@converter("collapse_sum_like")
def _collapse_sum_like(node: NodeContext, x: Any, like: Any) -> Any:
    """Sums over the axes along which ``like`` would be broadcast to ``x``."""
    lead = x.sinfo.ndim - like.sinfo.ndim
    over = [*range(lead), *(a + lead for a, d in enumerate(like.sinfo.shape) if not equal(d, x.sinfo.shape[a + lead]))]
    out = node.make("sum", x, axis=tuple(over), keepdims=True) if over else x
    return node.reshape(out, like.sinfo.shape)


@converter("shape_of")
def _shape_of(node: NodeContext, x: Any) -> Any:
    dims = x.sinfo.shape
    dtype = node.attr("dtype", "int32")
    if all(isinstance(d, tir.IntImm) for d in dims):
        return graph.Constant.of(np.array([d.value for d in dims]), dtype)
    return node.make("astype", node.make("shape_to_tensor", graph.ShapeExpr(dims)), dtype=dtype)


@converter("ndarray_size")
def _ndarray_size(node: NodeContext, x: Any) -> Any:
    count, dtype = size_of(x.sinfo.shape), node.attr("dtype", "int32")
    if isinstance(count, tir.IntImm):
        return graph.Constant.of(np.asarray(count.value), dtype)
    return node.make("astype", node.reshape(node.make("shape_to_tensor", graph.ShapeExpr((count,))), ()), dtype=dtype)


@converter("arange")
def _arange(node: NodeContext, start: Any, stop: Any, step: Any) -> Any:
    values = [node.constant(v, f"the {name} of arange") for v, name in ((start, "start"), (stop, "end"), (step, "step"))]
    return graph.Constant.of(np.arange(*(v.reshape(-1)[0] for v in values)), node.attr("dtype", start.sinfo.dtype))


@converter("nn.pad", "dyn.nn.pad")
def _pad(node: NodeContext, x: Any, *more: Any) -> Any:
    """The value is the second operand (the third where the widths are one)."""
    if node.kind == "dyn.nn.pad":
        widths, more = [int(v) for v in node.constant(more[0], "the width of the padding").reshape(-1)], more[1:]
    else:
        widths = [int(v) for pair in node.attr("pad_width") for v in pair]
    mode = node.attr("pad_mode", "constant")
    if mode != "constant":
        return node.make("nn.pad", x, pad_width=tuple(map(tir.as_index, widths)), pad_mode=mode)
    value = node.make("astype", node.reshape(more[0], ()), dtype=x.sinfo.dtype) if more else node.like(node.attr("pad_value", 0), x)
    return node.make("nn.pad", x, pad_width=tuple(map(tir.as_index, widths)), pad_value=value)


@converter("nn.mirror_pad")
def _mirror_pad(node: NodeContext, x: Any) -> Any:
    """``REFLECT`` leaves the border out; ``SYMMETRIC`` repeats it."""
    widths = tuple(tir.as_index(int(v)) for pair in node.attr("pad_width") for v in pair)
    return node.make("nn.pad", x, pad_width=widths, pad_mode=node.attr("mode", "SYMMETRIC").lower())


@converter("layout_transform")
def _layout_transform(node: NodeContext, x: Any) -> Any:
    """``NCHW`` to ``NCHW8c`` and the like: axes in capitals, blocks of them with their size in small letters."""
    source, target = (_layout(node, node.attr(n)) for n in ("src_layout", "dst_layout"))
    sizes = {}
    for k, (axis, block) in enumerate(source):  # into whole axes
        sizes[axis, block is not None] = (k, block)
    whole = [a for a, b in source if b is None]
    order = [k for a in whole for k in ([sizes[a, False][0]] + ([sizes[a, True][0]] if (a, True) in sizes else []))]
    x = node.make("permute_dims", x, axes=tuple(order)) if order != list(range(len(order))) else x
    dims, at = [], 0
    for a in whole:
        parts = 2 if (a, True) in sizes else 1
        dims.append(size_of(x.sinfo.shape[at:at + parts]))
        at += parts
    x = node.reshape(x, dims) if len(dims) != at else x
    blocks = {a: b for a, b in target if b is not None}
    split: list[Any] = []
    places: dict[tuple[str, bool], int] = {}
    for a, d in zip(whole, x.sinfo.shape, strict=True):
        places[a, False] = len(split)
        if a in blocks:
            split += [Analyzer().simplify(tir.floordiv(d, blocks[a])), tir.index_const(blocks[a])]
            places[a, True] = len(split) - 1
        else:
            split.append(d)
    x = node.reshape(x, split) if blocks else x
    return node.make("permute_dims", x, axes=tuple(places[a, b is not None] for a, b in target))


def _layout(node: NodeContext, text: str) -> list[tuple[str, int | None]]:
    """Axes of a layout with the size of the block, None for the axis itself."""
    found, digits = [], ""
    for c in text:
        if c.isdigit():
            digits += c
        elif c.isupper():
            found.append((c, None))
        else:
            if not digits:
                raise node.error(f"the layout {text!r} has a block without a size")
            found.append((c.upper(), int(digits)))
            digits = ""
    return found


@converter("nn.space_to_depth", "nn.depth_to_space")
def _blocks(node: NodeContext, x: Any) -> Any:
    if node.attr("layout", "NCHW") != "NCHW":
        raise node.unsupported(f"layout {node.attr('layout')}")
    return node.make(node.kind.removeprefix("nn."), x, block_size=node.attr("block_size", 1), mode=node.attr("mode", "DCR"))
