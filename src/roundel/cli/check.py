# SPDX-License-Identifier: Apache-2.0
"""``roundel check``: every problem of a model in one report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer

from .json_output import JSON, print_json


def check_command(model: Path = typer.Argument(..., help="An ONNX file.", show_default=False), as_json: bool = JSON) -> None:
    """List everything that keeps a model from being compiled, at once; exit status 1 when there is something, 2 when it cannot be read."""
    from rich.console import Console

    from ..frontend.onnx.examine import examine
    from ..ir.errors import RoundelError
    from ..ir.escape import message

    console = Console(soft_wrap=True, emoji=False)

    def show(lines: Iterable[str]) -> None:
        for line in lines:
            console.print(message("  " + line), highlight=False, markup=False)

    try:
        report = examine(model)
    except RoundelError as error:
        if as_json:
            print_json({"ok": False, "error": str(error)})
        else:
            console.print(str(error), highlight=False, markup=False)
        raise typer.Exit(2) from None
    if as_json:
        print_json({"ok": report.ok, "operators": report.operators, "invalid": report.invalid, "unsupported": report.lines(),
                    "problems": report.problem_lines(), "unexamined": report.unexamined})
        raise typer.Exit(0 if report.ok else 1)
    total = sum(report.operators.values())
    console.print(f"{total} node{'s' * (total != 1)}, {len(report.operators)} operator{'s' * (len(report.operators) != 1)}", highlight=False)
    if report.invalid:
        console.print("[yellow]ONNX's own checks object:[/]")
        show(report.invalid)
    if report.unsupported:
        console.print(f"[bold red]operators that are not supported: {len(report.unsupported)}[/]")
        show(report.lines())
    if report.problems:
        console.print(f"[bold red]other problems: {len(report.problems)}[/]")
        show(report.problem_lines())
    if report.unexamined:
        console.print(f"nodes that depend on these and were not examined: {report.unexamined}", highlight=False)
    if not report.ok:
        raise typer.Exit(1)
    console.print("[bold green]no problems[/]" if not report.invalid else "[bold green]it can be compiled all the same[/]")
