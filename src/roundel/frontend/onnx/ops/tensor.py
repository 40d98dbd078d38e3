# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that move data: Transpose, Concat, Split, Slice, Pad, Tile, Resize, ..."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....arith import Analyzer
from ....ir import graph, tir
from ....ir.dtype import INT64
from ..importer import NodeContext, Value
from ..registry import converter
from ..run_time_sizes import check, require, sized, unsure
from .math import const_like
from .resampling import antialiased

_FAR = 1 << 31
_BEYOND = 1 << 48
_SCALES = "scales are finite and greater than 0"


@converter("Transpose")
def _transpose(node: NodeContext, x: Value) -> Any:
    axes, rank = node.attr("perm", None), x.expr.sinfo.ndim
    if axes is not None and sorted(axes) != list(range(rank)):
        raise node.error(f"perm is {axes}: it must have each of the {rank} dimensions once")
    return node.make("permute_dims", x.expr, axes=None if axes is None else tuple(axes))


@converter("Concat")
def _concat(node: NodeContext, *xs: Value) -> Any:
    return node.make("concat", graph.Tuple(tuple(x.expr for x in xs)), axis=node.axis(node.attr("axis"), xs[0].expr.sinfo.ndim))


def cut(node: NodeContext, x: Any, axis: int, begin: Any, end: Any) -> Any:
    """Part of one axis; the bounds are within it."""
    return node.make("strided_slice", x, axes=(axis % x.sinfo.ndim,), begin=(tir.as_index(begin),), end=(tir.as_index(end),),
                     strides=(tir.index_const(1),), assume_inbound=True)


def _split_at(node: NodeContext, x: Value, axis: int, sizes: list[Any] | None) -> Any:
    extent, count = x.expr.sinfo.shape[axis], len(node.node.output)
    if node.attr("num_outputs", count) != count:
        raise node.error(f"num_outputs is {node.attr('num_outputs')}, the node has {count} outputs")
    if sizes is None:
        if node.opset < 18:  # from then on the last part may be smaller
            node.same_size(tir.floormod(extent, count), 0, f"the dimension does not divide into {count} equal parts, the remainder is not zero")
        part = Analyzer().simplify(tir.ceildiv(extent, count))
        sizes = [part] * (count - 1)
    elif len(sizes) != count or any(isinstance(s, int) and s < 0 for s in sizes):
        raise node.error(f"the sizes of the parts are {', '.join(map(str, sizes))}: {count} sizes of at least 0 are needed, one for each output")
    else:
        node.same_size(sum(sizes[1:], sizes[0]), extent, "the sizes of the parts do not add up to the dimension")
    edges, at = [tir.index_const(0)], tir.index_const(0)
    for s in sizes[:count - 1]:
        at = at + s
        edges.append(at)
    edges.append(extent)
    return tuple(node.make("strided_slice", x.expr, axes=(axis,), begin=(a,), end=(b,), strides=(tir.index_const(1),))
                 for a, b in pairwise(edges))


@converter("Split")
def _split_attribute(node: NodeContext, x: Value) -> Any:
    return _split_at(node, x, node.axis(node.attr("axis", 0), x.expr.sinfo.ndim), node.attr("split", None))


@converter("Split", since=13)
def _split(node: NodeContext, x: Value, sizes: Value | None = None) -> Any:
    axis = node.axis(node.attr("axis", 0), x.expr.sinfo.ndim)
    return _split_at(node, x, axis, None if sizes is None else node.ints(sizes, "the sizes", upper=x.expr.sinfo.shape[axis]))


@converter("Slice")
def _slice_attributes(node: NodeContext, x: Value) -> Any:
    starts, ends = node.attr("starts"), node.attr("ends")
    where, every = node.axes(node.attr("axes", range(len(starts))), x.expr.sinfo.ndim), [1] * len(starts)
    _as_many(node, starts, ends, where, every)
    return _slice_at(node, x, starts, ends, where, every)


@converter("Slice", since=10)
def _slice(node: NodeContext, x: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Any:
    begin, end = node.ints(_near(node, starts), "the starts", signed=True), node.ints(_near(node, ends), "the ends", signed=True)
    where = list(range(len(begin))) if axes is None else node.static_ints(axes, "the axes")
    where = node.axes(where, x.expr.sinfo.ndim)
    every = [1] * len(begin) if steps is None else node.ints(steps, "the steps", signed=True)
    _as_many(node, begin, end, where, every)
    fixed = [k for k, s in enumerate(every) if isinstance(s, int)]
    for k in range(len(every)):
        if k not in fixed:
            x = Value(_picked(node, x, begin[k], end[k], where[k], every[k]), is_text=x.is_text)
    begin, end, where, every = ([v[k] for k in fixed] for v in (begin, end, where, every))
    return _slice_at(node, x, begin, end, where, every) if fixed else x.expr


def _as_many(node: NodeContext, starts: Sequence[Any], ends: Sequence[Any], axes: Sequence[int], steps: Sequence[Any]) -> None:
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.error(f"it has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps: there must be one of each for an axis")


def _near(node: NodeContext, v: Value) -> Value:
    """Bounds that the run tells, those beyond any extent brought so near that sums with them do not wrap."""
    if v.content is not None or v.is_constant or v.expr.sinfo.dtype.bits < 64:
        return v
    return Value(node.make("clip", v.expr, graph.PrimValue(tir.index_const(-_BEYOND)), graph.PrimValue(tir.index_const(_BEYOND))))


def _picked(node: NodeContext, x: Value, begin: Any, end: Any, axis: int, step: tir.Expr) -> Any:
    """A slice along one axis whose step, and so its direction, only the run tells: its positions are computed and taken."""
    n, an = x.expr.sinfo.shape[axis], Analyzer()
    check(node, tir.select(tir.eq(step, 0), tir.index_const(0), tir.index_const(1)), tir.index_const(1), "step")
    up = tir.gt(step, 0)
    first, last = (tir.select(up, _clamped(an, v, n, 0, 1), _clamped(an, v, n, -1, -1)) for v in (begin, end))
    count = tir.select(up, tir.ceildiv(tir.max_(last - first, 0), tir.max_(step, 1)), tir.ceildiv(tir.max_(first - last, 0), tir.max_(0 - step, 1)))
    numbers = node.make("arange", *(graph.PrimValue(v) for v in (tir.index_const(0), sized(node, count, "length"), tir.index_const(1))), dtype="int64")
    at = node.make("add", node.make("multiply", numbers, node.value([step]).expr), node.value([sized(node, first, "start", signed=True)]).expr)
    return node.make("take", x.expr, at, axis=axis)


def _slice_at(node: NodeContext, x: Value, begin: list[Any], end: list[Any], axes: Sequence[int], steps: list[int]) -> Any:
    shape = x.expr.sinfo.shape
    an = Analyzer()
    starts, stops = [], []
    for b, e, a, s in zip(begin, end, axes, steps, strict=True):
        n = shape[a]
        low = 0 if s > 0 else -1
        starts.append(sized(node, _clamped(an, b, n, low, s), "start", signed=s < 0))
        stops.append(sized(node, _clamped(an, e, n, low, s), "end", signed=s < 0))
    return node.make("strided_slice", x.expr, axes=tuple(axes), begin=tuple(starts), end=tuple(stops),
                     strides=tuple(tir.index_const(s) for s in steps), assume_inbound=True)


def _clamped(an: Analyzer, v: Any, n: tir.Expr, low: int, step: int) -> tir.Expr:
    """A start or end within the axis: negative ones count from the end, far ones mean the end."""
    high = n if step > 0 else n - 1
    if isinstance(v, int):
        if v >= _FAR:
            return an.simplify(high)
        if v <= -_FAR:
            return tir.index_const(low)
    v = tir.as_index(v)
    if an.prove(tir.lt(v, 0)):
        v = v + n
    elif not an.prove(tir.ge(v, 0)):
        v = tir.select(tir.lt(v, 0), v + n, v)
    return an.simplify(tir.max_(tir.min_(v, high), low))


@converter("Pad")
def _pad_attributes(node: NodeContext, x: Value) -> Any:
    return _pad_by(node, x.expr, node.attr("pads"), const_like(node.attr("value", 0.0), x.expr), None)


@converter("Pad", since=11)
def _pad(node: NodeContext, x: Value, pads: Value, value: Value | None = None, axes: Value | None = None) -> Any:
    fill = const_like(0, x.expr) if value is None else value.expr
    return _pad_by(node, x.expr, node.ints(pads, "the pads", signed=True), fill, None if axes is None else node.static_ints(axes, "the axes"))


def _pad_by(node: NodeContext, x: Any, pads: list[Any], fill: Any, axes: Sequence[int] | None) -> Any:
    ndim = x.sinfo.ndim
    axes = list(range(ndim)) if axes is None else node.axes(axes, ndim)
    width: list[Any] = [0] * (2 * ndim)
    for k, a in enumerate(axes):
        width[2 * a], width[2 * a + 1] = pads[k], pads[k + len(axes)]
    x, width = _cropped(node, x, width)
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    mode = node.attr("mode", "constant")
    if mode not in modes:
        raise node.unsupported(f"pad mode {mode!r}")
    return node.make("nn.pad", x, pad_value=fill, pad_width=tuple(width), pad_mode=modes[mode])


def _cropped(node: NodeContext, x: Any, width: list[Any]) -> tuple[Any, list[tir.Expr]]:
    """The tensor without what negative pads take away, and what is to be added. Pads that are sizes are left as they are."""
    signed = [tir.as_index(w) if isinstance(w, int) or unsure(w) else None for w in width]
    less = [tir.index_const(0) if w is None else sized(node, tir.max_(0 - tir.max_(w, -_BEYOND), 0), "crop") for w in signed]
    more = [tir.as_index(w) if s is None else sized(node, tir.max_(s, 0), "pad") for w, s in zip(width, signed, strict=True)]
    for axis, n in enumerate(x.sinfo.shape):
        low, high = less[2 * axis : 2 * axis + 2]
        if not isinstance(low, tir.IntImm) or not isinstance(high, tir.IntImm):
            left = tir.Var("size_without_crop", INT64, True)  # not negative: no more is taken away than there is
            node.importer.bb.match_cast(graph.ShapeExpr((n - low - high,)), graph.ShapeInfo((left,)), left.name)
            x = cut(node, x, axis, low, low + left)
        elif low.value or high.value:
            x = node.make("strided_slice", x, axes=(axis,), begin=(low,), end=(n - high,), strides=(tir.index_const(1),))
    return x, more


@converter("Tile")
def _tile(node: NodeContext, x: Value, repeats: Value) -> Any:
    return node.make("tile", x.expr, repeats=tuple(node.ints(repeats, "the repeats")))


@converter("DepthToSpace")
def _depth_to_space(node: NodeContext, x: Value) -> Any:
    block, shape = node.attr("blocksize"), x.expr.sinfo.shape
    node.same_size(tir.floormod(shape[1], block * block), 0, "the channels do not divide into blocks, the remainder is not zero")
    return node.make("depth_to_space", x.expr, block_size=node.attr("blocksize"), mode=node.attr("mode", "DCR"))


@converter("SpaceToDepth")
def _space_to_depth(node: NodeContext, x: Value) -> Any:
    for n in x.expr.sinfo.shape[2:]:
        node.same_size(tir.floormod(n, node.attr("blocksize")), 0, "height or width do not divide into blocks, the remainder is not zero")
    return node.make("space_to_depth", x.expr, block_size=node.attr("blocksize"), mode=node.attr("mode", "DCR"))


@converter("Trilu")
def _trilu(node: NodeContext, x: Value, k: Value | None = None) -> Any:
    diagonal = 0 if k is None else node.static_ints(k, "k")[0]
    return node.make("triu" if node.attr("upper", 1) else "tril", x.expr, k=int(diagonal))


@converter("Upsample", since=7)
def _upsample(node: NodeContext, x: Value, scales: Value | None = None) -> Any:
    factors = node.attr("scales") if scales is None else _factors(node, scales)
    return _resize_to(node, x, factors, None, node.attr("mode", "nearest"), "asymmetric", "floor")


def _factors(node: NodeContext, scales: Value) -> Sequence[float] | Value:
    """The scales as numbers where the model knows them; finite and greater than 0, or an error, of the run where only the run knows."""
    known = scales.constant()
    if known is not None:
        return [float(v) for v in known]
    infinity, zero = (graph.Constant.of(np.array(v, scales.expr.sinfo.dtype.numpy)) for v in (np.inf, 0))
    right = node.make("logical_and", node.make("greater", scales.expr, zero), node.make("less", scales.expr, infinity))
    require(node, node.make("all", right), _SCALES)
    return scales


@converter("Resize", since=10)
def _resize_10(node: NodeContext, x: Value, scales: Value) -> Any:
    return _resize_to(node, x, _factors(node, scales), None, node.attr("mode", "nearest"), "asymmetric", "floor")


@converter("Resize", since=11)
def _resize(node: NodeContext, x: Value, roi: Value | None = None, scales: Value | None = None, sizes: Value | None = None) -> Any:
    target = None if sizes is None else node.ints(sizes, "the sizes")
    if target is None and scales is None:
        raise node.error("neither scales nor sizes are given")
    if target and scales is not None and not _is_empty(scales):
        raise node.error("both scales and sizes are given, of which the operator takes one")
    factors = None if target is not None or scales is None else _factors(node, scales)
    return _resize_to(node, x, factors, target, node.attr("mode", "nearest"), node.attr("coordinate_transformation_mode", "half_pixel"),
                      node.attr("nearest_mode", "round_prefer_floor"), _region(node, roi))


def _is_empty(scales: Value) -> bool:
    """Whether a list has no element, as the scales that files have beside sizes often are."""
    if scales.content is not None:
        return bool(scales.content.size == 0)
    (count,) = scales.expr.sinfo.shape
    return isinstance(count, tir.IntImm) and count.value == 0


def _region(node: NodeContext, roi: Value | None) -> np.ndarray | None:
    """The cropped region, in order of the node's axes."""
    if roi is None or node.attr("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        return None
    known = roi.constant()
    if known is None:
        raise node.data_dependent("the region")
    return known


def _resize_to(node: NodeContext, x: Value, scales: Sequence[float] | Value | None, sizes: list[Any] | None, mode: str, coordinates: str, rounding: str,
               roi: np.ndarray | None = None) -> Any:
    shape = x.expr.sinfo.shape
    axes = node.axes(node.attr("axes", None) or range(len(shape)), len(shape))
    full_scales: list[float | None] = [1.0] * len(shape)
    full_sizes: list[Any] = list(shape)
    factors = None
    if not isinstance(scales, Value) and not all(0 < s < np.inf for s in scales or ()):
        raise node.error(f"scales are {', '.join(map(str, scales))}: they must be finite and greater than 0")
    if isinstance(scales, Value):
        if node.attr("antialias", 0) and mode != "nearest":
            raise node.data_dependent("the scales of an antialiased Resize")
        factors, sizes = _run_time_factors(node, scales, shape, axes)
    for k, a in enumerate(axes):
        if sizes is not None:
            full_sizes[a], full_scales[a] = tir.as_index(sizes[k]), None
        else:
            full_scales[a] = scales[k]
            full_sizes[a] = _scaled(shape[a], scales[k])
    _keep_aspect(node, shape, axes, full_sizes, full_scales)
    if node.attr("antialias", 0) and mode != "nearest":
        return antialiased(node, x.expr, full_sizes, full_scales, mode, coordinates)
    more = () if factors is None else (factors,)
    return node.make("image.resize", x.expr, graph.ShapeExpr(tuple(full_sizes)), *more, scales=tuple(full_scales), method=mode,
                     coordinate_transformation_mode=coordinates, rounding_method=rounding, cubic_alpha=node.attr("cubic_coeff_a", -0.75),
                     cubic_exclude=bool(node.attr("exclude_outside", 0)), extrapolation_value=node.attr("extrapolation_value", 0.0),
                     roi=None if roi is None else _full_region(roi, axes, len(shape)))


def _run_time_factors(node: NodeContext, scales: Value, shape: Any, axes: list[int]) -> tuple[Any, list[Any]]:
    """A factor for every dimension, of those of some axes, and the sizes of these axes: all known to the run only."""
    node.same_size(scales.expr.sinfo.shape[0], len(axes), "scales and axes")
    factors = node.make("astype", scales.expr, dtype="float32")
    old = node.make("astype", node.value([shape[a] for a in axes]).expr, dtype="float32")
    sizes = Value(node.make("astype", node.make("floor", node.make("multiply", old, factors)), dtype="int64"))
    padded = node.make("concat", graph.Tuple((factors, graph.Constant.of(np.ones(1, np.float32)))), axis=0)
    places = [axes.index(a) if a in axes else len(axes) for a in range(len(shape))]
    return node.make("take", padded, graph.Constant.of(np.array(places, np.int64)), axis=0), node.ints(sizes, "the sizes")


def _full_region(roi: np.ndarray, axes: list[int], rank: int) -> tuple[float, ...]:
    """Starts, then ends, of every axis."""
    out = [0.0] * rank + [1.0] * rank
    for k, a in enumerate(axes):
        out[a], out[rank + a] = float(roi[k]), float(roi[len(axes) + k])
    return tuple(out)


def _scaled(n: tir.Expr, scale: float) -> tir.Expr:
    """floor(n * scale), exactly, for scales that are small fractions."""
    from fractions import Fraction

    if isinstance(n, tir.IntImm):
        return tir.index_const(int(np.floor(n.value * np.float32(scale))))
    ratio = Fraction(float(scale)).limit_denominator(1 << 16)
    return Analyzer().simplify(tir.floordiv(n * ratio.numerator, ratio.denominator))


def _keep_aspect(node: NodeContext, shape: Any, axes: list[int], sizes: list[Any], scales: list[float | None]) -> None:
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return
    known = [(sizes[a], shape[a]) for a in axes]
    if not all(isinstance(v, tir.IntImm) for pair in known for v in pair):
        raise node.data_dependent(f"keep_aspect_ratio_policy {policy!r} of sizes")
    pick = min if policy == "not_larger" else max
    scale = pick(s.value / n.value for s, n in known)
    for a in axes:
        sizes[a], scales[a] = tir.index_const(int(np.floor(scale * shape[a].value + 0.5))), scale




