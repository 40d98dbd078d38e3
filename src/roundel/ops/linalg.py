# SPDX-License-Identifier: Apache-2.0
"""Factorisations of matrices (the last two axes; those before are a batch): Cholesky, LU with pivots, Householder's QR, triangles.

Layouts and signs are LAPACK's. Nothing fails: a matrix that has no factor leaves NaN or infinities and a positive ``info``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import equal, fail, tensor_info
from .elementwise import widen
from .loops import for_each, load, store, when


def _matrix_info(op: OpDef, arg: Any, infos: Any) -> graph.TensorInfo:
    x = tensor_info(op, arg, infos)
    if x.shape is None or len(x.shape) < 2 or not x.dtype.is_float:
        fail(op, "the operand is not a matrix of floating-point numbers (or a batch of them) of known rank", *infos)
    return x


def _cell(x: Any) -> tuple[tuple[int, ...], Any]:
    return (1,), te.accumulator(x.dtype)


def _get(buffer: Any, at: Sequence[Any], like: tir.Buffer) -> tir.Expr:
    """An element in the type of the sum."""
    return te.cast(load(buffer, tuple(at)), like.dtype)


def _put(buffer: Any, at: Sequence[Any], value: tir.Expr) -> tir.Stmt:
    return store(buffer, tuple(at), te.cast(value, buffer.dtype))


def _sum(cell: tir.Buffer, start: Any, count: Any, term: Callable[[Any], Any], sign: int = 1) -> tir.Stmt:
    """``cell = start + sign * sum of term(k), k < count``."""
    step = (lambda k: load(cell, (0,)) + term(k)) if sign > 0 else (lambda k: load(cell, (0,)) - term(k))
    return tir.seq(store(cell, (0,), start), for_each([count], lambda k: store(cell, (0,), step(k)), "k"))


def _numpy_batched(fn: Callable[..., tuple[np.ndarray, ...]], *arrays: np.ndarray) -> Any:
    """``fn`` of each matrix of a batch, in float64, results in the operand's dtype (integers as they are)."""
    batch = arrays[0].shape[:-2]
    parts = [fn(*(widen(a[i]).astype(np.float64) for a in arrays)) for i in np.ndindex(*batch)]
    if not parts:
        probe = fn(*(np.ones(a.shape[-2:] if a.ndim - len(batch) == 2 else a.shape[-1:]) for a in arrays))
        return tuple(np.zeros((*batch, *p.shape), arrays[0].dtype if p.dtype.kind == "f" else p.dtype) for p in probe)
    out = [np.stack(column).reshape((*batch, *column[0].shape)) for column in zip(*parts, strict=True)]
    return tuple(o.astype(arrays[0].dtype) if o.dtype.kind == "f" else o for o in out)


@register
class Cholesky(OpDef):
    """The lower triangle L of x = L L' (by its lower triangle), and 0 or the order of the first minor that is not positive (int32)."""

    name, operands, kind, num_outputs = "linalg.cholesky", ("x",), FuseKind.OPAQUE, 2

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = _matrix_info(self, args[0], args)
        return graph.TupleInfo((x, graph.TensorInfo(x.shape[:-2], "int32")))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        *batch, n, _ = x.shape

        def build(ins: Any, outs: Any, scratch: Any, *p: Any) -> tir.Stmt:
            (a,), (low, info), (cell,) = ins, outs, scratch
            dot = lambda i, j: _sum(cell, _get(a, (*p, i, j), cell), j, lambda k: _get(low, (*p, i, k), cell) * _get(low, (*p, j, k), cell), -1)

            def column(j: Any) -> tir.Stmt:
                total = load(cell, (0,))
                bad = when(te.logical_and(te.logical_not(total > 0), tir.eq(load(info, p), 0)), store(info, p, te.cast(j + 1, "int32")))
                below = for_each([n - 1 - j], lambda d: tir.seq(
                    dot(j + 1 + d, j), _put(low, (*p, j + 1 + d, j), load(cell, (0,)) / _get(low, (*p, j, j), cell))), "d")
                above = for_each([j], lambda i: store(low, (*p, i, j), tir.const(0, low.dtype)), "i")
                return tir.seq(dot(j, j), bad, _put(low, (*p, j, j), te.sqrt(total)), below, above)

            return tir.seq(store(info, p, tir.const(0, "int32")), for_each([n], column))

        return te.extern([(x.shape, x.dtype), (tuple(batch), "int32")], args, build, "cholesky", over=batch, scratch=[_cell(x)])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return _numpy_batched(_np_cholesky, args[0])


def _np_cholesky(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, info = len(a), 0
    low = np.zeros_like(a)
    with np.errstate(all="ignore"):
        for j in range(n):
            d = a[j, j] - low[j, :j] @ low[j, :j]
            info = info or (0 if d > 0 else j + 1)
            low[j, j] = np.sqrt(d)
            low[j + 1:, j] = (a[j + 1:, j] - low[j + 1:, :j] @ low[j, :j]) / low[j, j]
    return low, np.asarray(info, np.int32)


@register
class LU(OpDef):
    """x = P L U: both triangles in one matrix (L has ones on its diagonal), the row exchanged at each step (int32, from 1), and 0 or
    the step (from 1) of the first zero pivot. Without ``pivot`` rows stay where they are."""

    name, operands, attributes, kind, num_outputs = "linalg.lu", ("x",), {"pivot": True}, FuseKind.OPAQUE, 3

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = _matrix_info(self, args[0], args)
        steps = tir.min_(x.shape[-2], x.shape[-1])
        return graph.TupleInfo((x, graph.TensorInfo((*x.shape[:-2], steps), "int32"), graph.TensorInfo(x.shape[:-2], "int32")))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        *batch, m, n = x.shape
        steps = tir.min_(m, n)

        def build(ins: Any, outs: Any, scratch: Any, *p: Any) -> tir.Stmt:
            (a,), (lu, pivots, info), (cell, row) = ins, outs, scratch
            size = lambda i, k: te.abs(load(lu, (*p, i, k)))
            best = load(row, (0,))

            def exchange(k: Any) -> tir.Stmt:
                find = for_each([m - 1 - k], lambda d: when(
                    te.logical_or(size(k + 1 + d, k) > size(best, k), te.logical_and(te.isnan(size(k + 1 + d, k)), te.logical_not(te.isnan(size(best, k))))),
                    store(row, (0,), k + 1 + d)), "d")
                swap = for_each([n], lambda j: tir.seq(
                    store(cell, (0,), _get(lu, (*p, k, j), cell)), store(lu, (*p, k, j), load(lu, (*p, best, j))),
                    _put(lu, (*p, best, j), load(cell, (0,)))), "j")
                return tir.seq(find, when(best > k, swap))

            def step(k: Any) -> tir.Stmt:
                pivot = load(lu, (*p, k, k))
                zero = tir.const(0, lu.dtype)
                note = when(te.logical_and(tir.eq(pivot, zero), tir.eq(load(info, p), 0)), store(info, p, te.cast(k + 1, "int32")))
                eliminate = for_each([m - 1 - k], lambda d: tir.seq(
                    store(lu, (*p, k + 1 + d, k), load(lu, (*p, k + 1 + d, k)) / pivot),
                    for_each([n - 1 - k], lambda e: store(lu, (*p, k + 1 + d, k + 1 + e), load(lu, (*p, k + 1 + d, k + 1 + e)) - load(
                        lu, (*p, k + 1 + d, k)) * load(lu, (*p, k, k + 1 + e))), "e")), "d")
                return tir.seq(store(row, (0,), k), exchange(k) if attrs["pivot"] else tir.seq(), store(pivots, (*p, k), te.cast(best + 1, "int32")),
                               note, when(tir.ne(pivot, zero), eliminate))

            copy = for_each([m, n], lambda i, j: store(lu, (*p, i, j), load(a, (*p, i, j))), "c")
            return tir.seq(copy, store(info, p, tir.const(0, "int32")), for_each([steps], step, "k"))

        shapes = [(x.shape, x.dtype), ((*batch, steps), "int32"), (tuple(batch), "int32")]
        return te.extern(shapes, args, build, "lu", over=batch, scratch=[_cell(x), ((1,), "int64")])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return _numpy_batched(lambda a: _np_lu(a, attrs["pivot"]), args[0])


def _np_lu(a: np.ndarray, pivot: bool) -> tuple[np.ndarray, ...]:
    lu, info = a.copy(), 0
    pivots = np.arange(1, min(a.shape) + 1, dtype=np.int32)
    with np.errstate(all="ignore"):
        for k in range(min(a.shape)):
            best = k + int(np.argmax(np.abs(lu[k:, k]))) if pivot else k
            pivots[k] = best + 1
            lu[[k, best]] = lu[[best, k]]
            if lu[k, k] == 0:
                info = info or k + 1
                continue
            lu[k + 1:, k] /= lu[k, k]
            lu[k + 1:, k + 1:] -= np.outer(lu[k + 1:, k], lu[k, k + 1:])
    return lu, pivots, np.asarray(info, np.int32)


@register
class SolveTriangular(OpDef):
    """y with a y = b for a triangle ``a``: the lower or the ``upper``; with ``unit`` its diagonal counts as ones. The batches are equal."""

    name, operands, attributes, kind = "linalg.solve_triangular", ("a", "b"), {"upper": False, "unit": False}, FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        a, b = (_matrix_info(self, v, args) for v in args)
        if len(a.shape) != len(b.shape) or not all(map(equal, (*a.shape[:-2], a.shape[-1]), (*b.shape[:-2], b.shape[-2]))):
            fail(self, "the matrix and the right-hand sides do not fit", *args)
        return b

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        b = args[1]
        *batch, n, columns = b.shape

        def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
            (tri, right), (out,), (cell,) = ins, outs, scratch
            *p, c = point

            def row(r: Any) -> tir.Stmt:
                i = n - 1 - r if attrs["upper"] else r
                other = (lambda k: n - 1 - k) if attrs["upper"] else (lambda k: k)
                total = _sum(cell, _get(right, (*p, i, c), cell), r, lambda k: _get(tri, (*p, i, other(k)), cell) * _get(out, (*p, other(k), c), cell), -1)
                found = load(cell, (0,)) if attrs["unit"] else load(cell, (0,)) / _get(tri, (*p, i, i), cell)
                return tir.seq(total, _put(out, (*p, i, c), found))

            return for_each([n], row, "r")

        return te.extern([(b.shape, b.dtype)], args, build, "solve_triangular", over=(*batch, columns), scratch=[_cell(b)])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        def solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
            out, n = b.copy(), len(b)
            with np.errstate(all="ignore"):
                for i in range(n - 1, -1, -1) if attrs["upper"] else range(n):
                    known = slice(i + 1, n) if attrs["upper"] else slice(0, i)
                    out[i] = b[i] - a[i, known] @ out[known]
                    out[i] = out[i] if attrs["unit"] else out[i] / a[i, i]
            return (out,)

        return _numpy_batched(solve, args[0].astype(args[1].dtype), args[1])[0]


@register
class Householder(OpDef):
    """Reflections that make x triangular: R above them in one matrix, and their factors tau (LAPACK's geqrf)."""

    name, operands, kind, num_outputs = "linalg.householder", ("x",), FuseKind.OPAQUE, 2

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = _matrix_info(self, args[0], args)
        return graph.TupleInfo((x, graph.TensorInfo((*x.shape[:-2], tir.min_(x.shape[-2], x.shape[-1])), x.dtype)))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        *batch, m, n = x.shape
        steps = tir.min_(m, n)

        def build(ins: Any, outs: Any, scratch: Any, *p: Any) -> tir.Stmt:
            (a,), (qr, tau), (cell, alpha, beta) = ins, outs, scratch
            total, first, new = load(cell, (0,)), load(alpha, (0,)), load(beta, (0,))

            def reflect(k: Any) -> tir.Stmt:
                scale = for_each([m - 1 - k], lambda d: _put(qr, (*p, k + 1 + d, k), _get(qr, (*p, k + 1 + d, k), cell) / (first - new)), "d")
                return tir.seq(store(beta, (0,), te.select(first < 0, te.sqrt(first * first + total), -te.sqrt(first * first + total))), scale,
                               _put(tau, (*p, k), (new - first) / new), _put(qr, (*p, k, k), new),
                               for_each([n - 1 - k], lambda e: _reflect_column(qr, p, k, k + 1 + e, m, qr, load(tau, (*p, k)), cell), "e"))

            def step(k: Any) -> tir.Stmt:
                norm = _sum(cell, tir.const(0, cell.dtype), m - 1 - k, lambda d: _get(qr, (*p, k + 1 + d, k), cell) * _get(qr, (*p, k + 1 + d, k), cell))
                return tir.seq(norm, store(alpha, (0,), _get(qr, (*p, k, k), cell)), store(tau, (*p, k), tir.const(0, tau.dtype)),
                               when(tir.ne(total, tir.const(0, cell.dtype)), reflect(k)))

            copy = for_each([m, n], lambda i, j: store(qr, (*p, i, j), load(a, (*p, i, j))), "c")
            return tir.seq(copy, for_each([steps], step, "k"))

        return te.extern([(x.shape, x.dtype), ((*batch, steps), x.dtype)], args, build, "householder", over=batch, scratch=[_cell(x)] * 3)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return _numpy_batched(_np_householder, args[0])


def _reflect_column(out: Any, p: Sequence[Any], k: Any, j: Any, m: Any, vectors: Any, factor: Any, cell: Any) -> tir.Stmt:
    """Column ``j`` of ``out`` reflected by vector ``k``, whose first element (row k) is 1 and not stored."""
    dot = _sum(cell, _get(out, (*p, k, j), cell), m - 1 - k, lambda d: _get(vectors, (*p, k + 1 + d, k), cell) * _get(out, (*p, k + 1 + d, j), cell))
    by = te.cast(factor, cell.dtype) * load(cell, (0,))
    change = for_each([m - 1 - k], lambda d: _put(
        out, (*p, k + 1 + d, j), _get(out, (*p, k + 1 + d, j), cell) - by * _get(vectors, (*p, k + 1 + d, k), cell)), "d")
    return tir.seq(dot, change, _put(out, (*p, k, j), _get(out, (*p, k, j), cell) - by))


def _np_householder(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    qr, (m, n) = a.copy(), a.shape
    tau = np.zeros(min(m, n))
    for k in range(min(m, n)):
        norm = qr[k + 1:, k] @ qr[k + 1:, k]
        if norm == 0:
            continue
        alpha = qr[k, k]
        beta = -np.copysign(np.sqrt(alpha * alpha + norm), alpha)
        tau[k] = (beta - alpha) / beta
        v = np.concatenate([[1.0], qr[k + 1:, k] / (alpha - beta)])
        qr[k:, k + 1:] -= tau[k] * np.outer(v, v @ qr[k:, k + 1:])
        qr[k:, k] = np.concatenate([[beta], v[1:]])
    return qr, tau


@register
class HouseholderProduct(OpDef):
    """The columns (as many as x has) of the product of reflections as ``linalg.householder`` gives them (LAPACK's orgqr)."""

    name, operands, kind = "linalg.householder_product", ("x", "tau"), FuseKind.OPAQUE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        return _matrix_info(self, args[0], args)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, tau = args
        *batch, m, n = x.shape
        steps = tau.shape[-1]

        def build(ins: Any, outs: Any, scratch: Any, *point: Any) -> tir.Stmt:
            (vectors, factors), (q,), (cell,) = ins, outs, scratch
            *p, j = point
            one = for_each([m], lambda i: store(q, (*p, i, j), te.select(tir.eq(i, j), tir.const(1, q.dtype), tir.const(0, q.dtype))), "i")
            back = for_each([steps], lambda r: _reflect_column(q, p, steps - 1 - r, j, m, vectors, load(factors, (*p, steps - 1 - r)), cell), "r")
            return tir.seq(one, back)

        return te.extern([(x.shape, x.dtype)], args, build, "householder_product", over=(*batch, n), scratch=[_cell(x)])

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        def product(x: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray]:
            q = np.eye(*x.shape)
            for k in reversed(range(len(tau))):
                v = np.concatenate([np.zeros(k), [1.0], x[k + 1:, k]])
                q -= tau[k] * np.outer(v, v @ q)
            return (q,)

        return _numpy_batched(product, args[0], args[1])[0]
