# SPDX-License-Identifier: Apache-2.0
"""``roundel explain``: how each kernel is computed, why, and how close it comes to what the machine can do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ..ir.escape import markup, short_name
from ..ir.record import EXPECTED, MEASURED
from ..passes.progress import shown
from ..report.explained import add_measured, explained_with_choices, pins
from .arguments import CHOOSE, DB, DIM, TARGET, THREADS, chosen, dims, duration
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
