# SPDX-License-Identifier: Apache-2.0
"""Tensor programs that no schedule rule was written for, as a user writes them down, each with its meaning in NumPy.

``PROGRAMS[name]`` takes sizes by name and has usual ones (``sizes``), ones with which a test takes no time (``small``), and others that
are prime. A few of the programs are products that a rule takes when an operand lies otherwise; the others are of no known kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import tir
from roundel.script import tir as T

F = "float32"
PROGRAMS: dict[str, Program] = {}


@dataclass(frozen=True)
class Program:
    """``make(**sizes)`` is the tensor program, inputs first and the only output last; ``reference(*inputs)`` what it computes."""

    name: str
    make: Callable[..., tir.PrimFunc]
    reference: Callable[..., np.ndarray]
    sizes: Mapping[str, int]
    small: Mapping[str, int]
    prime: Mapping[str, int]

    def func(self, **sizes: int) -> tir.PrimFunc:
        """The program, named ``main``, with the usual sizes or others."""
        return self.make(**{**self.sizes, **sizes}).with_attr("global_symbol", "main")


def arrays(func: tir.PrimFunc, seed: int = 0) -> list[np.ndarray]:
    """Random arguments of a program: numbers between -1 and 1, indices from 0 to the least extent that they may select from (10 here)."""
    rng, out = np.random.default_rng(seed), []
    for buffer in func.buffer_params:
        shape = [n.value for n in buffer.shape]
        if str(buffer.dtype).startswith("int"):
            out.append(rng.integers(0, FEWEST, shape).astype(str(buffer.dtype)))
        else:
            out.append(rng.uniform(-1, 1, shape).astype(str(buffer.dtype)))
    return out


FEWEST = 10  # rows of every table that is looked up in


def _program(reference: Callable[..., np.ndarray], sizes: Mapping[str, int], small: Mapping[str, int], prime: Mapping[str, int]) -> Callable[[Any], Any]:
    def add(make: Callable[..., tir.PrimFunc]) -> Callable[..., tir.PrimFunc]:
        PROGRAMS[make.__name__] = Program(make.__name__, make, reference, sizes, small, prime)
        return make

    return add


def _in(name: str, *shape: int, dtype: str = F) -> Any:
    return te.placeholder(shape, dtype, name)


def _over(**axes: int) -> Any:
    made = [te.reduce_axis((0, n), name) for name, n in axes.items()]
    return made[0] if len(made) == 1 else made


def _windows(x: np.ndarray, *extents: int) -> np.ndarray:
    """All windows over the last axes; the axes of the window come last."""
    return np.lib.stride_tricks.sliding_window_view(x, extents, tuple(range(-len(extents), 0)))


@_program(lambda a, b, c: a @ b @ c, {"n": 256}, {"n": 9}, {"n": 37})
def three_products(n):
    """A B C."""
    a, b, c, k, m = _in("A", n, n), _in("B", n, n), _in("C", n, n), _over(k=n), _over(m=n)
    ab = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "AB")
    return te.create_prim_func([a, b, c, te.compute((n, n), lambda i, j: te.sum(ab[i, m] * c[m, j], axis=m), "Y")])


@_program(lambda a, b: (a[:, :, None] + b[None]).max(1), {"n": 384}, {"n": 9}, {"n": 37})
def max_plus(n):
    """The tropical product: the largest A[i, k] + B[k, j]."""
    a, b, k = _in("A", n, n), _in("B", n, n), _over(k=n)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.max(a[i, k] + b[k, j], axis=k), "Y")])


@_program(lambda a, b: np.abs(a[:, None] - b[None]).sum(-1), {"n": 512, "d": 128}, {"n": 9, "d": 5}, {"n": 37, "d": 19})
def l1_distance(n, d):
    """Sums of absolute differences of all pairs of rows."""
    a, b, k = _in("A", n, d), _in("B", n, d), _over(k=d)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(te.abs(a[i, k] - b[j, k]), axis=k), "Y")])


@_program(lambda t, b, c: np.einsum("ikl,kj,lj->ij", t, b, c), {"n": 128, "r": 32}, {"n": 5, "r": 4}, {"n": 17, "r": 19})
def mttkrp(n, r):
    """A matricised tensor times a Khatri-Rao product."""
    t, b, c = _in("T", n, n, n), _in("B", n, r), _in("C", n, r)
    k, m = _over(k=n, m=n)
    return te.create_prim_func([t, b, c, te.compute((n, r), lambda i, j: te.sum(t[i, k, m] * b[k, j] * c[m, j], axis=[k, m]), "Y")])


def _correlation(a, b):
    width = b.shape[-1] - a.shape[-1] + 1
    return np.einsum("chw,chwyx->yxhw", a, _windows(b, width, width))


@_program(_correlation, {"c": 64, "h": 32, "d": 9}, {"c": 3, "h": 5, "d": 3}, {"c": 7, "h": 13, "d": 5})
def correlation_volume(c, h, d):
    """Products over the channels of two pictures, for all displacements."""
    a, b, k = _in("A", c, h, h), _in("B", c, h + d - 1, h + d - 1), _over(k=c)
    return te.create_prim_func([a, b, te.compute((d, d, h, h), lambda y, x, i, j: te.sum(a[k, i, j] * b[k, i + y, j + x], axis=k), "Y")])


@_program(lambda a, b: a @ b.T, {"n": 512}, {"n": 9}, {"n": 37})
def product_of_rows(n):
    """A B^T of two operands that are both data."""
    a, b, k = _in("A", n, n), _in("B", n, n), _over(k=n)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), "Y")])


@_program(lambda x, u: np.einsum("ijk,rk->irj", x, u), {"n": 64, "r": 48}, {"n": 5, "r": 4}, {"n": 17, "r": 13})
def tensor_times_matrix(n, r):
    """A tensor times a matrix along its last mode, which becomes the second."""
    x, u, k = _in("X", n, n, n), _in("U", r, n), _over(k=n)
    return te.create_prim_func([x, u, te.compute((n, r, n), lambda i, s, j: te.sum(x[i, j, k] * u[s, k], axis=k), "Y")])


@_program(lambda x, w: np.einsum("hwcipyx,yxcopj->hwoij", _windows(x.transpose(2, 3, 4, 0, 1), w.shape[0], w.shape[1]).transpose(3, 4, 0, 1, 2, 5, 6), w),
          {"h": 8, "c": 8, "o": 16}, {"h": 3, "c": 2, "o": 3}, {"h": 5, "c": 3, "o": 7})
def capsule_convolution(h, c, o):
    """A convolution whose channels are matrices of 4 x 4."""
    x, w = _in("X", h + 2, h + 2, c, 4, 4), _in("W", 3, 3, c, o, 4, 4)
    r, s, k, p = _over(r=3, s=3, k=c, p=4)
    y = te.compute((h, h, o, 4, 4), lambda a, b, q, i, j: te.sum(x[a + r, b + s, k, i, p] * w[r, s, k, q, p, j], axis=[r, s, k, p]), "Y")
    return te.create_prim_func([x, w, y])


def _bilateral(x):
    near = _windows(x, 5, 5)
    weight = np.exp(-((near - x[2:-2, 2:-2, None, None]) ** 2))
    return (weight * near).sum((-1, -2)) / weight.sum((-1, -2))


@_program(_bilateral, {"h": 128}, {"h": 7}, {"h": 29})
def bilateral_filter(h):
    """A mean of neighbours, weighted by how near their values are."""
    x = _in("X", h + 4, h + 4)
    r, s = _over(r=5, s=5)
    t, u = _over(t=5, u=5)
    weight = lambda i, j, a, b: te.exp(-(x[i + a, j + b] - x[i + 2, j + 2]) * (x[i + a, j + b] - x[i + 2, j + 2]))
    total = te.compute((h, h), lambda i, j: te.sum(weight(i, j, r, s) * x[i + r, j + s], axis=[r, s]), "total")
    norm = te.compute((h, h), lambda i, j: te.sum(weight(i, j, t, u), axis=[t, u]), "norm")
    return te.create_prim_func([x, te.compute((h, h), lambda i, j: total[i, j] / norm[i, j], "Y")])


def _attention(q, k, v):
    s = np.einsum("hid,hjd->hij", q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", e / e.sum(-1, keepdims=True), v)


@_program(_attention, {"h": 4, "n": 128, "d": 32}, {"h": 2, "n": 7, "d": 5}, {"h": 3, "n": 23, "d": 11})
def plain_attention(h, n, d):
    """Attention, stage by stage."""
    q, key, v = _in("Q", h, n, d), _in("K", h, n, d), _in("V", h, n, d)
    k, m, z, w = _over(k=d), _over(m=n), _over(z=n), _over(w=n)
    s = te.compute((h, n, n), lambda b, i, j: te.sum(q[b, i, k] * key[b, j, k], axis=k), "S")
    top = te.compute((h, n), lambda b, i: te.max(s[b, i, m], axis=m), "top")
    e = te.compute((h, n, n), lambda b, i, j: te.exp(s[b, i, j] - top[b, i]), "E")
    norm = te.compute((h, n), lambda b, i: te.sum(e[b, i, z], axis=z), "norm")
    p = te.compute((h, n, n), lambda b, i, j: e[b, i, j] / norm[b, i], "P")
    return te.create_prim_func([q, key, v, te.compute((h, n, d), lambda b, i, j: te.sum(p[b, i, w] * v[b, w, j], axis=w), "Y")])


@_program(lambda a, b: np.tril(a) @ b, {"n": 256}, {"n": 9}, {"n": 37})
def triangle_product(n):
    """The lower triangle of A times B."""
    a, b, k = _in("A", n, n), _in("B", n, n), _over(k=n)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum(te.if_then_else(k <= i, a[i, k], 0.0) * b[k, j], axis=k), "Y")])


@_program(lambda a, w, b: (a * w) @ b, {"n": 251, "m": 257, "l": 263}, {"n": 7, "m": 5, "l": 3}, {"n": 31, "m": 37, "l": 29})
def weighted_product(n, m, l):
    """A diag(w) B of prime extents."""
    a, w, b, k = _in("A", n, l), _in("W", l), _in("B", l, m), _over(k=l)
    return te.create_prim_func([a, w, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * w[k] * b[k, j], axis=k), "Y")])


@_program(lambda e, at, w: np.einsum("ikd,ik->id", e[at], w), {"n": 512, "k": 16, "d": 128}, {"n": 5, "k": 3, "d": 4}, {"n": 23, "k": 5, "d": 19})
def gathered_sum(n, k, d):
    """Rows of a table, looked up, weighted and summed."""
    e, at, w, r = _in("E", 1000, d), _in("at", n, k, dtype="int64"), _in("W", n, k), _over(r=k)
    return te.create_prim_func([e, at, w, te.compute((n, d), lambda i, j: te.sum(e[at[i, r], j] * w[i, r], axis=r), "Y")])


def _solved(a, b):
    out = np.zeros_like(b)
    for i in range(b.shape[0]):
        out[i] = (b[i] - (a[i, :i] * out[:i]).sum(0)) / (a[i, i] + 4)
    return out


@_program(_solved, {"n": 8, "b": 4096}, {"n": 3, "b": 5}, {"n": 5, "b": 31})
def small_solves(n, b):
    """Many small triangular systems of equations, diagonals shifted by 4."""

    @T.prim_func
    def main(A: T.Buffer((n, n, b), "float32"), B: T.Buffer((n, b), "float32"), Y: T.Buffer((n, b), "float32")):
        for q in range(b):
            with T.block("solve"):
                vq = T.axis.spatial(b, q)
                rest = T.alloc_buffer((1,), "float32", scope="local")
                for i in range(n):
                    rest[0] = B[i, vq]
                    for j in range(i):
                        rest[0] = rest[0] - A[i, j, vq] * Y[j, vq]
                    Y[i, vq] = rest[0] / (A[i, i, vq] + T.float32(4))

    return main


def _smoothed(x):
    return x[:-2] * 0.25 + x[1:-1] * 0.5 + x[2:] * 0.25


@_program(lambda x: _smoothed(_smoothed(x)), {"n": 500000}, {"n": 11}, {"n": 101})
def stencil_1d(n):
    """Two steps of smoothing along a line."""
    x = _in("X", n + 4)
    step = lambda a, m, name: te.compute((m,), lambda i: a[i] * 0.25 + a[i + 1] * 0.5 + a[i + 2] * 0.25, name)
    return te.create_prim_func([x, step(step(x, n + 2, "first"), n, "Y")])


def _diffused(x):
    neighbours = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]
    return x[1:-1, 1:-1, 1:-1] * 0.4 + neighbours * 0.1


@_program(_diffused, {"n": 64}, {"n": 5}, {"n": 13})
def stencil_3d(n):
    """One step of diffusion in a cube."""
    x = _in("X", n + 2, n + 2, n + 2)
    across = lambda i, j, k: x[i, j + 1, k + 1] + x[i + 2, j + 1, k + 1] + x[i + 1, j, k + 1] + x[i + 1, j + 2, k + 1]
    near = lambda i, j, k: across(i, j, k) + x[i + 1, j + 1, k] + x[i + 1, j + 1, k + 2]
    return te.create_prim_func([x, te.compute((n, n, n), lambda i, j, k: x[i + 1, j + 1, k + 1] * 0.4 + near(i, j, k) * 0.1, "Y")])


@_program(lambda at, w: np.stack([np.bincount(a, v, FEWEST).astype(F) for a, v in zip(at, w)]), {"n": 64, "m": 2048}, {"n": 3, "m": 7}, {"n": 5, "m": 31})
def histograms(n, m):
    """The weights of each row, added up by class."""

    @T.prim_func
    def main(at: T.Buffer((n, m), "int64"), W: T.Buffer((n, m), "float32"), Y: T.Buffer((n, 10), "float32")):
        for i in range(n):
            with T.block("count"):
                vi = T.axis.spatial(n, i)
                for j in range(10):
                    Y[vi, j] = T.float32(0)
                for j in range(m):
                    Y[vi, at[vi, j]] = Y[vi, at[vi, j]] + W[vi, j]

    return main


@_program(lambda a, b: ((a[:, None] - b[None]) ** 2).sum(-1), {"n": 512, "d": 64}, {"n": 9, "d": 5}, {"n": 37, "d": 19})
def squared_distances(n, d):
    """Squared distances of all pairs of rows."""
    a, b, k = _in("A", n, d), _in("B", n, d), _over(k=d)
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k), "Y")])


def _grouped(x, w):
    n = x.shape[-1] - 6
    return sum(np.einsum("gct,goc->got", x[:, :, 3 * r : 3 * r + n], w[:, :, :, r]) for r in range(3))


@_program(_grouped, {"g": 16, "c": 8, "n": 512}, {"g": 2, "c": 3, "n": 5}, {"g": 3, "c": 5, "n": 37})
def dilated_groups(g, c, n):
    """A grouped convolution along a line, dilated by 3."""
    x, w = _in("X", g, c, n + 6), _in("W", g, c, c, 3)
    k, r = _over(k=c, r=3)
    return te.create_prim_func([x, w, te.compute((g, c, n), lambda q, o, t: te.sum(x[q, k, t + 3 * r] * w[q, o, k, r], axis=[k, r]), "Y")])


@_program(lambda x: np.cumsum(x, 1), {"n": 256, "m": 256}, {"n": 3, "m": 7}, {"n": 23, "m": 31})
def prefix_sums(n, m):
    """Sums of all that comes before, along the rows."""
    x = _in("X", n, m)

    @T.prim_func
    def main(X: T.Buffer((n, m), "float32"), Y: T.Buffer((n, m), "float32")):
        for i in range(n):
            with T.block("scan"):
                vi = T.axis.spatial(n, i)
                total = T.alloc_buffer((1,), "float32", scope="local")
                total[0] = T.float32(0)
                for j in range(m):
                    total[0] = total[0] + X[vi, j]
                    Y[vi, j] = total[0]

    return main if x is not None else None


@_program(lambda a, b, r, c, v: (a[r] * b[c]).sum(-1) * v, {"n": 16384, "d": 64}, {"n": 7, "d": 5}, {"n": 61, "d": 19})
def sampled_products(n, d):
    """Products of looked-up pairs of rows, as a sparse matrix samples them."""
    a, b, r, c, v = _in("A", 1000, d), _in("B", 1000, d), _in("R", n, dtype="int64"), _in("C", n, dtype="int64"), _in("V", n)
    k = _over(k=d)
    s = te.compute((n,), lambda e: te.sum(a[r[e], k] * b[c[e], k], axis=k), "S")
    return te.create_prim_func([a, b, r, c, v, te.compute((n,), lambda e: s[e] * v[e], "Y")])


@_program(lambda x, w: np.einsum("cijkuvw,ocuvw->oijk", _windows(x, 3, 3, 3), w, optimize=True),
          {"c": 16, "o": 16, "n": 16}, {"c": 2, "o": 3, "n": 4}, {"c": 3, "o": 5, "n": 7})
def convolution_3d(c, o, n):
    """A convolution of cubes whose weights are data."""
    x, w = _in("X", c, n + 2, n + 2, n + 2), _in("W", o, c, 3, 3, 3)
    k, r, s, t = _over(k=c, r=3, s=3, t=3)
    y = te.compute((o, n, n, n), lambda q, a, b, d: te.sum(x[k, a + r, b + s, d + t] * w[q, k, r, s, t], axis=[k, r, s, t]), "Y")
    return te.create_prim_func([x, w, y])


@_program(lambda a, b: np.log(np.exp(a[:, :, None] + b[None]).sum(1)), {"n": 128}, {"n": 9}, {"n": 37})
def log_product(n):
    """A product of probabilities that are given by their logarithms."""
    a, b, k = _in("A", n, n), _in("B", n, n), _over(k=n)
    total = te.compute((n, n), lambda i, j: te.sum(te.exp(a[i, k] + b[k, j]), axis=k), "total")
    return te.create_prim_func([a, b, te.compute((n, n), lambda i, j: te.log(total[i, j]), "Y")])


@_program(lambda a, b, v: np.exp(-((a[:, None] - b[None]) ** 2).sum(-1)) @ v, {"n": 256, "d": 32}, {"n": 9, "d": 5}, {"n": 37, "d": 19})
def kernel_regression(n, d):
    """Values weighted by a Gaussian of their distance: two reductions, an exponential between them."""
    a, b, v, k, m = _in("A", n, d), _in("B", n, d), _in("V", n), _over(k=d), _over(m=n)
    far = te.compute((n, n), lambda i, j: te.sum((a[i, k] - b[j, k]) * (a[i, k] - b[j, k]), axis=k), "far")
    near = te.compute((n, n), lambda i, j: te.exp(-far[i, j]), "near")
    return te.create_prim_func([a, b, v, te.compute((n,), lambda i: te.sum(near[i, m] * v[m], axis=m), "Y")])
