# SPDX-License-Identifier: Apache-2.0
"""Why each kernel of a module has its schedule: whether that was measured, pinned or expected to be the fastest, the sketch that was taken, its
decisions, the alternatives that were passed over, and the least time that the kernel can take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ..intrinsics import TensorIntrin
from ..ir import graph, tir
from ..ir.choice import EXPECTED, MEASURED, PINNED
from ..ir.dataclass import dataclass
from ..ir.module import IRModule
from ..ir.record import Record
from ..ir.visit import free_vars
from ..schedule.trace import Trace
from ..target import Target
from .candidates import Candidates
from .choose import Alternative, choose, proposals
from .cost import expected_cycles
from .match.mappings import described
from .pack_constants import calls_of, constant_params
from .parallelism import GRAIN
from .pins import SKETCH, is_packed
from .records import Records
from .roofline import Cost, Rates, program_cost, roofline
from .sizes import Sizes
from .sketch import Sketch


@dataclass(frozen=True)
class Explanation:
    """One kernel. ``calls``: places in the graph that call it. ``rule``: the name of the sketch that was taken; ``passed_over``: for each one
    tried before it, why it was not. ``decisions``: what was chosen freely, ``candidates`` out of what, in cycles at the sizes that are
    assumed where they are symbolic. ``schedule``: the primitives as Python. ``cycles``: what is expected of it on one core at the sizes asked
    about. ``record``: the measurement that it was taken from. ``sketch``: None where the record's is proposed no more. ``pinned``: decisions that
    were asked for. ``instructions``: the instructions that compute on tiles or groups of products, by their names as TensorIntrins; vectors alone do where
    there are none."""

    name: str
    calls: int
    rule: str
    decisions: Mapping[str, Any]
    passed_over: Mapping[str, str]
    schedule: str
    cost: Cost
    sketch: Sketch | None
    cycles: float
    record: Record | None = None
    pinned: Mapping[str, Any] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What decided: a measurement, who compiled, or the model of the machine."""
        return MEASURED if self.record is not None else PINNED if self.pinned else EXPECTED

    @property
    def space(self) -> dict[str, list[int]]:
        """The values of each decision that can be pinned; of the grain of a parallel loop, which may be any number, a few around what was chosen."""
        grain, space = self.decisions.get(GRAIN), {} if self.sketch is None else self.sketch.space
        return space if grain is None else {**space, GRAIN: sorted({max(1, grain * 4 // k) for k in (1, 2, 4, 8, 16)})}

    @property
    def pin(self) -> dict[str, Any]:
        """What pins these decisions: a program's attribute ``decisions``, or what ``rd.compile(choices=...)`` takes for a kernel."""
        names = [n for n in self.space if n in self.decisions]
        return {SKETCH: self.rule, **{n: self.decisions[n] for n in names}}

    @property
    def candidates(self) -> Candidates | None:
        """What the sketch could have decided."""
        return None if self.sketch is None else self.sketch.candidates


def explain_module(mod: IRModule, target: Target, sizes: Mapping[str, int] | None = None) -> list[Explanation]:
    """Every tensor program that a graph function calls, in the order of the first calls. ``mod`` is not scheduled yet (what goes into
    the pass ``schedule``); ``sizes`` gives symbolic dimensions values (1 where there is none), which tell what runs and how large it is."""
    constants = constant_params(mod)
    values = Sizes(sizes or {})
    calls: dict[str, list[graph.Call]] = {}
    for _, value in calls_of(mod, values.decided):
        calls.setdefault(value.args[0].name, []).append(value)
    return [explain_program(mod[n], target, n, len(made), constants.get(n, ()) if is_packed(mod[n]) else (), values.of_program(mod[n], made[0]),
                            mod.choices.records)
            for n, made in calls.items() if mod[n].root_block is not None]


def explain_program(func: tir.PrimFunc, target: Target, name: str = "main", calls: int = 1, constants: tuple[int, ...] = (),
                    sizes: Mapping[str, int] | None = None, records: Records | None = None) -> Explanation:
    """Schedule one program as the compiler does, and record why."""
    cost, pinned = program_cost(func, constants, sizes), func.attrs.get("decisions") or {}
    passed: dict[str, str] = {}
    for found in choose(func, target, constants, records=records):
        if found.applied is not None:
            applied, sketch = found.applied, found.sketch if found.record is None else _sketch_of(found, func, target, constants)
            asked = {v.name: (sizes or {}).get(v.name, 1) for b in func.buffer_params for n in b.shape for v in free_vars(n)}
            cycles = expected_cycles(applied.func, target, asked, cores=1) if asked else found.cycles(target)
            steps = str(applied.schedule.trace)
            return Explanation(name, calls, found.name, applied.decisions, passed, steps, cost, sketch, cycles, found.record, pinned,
                               instructions_of(applied.schedule.trace))
        passed[found.name] = found.why_not
    raise AssertionError("the last rule takes no step")


def instructions_of(trace: Trace) -> tuple[str, ...]:
    """The instructions that a schedule's steps put in, those aside that only move data."""
    named = dict.fromkeys(str(step.attrs["tensor_intrin"]) for step in trace if step.kind == "tensorize")
    return tuple(name for name in named if _computes(TensorIntrin.get(name)))


def _computes(intrin: TensorIntrin) -> bool:
    """Whether an instruction does more than to move or clear elements."""
    what = described(intrin)
    return what is None or not isinstance(what.store.value, tir.BufferLoad | tir.IntImm | tir.FloatImm)


def _sketch_of(found: Alternative, func: tir.PrimFunc, target: Target, constants: tuple[int, ...]) -> Sketch | None:
    """The sketch that a record's decisions are of; None where no rule proposes one that has them."""
    for sketch, _ in proposals(func, target, constants):
        table = sketch.candidates
        if sketch.name == found.name and (table is None or table.holds(found.choice)):
            return sketch
    return None


def predicted_seconds(found: Explanation, target: Target, machine: Rates, constants: float | None = None) -> float:
    """What the model of the target expects of one call: the cycles of the schedule at the machine's rate, no less than the roofline."""
    return max(_at_rate(found.cycles, target, machine), roofline(found.cost, machine, constants).seconds)


def modelled_seconds(found: Explanation, target: Target, machine: Rates) -> float:
    """What the sketch expects of the chosen decisions, as it does of those that were passed over; of a sketch that expects nothing, what is expected
    of its schedule."""
    own = None if found.sketch is None else found.sketch.expected(found.decisions)
    return _at_rate(found.cycles if own is None else own, target, machine)


def alternatives(found: Explanation, target: Target, machine: Rates, most: int = 8) -> list[tuple[Mapping[str, Any], float]]:
    """Decisions that were passed over, the most promising first, with the seconds that the model expects of each."""
    table, sketch = found.candidates, found.sketch
    if sketch is None or table is None or table.cycles is None:
        return []
    chosen = {n: found.decisions[n] for n in table.columns}
    picked = [k for k in table.ranking()[: most + 1].tolist() if table.decisions(k) != chosen]
    return [(decisions, _at_rate(sketch.expected(decisions) or 0.0, target, machine)) for decisions in map(table.decisions, picked[:most])]


def _at_rate(cycles: float, target: Target, machine: Rates) -> float:
    return cycles * target.flops_per_cycle() / machine.gflops * 1e-9
