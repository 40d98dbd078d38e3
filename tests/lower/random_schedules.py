# SPDX-License-Identifier: Apache-2.0
"""Random legal schedules of small programs."""

from __future__ import annotations

import random
from collections.abc import Callable

from roundel import te
from roundel.ir import PrimFunc, tir
from roundel.ir.errors import RoundelError
from roundel.schedule import Schedule


def matmul_relu() -> PrimFunc:
    a, b = te.placeholder((7, 13), "float32", "A"), te.placeholder((13, 22), "float32", "B")
    k = te.reduce_axis((0, 13), "k")
    c = te.compute((7, 22), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    d = te.compute((7, 22), lambda i, j: c[i, j] * c[i, j] + a[i, 0], "D")
    return te.create_prim_func([a, b, d])


def padded_convolution() -> PrimFunc:
    x, w = te.placeholder((3, 9, 10), "float32", "X"), te.placeholder((4, 3, 3, 3), "float32", "W")
    inside = lambda p, q: tir.logical_and(p >= 1, p < 10, q >= 1, q < 11)
    pad = te.compute((3, 11, 12), lambda c, p, q: te.if_then_else(inside(p, q), x[c, p - 1, q - 1], 0.0), "P")
    c, r, s = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    y = te.compute((4, 9, 10), lambda o, p, q: te.sum(pad[c, p + r, q + s] * w[o, c, r, s], axis=[c, r, s]), "Y")
    z = te.compute((4, 9, 10), lambda o, p, q: y[o, p, q] + 1.0, "Z")
    return te.create_prim_func([x, w, z])


def row_statistics() -> PrimFunc:
    a = te.placeholder((6, 19), "float32", "A")
    k, m = te.reduce_axis((0, 19), "k"), te.reduce_axis((0, 19), "m")
    mean = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), "S")
    centred = te.compute((6, 19), lambda i, j: a[i, j] - mean[i] / 19.0, "E")
    var = te.compute((6,), lambda i: te.sum(centred[i, m] * centred[i, m], axis=m), "V")
    out = te.compute((6, 19), lambda i, j: centred[i, j] / (var[i] + 1.0), "O")
    return te.create_prim_func([a, out])


PROGRAMS = [matmul_relu, padded_convolution, row_statistics]


def random_schedule(program: Callable[[], PrimFunc], seed: int, steps: int = 12) -> Schedule:
    """A schedule of up to ``steps`` primitives; those that are not legal are left out."""
    rng = random.Random(seed)
    sch = Schedule(program(), seed=seed)
    for _ in range(steps):
        fork = sch.fork()
        try:
            rng.choice(_MOVES)(fork, rng)
        except RoundelError:
            continue
        sch = fork
    return sch


def _block(sch: Schedule, rng: random.Random):
    return rng.choice(sch.get_child_blocks(sch.get_block("root")))


def _loop(sch: Schedule, rng: random.Random):
    return rng.choice(sch.get_loops(_block(sch, rng)))


def _reorder(sch: Schedule, rng: random.Random) -> None:
    loops = list(sch.get_loops(_block(sch, rng)))
    rng.shuffle(loops)
    sch.reorder(*loops[: rng.randint(2, 3)])


def _fuse(sch: Schedule, rng: random.Random) -> None:
    loops = sch.get_loops(_block(sch, rng))
    k = rng.randrange(max(1, len(loops) - 1))
    sch.fuse(*loops[k : k + 2])


def _innermost(sch: Schedule, rng: random.Random):
    return sch.get_loops(_block(sch, rng))[-1]


_MOVES = [
    lambda sch, rng: sch.split(_loop(sch, rng), [None, rng.choice([2, 3, 4, 8])]),
    lambda sch, rng: sch.split(_loop(sch, rng), [None, rng.choice([3, 4, 6])], mode="balanced"),
    _reorder,
    _reorder,
    _fuse,
    lambda sch, rng: sch.vectorize(_innermost(sch, rng)),
    lambda sch, rng: sch.vectorize(_innermost(sch, rng)),
    lambda sch, rng: sch.unroll(_loop(sch, rng)),
    lambda sch, rng: sch.parallel(_loop(sch, rng)),
    lambda sch, rng: sch.cache_write(_block(sch, rng), 0, rng.choice(["local", "global"])),
    lambda sch, rng: sch.cache_read(_block(sch, rng), rng.randint(0, 1), rng.choice(["local", "global"])),
    lambda sch, rng: sch.compute_at(_block(sch, rng), _loop(sch, rng)),
    lambda sch, rng: sch.compute_at(_block(sch, rng), _loop(sch, rng)),
    lambda sch, rng: sch.reverse_compute_at(_block(sch, rng), _loop(sch, rng)),
    lambda sch, rng: sch.reverse_compute_at(_block(sch, rng), _loop(sch, rng)),
    lambda sch, rng: sch.compute_inline(_block(sch, rng)),
    lambda sch, rng: sch.reverse_compute_inline(_block(sch, rng)),
    lambda sch, rng: sch.decompose_reduction(_block(sch, rng), _loop(sch, rng)),
    lambda sch, rng: sch.rfactor(_loop(sch, rng), 0),
]
