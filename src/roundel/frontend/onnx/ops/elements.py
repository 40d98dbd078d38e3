# SPDX-License-Identifier: Apache-2.0
"""ONNX operators on elements and small matrices that have no operator of their own: bit casts, determinants, caches."""

from __future__ import annotations

from typing import Any

from .... import te
from ....ir import graph, options, tir
from ..importer import NodeContext, Value
from ..load import dtype_of
from ..registry import converter
from .math import const_like


@converter("BitCast", since=26)
def _bit_cast(node: NodeContext, x: Value) -> Any:
    dtype = dtype_of(node.attr("to"))
    if dtype.storage_bits != x.expr.sinfo.dtype.storage_bits:
        raise node.error(f"the bits of {x.expr.sinfo.dtype} are not those of {dtype}")
    if x.expr.sinfo.dtype == dtype:
        return x.expr
    if dtype.is_bool or x.expr.sinfo.dtype.is_bool:
        return node.make("astype", x.expr, dtype=dtype)
    return node.elementwise(lambda v: tir.Call("reinterpret", (v,), dtype), x.expr, "bit_cast")


@converter("CumProd", since=26)
def _cumprod(node: NodeContext, x: Value, axis: Value) -> Any:
    k = node.axis(node.static_ints(axis, "the axis")[0], x.expr.sinfo.ndim)
    v, back = x.expr, bool(node.attr("reverse", 0))
    v = node.make("flip", v, axis=k) if back else v
    out = node.make("cumprod", v, axis=k, exclusive=bool(node.attr("exclusive", 0)))
    return node.make("flip", out, axis=k) if back else out


@converter("Det", since=11)
def _det(node: NodeContext, x: Value) -> Any:
    return node.te(_determinant, square(node, x.expr))


def square(node: NodeContext, x: Any) -> Any:
    """A matrix, or a batch of them, that has as many rows as columns."""
    if x.sinfo.ndim < 2:
        raise node.error(f"the operand has {x.sinfo.ndim} dimensions, a matrix has two or more")
    node.same_size(*x.sinfo.shape[-2:], "the matrix is not square, its rows and columns are")
    return x


def _determinant(x: Any) -> Any:
    """By elimination with the largest pivot of each column."""
    from ....ops.loops import for_each, let, load, store, when

    n, lead = x.shape[-1], tuple(x.shape[:-2])
    wide = "float64"

    def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
        (src,), (out,), (m, best, result) = ins, outs, scratch
        at = lambda i, j: load(m, (i, j))

        def column(k: Any) -> tir.Stmt:
            look = lambda i: when(te.abs(at(i + k, k)) > te.abs(at(load(best, (0,)), k)), store(best, (0,), i + k))
            swap = lambda j: let(at(k, j), lambda old: tir.seq(store(m, (k, j), at(load(best, (0,)), j)), store(m, (load(best, (0,)), j), old)))
            change = tir.seq(for_each([n], swap, "c"), store(result, (0,), tir.const(0.0, wide) - load(result, (0,))))

            def eliminate(i: Any) -> tir.Stmt:
                row = i + k + 1
                update = lambda ratio: for_each([n], lambda j: store(m, (row, j), at(row, j) - ratio * at(k, j)), "e")
                return let(at(row, k) / at(k, k), update, "ratio")

            clear = when(tir.ne(at(k, k), tir.const(0.0, wide)), for_each([n - k - 1], eliminate, "r"))
            return tir.seq(store(best, (0,), k), for_each([n - k], look, "p"), when(tir.ne(load(best, (0,)), k), change), clear,
                           store(result, (0,), load(result, (0,)) * at(k, k)))

        copy = for_each([n, n], lambda i, j: store(m, (i, j), te.cast(load(src, (*point, i, j)), wide)))
        return tir.seq(copy, store(result, (0,), 1.0), for_each([n], column, "k"), store(out, point, te.cast(load(result, (0,)), x.dtype)))

    return te.extern([(lead, x.dtype)], [x], build, "det", over=lead, scratch=[((n, n), wide), ((1,), "int64"), ((1,), wide)])


def inverse(x: Any) -> Any:
    """Inverses of the matrices in the last two axes, by Gauss and Jordan with the largest pivot of each column."""
    from ....ops.loops import for_each, let, load, store, when

    n, wide = x.shape[-1], "float64"

    def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
        (src,), (out,), (m, best) = ins, outs, scratch
        at = lambda i, j: load(m, (i, j))

        def column(k: Any) -> tir.Stmt:
            look = lambda i: when(te.abs(at(i + k, k)) > te.abs(at(load(best, (0,)), k)), store(best, (0,), i + k))
            swap = lambda j: let(at(k, j), lambda old: tir.seq(store(m, (k, j), at(load(best, (0,)), j)), store(m, (load(best, (0,)), j), old)))
            scale = let(at(k, k), lambda pivot: for_each([n * 2], lambda j: store(m, (k, j), at(k, j) / pivot), "d"), "pivot")

            def eliminate(i: Any) -> tir.Stmt:
                update = lambda ratio: for_each([n * 2], lambda j: store(m, (i, j), at(i, j) - ratio * at(k, j)), "e")
                return when(tir.ne(i, k), let(at(i, k), update, "ratio"))

            return tir.seq(store(best, (0,), k), for_each([n - k], look, "p"), for_each([n * 2], swap, "c"), scale, for_each([n], eliminate, "r"))

        def fill(i: Any, j: Any) -> tir.Stmt:
            unit = te.select(tir.eq(i, j), tir.const(1.0, wide), tir.const(0.0, wide))
            return tir.seq(store(m, (i, j), te.cast(load(src, (*point, i, j)), wide)), store(m, (i, j + n), unit))

        give = for_each([n, n], lambda i, j: store(out, (*point, i, j), te.cast(at(i, j + n), x.dtype)), "o")
        return tir.seq(for_each([n, n], fill), for_each([n], column, "k"), give)

    return te.extern([(tuple(x.shape), x.dtype)], [x], build, "inverse", over=tuple(x.shape[:-2]), scratch=[((n, n * 2), wide), ((1,), "int64")])


@converter("TensorScatter", since=24)
def _tensor_scatter(node: NodeContext, cache: Value, update: Value, start: Value | None = None) -> Any:
    """The update written into the cache along ``axis`` from each batch element's position on."""
    v, new, circular = cache.expr, update.expr, node.attr("mode", "linear") == "circular"
    axis = node.axis(node.attr("axis", -2), v.sinfo.ndim)
    batch, room = v.sinfo.shape[0], v.sinfo.shape[axis] - new.sinfo.shape[axis]
    for k, (a, b) in enumerate(zip(v.sinfo.shape, new.sinfo.shape, strict=True)):
        if k != axis:
            node.same_size(a, b, "the update has another shape than the cache")
    node.same_size(tir.max_(room, 0), room, "the update is longer than the cache")
    begin = node.make("zeros", graph.ShapeExpr((batch,)), dtype="int64") if start is None else start.expr
    node.same_size(begin.sinfo.shape[0], batch, "the number of positions is not the batch")
    if not circular:
        begin = node.positions(begin, room + 1)

    def build(old: Any, fresh: Any, first: Any) -> Any:
        length, count = old.shape[axis], fresh.shape[axis]

        def body(*at: Any) -> Any:
            there = at[axis] - te.cast(first(at[0]), "int64")
            there = tir.floormod(there, length) if circular else there
            inside = te.logical_and(there >= 0, there < count)
            return te.if_then_else(inside, fresh(*at[:axis], there, *at[axis + 1:]), old(*at))

        return te.compute(old.shape, body, "tensor_scatter")

    return node.te(build, v, new, begin)


@converter("TfIdfVectorizer", since=9)
def _tf_idf(node: NodeContext, x: Value) -> Any:
    import numpy as np

    from ....runtime.text import numbers_of

    words = node.attr("pool_strings", None)
    pool = node.attr("pool_int64s") if words is None else numbers_of(words).tolist()
    starts = [*node.attr("ngram_counts"), len(pool)]
    low, high, skips = node.attr("min_gram_length"), node.attr("max_gram_length"), node.attr("max_skip_count")
    places, mode = node.attr("ngram_indexes"), node.attr("mode")
    v = x.expr if x.expr.sinfo.ndim == 2 else node.make("expand_dims", x.expr, axis=(0,))
    rows, length = v.sinfo.shape
    if not isinstance(length, tir.IntImm):
        raise node.unsupported("n-grams of a text of unknown length")
    total, first = None, 0
    width = max(places) + 1
    if (nbytes := 4 * width * len(places)) > (most := options.get("max_folded_bytes")):
        raise node.unsupported(f"a table of n-grams of {nbytes} bytes is larger than the option max_folded_bytes ({most}) allows")
    for size in range(1, len(starts)):
        grams = np.asarray(pool[starts[size - 1]: starts[size]]).reshape(-1, size)
        index, first = np.asarray(places[first: first + len(grams)]), first + len(grams)
        if not len(grams) or not low <= size <= high:
            continue
        for skip in range(min(skips + 1, (length.value - 1) // (size - 1)) if size > 1 else 1):  # more and no n-gram fits into the text
            count = length.value - (size - 1) * (skip + 1)
            if count <= 0:
                continue
            node.importer.limits.count(node.title)
            part = _gram_counts(node, v, grams, index, skip + 1, count, width)
            total = part if total is None else node.make("add", total, part)
    if total is None:
        total = node.make("zeros", graph.ShapeExpr((rows, tir.index_const(width))), dtype="float32")
    if mode != "TF":
        weights = np.ones(width, np.float32)
        weights[places] = node.attr("weights", [1.0] * len(places))
        if mode == "IDF":
            total = node.make("astype", node.make("greater", total, const_like(0, total)), dtype="float32")
        total = node.make("multiply", total, graph.Constant.of(weights))
    return total if x.expr.sinfo.ndim == 2 else node.make("squeeze", total, axis=(0,))


def _gram_counts(node: NodeContext, v: Any, grams: Any, index: Any, step: int, count: int, width: int) -> Any:
    """How often each n-gram occurs in each row, with ``step`` from one item to the next, at its place in the result."""
    import numpy as np

    hit = None
    for k in range(grams.shape[1]):
        part = node.make("strided_slice", v, axes=(1,), begin=(tir.index_const(k * step),), end=(tir.index_const(k * step + count),),
                         strides=(tir.index_const(1),))
        same = node.make("equal", node.make("expand_dims", part, axis=(2,)), graph.Constant.of(grams[:, k].astype(v.sinfo.dtype.numpy)))
        hit = same if hit is None else node.make("logical_and", hit, same)
    number = node.make("sum", node.make("astype", hit, dtype="float32"), axis=(1,), keepdims=False)
    spread = np.zeros((len(grams), width), np.float32)
    spread[np.arange(len(grams)), index] = 1
    return node.make("matmul", number, graph.Constant.of(spread))
