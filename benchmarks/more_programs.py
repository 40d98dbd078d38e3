# SPDX-License-Identifier: Apache-2.0
"""More tensor programs that no schedule rule was written for, added to those of ``programs.py``: triangles and bands, gathers, scans, chains of
products, distances by other norms, integers of odd sizes. ``PROGRAMS`` has them all."""

from __future__ import annotations

import numpy as np

from roundel import te
from roundel.script import tir as T

from .programs import PROGRAMS, F, _in, _over, _program, _windows

__all__ = ["PROGRAMS"]


@_program(lambda a, b: np.tril(a) @ b, {"n": 320}, {"n": 9}, {"n": 37})
def lower_triangle(n):
    """A lower triangle times a matrix: the reduction is as long as the row's number."""
    a, b, k = _in("A", n, n), _in("B", n, n), _over(k=n)
    low = lambda i, j: te.if_then_else(k.var <= i, a[i, k] * b[k, j], 0.0)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(low(i, j), axis=k), "Y")])


def _banded(bands, x):
    rows = np.arange(len(bands))[:, None] + np.arange(bands.shape[1])
    return np.einsum("iw,iwj->ij", bands, x[rows])


@_program(_banded, {"n": 512, "w": 17, "m": 64}, {"n": 9, "w": 3, "m": 5}, {"n": 37, "w": 5, "m": 19})
def banded_product(n, w, m):
    """A band matrix, given by its diagonals, times a matrix."""
    bands, x, k = _in("A", n, w), _in("X", n + w - 1, m), _over(k=w)
    return te.create_prim_func([bands, x, te.compute((n, m), lambda i, j: te.sum(bands[i, k] * x[i + k, j], axis=k), "Y")])


@_program(lambda at, w, x: np.einsum("nk,nkd->nd", w, x[at]), {"n": 512, "k": 16, "d": 96}, {"n": 11, "k": 3, "d": 7}, {"n": 19, "k": 5, "d": 23})
def gathered_weighted_sum(n, k, d):
    """Sums of rows that are looked up, each times a weight: one layer of a network on a graph."""
    at, w, x, r = _in("at", n, k, dtype="int32"), _in("W", n, k), _in("X", n, d), _over(r=k)
    return te.create_prim_func([at, w, x, te.compute((n, d), lambda i, j: te.sum(w[i, r] * x[at[i, r], j], axis=r), "Y")])


@_program(lambda a, b: np.einsum("abcde,dexy->abcxy", a, b, optimize=True), {"n": 12, "k": 20, "m": 16}, {"n": 2, "k": 3, "m": 5}, {"n": 3, "k": 5, "m": 7})
def contraction_of_five_axes(n, k, m):
    """A product of tensors of five and four axes over two."""
    a, b = _in("A", n, n, n, k, k), _in("B", k, k, m, m)
    r, s = _over(r=k, s=k)
    return te.create_prim_func([a, b, te.compute((n, n, n, m, m), lambda i, j, q, x, y: te.sum(a[i, j, q, r, s] * b[r, s, x, y], axis=[r, s]), "Y")])


def _logsumexp(x):
    top = x.max(1)
    return np.log(np.exp(x - top[:, None]).sum(1)) + top


@_program(_logsumexp, {"n": 96, "m": 500, "c": 64}, {"n": 3, "m": 5, "c": 7}, {"n": 7, "m": 19, "c": 23})
def logsumexp_over_the_middle(n, m, c):
    """The logarithm of a sum of exponentials along an axis in the middle."""
    x, k, q = _in("X", n, m, c), _over(k=m), _over(q=m)
    top = te.compute((n, c), lambda i, j: te.max(x[i, k, j], axis=k), "top")
    total = te.compute((n, c), lambda i, j: te.sum(te.exp(x[i, q, j] - top[i, j]), axis=q), "total")
    return te.create_prim_func([x, te.compute((n, c), lambda i, j: te.log(total[i, j]) + top[i, j], "Y")])


@_program(lambda x: np.cumprod(x, 0), {"n": 300, "m": 500}, {"n": 3, "m": 7}, {"n": 23, "m": 31})
def cumulative_products(n, m):
    """Products of all that comes before, down the columns."""

    @T.prim_func
    def main(X: T.Buffer((n, m), "float32"), Y: T.Buffer((n, m), "float32")):
        for j in range(m):
            with T.block("scan"):
                vj = T.axis.spatial(m, j)
                total = T.alloc_buffer((1,), "float32", scope="local")
                total[0] = T.float32(1)
                for i in range(n):
                    total[0] = total[0] * X[i, vj]
                    Y[i, vj] = total[0]

    return main


@_program(lambda a, b: (np.abs(a[:, None] - b[None]) ** 3).sum(-1) ** np.float32(1 / 3), {"n": 256, "d": 48}, {"n": 9, "d": 5}, {"n": 37, "d": 19})
def distances_by_the_third_norm(n, d):
    """Distances of all pairs of rows by the norm of third powers."""
    a, b, k = _in("A", n, d), _in("B", n, d), _over(k=d)
    cube = lambda x: x * x * x
    total = te.compute((n, n), lambda i, j: te.sum(cube(te.abs(a[i, k] - b[j, k])), axis=k), "total")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.exp(te.log(total[i, j]) * (1 / 3)), "Y")])


@_program(lambda a, b, c: np.einsum("ij,kjl,ml->ikm", a, b, c, optimize=True), {"n": 48, "r": 96}, {"n": 5, "r": 4}, {"n": 17, "r": 19})
def bilinear_forms(n, r):
    """A chain of products: rows by matrices by rows."""
    a, b, c = _in("A", n, r), _in("B", n, r, r), _in("C", n, r)
    j, q = _over(j=r), _over(q=r)
    ab = te.compute((n, n, r), lambda i, k, x: te.sum(a[i, j] * b[k, j, x], axis=j), "AB")
    return te.create_prim_func([a, b, c, te.compute((n, n, n), lambda i, k, m: te.sum(ab[i, k, q] * c[m, q], axis=q), "Y")])


@_program(lambda a, b: (a.astype("i4") @ b.astype("i4")) / np.float32(16),
          {"m": 201, "n": 203, "k": 205}, {"m": 3, "n": 5, "k": 7}, {"m": 19, "n": 23, "k": 29})
def bytes_of_odd_sizes(m, n, k):
    """A product of signed bytes, no extent of which is even, and a scale."""
    a, b, r = _in("A", m, k, dtype="int8"), _in("B", k, n, dtype="int8"), _over(r=k)
    total = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), "total")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: total[i, j].astype(F) * (1 / 16), "Y")])


@_program(lambda x, y: ((x[None] - y[:, None]) ** 2).min(-1), {"n": 300, "m": 300}, {"n": 5, "m": 9}, {"n": 19, "m": 37})
def nearest_numbers(n, m):
    """For each number of one list the least squared distance to those of another."""
    x, y, k = _in("X", m), _in("Y0", n), _over(k=m)
    return te.create_prim_func([x, y, te.compute((n,), lambda i: te.min((x[k] - y[i]) * (x[k] - y[i]), axis=k), "Y")])


@_program(lambda x, w: np.einsum("bchwuv,cuv->bhw", _windows(x, 5, 5), w, optimize=True), {"b": 4, "c": 12, "h": 40}, {"b": 1, "c": 2, "h": 5},
          {"b": 2, "c": 3, "h": 13})
def one_filter(b, c, h):
    """A convolution with a single filter."""
    x, w = _in("X", b, c, h + 4, h + 4), _in("W", c, 5, 5)
    k, u, v = _over(k=c, u=5, v=5)
    return te.create_prim_func([x, w, te.compute((b, h, h), lambda n, i, j: te.sum(x[n, k, i + u, j + v] * w[k, u, v], axis=[k, u, v]), "Y")])
