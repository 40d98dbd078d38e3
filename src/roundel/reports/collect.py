# SPDX-License-Identifier: Apache-2.0
"""Everything that the page of a report shows, as plain data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir import graph, options, tir
from ..ir.module import IRModule
from ..ir.visit import walk
from ..passes.run import Observer
from ..target import Target, TargetLike
from .explained import add_measured, choices_of, cycles_to_ms, kernels_of, name_of, rates_of, scheduled, unscheduled
from .memory import memory
from .network import network, type_text
from .stages import stages
from .tuned import trials_of

FORMAT = 1
"""Of the data: a page compares reports of its own format only."""


class _Passes(Observer):
    """What each pass of a pipeline left: operators and programs, and how long it took."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        count = _size(after) if after is not before or not self.rows else {k: self.rows[-1][k] for k in ("operators", "programs")}
        self.rows.append({"name": name, "ms": seconds * 1e3, "changed": after is not before, **count})


def collect(model: Any, example_inputs: Sequence[Any] | None = None, *, name: str = "", target: TargetLike | None = None, threads: int = 1,
            dynamic: Any = None, sizes: Mapping[str, int] | None = None, choices: Mapping[str, Any] | None = None, seconds: float = 1.0,
            assembly: bool = True, records: Any = None) -> dict[str, Any]:
    """A model's report: what it is, its graph, the passes, the kernels with what `explained` says of each and its text at every stage, the memory
    of a run. The arguments are those of ``rd.compile``; ``sizes`` gives symbolic dimensions values, ``seconds`` says for how long kernels are measured (0:
    not at all), ``assembly`` whether they are compiled to show it. Raises RoundelError."""
    from .. import api

    with options.override(**({} if records is None else {"records": "off" if records is False else str(records)})):
        return _collect(model, example_inputs, name, target, threads, dynamic, api.sizes_of_dimensions(sizes or {}), choices, seconds, assembly)


def _collect(model: Any, example_inputs: Sequence[Any] | None, name: str, target: TargetLike | None, threads: int, dynamic: Any, sizes: dict[str, int],
             choices: Mapping[str, Any] | None, seconds: float, assembly: bool) -> dict[str, Any]:
    from .. import __version__, api
    from ..graph.tidy.inline_functions import dims_of

    asked = dict(choices) if choices else None
    imported, passes, begun = api.import_model(model, example_inputs, dynamic=dynamic), _Passes(), time.perf_counter()
    before = unscheduled(imported, target=target, threads=threads, sizes=sizes, choices=asked, observers=[passes])
    rows, machine = kernels_of(before, threads, sizes), before.attrs["target"]
    finished = scheduled(before, observers=[passes])
    prepared = time.perf_counter() - begun
    if seconds > 0:
        add_measured(rows, imported, target=target, threads=threads, sizes=sizes, seconds=seconds, choices=asked)
    for row in rows:
        row["tuning"] = trials_of(before, row["kernel"], cycles_to_ms(machine, threads))
        row["stages"] = stages(before, finished, row["kernel"], row["schedule"], assembly)
    main = imported["main"]
    assert isinstance(main, graph.Function)
    return {
        "format": FORMAT, "roundel": __version__, "made": time.strftime("%Y-%m-%d %H:%M"), "model": name or name_of(model),
        "target": str(machine), "threads": threads, "sizes": sizes, "roofs": _roofs(machine, threads),
        "symbolic": sorted({v.name for p in main.params for v in dims_of(p.sinfo)}),
        "inputs": [{"name": p.name, "type": type_text(p.sinfo)} for p in main.params], "output": type_text(main.body.sinfo),
        "prepared_s": prepared, "passes": passes.rows, "choices": choices_of(before, threads), "kernels": rows,
        "graph": network(main, {row["kernel"]: row["nodes"] for row in rows}), "memory": memory(finished, "main", sizes),
        "weights_nbytes": _weights(finished),
    }


def _size(mod: IRModule) -> dict[str, int]:
    """How many operators the graph functions of a module have, and how many tensor programs there are."""
    operators = sum(isinstance(n, graph.Call) for f in mod.functions.values() if isinstance(f, graph.Function) for n in walk(f))
    return {"operators": operators, "programs": sum(isinstance(f, tir.PrimFunc) and f.attrs.get("kind") != "host" for f in mod.functions.values())}


def _weights(mod: IRModule) -> int:
    """Bytes of the constants that host functions use, as they are packed."""
    used = {n.args[0].value for f in mod.functions.values() if f.attrs.get("kind") == "host" for n in walk(f)
            if isinstance(n, tir.Call) and n.op == "constant_ptr" and isinstance(n.args[0], tir.StringImm)}
    return sum(data.nbytes for key, data in (mod.constants or {}).items() if key in used)


def _roofs(machine: Target, threads: int) -> dict[str, Any]:
    """What the machine can reach: arithmetic, and memory by the level that holds the data (an infinite size is memory's own)."""
    speed = rates_of(machine, threads)
    return {"gflops": speed.gflops, "levels": [{"nbytes": None if size == float("inf") else size, "gbs": rate} for size, rate in speed.levels]}
