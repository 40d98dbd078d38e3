# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs, scheduled and lowered for every named machine; a tenth of them run with vectors of 1, 4, 8 and 16 lanes, and must
give what the interpreter gives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.ir.equal import StructuralMap
from roundel.lower import lower
from roundel.strategy import choose, schedule_program
from roundel.strategy.cost import expected_cycles
from roundel.target import Target
from roundel.target.machines import MACHINES
from tests.fuzz.tensor_programs import Drawn, draw
from tests.hostile.vector_widths import LANES, machine

from .attempts import attempts

RUN = 10  # one in so many programs runs
TOLERANCE = {"bfloat16": 5e-2, "float16": 2e-2, "float32": 2e-3, "float64": 1e-6}


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` programs, of the seeds from ``seed`` on."""
    for of in attempts(range(seed, seed + count), start):
        drawn = draw(of)
        for problem in problems(drawn, run=of % RUN == 0):
            yield f"seed {of} ({drawn.family}): {problem}"


def problems(drawn: Drawn, run: bool, targets: tuple[str, ...] = tuple(MACHINES)) -> Iterator[str]:
    """What goes wrong with a program: errors, and alternatives that failed and were passed over."""
    made = StructuralMap()  # equal programs are lowered once
    for name in targets:
        target = Target(name)
        with failures() as noted:
            try:
                func, _ = schedule_program(drawn.func, target, drawn.constants)
                if not 0 < expected_cycles(func, target) < 1e12:
                    noted.append(f"{func.attrs['scheduled']} is expected to take {expected_cycles(func, target)} cycles")
                made.setdefault(func, lambda func=func, target=target: lowered(func, target))
            except Exception as error:
                noted.append(f"{type(error).__name__}: {error}".split("\n")[0])
        yield from (f"{name}: {text}" for text in noted)
    if run:
        for lanes in LANES:
            yield from (f"{lanes} lanes: {text}" for text in wrong(drawn, machine(lanes)))


def lowered(func: tir.PrimFunc, target: Target) -> bool:
    """Lower a scheduled program; whether that went well (it raises otherwise)."""
    lower(IRModule({"main": func}, {"target": target}))
    return True


@contextmanager
def failures() -> Iterator[list[str]]:
    """What the logger of schedules warns of meanwhile."""
    noted: list[str] = []
    handler, logger = logging.Handler(logging.WARNING), logging.getLogger("roundel.schedule")
    handler.emit = lambda record: noted.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    yield noted
    logger.removeHandler(handler)
    logger.propagate = before


def wrong(drawn: Drawn, target: Target, every: bool = False) -> Iterator[str]:
    """Where a program that is scheduled for a machine and run gives otherwise than the program as it was; with ``every``, each alternative."""
    rng = np.random.default_rng(0)
    given = drawn.arrays(rng)
    want = [a.copy() for a in given]
    interpret(IRModule({"main": drawn.func}))["main"](*want)
    types = [str(b.dtype) for b in drawn.func.buffer_params]
    narrow = next((t for t in ("bfloat16", "float16") if t in types), types[-1])
    for found in choose(drawn.func, target):
        if found.applied is None:
            continue
        got = [a.copy() for a in given]
        try:
            build_module(IRModule({"main": found.applied.func}), target=target)["main"](*got)
        except Exception as error:
            yield f"{found.name}: {type(error).__name__}: {error}".split("\n")[0]
        else:
            a, b = want[-1].astype("f8"), got[-1].astype("f8")
            finite = np.isfinite(a)
            off = np.abs(a[finite] - b[finite]).max(initial=0.0) / max(1.0, np.abs(a[finite]).max(initial=0.0))
            if not off <= TOLERANCE.get(narrow, 0.0) or not np.array_equal(finite, np.isfinite(b)):
                yield f"{found.name}: off by {off:.2g}"
        if not every:
            return
