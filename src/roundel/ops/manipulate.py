# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: permute, concat, split, stack, flip, tile, repeat, roll, triangles, blocks to depth."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.constants import in_order
from roundel.ir.graph.make_call import make_call
from roundel.ir.op import FuseKind, OpDef, get_op, register

from .dims import axes_of, axis_of, equal, fail, same, same_dtype, simplify, static, tensor_info
from .elementwise import label


class _Injective(OpDef):
    """Base: ``shape_of`` gives the result's shape; each element is one of x, at ``source``."""

    kind = FuseKind.INJECTIVE
    operands = ("x",)

    def shape_of(self, shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        """The result's shape (by default that of x)."""
        return shape

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        """Where the element at ``at`` comes from."""
        raise NotImplementedError

    def rank(self, ndim: int, attrs: Attrs) -> int:
        """The result's rank from that of x (which is known)."""
        return ndim

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.shape is None:
            return graph.TensorInfo(None, x.dtype, -1 if x.ndim < 0 else self.rank(x.ndim, attrs))
        return graph.TensorInfo(tuple(map(simplify, self.shape_of(x.shape, attrs))), x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0]
        shape = tuple(map(simplify, self.shape_of(x.shape, attrs)))
        return te.compute(shape, lambda *at: x(*self.source(at, x.shape, attrs)), label(self))


@register
class PermuteDims(_Injective):
    """The dimensions of x in the order ``axes`` (reversed without axes)."""

    name, attributes = "permute_dims", {"axes": None}

    def _axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        if attrs["axes"] is None:
            return tuple(reversed(range(ndim)))
        axes = axes_of(self, attrs["axes"], ndim)
        if len(axes) != ndim:
            fail(self, f"{len(axes)} axes are given for {ndim} dimensions")
        return axes

    def shape_of(self, shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        return tuple(shape[a] for a in self._axes(len(shape), attrs))

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        axes = self._axes(len(shape), attrs)
        return tuple(at[axes.index(k)] for k in range(len(shape)))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return in_order(np.transpose(args[0], attrs["axes"]))


@register
class Flip(_Injective):
    """x backwards along ``axis`` (one or several)."""

    name, attributes = "flip", {"axis": ...}

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        axes = axes_of(self, attrs["axis"], len(shape))
        return tuple(s - 1 - i if k in axes else i for k, (i, s) in enumerate(zip(at, shape)))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        axis = attrs["axis"]
        return np.flip(args[0], tuple(axis) if isinstance(axis, tuple | list) else axis).copy()


@register
class Tile(OpDef):
    """x repeated ``repeats`` times along each dimension (the last ones when fewer are given)."""

    name, operands, kind = "tile", ("x", "repeats"), FuseKind.INJECTIVE

    def _aligned(self, shape: tuple[Any, ...], repeats: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        ndim, one = max(len(shape), len(repeats)), (tir.index_const(1),)
        return one * (ndim - len(shape)) + tuple(shape), one * (ndim - len(repeats)) + tuple(repeats)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, repeats = tensor_info(self, args[0], args), args[1]
        if x.shape is None or repeats.values is None:
            return graph.TensorInfo(None, x.dtype, -1 if x.ndim < 0 or repeats.ndim < 0 else max(x.ndim, repeats.ndim))
        return graph.TensorInfo(
            tuple(simplify(s * r) for s, r in zip(*self._aligned(x.shape, repeats.values))), x.dtype
        )

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """Each repeated dimension gets one before it, along which x is broadcast; so rows stay whole."""
        x, (shape, repeats) = args[0], self._aligned(args[0].sinfo.shape, args[1].values)
        pairs = [((s,), (s,)) if static(r) == 1 else ((tir.index_const(1), s), (r, s)) for s, r in zip(shape, repeats)]
        before, after = (tuple(n for pair in pairs for n in pair[k]) for k in (0, 1))
        reshaped = builder.emit(make_call(get_op("reshape"), (x, graph.ShapeExpr(before)), {}))
        spread = builder.emit(make_call(get_op("broadcast_to"), (reshaped, graph.ShapeExpr(after)), {}))
        result = tuple(simplify(s * r) for s, r in zip(shape, repeats))
        return builder.emit(make_call(get_op("reshape"), (spread, graph.ShapeExpr(result)), {}))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.tile(*args)


@register
class Repeat(_Injective):
    """Each element ``repeats`` times in a row along ``axis`` (of x flattened without axis)."""

    name, attributes = "repeat", {"repeats": ..., "axis": None}

    def rank(self, ndim: int, attrs: Attrs) -> int:
        return 1 if attrs["axis"] is None else ndim

    def shape_of(self, shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        if attrs["axis"] is None:
            return (tir.product_of(shape) * attrs["repeats"],)
        axis = axis_of(self, attrs["axis"], len(shape))
        return tuple(s * attrs["repeats"] if k == axis else s for k, s in enumerate(shape))

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        from .shape import unravel

        if attrs["axis"] is None:
            return unravel(tir.floordiv(at[0], attrs["repeats"]), shape)
        axis = axis_of(self, attrs["axis"], len(shape))
        return tuple(tir.floordiv(i, attrs["repeats"]) if k == axis else i for k, i in enumerate(at))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.repeat(args[0], attrs["repeats"], attrs["axis"])


@register
class Roll(_Injective):
    """x shifted cyclically by ``shift`` along ``axis`` (each one number or several)."""

    name, attributes = "roll", {"shift": ..., "axis": ...}

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        axes = axes_of(self, attrs["axis"], len(shape))
        shifts = attrs["shift"] if isinstance(attrs["shift"], tuple | list) else (attrs["shift"],) * len(axes)
        by = dict(zip(axes, shifts))
        return tuple(tir.floormod(i - by[k], s) if k in by else i for k, (i, s) in enumerate(zip(at, shape)))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.roll(args[0], attrs["shift"], attrs["axis"])


class _Triangle(OpDef):
    """One triangle of the last two dimensions, ``k`` above the diagonal; zero elsewhere."""

    operands, attributes, kind = ("x",), {"k": 0}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if 0 <= x.ndim < 2:
            fail(self, "x has fewer than two dimensions", *args)
        return x

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), zero = args, tir.const(0, args[0].dtype)
        keep = (lambda i, j: j <= i + attrs["k"]) if self.name == "tril" else (lambda i, j: j >= i + attrs["k"])
        return te.compute(x.shape, lambda *at: te.select(keep(at[-2], at[-1]), x(*at), zero), self.name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        mask = getattr(np, self.name)(np.ones(args[0].shape[-2:], bool), attrs["k"])
        return np.where(mask, args[0], np.zeros((), args[0].dtype))


for _side in ("tril", "triu"):
    register(type(_side, (_Triangle,), {"name": _side, "__doc__": _Triangle.__doc__}))


@register
class Concat(OpDef):
    """Tensors one after another along ``axis`` (flattened first without axis)."""

    name, operands, attributes, kind = "concat", ("tensors",), {"axis": 0}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        if not isinstance(args[0], graph.TupleInfo) or not args[0].fields:
            fail(self, "needs a tuple of tensors", *args)
        infos = [tensor_info(self, i, args) for i in args[0].fields]
        dtype, ndim = same_dtype(self, infos), infos[0].ndim
        if attrs["axis"] is None:
            known = all(i.shape is not None for i in infos)
            return graph.TensorInfo((simplify(tir.sum_of([tir.product_of(i.shape) for i in infos])),) if known else None, dtype, 1)
        if any(i.ndim != ndim for i in infos if i.ndim >= 0 and ndim >= 0):
            fail(self, "tensors have different numbers of dimensions", *args)
        if any(i.shape is None for i in infos):
            return graph.TensorInfo(None, dtype, max(i.ndim for i in infos))
        axis, out = axis_of(self, attrs["axis"], ndim, *args), list(infos[0].shape)
        for i in infos[1:]:
            for k, (a, b) in enumerate(zip(out, i.shape)):
                if k != axis and not same(a, b):
                    fail(self, f"dimensions {k} of the tensors are not provably equal", *args)
        out[axis] = simplify(tir.sum_of([i.shape[axis] for i in infos]))
        return graph.TensorInfo(tuple(out), dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        tensors = args[0] if attrs["axis"] is not None else tuple(map(_flattened, args[0]))
        axis, shape = (attrs["axis"] or 0) % len(tensors[0].shape), list(tensors[0].shape)
        ends = [simplify(tir.sum_of([t.shape[axis] for t in tensors[: k + 1]])) for k in range(len(tensors))]
        shape[axis] = ends[-1]

        def body(*at: Any) -> tir.Expr:
            read = lambda t, start: t(*(i - start if k == axis else i for k, i in enumerate(at)))
            starts = [tir.index_const(0), *ends[:-1]]
            out = read(tensors[-1], starts[-1])
            for k in range(len(tensors) - 2, -1, -1):
                out = te.if_then_else(at[axis] < ends[k], read(tensors[k], starts[k]), out)
            return out

        return te.compute(shape, body, "concat")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.concatenate(args[0], attrs["axis"])


@register
class Append(OpDef):
    """``new`` behind ``past`` along ``axis``: the same as ``concat`` of them, in memory where ``past`` may lie already (see host/caches)."""

    name, operands, attributes, kind = "append", ("past", "new"), {"axis": 0}, FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return get_op("concat").infer((graph.TupleInfo(args),), attrs)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return get_op("concat").compute((args,), attrs)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.concatenate(args, attrs["axis"])


@register
class Stack(OpDef):
    """Tensors of one shape along a new dimension ``axis``."""

    name, operands, attributes, kind = "stack", ("tensors",), {"axis": 0}, FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        if not isinstance(args[0], graph.TupleInfo) or not args[0].fields:
            fail(self, "needs a tuple of tensors", *args)
        infos = [tensor_info(self, i, args) for i in args[0].fields]
        dtype = same_dtype(self, infos)
        if any(i.shape is None for i in infos):
            ndim = max(i.ndim for i in infos)
            return graph.TensorInfo(None, dtype, ndim + 1 if ndim >= 0 else -1)
        first = infos[0].shape
        if any(len(i.shape) != len(first) or not all(map(equal, i.shape, first)) for i in infos):
            fail(self, "tensors have different shapes", *args)
        axis = axis_of(self, attrs["axis"], len(first) + 1, *args)
        return graph.TensorInfo((*first[:axis], len(infos), *first[axis:]), dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        tensors = args[0]
        first = tensors[0].shape
        axis = attrs["axis"] % (len(first) + 1)

        def body(*at: Any) -> tir.Expr:
            rest = (*at[:axis], *at[axis + 1 :])
            out = tensors[-1](*rest)
            for k in range(len(tensors) - 2, -1, -1):
                out = te.if_then_else(tir.eq(at[axis], k), tensors[k](*rest), out)
            return out

        return te.compute((*first[:axis], len(tensors), *first[axis:]), body, "stack")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.stack(args[0], attrs["axis"])


def _flattened(x: te.Tensor) -> te.Tensor:
    from .shape import unravel

    return te.compute((tir.product_of(x.shape),), lambda i: x(*unravel(i, x.shape)), "flat")


_MOST_PARTS = 1 << 16
"""Of a split: each part is a tensor with a name."""


@register
class Split(OpDef):
    """x cut along ``axis`` into a number of parts (the last may be smaller), or at the given positions."""

    name, operands, attributes, kind = "split", ("x",), {"indices_or_sections": ..., "axis": 0}, FuseKind.INJECTIVE

    def _bounds(self, extent: Any, attrs: Attrs) -> list[tuple[Any, Any]]:
        cuts = attrs["indices_or_sections"]
        if isinstance(cuts, tuple | list):
            n = static(extent)
            clipped = [min(max(c + n if c < 0 else c, 0), n) if n is not None else c for c in cuts]
            edges = [tir.index_const(0), *map(tir.as_index, clipped), extent]
        else:
            step = tir.ceildiv(extent, cuts)
            edges = [tir.as_index(step * k) for k in range(cuts)] + [extent]
            if static(extent) is not None:
                edges = [tir.index_const(min(e.value, extent.value)) for e in edges]
        return [
            (simplify(a), simplify(tir.max_(b - a, 0)))
            if static(a) is not None and static(b) is not None
            else (simplify(a), simplify(b - a))
            for a, b in itertools.pairwise(edges)
        ]

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, cuts = tensor_info(self, args[0], args), attrs["indices_or_sections"]
        if isinstance(cuts, int) and not 0 < cuts <= _MOST_PARTS:
            fail(self, f"x cannot be cut into {cuts} parts, at least 1 and at most {_MOST_PARTS} are possible", *args)
        if x.shape is None:
            count = len(cuts) + 1 if isinstance(cuts, tuple | list) else cuts
            return graph.TupleInfo((graph.TensorInfo(None, x.dtype, x.ndim),) * count)
        axis = axis_of(self, attrs["axis"], x.ndim, *args)
        parts = self._bounds(x.shape[axis], attrs)
        return graph.TupleInfo(
            tuple(graph.TensorInfo((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype) for _, n in parts)
        )

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axis = attrs["axis"] % len(x.shape)
        return tuple(
            te.compute(
                (*x.shape[:axis], n, *x.shape[axis + 1 :]),
                lambda *at, s=s: x(*(i + s if k == axis else i for k, i in enumerate(at))),
                "split",
            )
            for s, n in self._bounds(x.shape[axis], attrs)
        )

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, cuts, axis = args[0], attrs["indices_or_sections"], attrs["axis"] % args[0].ndim
        if not isinstance(cuts, tuple | list):
            step = -(-x.shape[axis] // cuts)
            cuts = [step * k for k in range(1, cuts)]
        return tuple(np.ascontiguousarray(p) for p in np.split(x, cuts, axis))


class _Blocks(_Injective):
    """Base of depth_to_space and space_to_depth on NCHW; ``mode`` DCR: depth-column-row, CRD: column-row-depth."""

    attributes = {"block_size": ..., "mode": "DCR"}


@register
class DepthToSpace(_Blocks):
    """Channels in blocks become space: (n, c, h, w) to (n, c / b^2, h b, w b)."""

    name = "depth_to_space"

    def shape_of(self, shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        n, c, h, w = shape
        b = attrs["block_size"]
        return n, tir.floordiv(c, b * b), h * b, w * b

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        n, c, h, w = at
        b = attrs["block_size"]
        block = tir.floormod(h, b) * b + tir.floormod(w, b)
        depth = simplify(tir.floordiv(shape[1], b * b))
        channel = block * depth + c if attrs["mode"] == "DCR" else c * (b * b) + block
        return n, channel, tir.floordiv(h, b), tir.floordiv(w, b)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), b = args, attrs["block_size"]
        n, c, h, w = x.shape
        if attrs["mode"] == "DCR":
            y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
        return y.reshape(n, c // b**2, h * b, w * b)


@register
class SpaceToDepth(_Blocks):
    """Blocks of space become channels: (n, c, h, w) to (n, c b^2, h / b, w / b)."""

    name = "space_to_depth"

    def shape_of(self, shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        n, c, h, w = shape
        b = attrs["block_size"]
        return n, c * (b * b), tir.floordiv(h, b), tir.floordiv(w, b)

    def source(self, at: tuple[Any, ...], shape: tuple[Any, ...], attrs: Attrs) -> tuple[Any, ...]:
        n, c, h, w = at
        b = attrs["block_size"]
        if attrs["mode"] == "DCR":
            block, channel = tir.floordiv(c, shape[1]), tir.floormod(c, shape[1])
        else:
            block, channel = tir.floormod(c, b * b), tir.floordiv(c, b * b)
        return n, channel, h * b + tir.floordiv(block, b), w * b + tir.floormod(block, b)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), b = args, attrs["block_size"]
        n, c, h, w = x.shape
        order = (0, 3, 5, 1, 2, 4) if attrs["mode"] == "DCR" else (0, 1, 3, 5, 2, 4)
        return x.reshape(n, c, h // b, b, w // b, b).transpose(order).reshape(n, c * b * b, h // b, w // b)
