# SPDX-License-Identifier: Apache-2.0
"""Positions of extremes, cumulative sums and products. NaN counts as the largest value."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axis_of, static, tensor_info
from .elementwise import widen
from .loops import for_each, load, store
from .reduce import at_reduced, reduce_te, reduced_shape
from .shape import linear_index, unravel


def _isnan(v: tir.Expr) -> Any:
    return te.isnan(v) if v.dtype.is_float else False


class _Arg(OpDef):
    """The position (int64) of the first largest or smallest element along ``axis``; without axis, of x flattened."""

    operands, attributes, kind = ("x",), {"axis": None, "keepdims": False}, FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        axes = range(max(x.ndim, 0)) if attrs["axis"] is None else (axis_of(self, attrs["axis"], x.ndim, *args),)
        if x.shape is None:
            return graph.TensorInfo(
                None, "int64", -1 if x.ndim < 0 else x.ndim if attrs["keepdims"] else x.ndim - len(axes)
            )
        return graph.TensorInfo(reduced_shape(x.shape, list(axes), attrs["keepdims"]), "int64")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        """The extreme first, then the first position that holds it (of NaN, the first NaN)."""
        (x,), largest = args, self.name == "argmax"
        axes = list(range(len(x.shape))) if attrs["axis"] is None else [attrs["axis"] % len(x.shape)]
        count = tir.product_of([x.shape[a] for a in axes])
        place = DType("int32" if (static(count) or 1 << 62) < 1 << 31 else "int64")
        byte = lambda v: te.cast(v, "int8") if v.dtype.is_bool else v
        extreme = reduce_te(x, axes, te.max if largest else te.min, name=self.name + "_value", before=byte)
        ks = [te.reduce_axis(x.shape[a], f"k{a}") for a in axes]
        at = te.cast(linear_index([k.var for k in ks], [x.shape[a] for a in axes]), place)

        def first(*rest: Any) -> Any:
            left, inner = iter(rest), iter(ks)
            v = byte(x(*[next(inner).var if k in axes else next(left) for k in range(len(x.shape))]))
            found = tir.eq(v, extreme(*rest))
            return te.min(te.select(te.logical_or(found, te.isnan(v)) if v.dtype.is_float else found, at, te.highest(place)), axis=ks)

        index = te.compute(extreme.shape, first, self.name + "_first")
        shape = reduced_shape(x.shape, axes, attrs["keepdims"])
        plain = (lambda i: at_reduced(i, axes)) if attrs["keepdims"] else (lambda i: i)
        return te.compute(shape, lambda *i: te.cast(index(*plain(i)), "int64"), self.name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        axis, x = attrs["axis"], widen(args[0])
        out = getattr(np, self.name)(x, axis=axis, keepdims=attrs["keepdims"])
        return np.asarray(out, np.int64)


for _name in ("argmax", "argmin"):
    register(type(_name, (_Arg,), {"name": _name, "__doc__": _Arg.__doc__}))


class _Scan(OpDef):
    """Sums or products of the elements up to each (without it when exclusive), along ``axis`` or of x flattened."""

    operands, attributes, kind = ("data",), {"axis": None, "dtype": None, "exclusive": False}, FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        x = x.replace(dtype=DType(attrs["dtype"]) if attrs["dtype"] else x.dtype)
        if attrs["axis"] is None:
            return graph.TensorInfo(None if x.shape is None else (x.size,), x.dtype, 1)
        axis_of(self, attrs["axis"], x.ndim, *args)
        return x

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), flat = args, attrs["axis"] is None
        dtype = DType(attrs["dtype"] or x.dtype)
        wide = te.accumulator(dtype)
        shape = (tir.product_of(x.shape),) if flat else x.shape
        axis = 0 if flat else attrs["axis"] % len(shape)
        step, start = (lambda a, b: a + b, 0) if self.name == "cumsum" else (lambda a, b: a * b, 1)

        def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
            (src,), (out,), (total,) = ins, outs, scratch
            at = lambda j: (*point[:axis], j, *point[axis:])
            value = lambda j: te.cast(load(src, unravel(j, x.shape) if flat else at(j)), wide)
            write = lambda j: store(out, at(j), te.cast(load(total, (0,)), dtype))
            update = lambda j: store(total, (0,), step(load(total, (0,)), value(j)))
            body = lambda j: tir.seq(write(j), update(j)) if attrs["exclusive"] else tir.seq(update(j), write(j))
            return tir.seq(store(total, (0,), start), for_each([shape[axis]], body))

        return te.extern(
            [(shape, dtype)],
            args,
            build,
            self.name,
            over=[s for k, s in enumerate(shape) if k != axis],
            scratch=[((1,), wide)],
        )

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, axis = args[0], attrs["axis"]
        dtype = DType(attrs["dtype"] or x.dtype)
        wide = x.astype(te.accumulator(dtype).numpy)
        wide, axis = (wide.reshape(-1), 0) if axis is None else (wide, axis % x.ndim)
        out = getattr(np, self.name)(wide, axis, dtype=wide.dtype)
        if attrs["exclusive"]:
            first = np.full([1 if k == axis else s for k, s in enumerate(out.shape)], self.name == "cumprod", out.dtype)
            out = np.concatenate([first, out], axis)[(slice(None),) * axis + (slice(0, wide.shape[axis]),)]
        return out.astype(dtype.numpy)


for _name in ("cumsum", "cumprod"):
    register(type(_name, (_Scan,), {"name": _name, "__doc__": _Scan.__doc__}))
