# SPDX-License-Identifier: Apache-2.0
"""Positions of extremes, cumulative sums and products, sorting and top-k. NaN counts as the largest value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axis_of, fail, static, tensor_info
from .elementwise import widen
from .loops import for_each, let, load, store, when
from .reduce import at_reduced, reduce_te, reduced_shape
from .shape import linear_index, unravel


def _isnan(v: tir.Expr) -> Any:
    return te.isnan(v) if v.dtype.is_float else False


def before(a: tir.Expr, b: tir.Expr) -> Any:
    """Whether ``a`` sorts strictly before ``b`` in ascending order."""
    if not a.dtype.is_float:
        return tir.lt(te.cast(a, "int8"), te.cast(b, "int8")) if a.dtype.is_bool else a < b
    return te.logical_or(a < b, te.logical_and(te.isnan(b), te.logical_not(te.isnan(a))))


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
            return te.min(te.select(te.logical_or(found, te.isnan(v)) if v.dtype.is_float else found, at, te.max_value(place)), axis=ks)

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


def sorted_order(
    n: Any, scratch: Sequence[tir.Buffer], first: Callable[[Any, Any], Any], start: bool = True
) -> tir.Stmt:
    """A stable merge sort of positions 0..n-1 into the first buffer; ``first(p, q)``: p goes strictly before q.

    Without ``start`` what the first buffer holds already is sorted, so that sorts by several keys follow each other.
    """
    order, spare, cursor = scratch
    passes = max((static(n) - 1).bit_length(), 0) if static(n) is not None else 62

    def merge(width: Any, q: Any) -> tir.Stmt:
        low = q * (width * 2)
        middle, high = tir.min_(low + width, n), tir.min_(low + width * 2, n)
        left, right = load(cursor, (0,)), load(cursor, (1,))

        def take(t: Any) -> tir.Stmt:
            open_right = te.logical_and(left < middle, right < high)
            from_right = te.if_then_else(open_right, first(load(order, (right,)), load(order, (left,))), left >= middle)
            pick = lambda side: tir.seq(
                store(spare, (low + t,), load(order, (load(cursor, (side,)),))),
                store(cursor, (side,), load(cursor, (side,)) + 1),
            )
            return when(from_right, pick(1), pick(0))

        return tir.seq(store(cursor, (0,), low), store(cursor, (1,), middle), for_each([high - low], take, "t"))

    def one_pass(p: Any) -> tir.Stmt:
        def body(width: Any) -> tir.Stmt:
            merged = for_each([tir.ceildiv(n, width * 2)], lambda q: merge(width, q), "q")
            return tir.seq(merged, for_each([n], lambda j: store(order, (j,), load(spare, (j,)))))

        width = tir.call("shift_left", tir.index_const(1), p)
        return let(width, lambda w: body(w) if static(n) is not None else when(w < n, body(w)), "width")

    begin = for_each([n], lambda j: store(order, (j,), j)) if start else None
    return tir.seq(begin, for_each([passes], one_pass, "p"))


def _sort_te(x: te.Tensor, axis: int, descending: bool, count: Any, outputs: list[tuple[str, DType]], name: str) -> Any:
    """The first ``count`` of x sorted along ``axis``: as values, as indices, or both."""
    n, shape = x.shape[axis], [count if k == axis else s for k, s in enumerate(x.shape)]

    def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
        at = lambda j: (*point[:axis], j, *point[axis:])
        key = lambda p: load(ins[0], at(p))
        first = (lambda p, q: before(key(q), key(p))) if descending else (lambda p, q: before(key(p), key(q)))

        def write(j: Any) -> tir.Stmt:
            place = load(scratch[0], (j,))
            value = {"values": lambda d: key(place), "indices": lambda d: te.cast(place, d)}
            return tir.seq(*(store(out, at(j), value[what](d)) for out, (what, d) in zip(outs, outputs)))

        return tir.seq(sorted_order(n, scratch, first), for_each([count], write))

    others = [s for k, s in enumerate(x.shape) if k != axis]
    return te.extern(
        [(shape, d) for _, d in outputs],
        [x],
        build,
        name,
        over=others,
        scratch=[((n,), "int64"), ((n,), "int64"), ((2,), "int64")],
    )


def np_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The stable order of elements along an axis."""
    x = widen(x)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    back = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


@register
class Sort(OpDef):
    """x sorted along ``axis``."""

    name, operands, attributes = "sort", ("x",), {"axis": -1, "descending": False}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        axis_of(self, attrs["axis"], x.ndim, *args)
        return x

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), axis = args, attrs["axis"] % len(args[0].shape)
        return _sort_te(x, axis, attrs["descending"], x.shape[axis], [("values", x.dtype)], "sort")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.take_along_axis(args[0], np_order(args[0], attrs["axis"], attrs["descending"]), attrs["axis"])


@register
class ArgSort(OpDef):
    """The positions that sort data along ``axis`` (stable)."""

    name, operands, attributes = "argsort", ("data",), {"axis": -1, "descending": False, "dtype": "int32"}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        axis_of(self, attrs["axis"], x.ndim, *args)
        return x.replace(dtype=DType(attrs["dtype"]))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), axis = args, attrs["axis"] % len(args[0].shape)
        return _sort_te(x, axis, attrs["descending"], x.shape[axis], [("indices", DType(attrs["dtype"]))], "argsort")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np_order(args[0], attrs["axis"], attrs["descending"]).astype(DType(attrs["dtype"]).numpy)


@register
class TopK(OpDef):
    """The k largest (or smallest) elements along ``axis``, sorted, and their positions: (values, indices) or one."""

    name, operands, scalars = "topk", ("data", "k?"), ("k",)
    (attributes,) = ({"axis": -1, "ret_type": "both", "largest": True, "dtype": "int32"},)

    def _outputs(self, dtype: Any, attrs: Attrs) -> list[tuple[str, DType]]:
        both = [("values", dtype), ("indices", DType(attrs["dtype"]))]
        return both if attrs["ret_type"] == "both" else [o for o in both if o[0] == attrs["ret_type"]]

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, k = tensor_info(self, args[0], args), args[1].value if len(args) > 1 else tir.index_const(1)
        outputs = self._outputs(x.dtype, attrs)
        if not outputs:
            fail(self, f"ret_type is {attrs['ret_type']!r}, not both, values or indices", *args)
        axis = axis_of(self, attrs["axis"], x.ndim, *args)
        shape = None
        if x.shape is not None and k is not None:
            if static(k) is not None and static(x.shape[axis]) is not None and static(k) > static(x.shape[axis]):
                fail(self, f"k is {static(k)} of {static(x.shape[axis])} elements", *args)
            shape = tuple(k if d == axis else s for d, s in enumerate(x.shape))
        infos = tuple(graph.TensorInfo(shape, d, x.ndim) for _, d in outputs)
        return graph.TupleInfo(infos) if len(infos) > 1 else infos[0]

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, k = args[0], args[1] if len(args) > 1 and args[1] is not None else tir.index_const(1)
        return _sort_te(x, attrs["axis"] % len(x.shape), attrs["largest"], k, self._outputs(x.dtype, attrs), "topk")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, k = args[0], args[1] if len(args) > 1 and args[1] is not None else 1
        order = np_order(x, attrs["axis"], attrs["largest"])
        order = np.take(order, np.arange(k), attrs["axis"])
        made = {
            "values": np.take_along_axis(x, order, attrs["axis"]),
            "indices": order.astype(DType(attrs["dtype"]).numpy),
        }
        outs = tuple(made[what] for what, _ in self._outputs(x.dtype, attrs))
        return outs if len(outs) > 1 else outs[0]
