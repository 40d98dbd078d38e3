# SPDX-License-Identifier: Apache-2.0
"""Matrix products: matmul with batch broadcasting, linear, einsum."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import broadcast_shapes, dim_text, fail, fill, same, same_dtype, static, tensor_info
from .elementwise import element, widen


def product_dtype(op: OpDef, dtype: DType | None, attrs: Attrs) -> DType | None:
    """The type of a sum of products: ``out_dtype`` where given, else that of the operands."""
    return DType(attrs["out_dtype"]) if attrs["out_dtype"] not in (None, "", "void") else dtype


def cast_result(out: te.Tensor, dtype: DType, name: str) -> te.Tensor:
    """A further stage that converts an accumulator to the result's type, where they differ."""
    return out if out.dtype is dtype else te.compute(out.shape, lambda *i: te.cast(out(*i), dtype), name)


def _widened(x: te.Tensor, dtype: DType) -> te.Tensor:
    """The operand whose elements go to every column, converted once and not for each of them."""
    return te.compute(x.shape, lambda *i: te.cast(x(*i), dtype), "matmul_widened")


@register
class MatMul(OpDef):
    """NumPy's matmul: the last two dimensions multiply, those before broadcast; a vector is a row on the left, a column
    on the right. Narrow floats accumulate in float32; ``out_dtype`` (int32 for int8) is the type of sum and result.
    """

    name, operands, attributes, kind = "matmul", ("x1", "x2"), {"out_dtype": None}, FuseKind.ANCHOR

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        a, b = (tensor_info(self, x, args) for x in args)
        dtype = (
            product_dtype(self, same_dtype(self, (a, b)), attrs)
            if not attrs["out_dtype"]
            else DType(attrs["out_dtype"])
        )
        if a.ndim == 0 or b.ndim == 0:
            fail(self, "an operand is a scalar", *args)
        if a.shape is None or b.shape is None:
            known = a.ndim > 0 and b.ndim > 0
            ndim = max(a.ndim, b.ndim, 2) - (a.ndim == 1) - (b.ndim == 1) if known else -1
            return graph.TensorInfo(None, dtype, ndim)
        inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
        if not same(a.shape[-1], inner):
            turned = b.ndim > 1 and same(a.shape[-1], b.shape[-1])
            hint = "the second operand turned would fit: R.permute_dims, or R.linear(x1, x2)" if turned else ""
            fail(self, f"inner dimensions {dim_text(a.shape[-1])} and {dim_text(inner)} are not equal", *args, hint=hint)
        return graph.TensorInfo(self._shape(a.shape, b.shape, args), dtype)

    def _shape(self, a: Any, b: Any, infos: Any = ()) -> tuple[Any, ...]:
        batch = broadcast_shapes(self, [a[:-2], b[:-2]], infos)
        return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        a, b = args
        dtype = product_dtype(self, a.dtype, attrs)
        wide = te.accumulator(dtype)
        batch = broadcast_shapes(self, [a.shape[:-2], b.shape[:-2]])
        shape = self._shape(a.shape, b.shape)
        k = te.reduce_axis(a.shape[-1], "k")
        if static(a.shape[-1]) == 0:
            return te.compute(shape, lambda *i: tir.const(0, dtype), "matmul")
        if a.dtype.is_float and a.dtype.bits < wide.bits and min(len(a.shape), len(b.shape)) > 1 and 1 not in (static(a.shape[-2]), static(b.shape[-1])):
            a = _widened(a, wide)

        def body(*at: Any) -> Any:
            left = (*at[: len(batch)], *at[len(batch) : len(batch) + (len(a.shape) > 1)], k.var)
            right = (*at[: len(batch)], k.var, *at[len(at) - (len(b.shape) > 1) :])
            x = element(a, left, (*batch, *a.shape[-2:]))
            y = element(b, right, (*batch, *b.shape[-2:]))
            return te.sum(te.cast(x, wide) * te.cast(y, wide), axis=k)

        return cast_result(te.compute(shape, body, "matmul"), dtype, "matmul_cast")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        dtype = product_dtype(self, DType(args[0].dtype), attrs)
        a, b = (x.astype(dtype.numpy) if dtype.is_int else widen(x) for x in args)
        return np.matmul(a, b).astype(dtype.numpy)


@register
class Linear(OpDef):
    """data @ weight^T + bias."""

    name, operands, attributes, kind = "linear", ("data", "weight", "bias?"), {"out_dtype": None}, FuseKind.ANCHOR

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, _ = fill(args, 3)
        turned = None if weight.shape is None else tuple(reversed(weight.shape))
        flipped = graph.TensorInfo(turned, weight.dtype, weight.ndim)
        return MatMul().infer((data, flipped), attrs)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from . import make

        data, weight, *bias = args
        out = make("matmul", data, builder.emit(make("permute_dims", weight)), **attrs)
        return make("add", builder.emit(out), bias[0]) if bias else out

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, bias = fill(args, 3)
        out = MatMul().numpy((data, weight.T), attrs)
        return out if bias is None else (widen(out) + widen(bias)).astype(out.dtype)


@register
class Einsum(OpDef):
    """NumPy's einsum of a tuple of tensors, with or without ``->`` and ellipsis."""

    name, operands, attributes, kind = "einsum", ("operands",), {"subscripts": ...}, FuseKind.REDUCTION

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        infos = [tensor_info(self, i, args) for i in args[0].fields]
        dtype = same_dtype(self, infos)
        if any(i.shape is None for i in infos):
            return graph.TensorInfo(None, dtype, -1)
        inputs, output = self._labels(attrs["subscripts"], [i.ndim for i in infos], args)
        sizes = self._sizes(inputs, [i.shape for i in infos], args)
        return graph.TensorInfo(tuple(sizes[c] for c in output), dtype)

    def _labels(self, subscripts: str, ranks: list[int], infos: Any = ()) -> tuple[list[list[str]], list[str]]:
        """Labels of each dimension of operands and result; those of an ellipsis are ``.0`` (the last), ``.1``, ..."""
        left, arrow, right = subscripts.replace(" ", "").partition("->")
        inputs = []
        for term, ndim in zip(left.split(","), ranks):
            before, dots, after = term.partition("...")
            extra = ndim - len(before) - len(after)
            if extra < 0 or (extra and not dots):
                fail(self, f"{term!r} does not fit {ndim} dimensions", *infos)
            inputs.append([*before, *(f".{extra - 1 - k}" for k in range(extra)), *after])
        if len(left.split(",")) != len(ranks):
            fail(self, f"{subscripts!r} is for {len(left.split(','))} operands, not {len(ranks)}", *infos)
        dotted = sorted({c for t in inputs for c in t if c[0] == "."}, key=lambda c: -int(c[1:]))
        flat = [c for t in inputs for c in t]
        if not arrow:
            return inputs, dotted + sorted(c for c in set(flat) if c[0] != "." and flat.count(c) == 1)
        before, dots, after = right.partition("...")
        return inputs, [*before, *(dotted if dots else ()), *after]

    def _sizes(self, inputs: list[list[str]], shapes: Any, infos: Any = ()) -> dict[str, tir.Expr]:
        sizes: dict[str, tir.Expr] = {}
        for labels, shape in zip(inputs, shapes):
            for c, s in zip(labels, shape):
                sizes[c] = broadcast_shapes(self, [(sizes[c],), (s,)], infos)[0] if c in sizes else s
        return sizes

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        tensors = args[0]
        inputs, output = self._labels(attrs["subscripts"], [len(t.shape) for t in tensors])
        sizes, dtype = self._sizes(inputs, [t.shape for t in tensors]), tensors[0].dtype
        wide = te.accumulator(dtype)
        axes = {c: te.reduce_axis(s, "k" + c.replace(".", "d")) for c, s in sizes.items() if c not in output}

        def body(*at: Any) -> Any:
            where = dict(zip(output, at)) | {c: k.var for c, k in axes.items()}
            out = None
            for t, labels in zip(tensors, inputs):
                value = te.cast(element(t, [where[c] for c in labels], [sizes[c] for c in labels]), wide)
                out = value if out is None else out * value
            return te.sum(out, axis=list(axes.values()))

        return cast_result(te.compute([sizes[c] for c in output], body, "einsum"), dtype, "einsum_cast")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.asarray(np.einsum(attrs["subscripts"], *map(widen, args[0]))).astype(args[0][0].dtype)
