# SPDX-License-Identifier: Apache-2.0
"""Why each kernel of a module is as it is: the rule that scheduled it, what that decided, what it passed over, what it must cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import tir
from ..ir.errors import ScheduleError
from ..ir.module import IRModule
from ..schedule import Schedule
from ..schedule.rules import RULES
from ..schedule.rules.candidates import Candidates
from .cost import Cost, Rates, program_cost, roofline
from .pack_constants import calls_of, constant_params


@dataclass(frozen=True)
class Explanation:
    """One kernel. ``calls``: places in the graph that call it. ``passed_over``: for each rule tried before ``rule``, why it was not it.
    ``decisions``: what the rule chose freely, ``candidates`` out of what. ``schedule``: the primitives as Python."""

    name: str
    calls: int
    rule: str
    decisions: Mapping[str, Any]
    passed_over: Mapping[str, str]
    schedule: str
    cost: Cost
    candidates: Candidates | None = None


def explain_module(mod: IRModule, target: Any, sizes: Mapping[str, int] | None = None) -> list[Explanation]:
    """Every tensor program that a graph function calls, in the order of the first calls. ``mod`` is not scheduled yet (what goes into
    the pass ``schedule``); ``sizes`` gives symbolic dimensions values."""
    constants = constant_params(mod)
    calls: dict[str, int] = {}
    for _, value in calls_of(mod):
        calls[value.args[0].name] = calls.get(value.args[0].name, 0) + 1
    return [explain_program(mod[n], target, n, count, constants.get(n, ()), sizes) for n, count in calls.items() if mod[n].root_block is not None]


def explain_program(func: tir.PrimFunc, target: Any, name: str = "main", calls: int = 1, constants: tuple[int, ...] = (),
                    sizes: Mapping[str, int] | None = None) -> Explanation:
    """Schedule one program as the compiler does and keep the account of it."""
    cost = program_cost(func, constants, sizes)
    passed: dict[str, str] = {}
    for rule in RULES:
        sch = Schedule(func.with_attr("constant_params", constants))
        try:
            applied = rule(sch, target)
        except ScheduleError as error:
            passed[rule.__name__] = f"illegal here: {error.what}"
            continue
        if applied is not None:
            return Explanation(name, calls, rule.__name__, applied.decisions, passed, str(sch.trace), cost, applied.candidates)
        passed[rule.__name__] = "the program does not have its structure"
    raise AssertionError("the fallback rule fits every program")


def predicted_seconds(found: Explanation, target: Any, machine: Rates, constants: float | None = None) -> float:
    """What the model of the target expects of one call: the cycles of the chosen decisions at the machine's rate, no less than the roofline."""
    bound = roofline(found.cost, machine, constants)
    return max(_at_rate(found.candidates.expected(found.decisions), target, machine) if found.candidates else 0.0, bound.seconds)


def alternatives(found: Explanation, target: Any, machine: Rates, most: int = 8) -> list[tuple[Mapping[str, Any], float]]:
    """Decisions that were passed over, the most promising first, with the seconds that the model expects of each."""
    table = found.candidates
    if table is None:
        return []
    picked = [k for k in table.ranking()[: most + 1].tolist() if table.decisions(k) != dict(found.decisions)]
    return [(table.decisions(k), _at_rate(float(table.cycles[k]), target, machine)) for k in picked[:most]]


def _at_rate(cycles: float, target: Any, machine: Rates) -> float:
    return cycles * target.flops_per_cycle() / machine.gflops * 1e-9
