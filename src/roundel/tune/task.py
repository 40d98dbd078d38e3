# SPDX-License-Identifier: Apache-2.0
"""What there is to tune in a model: its tensor programs before they are scheduled, equal ones once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from .. import driver, te
from ..build.build import as_module
from ..graph.constant_bytes import constant_bytes
from ..ir import escape, graph, options, tir
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..strategy import schedule_module
from ..strategy.pack_constants import calls_of, constant_params
from ..strategy.pins import SKETCH, is_packed
from ..strategy.program import Program
from ..strategy.records import Key, Records, key_of, sizes_of
from ..strategy.sizes import Sizes
from ..target import Target, TargetLike
from .measure import Argument, Job

BEFORE_SCHEDULING = driver.DEFAULT[: driver.DEFAULT.index(schedule_module)]
"""The passes that lead to a model's tensor programs."""


@dataclass(frozen=True)
class Case:
    """Values of a program's symbolic sizes, by name, and how much they count."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Task:
    """A tensor program to tune. ``weight``: how often a run of the model calls it. ``flushed_bytes``: see `Job`; how the model leaves its constants
    in the caches. ``names``: what the kernels are called in the model."""

    program: Program
    weight: float = 1.0
    cases: tuple[Case, ...] = (Case(),)
    flushed_bytes: int = 0
    names: tuple[str, ...] = ("main",)

    @property
    def name(self) -> str:
        """Of the first kernel."""
        return self.names[0]

    def key(self, threads: int) -> Key:
        """What records of it are kept under."""
        return key_of(self.program, threads)

    def job(self, threads: int) -> Job:
        """How candidates are called to be measured."""
        func, constants = self.program.func, self.program.constants
        buffers = list(func.buffer_params)

        def argument(param: tir.Var, sizes: Sizes) -> Argument | int:
            if param not in func.buffers:
                return sizes.number(param) or 1
            buffer = func.buffers[param]
            shape = tuple(sizes.number(n) or 0 for n in buffer.shape)
            return Argument(shape, str(buffer.dtype), buffers.index(buffer) in constants)

        cases = tuple(tuple(argument(p, Sizes(case.sizes)) for p in func.params) for case in self.cases)
        return Job(self.key(threads).program, cases, threads, self.flushed_bytes)

    def __repr__(self) -> str:
        return f"Task({self.name!r}, weight={self.weight:g}, constants={self.program.constants})"


def tasks(mod: IRModule | tir.PrimFunc | te.Tensor, *, target: TargetLike | None = None, sizes: Any = None, records: Records | None = None) -> list[Task]:
    """The tensor programs of a module, as ``rd.compile`` makes them, in the order of their first calls.

    ``mod``: a module with graph functions, one of tensor programs, one tensor program, or a tensor expression (its result, with the inputs found from
    there). ``sizes``: values of symbolic sizes to tune for: a mapping such as ``{"seq": [17, 128]}``, or a list of mappings; a pair of a mapping
    and a number is one with its weight. ``records``: measurements of the choices of a graph, which decide what programs there are. Programs that are
    scheduled, that have pinned decisions or that only Python can run are no tasks.
    Raises RoundelError.
    """
    machine = Target(target) if target is not None else None
    mod = _as_module(mod)
    wanted = cases_of(sizes)
    if not any(isinstance(f, graph.Function) for _, f in mod.items()):
        return [Task(Program(f, machine or Target.host()), cases=_own(f, wanted), names=(name,)) for name, f in mod.items() if _is_open(f)]
    machine = driver.target_of(target, mod)
    flushed = _flushed(machine, constant_bytes(mod))
    mod = driver.prepare(mod, target=machine, pipeline=BEFORE_SCHEDULING, records=records)
    return tasks_of(mod, machine, wanted, flushed)


def _as_module(given: IRModule | tir.PrimFunc | te.Tensor) -> IRModule:
    if isinstance(given, te.Tensor):
        return IRModule({"main": te.create_prim_func([*_inputs(given), given])})
    return as_module(given)


def _inputs(result: te.Tensor) -> list[te.Tensor]:
    """The placeholders that a tensor expression reads, in the order in which it does."""
    found: dict[te.Tensor, None] = {}
    stack = [result]
    while stack:
        tensor = stack.pop()
        if type(tensor.op).__name__ == "PlaceholderOp":
            found[tensor] = None
        stack += reversed(tensor.op.input_tensors)
    return list(found)


def _is_open(func: Any) -> bool:
    """Whether a function is a tensor program whose schedule nobody has decided."""
    if not isinstance(func, tir.PrimFunc) or func.root_block is None:
        return False
    return "scheduled" not in func.attrs and SKETCH not in (func.attrs.get("decisions") or {})


def cases_of(sizes: Any) -> list[tuple[dict[str, int], float]]:
    """What the user gave for ``sizes``, as mappings with weights. Raises OptionError."""
    if not sizes:
        return [({}, 1.0)]
    if isinstance(sizes, Mapping):
        lists = {n: list(v) if isinstance(v, Sequence) else [v] for n, v in sizes.items()}
        longest = max(map(len, lists.values()))
        if any(len(v) not in (1, longest) for v in lists.values()):
            raise OptionError(f"sizes cannot be {escape.value(sizes)}", hint="give each dimension one value, or all the same number of values")
        sizes = [{n: v[k % len(v)] for n, v in lists.items()} for k in range(longest)]
    found = []
    for one in sizes:
        values, weight = one if isinstance(one, tuple) else (one, 1.0)
        if not isinstance(values, Mapping) or not all(isinstance(n, int) and n > 0 for n in values.values()) or not weight > 0:
            raise OptionError(f"sizes cannot have {one!r}", hint='give {"seq": [17, 128]}, or [({"seq": 17}, 0.5), ({"seq": 128}, 2)]')
        found.append((dict(values), float(weight)))
    return found


def _own(func: tir.PrimFunc, wanted: Sequence[tuple[dict[str, int], float]]) -> tuple[Case, ...]:
    """The cases that differ for a program, with the sum of their weights."""
    names = [v.name for v in sizes_of(func)]
    sums: dict[tuple[tuple[str, int], ...], float] = {}
    for sizes, weight in wanted:
        own = tuple((n, sizes.get(n, 1)) for n in names)
        sums[own] = sums.get(own, 0.0) + weight
    total = sum(sums.values())
    return tuple(Case(dict(own), weight / total) for own, weight in sums.items())


def tasks_of(mod: IRModule, target: Target, wanted: Sequence[tuple[Mapping[str, int], float]], flushed: int) -> list[Task]:
    """The tasks of a module of graph functions and of tensor programs that are not scheduled."""
    constants = constant_params(mod)
    found: dict[str, Task] = {}
    total = sum(weight for _, weight in wanted)
    counted: dict[str, float] = {}
    sizes_in: dict[str, dict[tuple[tuple[str, int], ...], float]] = {}
    for given, weight in wanted:
        values = Sizes(given)
        for _, call in calls_of(mod, values.decided):
            name = call.args[0].name
            func = mod[name]
            if not _is_open(func):
                continue
            inner = values.of_program(func, call)
            own = tuple((v.name, inner.get(v.name, 1)) for v in sizes_of(func))
            sizes_in.setdefault(name, {}).setdefault(own, 0.0)
            sizes_in[name][own] += weight
            counted[name] = counted.get(name, 0.0) + weight / total
    for name, cases in sizes_in.items():
        func = mod[name]
        fixed = constants.get(name, ()) if is_packed(func) else ()
        task = Task(Program(func, target, fixed), counted[name], tuple(Case(dict(own), w / sum(cases.values())) for own, w in cases.items()),
                    flushed if fixed else 0, (name,))
        key = task.key(1).program
        found[key] = replace(found[key], weight=found[key].weight + task.weight, names=(*found[key].names, name)) if key in found else task
    return list(found.values())


def _flushed(target: Target, nbytes: int) -> int:
    """How many bytes of copies the constants of a program are read from, in a model whose constants are so many bytes: twice the largest cache that does
    not hold all of them from run to run, so that they come from where they come from in the model."""
    return 2 * max((size for size in (target.l1_bytes, target.l2_bytes, target.l3_bytes) if size < nbytes), default=0)


def threads_of(given: int | None) -> int:
    """Threads of a call: those given, else the option's, else all cores."""
    from ..target.host import usable_cores

    return options.choose("threads", given) or usable_cores()
