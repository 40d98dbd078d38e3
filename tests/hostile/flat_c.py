# SPDX-License-Identifier: Apache-2.0
"""Random programs scheduled and lowered: the same flat loops as plain C, as C with each form of vectors and as LLVM's code give what the interpreter gives
for the program before it was scheduled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from fuzz.tensor_programs import Drawn, draw
from roundel.build import build
from roundel.codegen.c import backend
from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import lower
from roundel.strategy.pack_constants import relayout
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .attempts import attempts

TARGETS = ("x86-64", "x86-64-v3", "llvm -mcpu=x86-64 -vector-width=32")  # wider vectors are not every machine's
MVE = "C with vectors of MVE"
WAYS = {"C": "c", MVE: "c -mattr=+mve.fp", "C with vector extensions": "c -mattr=+vector-extensions", "LLVM": None}
OPTIMISED = 10  # one in so many files is optimised by the C compiler, on which an attempt would spend most of its time
BATCH = 40  # programs of one file of C
TOLERANCE = {"bfloat16": (5e-2, 3e-2), "float16": (2e-2, 4e-3), "float32": (1e-4, 3e-5)}
"""Of the largest element: how far a sum in another order may be from the interpreter's, and how far code in C, which may round products that LLVM's fuses,
may be from LLVM's, by the narrowest type."""


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` programs without the first ``start``, some in a file; errors and unequal results are findings."""
    batch: list[tuple[str, Drawn, Any, Any]] = []
    for k in attempts(range(count), start):
        drawn, target = draw(seed * 1_000_003 + k), random.Random(seed * 1_000_003 + k).choice(TARGETS)
        made, layouts = schedule_program(drawn.func, Target(target), drawn.constants)
        batch.append((f"{drawn.family}, program {seed * 1_000_003 + k} for {target}", drawn, made, layouts))
        if len(batch) == BATCH or k == count - 1:
            yield from _unequal(batch, is_optimised=k // BATCH % OPTIMISED == 0)
            batch = []


def _unequal(batch: list[tuple[str, Drawn, Any, Any]], is_optimised: bool = True) -> Iterator[str]:
    flat = lower(IRModule({f"program{k}": made.with_attr("global_symbol", f"program{k}") for k, (_, _, made, _) in enumerate(batch)}))
    ways = {}
    for way, target in WAYS.items():
        quick = not is_optimised or way == MVE  # whose functions take compilers long where no processor has them
        with patch.object(backend, "_OPTIONS", tuple("-O0" if quick and option == "-O2" else option for option in backend._OPTIONS)):
            ways[way] = build(flat, target, pipeline=())
    for k, (where, drawn, made, layouts) in enumerate(batch):
        arrays = drawn.arrays(np.random.default_rng(k))
        laid = [relayout(a, layouts[n], [x.value for x in made.buffer_params[n].shape]) if n in layouts else a for n, a in enumerate(arrays)]
        results = {}
        for way, run in ways.items():
            results[way] = laid[-1].copy()
            run[f"program{k}"](*laid[:-1], results[way])
        wanted = arrays[-1].copy()
        interpret(IRModule({"main": drawn.func}))["main"](*arrays[:-1], wanted)
        text = drawn.func.script()
        ordered, rounded = TOLERANCE[next((t for t in TOLERANCE if t in text), "float32")]
        yield from (f"{where}: {way} differs from the interpreter by {off}" for way, found in results.items() if (off := _apart(found, wanted, ordered)))
        yield from (f"{where}: {way} differs from LLVM's code by {off}" for way, found in results.items() if (off := _apart(found, results["LLVM"], rounded)))


def _apart(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> float:
    """The largest difference where arrays differ by more than a share of the largest element, else 0; whole numbers have to be equal."""
    if wanted.dtype.kind in "iub":
        return float(np.abs(found.astype("f8") - wanted.astype("f8")).max(initial=0.0))
    a, b = found.astype("f8"), wanted.astype("f8")
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    if np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        return 0.0
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(a - b), initial=0.0)) or float("nan")
