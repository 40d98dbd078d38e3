# SPDX-License-Identifier: Apache-2.0
"""A 3x3 convolution, 64 to 64 channels on 56 x 56 float32, from a tensor expression by schedule primitives.

The input has its zero border (the producer writes it). Layouts change by ``transform_layout``: channels of input and
output in blocks of one vector, weights in panels of one register tile.

    python benchmarks/tracer/conv2d.py            the program after every step, then the speed
    python benchmarks/tracer/conv2d.py --quiet    the speed
"""

from __future__ import annotations

import numpy as np
from report import Steps, options, report
from tiles import register_tile

from roundel import te
from roundel.ir import PrimFunc
from roundel.schedule import BlockRV, Schedule
from roundel.target import Target

CHANNELS, SIZE, TAPS = 64, 56, 3
UNROLL = 4  # input channels in the inner loop's body


def program() -> PrimFunc:
    """``Y[o, y, x] = sum over i, r, s of X[i, y + r, x + s] * W[o, i, r, s]``."""
    x = te.placeholder((CHANNELS, SIZE + TAPS - 1, SIZE + TAPS - 1), "float32", "X")
    w = te.placeholder((CHANNELS, CHANNELS, TAPS, TAPS), "float32", "W")
    i, r, s = te.reduce_axis((0, CHANNELS), "i"), te.reduce_axis((0, TAPS), "r"), te.reduce_axis((0, TAPS), "s")
    y = te.compute(
        (CHANNELS, SIZE, SIZE),
        lambda o, p, q: te.sum(x[i, p + r, q + s] * w[o, i, r, s], axis=[i, r, s]),
        "Y",
    )
    return te.create_prim_func([x, w, y])


def schedule(target: Target, show: bool) -> Schedule:
    """The program scheduled for ``target``; ``show`` prints it after every step."""
    lanes = target.lanes("float32")
    pixels, vectors = register_tile(target, SIZE, CHANNELS)
    width = vectors * lanes
    sch = Schedule(program())
    step = Steps(sch, show)
    step("the tensor expression as a program")

    conv = sch.get_block("Y")
    sch.transform_layout(conv, ("read", 0), lambda i, p, q: (i // lanes, p, q, i % lanes))
    sch.transform_layout(conv, ("read", 1), lambda o, i, r, s: (o // width, i // lanes, r, s, i % lanes, o % width))
    sch.transform_layout(conv, ("write", 0), lambda o, p, q: (o // lanes, p, q, o % lanes))
    step(f"channels in blocks of {lanes}, weights in panels of {width} (ahead of time, they are constant)")

    o, p, q, i, r, s = sch.get_loops(conv)
    o0, o1, o2 = sch.split(o, [None, vectors, lanes])
    i0, i1, i2 = sch.split(i, [None, lanes // UNROLL, UNROLL])
    sch.reorder(o0, p, q, i0, r, s, i1, i2, o1, o2)
    sch.split(q, [None, pixels], mode="balanced")
    parts = sch.get_child_blocks(sch.get_block("root"))
    step(f"tiles of {pixels} pixels x {vectors} vectors of {lanes} channels; lower ones fill up to {SIZE} pixels")

    for part in parts:
        _tile(sch, part, step, lanes)
    return sch


def _tile(sch: Schedule, conv: BlockRV, step: Steps, lanes: int) -> None:
    """One register tile: accumulators, the reduction, the way out."""
    _, _, q0, q1, i0, r, s, i1, i2, o1, o2 = sch.get_loops(conv)
    sch.reorder(q0, i0, r, s, i1, i2, q1, o1, o2)
    out = sch.cache_write(conv, 0, "local")
    sch.reverse_compute_at(out, q0)
    step("accumulators in registers, written out after the reduction")

    panel = sch.cache_read(conv, 1, "local", consumer_blocks=[conv])
    sch.compute_at(panel, i2)
    step("the weights of one input channel in registers, loaded once for all pixels of the tile")

    init = sch.decompose_reduction(conv, i0)
    step("accumulators start at zero before the reduction")

    for block, outside in ((init, 3), (conv, 8), (panel, 8), (out, 3)):
        inside = sch.get_loops(block)[outside:]
        if block is panel:  # walks a whole row of the tile
            inside = [*inside[:-1], *sch.split(inside[-1], [None, lanes])]
        sch.vectorize(inside[-1])
        for loop in inside[:-1]:
            sch.unroll(loop)
    sch.unroll(i2)
    step("vectors and straight code")


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The convolution of a bordered input, as matrix products."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (TAPS, TAPS), axis=(1, 2))
    return np.einsum("ipqrs,oirs->opq", windows, w, optimize=True)


def blocked(x: np.ndarray, lanes: int) -> np.ndarray:
    """Channels in blocks: [C, H, W] to [C / lanes, H, W, lanes]."""
    c, h, w = x.shape
    return np.ascontiguousarray(x.reshape(c // lanes, lanes, h, w).transpose(0, 2, 3, 1))


def operands(target: Target) -> tuple[list[np.ndarray], np.ndarray]:
    """Input, weights and room for the output in the layouts that the schedule wants, and the right output."""
    lanes, width = target.lanes("float32"), register_tile(target, SIZE, CHANNELS)[1] * target.lanes("float32")
    rng = np.random.default_rng(0)
    x = np.pad(rng.standard_normal((CHANNELS, SIZE, SIZE), np.float32), ((0, 0), (1, 1), (1, 1)))
    w = rng.standard_normal((CHANNELS, CHANNELS, TAPS, TAPS), np.float32)
    panels = w.reshape(CHANNELS // width, width, CHANNELS // lanes, lanes, TAPS, TAPS).transpose(0, 2, 4, 5, 3, 1)
    want = blocked(reference(x, w), lanes)
    return [blocked(x, lanes), np.ascontiguousarray(panels), np.zeros_like(want)], want


def main() -> None:
    target, show = options()
    sch = schedule(target, show)
    arrays, want = operands(target)
    report(sch.mod, target, 2 * CHANNELS * CHANNELS * SIZE * SIZE * TAPS * TAPS, arrays, want)


if __name__ == "__main__":
    main()
