# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs under random schedule primitives: what is not refused must compute what the program computed.

The programs are as hostile as they are valid: axes that are declared spatial and are not, scans, races, scatters, reductions that
do not start at the neutral element or whose updates do not commute, temporaries that outlive their loop, conditions that read memory, views.
The scheduled program runs in the interpreter twice, iterations of parallel, vectorized and bound loops once together and once in random order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import numpy as np

from roundel.interp import run_prim_func
from roundel.ir import IRModule, PrimFunc, Var
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from tests.hostile.primitive_programs import draw
from tests.schedule.random_steps import NAMES, STEPS, Steps

from .attempts import attempts

LENGTHS = (1, 2, 4, 8, 12)
Step = Callable[[Steps, Schedule], object]


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` programs, each with a sequence of primitives."""
    for k in attempts(range(seed, seed + count), start):
        yield from (f"case {k}: {problem}" for problem in case(k))


def case(seed: int) -> Iterator[str]:
    """What goes wrong with one program and one sequence of primitives; the first step after which it does is named."""
    func = draw(seed)
    problem = scheduled(func, seed, every_step=False)
    if problem:
        yield scheduled(func, seed, every_step=True) or problem


def scheduled(
    func: PrimFunc, seed: int, every_step: bool, known: Mapping[str, Step] = STEPS, names: Sequence[str] = NAMES, most: Sequence[int] = LENGTHS
) -> str:
    """The problem after all the steps, or after each of them; empty when there is none. ``names`` of the steps ``known`` are drawn, twice as often as
    one of ``most`` says."""
    steps, random = Steps(func, seed), Random(seed)
    want = run(func)
    done: list[str] = []
    for _ in range(2 * random.choice(most)):
        name = random.choice(names)
        try:
            known[name](steps, steps.sch)
        except ScheduleError:
            continue
        except Exception as error:
            return f"{name} fails after {done}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        done.append(name)
        if every_step and (why := differs(steps.sch.func, want, seed)):
            return f"{done}: {why}"
    return "" if every_step else differs(steps.sch.func, want, seed) and f"{done}: {differs(steps.sch.func, want, seed)}"


def differs(func: PrimFunc, want: list[np.ndarray], seed: int) -> str:
    """How a scheduled program differs from the original; empty when it does not."""
    ill = well_formed(IRModule({"main": func}))
    if ill:
        return f"not well-formed: {ill[0]}"
    for what, order in (("together", None), ("in random order", Random(seed)), ("in another order", Random(seed + 1))):
        try:
            got = run(func, order)
        except Exception as error:
            return f"does not run: {type(error).__name__}: {error}"
        if not all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
            return f"another result, iterations {what}"
    return ""


def run(func: PrimFunc, order: Random | None = None) -> list[np.ndarray]:
    """What all parameters hold after a run on small whole numbers (a size that is a variable has its value in its name)."""
    rng = np.random.default_rng(0)
    shapes = [[int(n.name[1:]) if isinstance(n, Var) else n.value for n in b.shape] for b in func.buffer_params]
    arrays = [rng.integers(-9, 9, shape).astype(b.dtype.numpy) for b, shape in zip(func.buffer_params, shapes)]
    run_prim_func(func, arrays, order=order)
    return arrays
