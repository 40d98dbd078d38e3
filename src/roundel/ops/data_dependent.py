# SPDX-License-Identifier: Apache-2.0
"""Operators whose result's size depends on data: nonzero, unique, non-maximum suppression.

A tensor program counts, the count becomes a shape variable (``counted``), and what follows has an ordinary symbolic shape.
``nonzero`` and ``unique`` are composed that way; importers call ``nonzero_of`` and ``unique_of``, so that inference goes on
with the new variable at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import INT64
from roundel.ir.graph.make_call import make_call
from roundel.ir.op import OpDef, get_op, register

from .dims import axis_of, fail, same, simplify, tensor_info
from .elementwise import widen
from .loops import for_each, let, let_all, load, repeat_while, side_by_side, store, when
from .sort import Selection, before, sorted_order


def _make(name: str, *args: Any, **attrs: Any) -> graph.Call:
    return make_call(get_op(name), args, attrs)


def counted(builder: Any, count: Any, upper: Any, name: str) -> tir.Var:
    """A new shape variable: the value of the one-element tensor ``count``, which is at most ``upper`` (None: nobody knows).

    ``builder`` has ``emit`` and ``match_cast``: a BlockBuilder, or a graph pass.
    """
    one = builder.emit(_make("reshape", builder.emit(_make("astype", count, dtype="int64")), graph.ShapeExpr((tir.index_const(1),))))
    bounds = () if upper is None else (graph.ShapeExpr((tir.as_index(upper),)),)
    shape = builder.emit(_make("tensor_to_shape", one, *bounds))
    var = tir.Var(name, INT64, True)
    builder.match_cast(shape, graph.ShapeInfo((var,)), name)
    return var


def prefix(builder: Any, x: Any, count: tir.Expr) -> Any:
    """The first ``count`` of x along its first axis."""
    zero, one = tir.index_const(0), tir.index_const(1)
    return builder.emit(_make("strided_slice", x, axes=(zero,), begin=(zero,), end=(count,), strides=(one,), assume_inbound=True))


# ---- nonzero


def nonzero_of(builder: Any, x: Any) -> Any:
    """Positions of the nonzero elements of x, (rank, count), the count a new variable."""
    if not x.sinfo.shape:
        x = builder.emit(_make("reshape", x, graph.ShapeExpr((tir.index_const(1),))))
    total = simplify(tir.product_of(x.sinfo.shape))
    marks = x if x.sinfo.dtype.is_bool else builder.emit(_make("not_equal", x, graph.Constant.of(np.zeros((), x.sinfo.dtype.numpy))))
    count = builder.emit(_make("sum", builder.emit(_make("astype", marks, dtype="int64"))))
    k = counted(builder, count, total, "count")
    return builder.emit(_make("nonzero_to", marks, graph.ShapeExpr((tir.index_const(x.sinfo.ndim), k))))


@register
class NonZero(OpDef):
    """Positions of the nonzero elements of x in row-major order: int64, (rank of x, how many)."""

    name, operands = "nonzero", ("x",)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        tensor_info(self, args[0], args)
        return graph.TensorInfo(None, "int64", 2)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return nonzero_of(builder, args[0])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0].reshape(-1) if args[0].ndim == 0 else args[0]
        return np.stack(np.nonzero(x)).astype(np.int64)


@register
class NonZeroTo(OpDef):
    """``nonzero`` of a bool tensor whose number of true elements is known: the second of ``shape``."""

    name, operands = "nonzero_to", ("x", "shape")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return graph.TensorInfo(args[1].values, "int64", 2)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, shape = args

        def build(ins: Any, outs: Any, scratch: Any) -> tir.Stmt:
            (marks,), (out,), (cursor,) = ins, outs, scratch

            def visit(*at: Any) -> tir.Stmt:
                here = load(cursor, (0,))
                found = [store(out, (d, here), i) for d, i in enumerate(at)]
                return when(load(marks, at), tir.seq(*found, store(cursor, (0,), here + 1)))

            return tir.seq(store(cursor, (0,), 0), for_each(list(x.shape), visit))

        return te.extern([(shape, "int64")], [x], build, "nonzero", scratch=[((1,), "int64")])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return np.stack(np.nonzero(args[0])).astype(np.int64)


# ---- unique


def unique_of(builder: Any, x: Any, *, axis: int | None = None, ordered: bool = True, parts: tuple[str, ...] = ("values",)) -> list[Any]:
    """``parts`` (of values, index, inverse, counts) of the distinct elements of x, or of its distinct slices along ``axis``."""
    shape = x.sinfo.shape
    total = simplify(tir.product_of(shape))
    if axis is None:
        rows = source = builder.emit(_make("reshape", x, graph.ShapeExpr((total,))))
        rows, axis = builder.emit(_make("reshape", rows, graph.ShapeExpr((total, tir.index_const(1))))), 0
    else:
        source = x
        order = (axis, *(k for k in range(len(shape)) if k != axis))
        front = x if axis == 0 else builder.emit(_make("permute_dims", x, axes=order))
        width = simplify(tir.product_of([s for k, s in enumerate(shape) if k != axis]))
        rows = builder.emit(_make("reshape", front, graph.ShapeExpr((shape[axis], width))))
    groups = builder.emit(_make("unique_groups", rows, sorted=ordered))
    first, inverse, counts, count = (builder.emit(graph.TupleGetItem(groups, k)) for k in range(4))
    k = counted(builder, count, rows.sinfo.shape[0], "unique")
    made: dict[str, Any] = {"inverse": inverse}
    if {"values", "index"} & set(parts):
        made["index"] = prefix(builder, first, k)
    if "values" in parts:
        made["values"] = builder.emit(_make("take", source, made["index"], axis=axis))
    if "counts" in parts:
        made["counts"] = prefix(builder, counts, k)
    return [made[p] for p in parts]


def _parts(attrs: Attrs) -> tuple[str, ...]:
    return ("values", *(p for p in ("index", "inverse", "counts") if attrs[f"return_{p}"]))


@register
class Unique(OpDef):
    """Distinct elements of x (slices along ``axis``), ascending or in order of first appearance; and, as asked for, where each
    appears first, which one each element is, and how often each appears (int64). NaN equals NaN.
    """

    name, operands = "unique", ("x",)
    (attributes,) = ({"sorted": True, "return_index": False, "return_inverse": False, "return_counts": False, "axis": None},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if attrs["axis"] is not None and x.ndim >= 0:
            axis_of(self, attrs["axis"], x.ndim, *args)
        values = graph.TensorInfo(None, x.dtype, 1 if attrs["axis"] is None else x.ndim)
        others = [graph.TensorInfo(None, "int64", 1) for _ in _parts(attrs)[1:]]
        return graph.TupleInfo((values, *others)) if others else values

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        axis = None if attrs["axis"] is None else attrs["axis"] % args[0].sinfo.ndim
        made = unique_of(builder, args[0], axis=axis, ordered=attrs["sorted"], parts=_parts(attrs))
        return graph.Tuple(tuple(made)) if len(made) > 1 else made[0]

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        found = np_unique(args[0], attrs["axis"], attrs["sorted"])
        out = tuple(found[p] for p in _parts(attrs))
        return out if len(out) > 1 else out[0]


def np_unique(x: np.ndarray, axis: int | None, ordered: bool) -> dict[str, np.ndarray]:
    """What ``unique`` gives, by NumPy."""
    _, index, inverse, counts = np.unique(widen(x), True, True, True, axis=axis)
    order = np.arange(len(index)) if ordered else np.argsort(index, kind="stable")
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    index = index[order]
    values = x.reshape(-1)[index] if axis is None else np.take(x, index, axis)
    return {"values": values, "index": index.astype(np.int64), "inverse": back[inverse.reshape(-1)], "counts": counts[order].astype(np.int64)}


@register
class UniqueGroups(OpDef):
    """Groups of equal rows of x (n, w): where each appears first, (n,) of which the leading ones count; the group of each row;
    rows in each group; how many groups there are, (1,)."""

    name, operands, attributes, num_outputs = "unique_groups", ("x",), {"sorted": True}, 4

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.ndim != 2 or x.shape is None:
            fail(self, "x is not a matrix of known shape", *args)
        n = (x.shape[0],)
        return graph.TupleInfo(tuple(graph.TensorInfo(s, "int64") for s in (n, n, n, (1,))))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        n, width = x.shape

        def build(ins: Any, outs: Any, scratch: Any) -> tir.Stmt:
            (rows,), (first, inverse, counts, total), (order, spare, cursor) = ins, outs, scratch
            sort = for_each([width], lambda c: sorted_order(
                n, scratch, lambda p, q: before(load(rows, (p, width - 1 - c)), load(rows, (q, width - 1 - c))), start=False), "c")
            begin = for_each([n], lambda j: store(order, (j,), j))
            group = _group_rows(rows, order, first, inverse, counts, total, cursor)
            steps = [begin, sort, group]
            if not attrs["sorted"]:
                steps.append(_by_appearance(n, first, inverse, counts, total, order, spare, cursor))
            return tir.seq(*steps)

        shapes = [((n,), "int64")] * 3 + [((1,), "int64")]
        return te.extern(shapes, [x], build, "unique", scratch=[((n,), "int64"), ((n,), "int64"), ((4,), "int64")])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        found = np_unique(args[0], 0, attrs["sorted"])
        n, k = len(args[0]), len(found["index"])
        padded = [np.concatenate([found[p], np.zeros(n - k, np.int64)]) for p in ("index", "counts")]
        return padded[0], found["inverse"], padded[1], np.asarray([k], np.int64)


def _group_rows(rows: Any, order: Any, first: Any, inverse: Any, counts: Any, total: Any, cursor: Any) -> tir.Stmt:
    """Walk the rows in order: each that differs from the one before begins a group."""
    n, width = rows.shape

    def differs(c: Any, p: Any, q: Any) -> Any:
        a, b = load(rows, (p, c)), load(rows, (q, c))
        return te.logical_or(before(a, b), before(b, a))

    def visit(j: Any) -> tir.Stmt:
        row = load(order, (j,))
        last = load(order, (tir.max_(j - 1, 0),))
        compare = for_each([width], lambda c: when(differs(c, row, last), store(cursor, (0,), 1)), "c")
        group = load(total, (0,)) - 1
        begin = tir.seq(store(first, (load(total, (0,)),), row), store(counts, (load(total, (0,)),), 0),
                        store(total, (0,), load(total, (0,)) + 1))
        return tir.seq(
            store(cursor, (0,), tir.cast(tir.eq(j, 0), "int64")), compare, when(tir.eq(load(cursor, (0,)), 1), begin),
            store(inverse, (row,), group), store(counts, (group,), load(counts, (group,)) + 1))

    return tir.seq(store(total, (0,), 0), for_each([n], visit))


def _by_appearance(n: Any, first: Any, inverse: Any, counts: Any, total: Any, rank: Any, spare: Any, cursor: Any) -> tir.Stmt:
    """Number the groups in the order in which they first appear."""

    def name_group(i: Any) -> tir.Stmt:
        group = load(inverse, (i,))
        new = tir.seq(store(rank, (group,), load(cursor, (0,))), store(cursor, (0,), load(cursor, (0,)) + 1))
        return tir.seq(when(tir.eq(load(first, (group,)), i), new))

    def permute(buffer: Any) -> tir.Stmt:
        back = for_each([load(total, (0,))], lambda g: store(buffer, (g,), load(spare, (g,))), "g")
        return tir.seq(for_each([load(total, (0,))], lambda g: store(spare, (load(rank, (g,)),), load(buffer, (g,))), "g"), back)

    rename = for_each([n], lambda i: store(inverse, (i,), load(rank, (load(inverse, (i,)),))))
    return tir.seq(store(cursor, (0,), 0), for_each([n], name_group), rename, permute(first), permute(counts))


# ---- non-maximum suppression


@register
class NonMaxSuppression(OpDef):
    """Boxes kept by greedy non-maximum suppression of each class: rows (batch, class, box), (batches * classes * boxes, 3), of
    which the leading ones count, and how many those are, (1,).

    boxes (batch, n, 4), scores (batch, classes, n); the others have one element. ``center``: boxes are (x, y, width, height)
    rather than two corners (y, x, y, x).
    """

    name, num_outputs = "vision.all_class_non_max_suppression", 2
    operands, attributes = ("boxes", "scores", "max_boxes", "iou_threshold", "score_threshold?"), {"center": False}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        boxes, scores = (tensor_info(self, a, args) for a in args[:2])
        if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape is None or scores.shape is None:
            fail(self, "boxes and scores are not three-dimensional", *args)
        if not (same(boxes.shape[0], scores.shape[0]) and same(boxes.shape[1], scores.shape[2]) and same(boxes.shape[2], 4)):
            fail(self, "boxes are not (batches, boxes, 4), or not those of the scores", *args)
        rows = simplify(tir.product_of(scores.shape))
        return graph.TupleInfo((graph.TensorInfo((rows, 3), "int64"), graph.TensorInfo((1,), "int64")))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        boxes, scores, limit, overlap = args[:4]
        least = args[4] if len(args) > 4 and isinstance(args[4], te.Tensor) else None
        kept, number = _suppress(boxes, scores, limit, overlap, least, attrs["center"])
        batches, classes, _ = scores.shape

        def gather(ins: Any, outs: Any, scratch: Any) -> tir.Stmt:
            (kept_, number_), (rows, count) = ins, outs

            def visit(b: Any, c: Any) -> tir.Stmt:
                def row(j: Any) -> tir.Stmt:
                    at = load(count, (0,))
                    values = (b, c, load(kept_, (b, c, j)))
                    return tir.seq(*(store(rows, (at, k), v) for k, v in enumerate(values)), store(count, (0,), at + 1))

                return for_each([load(number_, (b, c))], row)

            return tir.seq(store(count, (0,), 0), for_each([batches, classes], visit, "b"))

        return te.extern([((simplify(tir.product_of(scores.shape)), 3), "int64"), ((1,), "int64")], [kept, number], gather, "selected")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        boxes, scores, limit, overlap = args[:4]
        least = args[4] if len(args) > 4 else None
        rows = [(b, c, i) for b in range(scores.shape[0]) for c in range(scores.shape[1])
                for i in np_suppress(boxes[b], scores[b, c], int(limit.reshape(-1)[0]), overlap.reshape(-1)[0],
                                     None if least is None else least.reshape(-1)[0], attrs["center"])]
        out = np.zeros((scores.size, 3), np.int64)
        out[: len(rows)] = np.asarray(rows, np.int64).reshape(-1, 3)
        return out, np.asarray([len(rows)], np.int64)


def _corners(read: Any, center: bool) -> tuple[Any, Any, Any, Any]:
    """Lower and upper ends of a box along both of its axes."""
    a, b, c, d = (read(k) for k in range(4))
    if center:
        half = tir.const(0.5, c.dtype)
        return a - c * half, b - d * half, a + c * half, b + d * half
    return tir.min_(a, c), tir.min_(b, d), tir.max_(a, c), tir.max_(b, d)


def _overlap(p: Any, q: Any, threshold: Any) -> Any:
    """Whether the intersection of two boxes is more than ``threshold`` of their union."""
    zero = tir.const(0.0, p[0].dtype)
    side = lambda k: tir.max_(tir.min_(p[k + 2], q[k + 2]) - tir.max_(p[k], q[k]), zero)
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])
    common = side(0) * side(1)
    union = area(p) + area(q) - common
    return te.logical_and(union > zero, common / union > threshold)


def _suppress(boxes: Any, scores: Any, limit: Any, overlap: Any, least: Any, center: bool) -> Any:
    """Kept boxes of each batch and class, by falling score, (batches, classes, n), and how many."""
    batches, classes, n = scores.shape
    one = lambda t: load(t, (0,) * len(t.shape))

    def build(ins: Any, outs: Any, scratch: Any, b: Any, c: Any) -> tir.Stmt:
        (kept, number), (left, corners, meets) = outs, scratch[4:]
        score = lambda i: load(ins[1], (b, c, i))
        heap = Selection(n, n, score, before, False, scratch[:4])  # of equals, the last place is on top: they are counted downwards
        limited, size, count = one(ins[2]), load(left, (0,)), load(number, (b, c))

        def enter(i: Any) -> tir.Stmt:
            add = tir.seq(heap.put(size, score(i), -i), store(left, (0,), size + 1))
            return add if least is None else when(score(i) > one(ins[4]), add)

        def consider(i: Any) -> tir.Stmt:
            box = _corners(lambda k: load(ins[0], (b, i, k)), center)
            return let_all(box, lambda *p: tir.seq(
                store(meets, (0,), 0.0), side_by_side(count, lambda s: compare(p, s)), when(tir.eq(load(meets, (0,)), 0.0), take(i, p))))

        def compare(p: Any, s: Any) -> tir.Stmt:
            found = te.select(_overlap(p, [load(corners, (k, s)) for k in range(4)], one(ins[3])), tir.const(1.0, boxes.dtype), 0.0)
            return store(meets, (0,), tir.max_(load(meets, (0,)), found))

        def take(i: Any, p: Any) -> tir.Stmt:
            remember = [store(corners, (k, count), v) for k, v in enumerate(p)]
            return tir.seq(*remember, store(kept, (b, c, count), i), store(number, (b, c), count + 1))

        last = [store(left, (0,), size - 1), heap.put(0, heap.value(size), heap.place(size)), heap.sink(0, size)]
        best = let(-heap.place(0), lambda i: tir.seq(*last, consider(i)), "box")
        more = te.logical_and(size > 0, count < tir.cast(limited, "int64"))
        order = for_each([tir.floordiv(size, 2)], lambda q: heap.sink(tir.floordiv(size, 2) - 1 - q, size))
        return tir.seq(store(number, (b, c), 0), store(left, (0,), 0), for_each([n], enter), order, repeat_while(more, best))

    inputs = [boxes, scores, limit, overlap, *([] if least is None else [least])]
    scratch = [((n,), scores.dtype), ((n,), "int64"), ((2,), "int64"), ((1,), scores.dtype),
               ((1,), "int64"), ((4, n), boxes.dtype), ((1,), boxes.dtype)]
    return te.extern([((batches, classes, n), "int64"), ((batches, classes), "int64")], inputs, build, "kept", over=[batches, classes], scratch=scratch)


def np_suppress(boxes: np.ndarray, scores: np.ndarray, limit: int, overlap: float, least: float | None, center: bool) -> list[int]:
    """Indices of the boxes that are kept, by falling score."""
    a, b, c, d = boxes.T
    low, high = ((a - c / 2, b - d / 2), (a + c / 2, b + d / 2)) if center else ((np.minimum(a, c), np.minimum(b, d)), (np.maximum(a, c), np.maximum(b, d)))
    area = (high[0] - low[0]) * (high[1] - low[1])
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) >= limit or (least is not None and not scores[i] > least):
            continue
        sides = [np.maximum(np.minimum(high[k][i], high[k][kept]) - np.maximum(low[k][i], low[k][kept]), 0) for k in (0, 1)]
        common = sides[0] * sides[1]
        union = area[i] + area[kept] - common
        if not np.any((union > 0) & (common > overlap * union)):
            kept.append(int(i))
    return kept



