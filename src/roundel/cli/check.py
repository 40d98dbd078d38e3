# SPDX-License-Identifier: Apache-2.0
"""``roundel check``: every problem of a model in one report."""

from __future__ import annotations

from pathlib import Path

import typer


def check_command(model: Path = typer.Argument(..., help="An ONNX file.", show_default=False)) -> None:
    """List everything in a model that is not supported; exit status 1 when there is something."""
    from rich.console import Console

    from ..frontend.onnx.check import check_model
    from ..frontend.onnx.load import load_model
    from ..ir.errors import RoundelError

    console = Console()
    proto, _ = load_model(model)
    report = check_model(proto)
    total = sum(report.operators.values())
    console.print(f"{total} nodes, {len(report.operators)} operators", highlight=False)
    if not report.ok:
        console.print(f"[bold red]{len(report.unsupported)} operators are not supported:[/]")
        for line in report.lines():
            console.print("  " + line, highlight=False, markup=False)
        raise typer.Exit(1)
    from .. import api

    try:
        api.import_model(model)
    except RoundelError as error:
        console.print("[bold red]the model cannot be imported:[/]")
        console.print(str(error), highlight=False, markup=False)
        raise typer.Exit(1) from None
    console.print("[bold green]no problems[/]")
