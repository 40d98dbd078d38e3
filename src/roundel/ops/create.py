# SPDX-License-Identifier: Apache-2.0
"""Operators that make tensors: full, zeros, ones, arange, eye, windows; the number of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import fail, fill, simplify, static, tensor_info
from .elementwise import only_element
from .select import convert


def _shape_info(op: OpDef, info: Any, dtype: Any, infos: Any) -> graph.TensorInfo:
    if not isinstance(info, graph.ShapeInfo):
        fail(op, "the first operand is not a shape", *infos)
    return graph.TensorInfo(info.values, dtype, info.ndim)


@register
class Full(OpDef):
    """A tensor of ``shape`` that is ``fill_value`` (a tensor of one element) everywhere."""

    name, operands, attributes, kind = "full", ("shape", "fill_value"), {"dtype": None}, FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        value = tensor_info(self, args[1], args)
        if any(static(s) != 1 for s in value.shape or ()):
            fail(self, "fill_value is not a scalar", *args)
        return _shape_info(self, args[0], attrs["dtype"] or value.dtype, args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape, value = args
        return te.compute(shape, lambda *i: te.cast(only_element(value), attrs["dtype"] or value.dtype), "full")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape, value = args
        value = np.asarray(value)
        return np.full(shape, convert(value.reshape(()), DType(attrs["dtype"] or value.dtype)))


@register
class FullLike(OpDef):
    """A tensor of the shape (and without ``dtype`` the type) of x that is ``fill_value`` everywhere."""

    name, operands, attributes, kind = "full_like", ("x", "fill_value"), {"dtype": None}, FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        return x.replace(dtype=DType(attrs["dtype"]) if attrs["dtype"] else x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, value = args
        return te.compute(x.shape, lambda *i: te.cast(only_element(value), attrs["dtype"] or x.dtype), "full_like")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.full(args[0].shape, convert(np.asarray(args[1]).reshape(()), DType(attrs["dtype"] or args[0].dtype)))


class _Constant(OpDef):
    """A tensor that is one number everywhere, of a given shape or like another tensor."""

    kind = FuseKind.ELEMENTWISE

    def __init__(self, name: str, value: int, like: bool) -> None:
        self.name, self.value, self.like = name, value, like
        self.operands = ("x",) if like else ("shape",)
        self.attributes = {"dtype": None if like else "float32"}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        if not self.like:
            return _shape_info(self, args[0], attrs["dtype"], args)
        x = tensor_info(self, args[0], args)
        return x.replace(dtype=DType(attrs["dtype"]) if attrs["dtype"] else x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape, dtype = (args[0].shape, args[0].dtype) if self.like else (args[0], None)
        value = tir.const(self.value, attrs["dtype"] or dtype)
        return te.compute(shape, lambda *i: value, self.name)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        shape, dtype = (args[0].shape, args[0].dtype) if self.like else (args[0], None)
        return np.full(shape, self.value, DType(attrs["dtype"] or dtype).numpy)


@register
class AllocTensor(OpDef):
    """Memory for a tensor; what it holds first is not defined elsewhere and 0 here. There is one device and one kind of memory."""

    name, operands, kind = "builtin.alloc_tensor", ("shape",), FuseKind.ELEMENTWISE
    attributes = {"dtype": ..., "runtime_device_index": 0, "storage_scope": "global"}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return _shape_info(self, args[0], DType(attrs["dtype"]), args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return te.compute(args[0], lambda *i: tir.const(0, DType(attrs["dtype"])), "alloc_tensor")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.zeros(args[0], DType(attrs["dtype"]).numpy)


for _name, _value in (("zeros", 0), ("ones", 1)):
    register(_Constant(_name, _value, False))
    register(_Constant(_name + "_like", _value, True))


@register
class Arange(OpDef):
    """start, start + step, ... up to but without end (numbers; one alone is the end)."""

    name, operands, attributes = "arange", ("start", "end?", "step?"), {"dtype": None}
    scalars, kind = ("start", "end", "step"), FuseKind.INJECTIVE

    def _values(self, args: Any) -> tuple[Any, Any, Any]:
        start, end, step = fill(args, 3)
        if end is None:
            start, end = 0, start
        return start, end, 1 if step is None else step

    def _extent(self, start: Any, end: Any, step: Any, infos: Any = ()) -> Any:
        numbers = [getattr(tir.const(v), "value", None) for v in (start, end, step)]
        if all(v is not None for v in numbers):
            if numbers[2] == 0:
                fail(self, "the step is 0", *infos)
            return tir.index_const(max(int(np.ceil((numbers[1] - numbers[0]) / numbers[2])), 0))
        if numbers[2] is None or not all(tir.const(v).dtype.is_int for v in (start, end, step)):
            fail(self, "the step has to be a constant, and symbolic bounds integers", *infos)
        span = (
            tir.ceildiv(tir.as_index(end) - start, numbers[2])
            if numbers[2] > 0
            else tir.ceildiv(tir.as_index(start) - end, -numbers[2])
        )
        return simplify(tir.max_(span, 0))

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        values = tuple(None if a is None or isinstance(a, graph.TupleInfo) else a.value for a in args)
        if any(v is None and isinstance(a, graph.PrimInfo) for v, a in zip(values, args)):
            return graph.TensorInfo(None, attrs["dtype"] or args[0].dtype, 1)
        start, end, step = self._values(values)
        return graph.TensorInfo(
            (self._extent(start, end, step, args),), attrs["dtype"] or self._dtype(start, end, step)
        )

    @staticmethod
    def _dtype(*values: Any) -> DType:
        return DType("float32" if any(tir.const(v).dtype.is_float for v in values) else "int64")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        start, end, step = self._values(args)
        dtype = DType(attrs["dtype"] or self._dtype(start, end, step))
        wide = DType("float64") if dtype.is_float else DType("int64")
        if static(start) == 0 and static(step) == 1:
            body = lambda i: te.cast(i, dtype)
        else:
            body = lambda i: te.cast(
                te.cast(i, wide) * te.cast(tir.const(step), wide) + te.cast(tir.const(start), wide), dtype
            )
        return te.compute((self._extent(start, end, step),), body, "arange")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        start, end, step = self._values(args)
        dtype = DType(attrs["dtype"] or self._dtype(start, end, step))
        count = max(int(np.ceil((end - start) / step)), 0)
        return (np.arange(count) * step + start).astype(dtype.numpy)


@register
class Eye(OpDef):
    """(n, m) zeros with ones on the diagonal ``k`` above the main one."""

    name, operands, attributes = "eye", ("n", "m?", "k?"), {"dtype": "float32"}
    scalars, kind = ("n", "m", "k"), FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        n, m, _ = fill(args, 3)
        return graph.TensorInfo((n.value, n.value if m is None else m.value), attrs["dtype"])

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        n, m, k = fill(args, 3)
        one, zero = tir.const(1, attrs["dtype"]), tir.const(0, attrs["dtype"])
        return te.compute(
            (n, n if m is None else m), lambda i, j: te.select(tir.eq(j, i + (0 if k is None else k)), one, zero), "eye"
        )

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        n, m, k = fill(args, 3)
        return np.eye(n, m, k or 0, DType(attrs["dtype"]).numpy)


@register
class HammingWindow(OpDef):
    """alpha - beta * cos(2 pi k / n) for k below ``window_size``; n is window_size where the window is periodic, else one less."""

    name, operands, kind = "hamming_window", ("window_size", "periodic?", "alpha?", "beta?"), FuseKind.INJECTIVE
    scalars, attributes = ("window_size", "periodic", "alpha", "beta"), {"dtype": "float32"}

    def _numbers(self, args: Any) -> tuple[Any, Any, float, float]:
        size, periodic, alpha, beta = fill(args, 4)
        number = lambda v, default: default if v is None else getattr(v, "value", v)
        return size, number(periodic, True), number(alpha, 0.54), number(beta, 0.46)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        if not DType(attrs["dtype"]).is_float:
            fail(self, f"a window is of floating-point numbers, not of {attrs['dtype']}", *args)
        return graph.TensorInfo((args[0].value,), attrs["dtype"])

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        size, periodic, alpha, beta = self._numbers(args)
        n = tir.max_(tir.as_index(size) - (0 if periodic else 1), 1)
        wide = DType("float64")
        turn = lambda k: te.cos(te.cast(k, wide) * tir.const(2 * np.pi, wide) / te.cast(n, wide))
        value = lambda k: te.select(tir.eq(size, 1), tir.const(1, wide), alpha - beta * turn(k))  # one sample alone is 1
        return te.compute((size,), lambda k: te.cast(value(k), attrs["dtype"]), "hamming_window")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        size, periodic, alpha, beta = self._numbers(args)
        size = int(size)
        if size == 1:
            return np.ones(1, DType(attrs["dtype"]).numpy)
        n = size if periodic else size - 1
        return (alpha - beta * np.cos(2 * np.pi * np.arange(size) / n)).astype(DType(attrs["dtype"]).numpy)


@register
class Size(OpDef):
    """How many elements x has (int64)."""

    name, operands, kind = "size", ("x",), FuseKind.ELEMENTWISE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        tensor_info(self, args[0], args)
        return graph.TensorInfo((), "int64")

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        count = tir.product_of(args[0].shape)
        return te.compute((), lambda: te.cast(count, "int64"), "size")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.asarray(np.size(args[0]), np.int64)
