# SPDX-License-Identifier: Apache-2.0
"""``roundel explain``: how each kernel is computed, why, and how close it comes to what the machine can do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..passes.progress import shown
from ..reports.explained import Explained, explain
from ..reports.table import choice_lines, decided, summary, table
from .arguments import CHOOSE, DB, DIM, FIX, LIBRARIES, MODEL, PRECISION, TARGET, THREADS, chosen, dims, duration, given_late, is_compiled, sizes_of_run
from .json_output import JSON, print_json


def explain_command(
    model: Path = MODEL,
    kernel: str = typer.Option(None, "--kernel", "-f", help="Only this kernel: its schedule as Python, and what was passed over."),
    measure: bool = typer.Option(True, "--measure/--no-measure", help="Also run the model (random inputs) and time each kernel."),
    dim: list[str] = DIM, fix: list[str] = FIX, target: str = TARGET, threads: int = THREADS, choose: list[str] = CHOOSE, db: str = DB,
    libraries: str = LIBRARIES, precision: str = PRECISION,
    seconds: float = typer.Option(1.0, "--seconds", callback=duration, help="For how long to measure."),
    top: int = typer.Option(25, "--top", min=1, help="Kernels to show, the most expensive first."),
    as_json: bool = JSON,
) -> None:
    """Show per kernel the implementation and decisions chosen, its FLOPs and bytes, predicted and measured time, share of the roofline; and
    per node the algorithm chosen, with what others are expected to take."""
    with shown(f"explaining {model.name}"):
        found = _found(model, dims(fix, "--fix"), sizes_of_run(dim, fix), target, threads, chosen(choose),
                       seconds if measure and kernel is None else 0.0, precision)
    if kernel is not None:
        _print_kernel(found.kernels, kernel, as_json)
    elif as_json:
        print_json({"kernels": found.kernels, "choices": found.choices, "pins": found.pins})
    else:
        _print_all(found, top)


def _found(model: Path, fixed: dict[str, int], sizes: dict[str, int], target: str | None, threads: int | None, choices: Any, seconds: float,
           precision: str | None) -> Explained:
    """Of a compiled file, which was decided, what it carries."""
    from .. import api

    if not is_compiled(model):
        return explain(model, target=target, threads=threads, dynamic=fixed or None, sizes=sizes, choices=choices, seconds=seconds,
                       precision=precision)
    given_late(model, {"--target": target, "--fix": fixed, "--choose": choices, "--precision": precision})
    return explain(api.load(model, threads=threads), sizes=sizes, seconds=seconds)


def _print_all(found: Explained, top: int) -> None:
    typer.echo(table(found.kernels[:top], found.title) + "\n")
    typer.echo(summary(found.kernels))
    for line in choice_lines(found.choices):
        typer.echo(line)


def _print_kernel(rows: list[dict[str, Any]], kernel: str, as_json: bool) -> None:
    from ..ir.errors import OptionError

    row = next((r for r in rows if r["kernel"] == kernel), None)
    if row is None:
        raise OptionError(f"there is no kernel {kernel!r}", hint=f"one of {', '.join(r['kernel'] for r in rows)}")
    if as_json:
        print_json(row)
        return
    if "mflop" not in row:
        typer.echo(table([row], kernel))
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
