# SPDX-License-Identifier: Apache-2.0
"""Operators that change the shape and keep the order of elements: reshape, flatten, squeeze, broadcast_to, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axes_of, dim_text, equal, fail, same, simplify, static, tensor_info
from .elementwise import element, label


def linear_index(at: Sequence[Any], shape: Sequence[Any]) -> tir.Expr:
    """The row-major position of an index."""
    out: tir.Expr = tir.index_const(0)
    for i, s in zip(at, shape):
        out = out * s + i
    return out


def unravel(position: tir.Expr, shape: Sequence[Any]) -> tuple[tir.Expr, ...]:
    """The index at a row-major position."""
    out: list[tir.Expr] = []
    for k in range(len(shape) - 1, -1, -1):
        out.append(tir.floormod(position, shape[k]) if k else position)
        position = tir.floordiv(position, shape[k])
    return tuple(reversed(out))


def reindexed(x: te.Tensor, shape: Sequence[Any], name: str) -> te.Tensor:
    """``x`` in row-major order as ``shape``; groups of dimensions that have equal products are handled on their own."""
    groups = _groups(x.shape, shape)

    def body(*at: Any) -> tir.Expr:
        index: list[Any] = [tir.index_const(0)] * len(x.shape)
        for old, new in groups:
            olds = [k for k in old if static(x.shape[k]) != 1]
            news = [k for k in new if static(shape[k]) != 1]
            position = linear_index([at[k] for k in news], [shape[k] for k in news])
            for k, i in zip(olds, unravel(position, [x.shape[k] for k in olds])):
                index[k] = i
        return x(*index)

    return te.compute(shape, body, name)


def _groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
    """Shortest runs of dimensions of both shapes with provably equal products."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = [], []
        left = right = tir.index_const(1)
        if i < len(old):
            a, left, i = [i], old[i], i + 1
        if j < len(new):
            b, right, j = [j], new[j], j + 1
        while not equal(left, right) and (i < len(old) or j < len(new)):
            if j >= len(new) or (i < len(old) and _smaller(left, right)):
                left, a, i = simplify(left * old[i]), [*a, i], i + 1
            else:
                right, b, j = simplify(right * new[j]), [*b, j], j + 1
        groups.append((a, b))
    return groups


def _smaller(a: tir.Expr, b: tir.Expr) -> bool:
    """A guess that guides the search for groups: constants compare, symbolic products count their variables."""
    x, y = static(a), static(b)
    if x is not None and y is not None:
        return x < y
    from roundel.ir.visit import free_vars

    return (len(free_vars(a)), _terms(a)) < (len(free_vars(b)), _terms(b))


def _terms(e: tir.Expr) -> int:
    return (
        e.value
        if type(e) is tir.IntImm
        else max((_terms(c) for c in (getattr(e, "a", None), getattr(e, "b", None)) if c is not None), default=1)
    )


class _Reshaping(OpDef):
    """Base: ``target`` gives the shape."""

    kind = FuseKind.INJECTIVE

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        """The result's shape from the known shape of x."""
        raise NotImplementedError

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.shape is None:
            return graph.TensorInfo(None, x.dtype, self.rank(x, args[1:], attrs))
        return graph.TensorInfo(self.target(x, args[1:], attrs), x.dtype)

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        """The rank when the shape is unknown."""
        return -1

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0]
        info = graph.TensorInfo(x.shape, x.dtype)
        rest = tuple(graph.ShapeInfo(a) if isinstance(a, tuple) else a for a in args[1:])
        return reindexed(x, self.target(info, rest, attrs), label(self))


@register
class Reshape(_Reshaping):
    """x with another shape; one dimension may be -1 (what is left), 0 keeps the dimension of x."""

    name, operands = "reshape", ("x", "shape")

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        if not isinstance(rest[0], graph.ShapeInfo):
            fail(self, "the new shape is not a shape", x, *rest)
        if rest[0].values is None:
            return None
        dims = list(rest[0].values)
        empty = any(static(s) == 0 for s in x.shape)
        dims = [x.shape[k] if static(d) == 0 and not empty and k < x.ndim else d for k, d in enumerate(dims)]
        open_at = [k for k, d in enumerate(dims) if static(d) == -1]
        if len(open_at) > 1:
            fail(self, "more than one dimension is -1", x, *rest)
        if open_at:
            dims[open_at[0]] = self._remaining(x, dims, open_at[0], rest)
        elif not same(tir.product_of(dims), x.size):
            have, want = dim_text(simplify(x.size)), dim_text(simplify(tir.product_of(dims)))
            fail(self, f"{have} elements do not make a shape of {want}", x, *rest)
        return tuple(dims)

    def _remaining(self, x: graph.TensorInfo, dims: list[Any], at: int, rest: Any) -> tir.Expr:
        """What -1 stands for; common factors cancel."""
        above, below = list(x.shape), [d for k, d in enumerate(dims) if k != at]
        for d in list(below):
            hit = next((s for s in above if equal(s, d)), None)
            if hit is not None:
                above.pop(next(k for k, s in enumerate(above) if s is hit))
                below.pop(next(k for k, s in enumerate(below) if s is d))
        top, bottom = tir.product_of(above), tir.product_of(below)
        if static(bottom) == 0:
            fail(self, "a dimension of -1 is ambiguous beside one of 0", x, *rest)
        out = simplify(tir.floordiv(top, bottom))
        if static(top) is not None and static(bottom) is not None and static(top) % static(bottom):
            fail(self, f"{static(x.size)} elements do not divide into the given dimensions", x, *rest)
        return out

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.shape is None and isinstance(args[1], graph.ShapeInfo) and args[1].values is not None:
            known = all(static(d) is None or static(d) > 0 for d in args[1].values)
            return graph.TensorInfo(args[1].values if known else None, x.dtype, args[1].ndim)
        return super().infer(args, attrs)

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        return rest[0].ndim

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, shape = args
        dims = [x.shape[k] if d == 0 and x.size and k < x.ndim else d for k, d in enumerate(shape)]
        return x.reshape(dims)


@register
class Flatten(_Reshaping):
    """All elements along one dimension."""

    name, operands = "flatten", ("x",)

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        return (simplify(x.size),)

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        return 1

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return args[0].reshape(-1)


@register
class BatchFlatten(_Reshaping):
    """Two dimensions: those before ``axis`` and those from it on."""

    name, operands, attributes = "nn.batch_flatten", ("x",), {"axis": 1}

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        axis = attrs["axis"] + x.ndim if attrs["axis"] < 0 else attrs["axis"]
        return tuple(simplify(tir.product_of(part)) for part in (x.shape[:axis], x.shape[axis:]))

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        return 2

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0]
        axis = attrs["axis"] % x.ndim if attrs["axis"] < 0 else attrs["axis"]
        return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), int(np.prod(x.shape[axis:], dtype=np.int64)))


@register
class Squeeze(_Reshaping):
    """x without dimensions ``axis`` (of extent 1); without axis, all of constant extent 1."""

    name, operands, attributes = "squeeze", ("x",), {"axis": None}

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        if attrs["axis"] is None:
            return tuple(s for s in x.shape if static(s) != 1)
        axes = axes_of(self, attrs["axis"], x.ndim, x)
        for a in axes:
            if static(x.shape[a]) not in (1, None):
                fail(self, f"dimension {a} is {static(x.shape[a])}, not 1", x)
        return tuple(s for k, s in enumerate(x.shape) if k not in axes)

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        axes = attrs["axis"]
        return -1 if axes is None or x.ndim < 0 else x.ndim - len(axes_of(self, axes, x.ndim))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        shape = self.target(graph.TensorInfo(x.shape, x.dtype), (), attrs)
        gone = (
            [k for k in range(len(x.shape)) if static(x.shape[k]) == 1]
            if attrs["axis"] is None
            else axes_of(self, attrs["axis"], len(x.shape))
        )

        def body(*at: Any) -> tir.Expr:
            rest = iter(at)
            return x(*(tir.index_const(0) if k in gone else next(rest) for k in range(len(x.shape))))

        return te.compute(shape, body, "squeeze")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        axis = attrs["axis"]
        return np.squeeze(args[0], tuple(axis) if isinstance(axis, tuple | list) else axis)


@register
class ExpandDims(_Reshaping):
    """x with new dimensions of extent 1 at positions ``axis`` of the result."""

    name, operands, attributes = "expand_dims", ("x",), {"axis": ...}

    def _axes(self, ndim: int, attrs: Attrs) -> tuple[int, ...]:
        axes = attrs["axis"] if isinstance(attrs["axis"], tuple | list) else (attrs["axis"],)
        return axes_of(self, axes, ndim + len(axes))

    def target(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> Any:
        axes, dims = self._axes(x.ndim, attrs), iter(x.shape)
        return tuple(tir.index_const(1) if k in axes else next(dims) for k in range(x.ndim + len(axes)))

    def rank(self, x: graph.TensorInfo, rest: tuple[Any, ...], attrs: Attrs) -> int:
        return -1 if x.ndim < 0 else x.ndim + len(self._axes(x.ndim, attrs))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axes = self._axes(len(x.shape), attrs)
        shape = self.target(graph.TensorInfo(x.shape, x.dtype), (), attrs)
        return te.compute(shape, lambda *at: x(*(i for k, i in enumerate(at) if k not in axes)), "expand_dims")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.expand_dims(args[0], self._axes(args[0].ndim, attrs))


@register
class BroadcastTo(OpDef):
    """x broadcast to ``shape``; a dimension of -1 keeps that of x."""

    name, operands, kind = "broadcast_to", ("x", "shape"), FuseKind.BROADCAST

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, shape = tensor_info(self, args[0], args), args[1]
        if shape.values is None:
            return graph.TensorInfo(None, x.dtype, shape.ndim)
        if x.shape is None:
            return graph.TensorInfo(
                None if any(static(d) == -1 for d in shape.values) else shape.values, x.dtype, shape.ndim
            )
        return graph.TensorInfo(self._shape(x.shape, shape.values, args), x.dtype)

    def _shape(self, old: Sequence[Any], new: Sequence[Any], infos: Any = ()) -> tuple[Any, ...]:
        skip = len(new) - len(old)
        if skip < 0:
            fail(self, f"{len(old)} dimensions do not broadcast to {len(new)}", *infos)
        out = tuple(old[k - skip] if k >= skip and static(d) == -1 else d for k, d in enumerate(new))
        for s, d in zip(old, out[skip:]):
            if static(s) != 1 and not same(s, d):
                fail(self, f"dimension {dim_text(s)} does not broadcast to {dim_text(d)}", *infos)
        return out

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, shape = args[0], self._shape(args[0].shape, args[1])
        return te.compute(shape, lambda *i: element(x, i, shape), "broadcast_to")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, shape = args
        skip = len(shape) - x.ndim
        return np.broadcast_to(x, [x.shape[k - skip] if d == -1 else d for k, d in enumerate(shape)])


@register
class ShapeOf(OpDef):
    """The dimensions of x as an int64 tensor."""

    name, operands, kind = "shape_to_tensor", ("shape",), FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return graph.TensorInfo((args[0].ndim,), "int64") if args[0].ndim >= 0 else graph.TensorInfo(None, "int64", 1)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (dims,) = args

        def body(i: Any) -> tir.Expr:
            out: tir.Expr = dims[-1] if dims else tir.index_const(0)
            for k in range(len(dims) - 2, -1, -1):
                out = tir.select(tir.eq(i, k), dims[k], out)
            return out

        return te.compute((len(dims),), body, "shape")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.asarray(args[0], np.int64)


@register
class ShapeOfTensor(OpDef):
    """The shape of x, as a shape."""

    name, operands, kind = "shape_of", ("x",), FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        return graph.ShapeInfo(x.shape, x.ndim)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tuple(int(s) for s in args[0].shape)


@register
class TensorToShape(OpDef):
    """The values of a one-dimensional integer tensor, as a shape; ``upper`` says how large each can be."""

    name, operands, kind = "tensor_to_shape", ("x", "upper?"), FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.ndim not in (-1, 1) or (x.dtype is not None and not x.dtype.is_int):
            fail(self, "x is not a one-dimensional tensor of integers", *args)
        return graph.ShapeInfo(None, -1 if x.shape is None or static(x.shape[0]) is None else x.shape[0].value)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tuple(int(v) for v in args[0])
