# SPDX-License-Identifier: Apache-2.0
"""Sorting and the k largest elements. NaN counts as the largest value; equal elements keep their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import OpDef, get_op, register

from .dims import axis_of, dim_text, fail, may_fit, static, tensor_info
from .elementwise import widen
from .loops import for_each, let, let_all, load, repeat_while, side_by_side, store, when

FEW = 4     # elements are selected rather than sorted where there are so many times more
BLOCK = 32  # elements that are looked at together


def before(a: tir.Expr, b: tir.Expr) -> Any:
    """Whether ``a`` sorts strictly before ``b`` in ascending order."""
    if not a.dtype.is_float:
        return tir.lt(te.cast(a, "int8"), te.cast(b, "int8")) if a.dtype.is_bool else a < b
    return te.logical_or(a < b, te.logical_and(te.isnan(b), te.logical_not(te.isnan(a))))


def sorted_order(
    n: Any, scratch: Sequence[tir.Buffer], first: Callable[[Any, Any], Any], start: bool = True
) -> tir.Stmt:
    """A stable merge sort of positions 0..n-1 into the first buffer; ``first(p, q)``: p goes strictly before q.

    Without ``start`` what the first buffer holds already is sorted, so that sorts by several keys follow each other.
    """
    order, spare, cursor = scratch
    passes = max((static(n) - 1).bit_length(), 0) if static(n) is not None else 62

    def one_pass(p: Any) -> tir.Stmt:
        def body(width: Any) -> tir.Stmt:
            pairs = tir.floordiv(n, width * 2)
            whole = for_each([pairs], lambda q: _merge_whole(order, spare, cursor, q * (width * 2), width, first), "q")
            rest = when(pairs * (width * 2) < n, _merge_rest(order, spare, cursor, pairs * (width * 2), width, n, first))
            return tir.seq(whole, rest, side_by_side(n, lambda j: store(order, (j,), load(spare, (j,)))))

        width = tir.call("shift_left", tir.index_const(1), p)
        return let(width, lambda w: body(w) if static(n) is not None else when(w < n, body(w)), "width")

    begin = for_each([n], lambda j: store(order, (j,), j)) if start else None
    return tir.seq(begin, for_each([passes], one_pass, "p"))


def _merge_whole(order: Any, spare: Any, cursor: Any, low: Any, width: Any, first: Callable[[Any, Any], Any]) -> tir.Stmt:
    """Two runs of ``width``, from both ends at once: no run ends before all is merged, nothing branches, and neither end waits for the other."""
    at = lambda k: load(cursor, (k,))
    begin = [store(cursor, (k,), value) for k, value in enumerate((low, low + width, low + width - 1, low + width * 2 - 1))]

    def take(t: Any) -> tir.Stmt:
        def ends(a: Any, b: Any, y: Any, z: Any, front: Any, back: Any) -> tir.Stmt:
            step = lambda k, taken, by: store(cursor, (k,), at(k) + by * te.cast(taken, "int64"))
            return tir.seq(
                store(spare, (low + t,), tir.select(front, b, a)), store(spare, (low + width * 2 - 1 - t,), tir.select(back, y, z)),
                step(0, te.logical_not(front), 1), step(1, front, 1), step(2, back, -1), step(3, te.logical_not(back), -1))

        four = [load(order, (at(k),)) for k in range(4)]
        decide = lambda a, b, y, z: let_all([first(b, a), first(z, y)], lambda front, back: ends(a, b, y, z, front, back))
        return let_all(four, decide)  # of equals, the left one goes first

    return tir.seq(*begin, for_each([width], take, "t"))


def _merge_rest(order: Any, spare: Any, cursor: Any, low: Any, width: Any, n: Any, first: Callable[[Any, Any], Any]) -> tir.Stmt:
    """A run of up to ``width`` and what follows it to the end, which may be nothing."""
    middle = tir.min_(low + width, n)
    left, right = load(cursor, (0,)), load(cursor, (1,))

    def take(t: Any) -> tir.Stmt:
        from_right = te.if_then_else(te.logical_and(left < middle, right < n), first(load(order, (right,)), load(order, (left,))), left >= middle)
        pick = lambda side: tir.seq(store(spare, (low + t,), load(order, (load(cursor, (side,)),))), store(cursor, (side,), load(cursor, (side,)) + 1))
        return when(from_right, pick(1), pick(0))

    return tir.seq(store(cursor, (0,), low), store(cursor, (1,), middle), for_each([n - low], take, "t"))


def _sort_te(x: te.Tensor, axis: int, descending: bool, count: Any, outputs: list[tuple[str, DType]], name: str) -> Any:
    """The first ``count`` of x sorted along ``axis``: as values, as indices, or both. Few of many are selected, else all are sorted."""
    n, shape = x.shape[axis], [count if k == axis else s for k, s in enumerate(x.shape)]
    few: Any = static(count * FEW <= n) if static(count) is not None and static(n) is not None else count * FEW <= n
    ordered: Callable[[Any, Any], Any] = (lambda a, b: before(b, a)) if descending else before

    def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
        at = lambda j: (*point[:axis], j, *point[axis:])
        key = lambda p: load(ins[0], at(p))

        def write(j: Any, value: Any, place: Any) -> tir.Stmt:
            results = {"values": lambda d: value, "indices": lambda d: te.cast(place, d)}
            return tir.seq(*(store(out, at(j), results[what](d)) for out, (what, d) in zip(outs, outputs)))

        def whole() -> tir.Stmt:
            place = lambda j: load(scratch[0], (j,))
            return tir.seq(sorted_order(n, scratch[:3], lambda p, q: ordered(key(p), key(q))),
                           for_each([count], lambda j: write(j, key(place(j)), place(j))))

        def part() -> tir.Stmt:
            return Selection(n, count, key, ordered, descending, scratch[-4:]).statement(write)

        return (part() if few else whole()) if isinstance(few, bool) else when(few, part(), whole())

    for_all = [((n,), "int64"), ((n,), "int64"), ((4,), "int64")] if few is not True else []
    for_few = [((count,), x.dtype), ((count,), "int64"), ((2,), "int64"), ((1,), x.dtype)] if few is not False else []
    others = [s for k, s in enumerate(x.shape) if k != axis]
    return te.extern([(shape, d) for _, d in outputs], [x], build, name, over=others, scratch=[*for_all, *for_few])


class Selection:
    """The first ``k`` of ``n`` elements in an order, by a heap with the last of them on top. Most of what comes then does not get in,
    which vectors find out for many elements at once."""

    def __init__(self, n: Any, k: Any, key: Callable[[Any], Any], ordered: Callable[[Any, Any], Any], descending: bool, scratch: Any) -> None:
        self.n, self.k, self.key, self.ordered, self.descending = n, k, key, ordered, descending
        self.values, self.places, self.cursor, self.peak = scratch

    def statement(self, write: Callable[[Any, Any, Any], tir.Stmt]) -> tir.Stmt:
        """Select, then ``write(rank, value, position)`` each, the last one first."""
        k, rest = self.k, self.n - self.k
        first = for_each([k], lambda j: self.put(j, self.key(j), j))
        heap = for_each([k // 2], lambda q: self.sink(k // 2 - 1 - q, k))
        blocks = rest // BLOCK
        many = for_each([blocks], lambda b: self.block(k + b * BLOCK), "b")
        tail = for_each([rest - blocks * BLOCK], lambda j: self.offer(k + blocks * BLOCK + j))

        def take(t: Any) -> tir.Stmt:
            last = k - 1 - t
            return tir.seq(write(last, self.value(0), self.place(0)), self.put(0, self.value(last), self.place(last)), self.sink(0, last))

        return tir.seq(first, heap, many, tail, for_each([k], take, "t"))

    def value(self, i: Any) -> tir.Expr:
        """The key of entry i."""
        return load(self.values, (i,))

    def place(self, i: Any) -> tir.Expr:
        """The position in the data of entry i."""
        return load(self.places, (i,))

    def put(self, i: Any, value: Any, place: Any) -> tir.Stmt:
        """Write entry i."""
        return tir.seq(store(self.values, (i,), value), store(self.places, (i,), place))

    def after(self, i: Any, j: Any) -> Any:
        """Whether entry i comes after entry j; of equal ones, the later position."""
        behind, ahead = self.ordered(self.value(j), self.value(i)), self.ordered(self.value(i), self.value(j))
        return te.logical_or(behind, te.logical_and(te.logical_not(ahead), self.place(j) < self.place(i)))

    def sink(self, start: Any, size: Any) -> tir.Stmt:
        """The entry at ``start`` changes places with those below that come after it."""
        node, child = load(self.cursor, (0,)), load(self.cursor, (1,))
        right = te.if_then_else(child + 1 < size, self.after(tir.min_(child + 1, size - 1), child), False)
        swap = let(self.value(node), lambda v: let(self.place(node), lambda p: tir.seq(
            self.put(node, self.value(child), self.place(child)), self.put(child, v, p)), "p"))
        down = tir.seq(swap, store(self.cursor, (0,), child), store(self.cursor, (1,), child * 2 + 1))
        step = tir.seq(when(right, store(self.cursor, (1,), child + 1)), when(self.after(child, node), down, store(self.cursor, (1,), size)))
        begin = tir.seq(store(self.cursor, (0,), start), store(self.cursor, (1,), tir.as_index(start) * 2 + 1))
        return tir.seq(begin, repeat_while(child < size, step))

    def offer(self, j: Any) -> tir.Stmt:
        """Element j takes the place of the worst entry where it comes before that."""
        enter = lambda v: when(self.ordered(v, self.value(0)), tir.seq(self.put(0, v, j), self.sink(0, self.k)))
        return let(self.key(j), enter)

    def block(self, start: Any) -> tir.Stmt:
        """The elements of a block, where the best of them gets in."""
        each = for_each([BLOCK], lambda j: self.offer(start + j))
        if self.peak.dtype.is_bool:
            return each
        better = tir.max_ if self.descending else tir.min_
        peak = load(self.peak, (0,))
        found = side_by_side(BLOCK, lambda j: store(self.peak, (0,), better(peak, self.number(start + j))))
        return tir.seq(store(self.peak, (0,), self.number(start)), found, when(self.ordered(peak, self.value(0)), each))

    def number(self, j: Any) -> tir.Expr:
        """An element; in ascending order a NaN, which comes last, counts as the largest number."""
        v = self.key(j)
        return v if self.descending or not v.dtype.is_float else te.select(te.isnan(v), te.highest(v.dtype), v)


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
class Median(OpDef):
    """The median over ``axis`` (one, or None: all elements), the lower one of two; with one axis also where it is: (values, indices)."""

    name, operands, attributes = "median", ("x",), {"axis": None, "keepdims": False}

    def _axis(self, attrs: Attrs, ndim: int, *infos: Any) -> int | None:
        axis = attrs["axis"]
        if isinstance(axis, tuple):
            if len(axis) != 1:
                fail(self, "the median is taken over one axis, or over all (axis=None)", *infos)
            axis = axis[0]
        return None if axis is None else axis_of(self, axis, ndim, *infos)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.ndim < 0:
            return graph.ObjectInfo()
        axis = self._axis(attrs, x.ndim, *args)
        keep = attrs["keepdims"]
        if axis is None:
            return graph.TensorInfo((1,) * x.ndim if keep else (), x.dtype)
        if x.shape is None:
            made = graph.TensorInfo(None, x.dtype, x.ndim if keep else x.ndim - 1)
        else:
            made = graph.TensorInfo(tuple(1 if k == axis else d for k, d in enumerate(x.shape) if keep or k != axis), x.dtype)
        return graph.TupleInfo((made, made.replace(dtype=DType("int64"))))

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        emit = lambda name, *a, **more: builder.emit(graph.make_call(get_op(name), a, more))
        (x,), ndim = args, args[0].sinfo.ndim
        axis = self._axis(attrs, ndim)
        if axis is None:
            count = tir.product_of(x.sinfo.shape)
            x, axis, shape = emit("reshape", x, graph.ShapeExpr((count,))), 0, graph.ShapeExpr((1,) * ndim if attrs["keepdims"] else ())
            order = emit("argsort", x, axis=0, dtype="int64")
            return emit("reshape", emit("take", x, self._middle(emit, order, 0), axis=0), shape)
        at = self._middle(emit, emit("argsort", x, axis=axis, dtype="int64"), axis)
        values = emit("gather_elements", x, at, axis=axis)
        if not attrs["keepdims"]:
            values, at = emit("squeeze", values, [axis]), emit("squeeze", at, [axis])
        return graph.Tuple((values, at))

    @staticmethod
    def _middle(emit: Any, order: Any, axis: int) -> Any:
        n = order.sinfo.shape[axis]
        middle = tir.floordiv(n - 1, 2)
        return emit("strided_slice", order, [axis], [middle], [middle + 1])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        axis = self._axis(attrs, x.ndim)
        keep = attrs["keepdims"]
        if axis is None:
            return np.sort(x, axis=None)[(x.size - 1) // 2].reshape((1,) * x.ndim if keep else ())
        at = np.take(np_order(x, axis, False), [(x.shape[axis] - 1) // 2], axis)
        values = np.take_along_axis(x, at, axis)
        return (values, at.astype(np.int64)) if keep else (values.squeeze(axis), at.squeeze(axis).astype(np.int64))


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
            if not may_fit(k, x.shape[axis]):
                fail(self, f"k is {dim_text(k)} of {dim_text(x.shape[axis])} elements", *args)
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
