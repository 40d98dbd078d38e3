# SPDX-License-Identifier: Apache-2.0
"""Choice and conversion of elements: where, clip, astype."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import broadcast, broadcast_shapes, fail, same_dtype, tensor_info
from .elementwise import element, widen


@register
class Where(OpDef):
    """x1 where the bool ``condition`` holds, else x2; all three broadcast."""

    name, operands, kind = "where", ("condition", "x1", "x2"), FuseKind.BROADCAST

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = [tensor_info(self, a, args) for a in args]
        if infos[0].dtype not in (None, "bool"):
            fail(self, f"condition has to be bool, not {infos[0].dtype}", *args)
        shape, ndim = broadcast(self, infos)
        return graph.TensorInfo(shape, same_dtype(self, infos[1:]), ndim)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape = broadcast_shapes(self, [a.shape for a in args])
        return te.compute(shape, lambda *i: te.select(*(element(a, i, shape) for a in args)), "where")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.where(*args)


@register
class MultiplyAdd(OpDef):
    """x1 * x2 + x3, element by element; all three have one shape."""

    name, operands, kind = "ewise_fma", ("x1", "x2", "x3"), FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = [tensor_info(self, a, args) for a in args]
        shape, ndim = broadcast(self, infos)
        if shape is not None and any(i.shape is not None and len(i.shape) != len(shape) for i in infos):
            fail(self, "the operands have one shape", *args)
        return graph.TensorInfo(shape, same_dtype(self, infos), ndim)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape = broadcast_shapes(self, [a.shape for a in args])
        a, b, c = (lambda i, x=x: element(x, i, shape) for x in args)
        return te.compute(shape, lambda *i: a(i) * b(i) + c(i), "ewise_fma")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        a, b, c = map(widen, args)
        return (a * b + c).astype(args[0].dtype)


@register
class Clip(OpDef):
    """x limited to [min, max] (numbers); NaN stays NaN."""

    name, operands, kind = "clip", ("x", "min", "max"), FuseKind.ELEMENTWISE
    scalars = ("min", "max")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tensor_info(self, args[0], args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, low, high = args
        low, high = _limit(low, x.dtype), _limit(high, x.dtype)
        return te.compute(x.shape, lambda *i: te.min_(te.max_(x(*i), low), high), "clip")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, low, high = args
        if DType(x.dtype).is_float:
            return np.minimum(np.maximum(x, np.array(low, x.dtype)), np.array(high, x.dtype))
        wide = x.astype(object)
        return np.minimum(np.maximum(wide, low), high).astype(x.dtype) if x.size else x


def _limit(bound: Any, dtype: DType) -> tir.Expr:
    """A bound in the tensor's type; of an integer type clamped to its range."""
    value = getattr(bound, "value", None)
    if dtype.is_float or value is None:
        return te.cast(tir.const(bound), dtype)
    low, high = te.lowest(dtype).value, te.highest(dtype).value
    return tir.const(low if value < low else high if value > high else int(value), dtype)


@register
class AsType(OpDef):
    """x as ``dtype``. Floats to integers truncate and saturate (NaN gives 0), integers to narrower ones wrap."""

    name, operands, attributes, kind = "astype", ("x",), {"dtype": ...}, FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return tensor_info(self, args[0], args).replace(dtype=DType(attrs["dtype"]))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), dtype = args, DType(attrs["dtype"])
        convert = (lambda v: te.ne(v, tir.const(0, x.dtype))) if dtype.is_bool else (lambda v: te.cast(v, dtype))
        return te.compute(x.shape, lambda *i: convert(x(*i)), "astype")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return convert(args[0], DType(attrs["dtype"]))


def convert(array: np.ndarray, dtype: DType) -> np.ndarray:
    """``array`` as ``dtype`` by the rules of AsType."""
    source = DType(array.dtype)
    if not (source.is_float and dtype.is_int):
        with np.errstate(all="ignore"):
            return array.astype(dtype.numpy)
    low, high = te.lowest(dtype).value, te.highest(dtype).value
    wide = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    clipped = np.trunc(np.clip(wide, low, high))
    out = np.where(clipped >= high, high, np.where(clipped <= low, low, 0)).astype(
        np.object_ if dtype.bits == 64 else np.int64
    )
    inside = (clipped < high) & (clipped > low)
    out[inside] = clipped[inside].astype(np.int64 if dtype.kind == "int" else np.uint64)
    return out.astype(dtype.numpy)
