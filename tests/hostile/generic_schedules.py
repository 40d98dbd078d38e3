# SPDX-License-Identifier: Apache-2.0
"""Random schedules of the generic space for programs that no rule was written for, at every vector width, against NumPy."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from benchmarks.program_race import random_schedule
from benchmarks.programs import PROGRAMS, arrays

from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import lower
from roundel.strategy.cost import expected_cycles
from roundel.target import Target

from .attempts import attempts

WIDTHS = ("llvm -mcpu=x86-64 -vector-width=32", "x86-64", "x86-64-v3", "x86-64-v4", "apple-m1", "rv64gcv", "wasm32")
MOST = 5  # what any extent is, at most: an interpreted schedule takes milliseconds then


def attack(count: int, seed: int) -> Iterator[str]:
    """Each attempt schedules one program of toy sizes, lowers it, asks the model of costs and runs it in the interpreter; errors and wrong
    results are findings."""
    rng = random.Random(seed)
    for _ in attempts(range(count)):
        program, target = PROGRAMS[rng.choice(list(PROGRAMS))], rng.choice(WIDTHS)
        sizes = {name: rng.randint(1, MOST) for name in program.small}
        if "d" in sizes and program.name == "correlation_volume":
            sizes["d"] = rng.choice((1, 3))
        where = f"{program.name} {sizes} for {target}"
        try:
            func = program.func(**sizes)
            made = random_schedule(func, Target(target), rng, "main")
            if made is None:
                continue
            if not 0 < expected_cycles(made, Target(target)) < 1e9:
                yield f"{where}: the model of costs expects {expected_cycles(made, Target(target))} cycles"
            data = arrays(func, rng.randrange(1 << 30))
            wanted = program.reference(*data[:-1])
            data[-1][...] = np.nan
            interpret(IRModule({"main": made}))["main"](*data)
            if not np.allclose(data[-1], wanted, rtol=1e-3, atol=1e-3 * max(1.0, float(np.abs(wanted).max()))):
                yield f"{where}: wrong by {np.abs(data[-1] - wanted).max()}\n{made.script()}"
            lower(IRModule({"main": made}))
        except Exception as error:
            yield f"{where}: {type(error).__name__}: {error}"
