# SPDX-License-Identifier: Apache-2.0
"""A 768 x 768 x 768 float32 matrix product with a constant operand, from a tensor expression by schedule primitives.

python benchmarks/tracer/matmul.py            the program after every step, then the speed
python benchmarks/tracer/matmul.py --quiet    the speed
"""

from __future__ import annotations

import numpy as np
from report import Steps, options, report
from tiles import divisor_up_to, register_tile

from roundel import te
from roundel.schedule import Schedule
from roundel.target import Target

M = N = K = 768
UNROLL = 4  # steps of the reduction in the inner loop's body


def program() -> te.Tensor:
    """``C[i, j] = sum over k of A[i, k] * B[k, j]``."""
    a, b = te.placeholder((M, K), "float32", "A"), te.placeholder((K, N), "float32", "B")
    k = te.reduce_axis((0, K), "k")
    c = te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    return te.create_prim_func([a, b, c])


def schedule(target: Target, show: bool) -> tuple[Schedule, int]:
    """The schedule, and the width of the panels in which it wants B."""
    lanes = target.lanes("float32")
    rows, vectors = register_tile(target, M, N)
    width = vectors * lanes
    block = divisor_up_to(
        N, target.l2_bytes * 3 // 4 // (K * 4), width
    )  # so many columns of B stay in the second-level cache
    sch = Schedule(program())
    step = Steps(sch, show)
    step("the tensor expression as a program")

    c = sch.get_block("C")
    sch.transform_layout(c, ("read", 1), lambda k, j: (j // width, k, j % width))
    step(f"B in panels of {width} columns; it is constant, so this happens once, ahead of time")

    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1, j2, j3 = sch.split(j, [None, block // width, vectors, lanes])
    k0, k1 = sch.split(k, [None, UNROLL])
    sch.reorder(j0, i0, j1, k0, k1, i1, j2, j3)
    step(f"tiles: {rows} rows x {vectors} vectors of {lanes} in registers, {block} columns in the second-level cache")

    out = sch.cache_write(c, 0, "local")
    sch.reverse_compute_at(out, j1)
    step("accumulators in registers, written out after the reduction")

    panel = sch.cache_read(c, 1, "local")
    sch.compute_at(panel, k1)
    step("the row of B in registers, loaded once for all rows of the tile")

    init = sch.decompose_reduction(c, k0)
    step("accumulators start at zero before the reduction")

    for block, outside in ((init, 3), (c, 5), (panel, 5), (out, 3)):
        inside = sch.get_loops(block)[outside:]
        if block in (panel, out):  # these walk a whole row of the tile
            inside = [*inside[:-1], *sch.split(inside[-1], [None, lanes])]
        sch.vectorize(inside[-1])
        for loop in inside[:-1]:
            sch.unroll(loop)
    sch.unroll(k1)
    step("vectors and straight code")
    return sch, width


def main() -> None:
    target, show = options()
    sch, width = schedule(target, show)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((768, 768), np.float32) for _ in range(2))
    panels = np.ascontiguousarray(b.reshape(K, N // width, width).transpose(1, 0, 2))
    report(sch.mod, target, 2 * M * N * K, [a, panels, np.zeros((M, N), np.float32)], a @ b)


if __name__ == "__main__":
    main()
