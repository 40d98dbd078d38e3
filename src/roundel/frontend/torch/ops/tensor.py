# SPDX-License-Identifier: Apache-2.0
"""ATen operators that move data or change shapes."""

from __future__ import annotations

from typing import Any

from .... import te
from ....arith import Analyzer
from ....ir import graph, tir
from ....ops import make
from ....ops.dims import equal
from ..importer import NodeContext
from ..pairs import PADS
from ..registry import converter
from .math import scalar, tensor

_FAR = 1 << 62


@converter("view", "_unsafe_view", "reshape", "unflatten", "flatten", "view_copy", "squeeze", "unsqueeze", "_reshape_copy")
def _view(node: NodeContext, x: Any, *_: Any) -> Any:
    if "view.dtype" in str(node.node.target):
        return _bits_as(node, x)
    return node.make("reshape", x, node.out_shape())


def _bits_as(node: NodeContext, x: Any) -> Any:
    """The same bits as another dtype of the same size."""
    dtype = node.out_dtype()
    if dtype.storage_bits != x.sinfo.dtype.storage_bits or dtype.is_bool or x.sinfo.dtype.is_bool:
        raise node.unsupported(f"the bits of {x.sinfo.dtype} as {dtype}")
    return x if dtype == x.sinfo.dtype else node.elementwise(lambda v: tir.Call("reinterpret", (v,), dtype), x, "bits_as")


@converter("permute", "permute_copy")
def _permute(node: NodeContext, x: Any, dims: list[int]) -> Any:
    return node.make("permute_dims", x, axes=tuple(d % x.sinfo.ndim for d in dims)) if x.sinfo.ndim else x


@converter("transpose", "t")
def _transpose(node: NodeContext, x: Any, a: int = 0, b: int = 1) -> Any:
    axes = list(range(x.sinfo.ndim))
    if x.sinfo.ndim < 2:
        return x
    axes[a], axes[b] = axes[b], axes[a]
    return node.make("permute_dims", x, axes=tuple(axes))


@converter("expand", "expand_copy")
def _expand(node: NodeContext, x: Any, sizes: Any, *, implicit: bool = False) -> Any:
    return node.make("broadcast_to", x, node.out_shape())


@converter("cat")
def _cat(node: NodeContext, xs: Any, dim: int = 0) -> Any:
    dtype = node.out_dtype()
    kept = [tensor(node, x, dtype) for x in xs if not (x.sinfo.ndim == 1 and x.sinfo.shape[0] is tir.index_const(0))]
    if not kept:
        return xs[0]
    return node.make("concat", graph.Tuple(tuple(kept)), axis=dim % kept[0].sinfo.ndim)


def slice_along(node: NodeContext, x: Any, dim: int, begin: Any, end: Any, step: int = 1) -> Any:
    """``x`` from begin to end (within the axis) along one axis."""
    return node.make("strided_slice", x, axes=(dim % x.sinfo.ndim,), begin=(tir.as_index(begin),), end=(tir.as_index(end),),
                     strides=(tir.as_index(step),), assume_inbound=True)


@converter("slice.Tensor", "slice_copy.Tensor")
def _slice(node: NodeContext, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    n = x.sinfo.shape[dim]
    begin = _place(start, n, 0)
    return slice_along(node, x, dim, begin, tir.max_(_place(end, n, n), begin), step)


def _place(v: Any, n: tir.Expr, default: Any) -> tir.Expr:
    """A position within [0, n]: negative ones count from the end."""
    if v is None:
        return tir.as_index(default)
    if isinstance(v, int):
        if v >= _FAR:
            return n
        return tir.max_(n + v, 0) if v < 0 else tir.min_(v, n)
    return tir.min_(tir.select(tir.lt(v, 0), tir.max_(v + n, 0), v), n)


def _position(node: NodeContext, index: Any, n: tir.Expr) -> tir.Expr:
    """An index, which may count from the end, as a position; that it is one is checked when the program runs, before sums with it can wrap."""
    if isinstance(index, int):
        return n + index if index < 0 else tir.as_index(index)
    at = tir.select(tir.lt(index, 0), index + n, index)
    for holds, text in ((tir.ge(at, 0), "is before the first element"), (tir.lt(at, n), "is not below {1}, the size of the dimension")):
        if not Analyzer().prove(holds):
            sides = graph.Tuple((graph.PrimValue(holds.a), graph.PrimValue(holds.b)))
            node.emit(make("assert_op", graph.PrimValue(holds), sides, format=f"{node.title}: index out of range: position {{0}} {text}"))
    return at


@converter("select.int", "select_copy.int")
def _select(node: NodeContext, x: Any, dim: int, index: Any) -> Any:
    at = _position(node, index, x.sinfo.shape[dim])
    return node.make("reshape", slice_along(node, x, dim, at, at + 1), node.out_shape())


@converter("slice_scatter", "slice_scatter_copy")
def _slice_scatter(node: NodeContext, x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    n = x.sinfo.shape[dim]
    begin, src = _place(start, n, 0), tensor(node, src, x.sinfo.dtype)
    end, axis = tir.max_(_place(end, n, n), begin), dim % x.sinfo.ndim
    sliced = (*x.sinfo.shape[:axis], Analyzer().simplify(tir.ceildiv(end - begin, step)), *x.sinfo.shape[axis + 1:])
    node.importer.check_sizes([(a, b) for a, b in zip(src.sinfo.shape, sliced, strict=True) if not equal(a, b)],
                              f"{node.title}: the source has another size than the slice")
    if step == 1:
        return _between(node, x, dim, begin, src, end)

    def strided(x: Any, src: Any) -> Any:
        def element(*at: tir.Expr) -> tir.Expr:
            past = at[axis] - begin
            inside = tir.logical_and(tir.ge(past, 0), tir.logical_and(tir.lt(at[axis], end), tir.eq(tir.floormod(past, step), 0)))
            return te.if_then_else(inside, src(*at[:axis], tir.floordiv(past, step), *at[axis + 1:]), x(*at))

        return te.compute(x.shape, element, "slice_scatter")

    return node.te(strided, x, src)


@converter("select_scatter", "select_scatter_copy")
def _select_scatter(node: NodeContext, x: Any, src: Any, dim: int, index: Any) -> Any:
    at = _position(node, index, x.sinfo.shape[dim])
    return _between(node, x, dim, at, node.make("expand_dims", tensor(node, src, x.sinfo.dtype), axis=(dim % x.sinfo.ndim,)), at + 1)


def _between(node: NodeContext, x: Any, dim: int, begin: tir.Expr, part: Any, end: tir.Expr) -> Any:
    """``x`` with the elements from begin to end along one axis replaced."""
    n = x.sinfo.shape[dim]
    before = [] if begin is tir.index_const(0) else [slice_along(node, x, dim, 0, begin)]
    after = [] if end is n else [slice_along(node, x, dim, end, n)]
    parts = [*before, part, *after]
    return part if len(parts) == 1 else node.make("concat", graph.Tuple(tuple(parts)), axis=dim % x.sinfo.ndim)


@converter("split_with_sizes", "split_with_sizes_copy", "split.sizes")
def _split_with_sizes(node: NodeContext, x: Any, sizes: list[Any], dim: int = 0) -> Any:
    out, at = [], tir.as_index(0)
    for s in sizes:
        out.append(slice_along(node, x, dim, at, at + s))
        at = at + s
    return tuple(out)


@converter("split.Tensor", "chunk", "unbind.int")
def _split(node: NodeContext, x: Any, size: Any = None, dim: int = 0) -> Any:
    shapes = [v.shape for v in node.value]
    out, at = [], tir.as_index(0)
    unbind = "unbind" in str(node.node.target)
    axis = (size or 0) if unbind else dim
    for s in shapes:
        n = 1 if unbind else node.importer.sizes.get(s[axis])
        part = slice_along(node, x, axis, at, at + n)
        out.append(node.make("reshape", part, node.shape(s)) if unbind else part)
        at = at + n
    return tuple(out)


@converter("flip")
def _flip(node: NodeContext, x: Any, dims: list[int]) -> Any:
    for d in dims:
        x = node.make("flip", x, axis=d)
    return x


@converter("repeat")
def _repeat(node: NodeContext, x: Any, repeats: list[Any]) -> Any:
    return node.make("tile", x, repeats=tuple(repeats))


@converter("constant_pad_nd")
def _constant_pad(node: NodeContext, x: Any, pads: list[Any], value: Any = 0) -> Any:
    n = x.sinfo.ndim
    width: list[Any] = [0] * (2 * n)
    for k in range(len(pads) // 2):
        width[2 * (n - 1 - k)], width[2 * (n - 1 - k) + 1] = pads[2 * k], pads[2 * k + 1]
    crop = [(a, max(-width[2 * a], 0), max(-width[2 * a + 1], 0)) for a in range(n) if all(isinstance(w, int) for w in width[2 * a:2 * a + 2])]
    for a, low, high in crop:
        if low or high:
            x = slice_along(node, x, a, low, x.sinfo.shape[a] - high)
            width[2 * a], width[2 * a + 1] = max(width[2 * a], 0), max(width[2 * a + 1], 0)
    return node.make("nn.pad", x, pad_value=scalar(value, x.sinfo.dtype), pad_width=tuple(tir.as_index(w) for w in width), pad_mode="constant")


@converter("pad")
def _pad(node: NodeContext, x: Any, pads: list[Any], mode: str = "constant", value: Any = None) -> Any:
    return _constant_pad(node, x, pads, 0 if value is None else value) if mode == "constant" else _pad_with_own(node, x, pads, mode)


@converter(*PADS)
def _mirrored_pad(node: NodeContext, x: Any, pads: list[Any]) -> Any:
    return _pad_with_own(node, x, pads, "reflect" if "reflection" in str(node.node.target) else "replicate")


def _pad_with_own(node: NodeContext, x: Any, pads: list[Any], mode: str) -> Any:
    """Padding by the tensor's own elements."""
    n, around = x.sinfo.ndim, [p for k in reversed(range(len(pads) // 2)) for p in pads[2 * k : 2 * k + 2]]
    return node.make("nn.pad", x, pad_width=tuple(map(tir.as_index, [0] * (2 * n - len(around)) + around)), pad_mode=mode)


@converter("tril", "triu")
def _tri(node: NodeContext, x: Any, diagonal: int = 0) -> Any:
    return node.make("tril" if "tril" in str(node.node.target) else "triu", x, k=diagonal)


@converter("upsample_nearest2d.vec")
def _nearest_vec(node: NodeContext, x: Any, size: Any, factors: Any = None) -> Any:
    return _resize(node, x, False, factors)


@converter("upsample_bilinear2d.vec", "upsample_bicubic2d.vec")
def _upsample_vec(node: NodeContext, x: Any, size: Any, align_corners: bool, factors: Any = None) -> Any:
    return _resize(node, x, align_corners, factors)


@converter("upsample_nearest2d")
def _nearest(node: NodeContext, x: Any, size: Any, *factors: Any) -> Any:
    return _resize(node, x, False, factors)


@converter("upsample_bilinear2d", "upsample_bicubic2d")
def _upsample(node: NodeContext, x: Any, size: Any, align_corners: bool, *factors: Any) -> Any:
    return _resize(node, x, align_corners, factors)


def _resize(node: NodeContext, x: Any, align_corners: bool, factors: Any) -> Any:
    """``factors``: how much larger the result is along each axis of space, where the caller said it; else that follows from the sizes."""
    target = str(node.node.target)
    method = "nearest" if "nearest" in target else "linear" if "bilinear" in target else "cubic"
    given = tuple(float(f) if isinstance(f, int | float) and not align_corners else None for f in factors or (None, None))
    mode = "asymmetric" if method == "nearest" else "align_corners" if align_corners else "half_pixel"
    return node.make("image.resize", x, node.out_shape(), scales=(1.0, 1.0, *given), method=method, coordinate_transformation_mode=mode,
                     rounding_method="floor", cubic_alpha=-0.75)
