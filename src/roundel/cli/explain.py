# SPDX-License-Identifier: Apache-2.0
"""``roundel explain``: how each kernel is computed, why, and how close it comes to what the machine can do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ..ir import options
from ..ir.escape import markup, short_name
from ..ir.record import EXPECTED, MEASURED
from ..passes.progress import shown
from ..target import TargetLike
from .arguments import CHOOSE, DB, DIM, TARGET, THREADS, chosen, dims, duration, gather_inputs, known_dims
from .json_output import JSON, print_json


def explain_command(
    model: Path = typer.Argument(..., help="An ONNX file.", show_default=False),
    kernel: str = typer.Option(None, "--kernel", "-f", help="Only this kernel: its schedule as Python, and what was passed over."),
    measure: bool = typer.Option(True, "--measure/--no-measure", help="Also run the model (random inputs) and time each kernel."),
    dim: list[str] = DIM, target: str = TARGET, threads: int = THREADS, choose: list[str] = CHOOSE, db: str = DB,
    seconds: float = typer.Option(1.0, "--seconds", callback=duration, help="For how long to measure."),
    top: int = typer.Option(25, "--top", min=1, help="Kernels to show, the most expensive first."),
    as_json: bool = JSON,
) -> None:
    """Show per kernel the implementation and decisions chosen, its FLOPs and bytes, predicted and measured time, share of the roofline; and
    per node the algorithm chosen, with what others are expected to take."""
    from rich.console import Console

    from ..target.host import usable_cores

    sizes, threads, asked = dims(dim), threads or usable_cores(), chosen(choose)
    with shown(f"explaining {model.name}"):
        rows, choices = explained_with_choices(model, target=target, threads=threads, sizes=sizes, choices=asked)
    if kernel is not None:
        _print_kernel(rows, kernel, as_json)
        return
    if measure:
        with shown(f"measuring {model.name}"):
            add_measured(rows, model, target=target, threads=threads, sizes=sizes, seconds=seconds, choices=asked)
    rows.sort(key=lambda r: -r["calls"] * r.get("measured_ms", r["bound_ms"]))
    if as_json:
        print_json({"kernels": rows, "choices": choices, "pins": pins(rows)})
        return
    console = Console()
    wide = console if console.is_terminal else Console(width=180)
    wide.print(table(rows[:top], f"{markup(model.name)}, {threads} thread{'s' if threads > 1 else ''}"))
    typer.echo(summary(rows))
    for line in choice_lines(choices):
        typer.echo(line)


def explained(model: Any, *, target: TargetLike | None = None, threads: int = 1, sizes: dict[str, int] | None = None) -> list[dict[str, Any]]:
    """One mapping per kernel: names as in the table's heads. Times are of one call, in milliseconds. Raises RoundelError."""
    return explained_with_choices(model, target=target, threads=threads, sizes=sizes)[0]


def explained_with_choices(model: Any, *, target: TargetLike | None = None, threads: int = 1, sizes: dict[str, int] | None = None,
                           choices: Mapping[str, Any] | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What ``explained`` gives, and one mapping per choice that the passes recorded, as `Choice` has it: ``expected_ms`` by algorithm (None
    where nothing is expected) and ``why_not`` for those that cannot be had. ``choices`` are those asked for, as of ``rd.compile``."""
    from .. import api, driver
    from ..graph.tidy.inline_functions import dims_of
    from ..strategy.explain import alternatives, explain_module, modelled_seconds, predicted_seconds
    from ..strategy.roofline import rates, roofline
    from ..strategy.schedule_module import schedule_module
    from ..target import Target
    from ..target.profile import this_machine
    from ..tune.measured import measured_for

    mod = api.import_model(model)
    machine = driver.target_of(target, mod)
    last = driver.DEFAULT.index(schedule_module)
    known_dims((v.name for p in mod["main"].params for v in dims_of(p.sinfo)), sizes or {})
    mod = driver.prepare(mod, target=machine, pipeline=driver.DEFAULT[:last], choices=choices, records=measured_for(None, machine, threads))
    found, places = explain_module(mod, machine, sizes), _Places(mod)
    speed = rates(machine, threads, this_machine() if machine == Target.host() and options.get("rates") == "measured" else None)
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
            "reason": e.reason, "pinned": dict(e.pinned), "record": _of_record(e.record),
        })
    cycles_to_ms = machine.flops_per_cycle() / speed.gflops * 1e-6
    return out, [{
        "site": c.site, "kind": c.kind, "subject": c.subject, "taken": c.taken, "condition": c.condition, "reason": c.reason,
        "expected_ms": {name: None if cycles is None else cycles * cycles_to_ms for name, cycles in c.possible.items()},
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


def pins(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What asks for all these kernels as they are: a mapping for ``rd.compile(choices=...)``."""
    places = [row["pin_at"] for row in rows]
    return {row["pin_at"] if places.count(row["pin_at"]) == 1 else row["kernel"]: row["pin"] for row in rows}


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


def choice_lines(choices: list[dict[str, Any]]) -> list[str]:
    """A line for all equal choices that had an alternative, and of which something is expected or that are not as usual: what was taken, what is
    expected of it and of the others, and where."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for c in choices:
        usual, *others = c["expected_ms"]
        if others and (c["expected_ms"][usual] is not None or c["taken"] != usual or c["reason"] == MEASURED):
            alike.setdefault((c["subject"], c["taken"], c["condition"], c["reason"]), []).append(c)
    return [_choice_line(same[0], [c["site"] for c in same]) for same in alike.values()]


def _choice_line(choice: dict[str, Any], sites: list[str]) -> str:
    taken, expected = choice["taken"], choice["expected_ms"]
    ms = expected.get(taken)
    others = ", ".join(name if other is None or ms is None else f"{name} {other / ms - 1:+.0%}" for name, other in expected.items() if name != taken)
    where = f"{sites[0]} and {len(sites) - 1} more" if len(sites) > 1 else sites[0]
    when = (f" where {choice['condition']}" if choice["condition"] else "") + (" (measured)" if choice["reason"] == MEASURED else "")
    return short_name(where) + f": {choice['subject']}: {taken}{when}" + ("" if ms is None else f", expected {ms:.3f} ms") + f"; else {others}"


def add_measured(rows: list[dict[str, Any]], model: Any, *, target: TargetLike | None = None, threads: int = 1, sizes: dict[str, int] | None = None,
                 seconds: float = 1.0, arrays: list[Any] | None = None, choices: Mapping[str, Any] | None = None) -> None:
    """Put ``measured_ms`` (of one call) and ``roofline`` (share of the bound) into the rows; the median of the fastest quarter of runs,
    as others may use the machine. ``arrays``: inputs (default: random)."""
    import time
    from statistics import median

    from .. import api

    compiled = api.compile(model, target=target, threads=threads, profile=True, choices=choices)
    given = gather_inputs(compiled.inputs, [], sizes or {}) if arrays is None else arrays
    for _ in range(3):
        compiled(*given)
    compiled.function.profile()
    runs: list[Any] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(runs) < 4:
        compiled(*given)
        runs.append({name: s / calls * 1e3 for name, (calls, s) in compiled.function.profile().items() if calls})
    times = {name: median(sorted(r[name] for r in runs if name in r)[: len(runs) // 4]) for name in runs[0]}
    for row in rows:
        if row["kernel"] in times:
            row["measured_ms"] = times[row["kernel"]]
            row["roofline"] = row["bound_ms"] / max(row["measured_ms"], 1e-9)


def table(rows: list[dict[str, Any]], title: str) -> Any:
    """The rows as a table; times of all calls in one run."""
    from rich.table import Table

    out = Table(title=title)
    for name in ("kernel", "rule"):
        out.add_column(name, overflow="fold")
    for name in ("calls", "MFLOP", "MB", "bound ms", "predicted ms", "measured ms", "% of roofline"):
        out.add_column(name, justify="right")
    for r in rows:
        chosen = " ".join([r["rule"], *(f"{k}={v}" for k, v in r["decisions"].items())])
        times = [f"{r['calls'] * r['bound_ms']:.3f} {r['limit'][0]}", f"{r['calls'] * r['predicted_ms']:.3f}"]
        times += [f"{r['calls'] * r['measured_ms']:.3f}", f"{r['roofline']:.0%}"] if "measured_ms" in r else ["", ""]
        how = "\n".join(filter(None, (chosen, f"[dim]{markup(decided(r))}[/dim]" if r["reason"] != EXPECTED else passed_over(r))))
        out.add_row(markup(r["kernel"]), how, str(r["calls"]), f"{r['mflop']:.1f}", f"{r['mbytes']:.2f}", *times)
    return out


def decided(row: dict[str, Any]) -> str:
    """Why a kernel's schedule was taken where no model decided: when and by whom it was measured and what came second, or what was pinned."""
    record = row["record"]
    if record is None:
        return f"pinned: {_words(row['pinned'])}" if row["pinned"] else ""
    gain = f", {record['untuned_ms'] / record['ms']:.2f} times as fast as untuned" if record["untuned_ms"] and record["ms"] else ""
    behind = [f"{r['rule']} {_words(r['decisions'])} {r['ms'] / record['ms'] - 1:+.1%}" for r in record["second"] if record["ms"]]
    return f"{record['origin']}: {record['ms']:.4f} ms{gain}" + (f"; then {'; then '.join(behind)}" if behind else "")


def _words(decisions: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in decisions.items())


def passed_over(row: dict[str, Any]) -> str:
    """How many candidates there were, and how the next best one differs."""
    if not row["alternatives"]:
        return ""
    decisions, ms = row["alternatives"][0]
    other = " ".join(f"{k}={v}" for k, v in decisions.items() if row["decisions"][k] != v)
    return f"[dim]of {row['candidates']}; next {other} {ms / max(row['modelled_ms'], 1e-9) - 1:+.1%}[/dim]"


def summary(rows: list[dict[str, Any]]) -> str:
    """All kernels together, and how to see more."""
    bound, measured = (sum(r["calls"] * r.get(k, 0.0) for r in rows) for k in ("bound_ms", "measured_ms"))
    count = "1 kernel" if len(rows) == 1 else f"{len(rows)} kernels"
    known = sum(r["reason"] == MEASURED for r in rows)
    count += f" ({known} from records)" if known else ""
    text = f"{count}, {sum(r['calls'] * r['mflop'] for r in rows) / 1e3:.2f} GFLOP; bound {bound:.3f} ms (c: by arithmetic, m: by memory)"
    if measured:
        text += f", measured {measured:.3f} ms: {bound / measured:.0%} of the roofline"
    return text + "\nOne kernel's schedule: roundel explain MODEL -f KERNEL. Its code: roundel inspect MODEL -f KERNEL --form script|llvm|asm"


def _print_kernel(rows: list[dict[str, Any]], kernel: str, as_json: bool) -> None:
    from ..ir.errors import OptionError

    row = next((r for r in rows if r["kernel"] == kernel), None)
    if row is None:
        raise OptionError(f"there is no kernel {kernel!r}", hint=f"one of {', '.join(r['kernel'] for r in rows)}")
    if as_json:
        print_json(row)
        return
    typer.echo(f"# {kernel}: rule {row['rule']}, {row['decisions'] or 'no free choices'}\n"
               f"# {row['mflop']:.2f} MFLOP, {row['mbytes']:.3f} MB, bound {row['bound_ms']:.4f} ms by {row['limit']}, "
               f"predicted {row['predicted_ms']:.4f} ms")
    if why := decided(row):
        typer.echo(f"# {why}")
    for rule, why in row["passed_over"].items():
        typer.echo(f"# passed over {rule}: {why}")
    if row["alternatives"]:
        typer.echo(f"# {row['candidates']} candidates; after the chosen one the model puts")
    for decisions, ms in row["alternatives"]:
        typer.echo(f"#   {' '.join(f'{k}={v}' for k, v in decisions.items())}: {ms / max(row['modelled_ms'], 1e-9) - 1:+.1%}")
    typer.echo(row["schedule"])
