# SPDX-License-Identifier: Apache-2.0
"""Programs to schedule, and the oracle: the interpreter before and after."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roundel import te
from roundel.interp import run_prim_func
from roundel.ir import PrimFunc, tir
from roundel.schedule import Schedule


def matmul(n=13, m=17, l=11) -> PrimFunc:
    a, b = te.placeholder((n, l), "float32", "A"), te.placeholder((l, m), "float32", "B")
    k = te.reduce_axis((0, l), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    return te.create_prim_func([a, b, c])


def matmul_relu(n=12, m=16, l=8) -> PrimFunc:
    a, b, d = (te.placeholder(s, "float32", x) for s, x in (((n, l), "A"), ((l, m), "B"), ((m,), "D")))
    k = te.reduce_axis((0, l), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    e = te.compute((n, m), lambda i, j: c[i, j] + d[j], "E")
    f = te.compute((n, m), lambda i, j: tir.max_(e[i, j], 0.0), "F")
    return te.create_prim_func([a, b, d, f])


def conv2d(c=4, h=9, w=10, o=8, stride=1) -> PrimFunc:
    x, f = te.placeholder((c, h, w), "float32", "X"), te.placeholder((o, c, 3, 3), "float32", "W")
    pad = te.compute(
        (c, h + 2, w + 2),
        lambda ci, y, z: te.if_then_else(tir.logical_and(y >= 1, y < h + 1, z >= 1, z < w + 1), x[ci, y - 1, z - 1], 0.0),
        "P",
    )
    rc, ry, rx = te.reduce_axis((0, c), "rc"), te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    out = ((h - 1) // stride + 1, (w - 1) // stride + 1)
    y = te.compute(
        (o, *out),
        lambda oc, i, j: te.sum(pad[rc, i * stride + ry, j * stride + rx] * f[oc, rc, ry, rx], axis=[rc, ry, rx]),
        "Y",
    )
    return te.create_prim_func([x, f, y])


def elementwise(n=10, m=7) -> PrimFunc:
    a = te.placeholder((n, m), "float32", "A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, "B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1.0, "C")
    return te.create_prim_func([a, c])


def softmax_like(n=6, m=9) -> PrimFunc:
    a = te.placeholder((n, m), "float32", "A")
    k = te.reduce_axis((0, m), "k")
    s = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), "S")
    c = te.compute((n, m), lambda i, j: a[i, j] / (s[i] + 4.0), "C")
    return te.create_prim_func([a, c])


PROGRAMS: dict[str, Callable[[], PrimFunc]] = {
    "matmul": matmul,
    "matmul_relu": matmul_relu,
    "conv2d": conv2d,
    "elementwise": elementwise,
    "softmax_like": softmax_like,
}


def results(func: PrimFunc, shapes: dict[str, int] | None = None) -> list[np.ndarray]:
    """What all buffers hold after a run on fixed pseudo-random values."""
    rng = np.random.default_rng(0)
    arrays = []
    for b in func.buffer_params:
        dims = [s.value if hasattr(s, "value") else (shapes or {})[s.name] for s in b.shape]
        arrays.append(rng.random(dims).astype(b.dtype.numpy))
    run_prim_func(func, arrays)
    return arrays


def check(sch: Schedule, func: PrimFunc, shapes: dict[str, int] | None = None) -> None:
    """The scheduled program computes what the original does."""
    for got, want in zip(results(sch.func, shapes), results(func, shapes), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
