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
from ..schedule.rules.register_tile import step_cycles
from .cost import Cost, Rates, program_cost, roofline
from .pack_constants import calls_of, constant_params


@dataclass(frozen=True)
class Explanation:
    """One kernel. ``calls``: places in the graph that call it. ``passed_over``: for each rule tried before ``rule``, why it was not it.
    ``decisions``: what the rule chose freely. ``schedule``: the primitives as Python."""

    name: str
    calls: int
    rule: str
    decisions: Mapping[str, Any]
    passed_over: Mapping[str, str]
    schedule: str
    cost: Cost


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
            return Explanation(name, calls, rule.__name__, applied.decisions, passed, str(sch.trace), cost)
        passed[rule.__name__] = "the program does not have its structure"
    raise AssertionError("the fallback rule fits every program")


def predicted_seconds(found: Explanation, target: Any, machine: Rates, constants: float | None = None) -> float:
    """What the model of the target expects of one call: the roofline, with arithmetic as fast as the chosen register tile keeps the
    multiply-add units busy."""
    bound = roofline(found.cost, machine, constants)
    height, vectors = found.decisions.get("rows"), found.decisions.get("vectors")
    busy = height * vectors / target.fma_ports / step_cycles(target, height, vectors) if height and vectors else 1.0
    return max(bound.compute / busy, bound.memory)
