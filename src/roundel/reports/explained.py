# SPDX-License-Identifier: Apache-2.0
"""What there is to say of each kernel of a model: how it is computed and why, what else was possible, how long it should take and takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir import options
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..ir.module import IRModule
from ..ir.signatures import readable
from ..runtime.inputs import known_dims
from ..target import Target, TargetLike

if TYPE_CHECKING:
    from ..runtime import Model
    from ..strategy.roofline import Rates


@dataclass(frozen=True)
class Explained:
    """What `explain` found; printed, it is the table of ``roundel explain``.

    ``kernels``: one mapping for each, with names as in the table's heads; times are of one call, in milliseconds. ``choices``: one mapping for each
    choice that the passes recorded, as `choices_of` gives it. ``module``: as it is before kernels are scheduled; None for a compiled model whose
    source is not there: its kernels have their name, ``rule``, ``decisions`` and ``nodes`` only, and if they were measured their ``calls`` and times.
    """

    title: str
    kernels: list[dict[str, Any]]
    choices: list[dict[str, Any]]
    module: IRModule | None

    def __str__(self) -> str:
        from .table import choice_lines, summary, table

        return "\n".join([table(self.kernels, self.title), "", summary(self.kernels), *choice_lines(self.choices)])

    def __repr__(self) -> str:
        return f"Explained({self.title}: {len(self.kernels)} kernels)"

    @property
    def pins(self) -> dict[str, dict[str, Any]]:
        """What asks for all these kernels as they are: a mapping for ``rd.compile(choices=...)``; of a compiled model whose source is not there, none."""
        known = [row for row in self.kernels if "pin" in row]
        places = [row["pin_at"] for row in known]
        return {row["pin_at"] if places.count(row["pin_at"]) == 1 else row["kernel"]: row["pin"] for row in known}

    def text(self, kernel: str, form: str = "script") -> str:
        """A kernel as scheduled, in ``script``, as LLVM text (``llvm``) or assembly (``asm``). Raises OptionError for other names, and where only a
        compiled model is there (``model.asm(kernel)`` shows its machine code)."""
        from .stages import kernel_text

        if self.module is None:
            raise OptionError("programs are not in a compiled file", hint="model.asm(kernel) shows its machine code; rd.explain of the model that it was "
                              "compiled from has the programs")
        return kernel_text(scheduled(self.module), kernel, form)


@readable
def explain(model: Any, example_inputs: Sequence[Any] | None = None, *, target: TargetLike | None = None, threads: int | None = None, dynamic: Any = None,
            sizes: Mapping[str, int] | None = None, choices: Mapping[str, Any] | None = None, records: Any = None, seconds: float = 0.0,
            precision: str | None = None) -> Explained:
    """How each kernel of a model is computed and why, and what else was possible.

    - ``model``, ``example_inputs``, ``target``, ``threads``, ``dynamic``, ``choices``,
      ``records`` and ``precision``: as for ``rd.compile``. A compiled model is explained as what
      it was compiled from, with its options, where that is still there; else, as for a loaded
      file, by what it carries itself.
    - ``sizes``: values of symbolic dimensions.
    - ``seconds``: for how long the kernels are measured on random inputs; 0: not at all.

    Raises RoundelError.
    """
    from .. import api
    from ..runtime import Model
    from ..runtime.profile import checked_seconds
    from ..target.host import usable_cores

    if precision is not None:
        with options.override(precision=precision):
            return explain(model, example_inputs, target=target, threads=threads, dynamic=dynamic, sizes=sizes, choices=choices, records=records,
                           seconds=seconds)
    checked_seconds(seconds)
    if isinstance(model, Model):
        return _of_compiled(model, dict(sizes or {}), seconds)
    threads, known = options.choose("threads", threads) or usable_cores(), api.sizes_of_dimensions(sizes or {})
    imported = api.import_model(model, example_inputs, dynamic=dynamic)
    mod = unscheduled(imported, target=target, threads=threads, sizes=known, choices=choices, records=records)
    rows = kernels_of(mod, threads, known)
    if seconds > 0:
        add_measured(rows, imported, target=target, threads=threads, sizes=known, seconds=seconds, choices=choices, records=records)
    rows.sort(key=lambda r: -r["calls"] * r.get("measured_ms", r["bound_ms"]))
    return Explained(f"{name_of(model)}, {threads} thread{'s' if threads > 1 else ''}", rows, choices_of(mod, threads), mod)


def _of_compiled(model: Model, sizes: dict[str, int], seconds: float) -> Explained:
    """A compiled model, by its source where that is there."""
    source = model.origin() if model.origin is not None else None
    if source is not None:
        with options.override(**source["options"]):
            return explain(**{k: v for k, v in source.items() if k != "options"}, sizes=sizes, seconds=seconds)
    rows: list[dict[str, Any]] = [{"kernel": name, "rule": known.get("rule", ""), "decisions": dict(known.get("decisions", {})),
                                   "nodes": list(known.get("nodes", ()))} for name, known in model.kernels.items()]
    if seconds > 0:
        times = {k.kernel: k for k in model.profile(sizes=sizes, seconds=seconds)}
        for row in rows:
            if (found := times.get(row["kernel"])) is not None and found.calls:
                row |= {"calls": found.calls, "measured_ms": found.milliseconds / found.calls}
        rows.sort(key=lambda r: -r.get("calls", 0) * r.get("measured_ms", 0.0))
    source_of, level = model.metadata.get("source", {}), model.metadata.get("level")
    which = f" (level {level} of {', '.join(model.metadata['levels'])})" if level else ""
    return Explained(f"{source_of.get('file') or source_of.get('kind', 'model')}, compiled{which}: its kernels as its file tells of them", rows, [], None)


def name_of(model: Any) -> str:
    """What a model is called in titles: the name of its file, or of its class."""
    return Path(model).name if isinstance(model, str | Path) else type(model).__name__


def unscheduled(mod: IRModule, *, target: TargetLike | None = None, threads: int = 1, sizes: dict[str, int] | None = None,
                choices: Mapping[str, Any] | None = None, records: Any = None, observers: Sequence[Any] = ()) -> IRModule:
    """A module of graph functions as it is before its kernels are scheduled. Raises OptionError for sizes of dimensions that it does not have."""
    from .. import driver
    from ..graph.tidy.inline_functions import dims_of
    from ..strategy.schedule_module import schedule_module
    from ..tune.measured import measured_for

    machine = driver.target_of(target, mod)
    known_dims((v.name for p in mod["main"].params for v in dims_of(p.sinfo)), sizes or {})
    last = driver.DEFAULT.index(schedule_module)
    return driver.prepare(mod, target=machine, pipeline=driver.DEFAULT[:last], choices=choices, records=measured_for(records, machine, threads),
                          observers=observers)


def scheduled(mod: IRModule, observers: Sequence[Any] = ()) -> IRModule:
    """What the rest of the pipeline makes of a module as ``unscheduled`` leaves it: scheduled kernels, host functions."""
    from .. import driver
    from ..strategy.schedule_module import schedule_module

    return driver.prepare(mod, pipeline=driver.DEFAULT[driver.DEFAULT.index(schedule_module) :], observers=observers)


def rates_of(machine: Target, threads: int) -> Rates:
    """What so many threads of a machine reach: as measured where it is this one, else by its table."""
    from ..strategy.roofline import rates
    from ..target.profile import this_machine

    return rates(machine, threads, this_machine() if machine == Target.host() and options.get("rates") == "measured" else None)


def cycles_to_ms(machine: Target, threads: int) -> float:
    """Milliseconds that a cycle of all cores' arithmetic takes."""
    return machine.flops_per_cycle() / rates_of(machine, threads).gflops * 1e-6


def kernels_of(mod: IRModule, threads: int, sizes: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """The rows of an `Explained`, of a module as ``unscheduled`` makes it."""
    from ..intrinsics.chips import of_target
    from ..strategy.explain import alternatives, explain_module, modelled_seconds, predicted_seconds
    from ..strategy.roofline import roofline

    machine = mod.attrs["target"]
    chip = getattr(of_target(machine), "name", None)
    found, places, speed = explain_module(mod, machine, sizes), _Places(mod), rates_of(machine, threads)
    constants = sum(e.calls * e.cost.constant_bytes for e in found)
    out = []
    for e in found:
        bound, predicted = roofline(e.cost, speed, constants), predicted_seconds(e, machine, speed, constants)
        out.append({
            "kernel": e.name, "calls": e.calls, "rule": e.rule, "decisions": dict(e.decisions), "mflop": e.cost.flops / 1e6, "mbytes": e.cost.bytes / 1e6,
            "intensity": e.cost.intensity, "limit": bound.limit, "bound_ms": bound.seconds * 1e3,
            "predicted_ms": predicted * 1e3, "passed_over": dict(e.passed_over), "schedule": e.schedule,
            "candidates": len(e.candidates or ()), "modelled_ms": modelled_seconds(e, machine, speed) * 1e3,
            "alternatives": [(dict(d), s * 1e3) for d, s in alternatives(e, machine, speed)],
            "nodes": places.nodes(e.name), "pin_at": places.pin_at(e.name), "pin": e.pin, "space": e.space,
            "reason": e.reason, "pinned": dict(e.pinned), "record": _of_record(e.record), "instructions": list(e.instructions),
            "instructions_refused": {name.partition(" by ")[2] or name: why for name, why in e.passed_over.items() if " by " in name or name == chip},
        })
    return out


def choices_of(mod: IRModule, threads: int) -> list[dict[str, Any]]:
    """One mapping per choice that the passes recorded in a module as ``unscheduled`` makes it, as `Choice` has it: ``expected_ms`` by algorithm (None
    where nothing is expected), ``measured_ms`` of those that were measured, and ``why_not`` for those that cannot be had."""
    scale = cycles_to_ms(mod.attrs["target"], threads)
    return [{
        "site": c.site, "kind": c.kind, "subject": c.subject, "taken": c.taken, "condition": c.condition, "reason": c.reason,
        "expected_ms": {name: None if cycles is None else cycles * scale for name, cycles in c.possible.items()},
        "measured_ms": {name: seconds * 1e3 for name, seconds in c.measured.items()},
        "why_not": {name: why for name, why in c.alternatives.items() if isinstance(why, str)},
    } for c in mod.choices.made]


def _of_record(record: Any) -> dict[str, Any] | None:
    """What is known of a measured schedule: milliseconds of a call at each combination of sizes, of the untuned one, and of those that came behind."""
    if record is None:
        return None
    return {"by": record.by, "at": record.at, "origin": record.origin, "ms": record.seconds * 1e3, "versions": dict(record.versions),
            "sizes": [{"sizes": list(t.sizes), "ms": t.seconds * 1e3, "spread": t.spread, "runs": t.runs} for t in record.timings],
            "untuned_ms": None if record.default is None else record.default * 1e3,
            "second": [{"rule": r.sketch, "decisions": dict(r.decisions), "ms": r.seconds * 1e3} for r in record.second]}


class _Places:
    """Where in the model the kernels of a module are, and under which name their decisions can be pinned."""

    def __init__(self, mod: Any) -> None:
        from ..graph.programs.pin_nodes import kind_of, main_kernels
        from ..graph.rewriter import nodes_of
        from ..strategy.pack_constants import calls_of

        main = main_kernels(mod)
        self._nodes: dict[str, dict[str, bool]] = {}
        for binding, call in calls_of(mod):
            for node in nodes_of(binding):
                self._nodes.setdefault(call.args[0].name, {})[node] = kind_of(mod, call) == main[node]

    def nodes(self, kernel: str) -> list[str]:
        """Those that the kernel computes, in any of its calls."""
        return list(self._nodes[kernel])

    def pin_at(self, kernel: str) -> str:
        """A node whose main kernel it is, else its own name. (Others that call the same kernel get it without the pin.)"""
        return next((node for node, is_main in self._nodes[kernel].items() if is_main), kernel)


def add_measured(rows: list[dict[str, Any]], model: Any, *, target: TargetLike | None = None, threads: int = 1, sizes: dict[str, int] | None = None,
                 seconds: float = 1.0, inputs: Sequence[Any] | None = None, choices: Mapping[str, Any] | None = None, records: Any = None) -> None:
    """Put ``measured_ms`` (of one call) and ``roofline`` (share of the bound) into the rows, as `Model.profile` measures; ``inputs``: by
    default random."""
    from .. import api

    compiled = api.compile(model, target=target, threads=threads, choices=choices, records=records)
    times = {k.kernel: k.milliseconds / k.calls for k in compiled.profile(inputs, sizes=sizes, seconds=seconds)}
    for row in rows:
        if row["kernel"] in times:
            row["measured_ms"] = times[row["kernel"]]
            row["roofline"] = row["bound_ms"] / max(row["measured_ms"], 1e-9)
