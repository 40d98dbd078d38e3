# SPDX-License-Identifier: Apache-2.0
"""Builds a scheduled program, checks it, and prints its speed against the core's measured multiply-add peak."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from assembly import hottest_loop

from roundel.build import build, inspect
from roundel.ir import IRModule
from roundel.schedule import Schedule
from roundel.target import Target
from roundel.target.peak import fma_gflops


class Steps:
    """Prints the program after each step of a schedule."""

    def __init__(self, sch: Schedule, show: bool) -> None:
        self.sch, self.show_all = sch, show
        self.number = 0

    def __call__(self, what: str) -> None:
        self.number += 1
        if self.show_all:
            print(f"\n# ---- step {self.number}: {what}")
            print(self.sch.mod.script())


def milliseconds(run: Callable[[], Any], samples: int = 60) -> float:
    """Median thread CPU time of a call."""
    run()
    times = []
    for _ in range(samples):
        start = time.thread_time_ns()
        run()
        times.append(time.thread_time_ns() - start)
    return median(times) / 1e6


def options() -> tuple[Target, bool]:
    """The target and whether to print every step, from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quiet", action="store_true", help="only the speed, not the program after every step")
    parser.add_argument(
        "--target", default="host", help="a narrower machine that runs here, such as znver3 or x86-64-v3"
    )
    given = parser.parse_args()
    return Target(given.target), not given.quiet


def report(mod: IRModule, target: Target, flops: int, arrays: list[np.ndarray], want: np.ndarray) -> float:
    """Builds, compares with ``want`` (the last array is the output), prints; returns the share of the peak reached."""
    built = build(mod, target, threads=1)
    (name,) = mod.keys()
    run = built[name]
    run(*arrays)
    error = float(np.abs(arrays[-1] - want).max() / np.abs(want).max())
    peak = fma_gflops() * target.vector_bytes / Target.host().vector_bytes
    time_ms = milliseconds(lambda: run(*arrays))
    reached = flops / time_ms / 1e6
    loop = hottest_loop(inspect(mod, name, target).assembly)
    print(f"\ntarget        {target.cpu}, {target.vector_bytes * 8}-bit vectors, {target.vector_registers} registers")
    print(f"error         {error:.1e} (largest, relative to the largest value)")
    counts = f"{loop.multiply_adds} multiply-adds, {loop.stack_accesses} stack accesses"
    print(f"inner loop    {len(loop.body)} instructions, {counts}")
    print(f"time          {time_ms:.3f} ms")
    print(f"speed         {reached:.1f} GFLOP/s of {peak:.1f} measured peak: {100 * reached / peak:.1f} %")
    return reached / peak
