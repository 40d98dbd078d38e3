# SPDX-License-Identifier: Apache-2.0
"""Random programs scheduled and lowered: the same flat loops as C, also with vectors, as LLVM's code and in the interpreter
give the same results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.tensor_programs import Drawn, draw
from roundel.build import build
from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import lower
from roundel.strategy.pack_constants import relayout
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .attempts import attempts

TARGETS = ("x86-64", "x86-64-v3", "llvm -mcpu=x86-64 -vector-width=32")  # wider vectors are not every machine's
INTERPRETED = "the interpreter"
BATCH = 40  # programs of one file of C
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}  # of the largest element: a few roundings to the narrowest type of a program; else 1e-5


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` programs, some in a file; errors and unequal results are findings."""
    rng, batch = random.Random(seed), []
    for k in attempts(range(count)):
        drawn, target = draw(seed * 1_000_003 + k), rng.choice(TARGETS)
        made, layouts = schedule_program(drawn.func, Target(target), drawn.constants)
        batch.append((f"{drawn.family}, program {seed * 1_000_003 + k} for {target}", drawn, made, layouts))
        if len(batch) == BATCH or k == count - 1:
            yield from _unequal(batch)
            batch = []


def _unequal(batch: list[tuple[str, Drawn, Any, Any]]) -> Iterator[str]:
    flat = lower(IRModule({f"program{k}": made.with_attr("global_symbol", f"program{k}") for k, (_, _, made, _) in enumerate(batch)}))
    ways = {way: build(flat, target, pipeline=()) for way, target in (("C", "c"), ("C with vectors", "c -mattr=+mve.fp"), ("LLVM", None))}
    ways[INTERPRETED] = interpret(flat)
    for k, (where, drawn, made, layouts) in enumerate(batch):
        arrays = drawn.arrays(np.random.default_rng(k))
        laid = [relayout(a, layouts[n], [x.value for x in made.buffer_params[n].shape]) if n in layouts else a for n, a in enumerate(arrays)]
        sizes = {v.name: n for v, n in drawn.sizes.items()}
        given = [sizes[v.name] for v in flat[f"program{k}"].params if not v.dtype.is_handle]  # which compiled code reads off its operands
        results = {}
        for way, run in ways.items():
            results[way] = laid[-1].copy()
            run[f"program{k}"](*laid[:-1], results[way], *(given if way == INTERPRETED else ()))
        wanted = results.pop(INTERPRETED)
        narrow = next((t for t in TOLERANCE if t in drawn.func.script()), "float32")
        tolerance, scale = TOLERANCE.get(narrow, 1e-5), float(np.nanmax(np.abs(wanted.astype(np.float64)), initial=1.0))
        yield from (f"{where}: {way} differs from the interpreter by {np.nanmax(np.abs(found - wanted))}" for way, found in results.items()
                    if not np.allclose(found, wanted, rtol=max(1e-4, tolerance), atol=tolerance * scale, equal_nan=True))
