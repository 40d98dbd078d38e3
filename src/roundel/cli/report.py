# SPDX-License-Identifier: Apache-2.0
"""``roundel report``: a model's page, and lists of what is supported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
import typer.core

from ..passes.progress import shown
from .arguments import CHOOSE, DB, DIM, FIX, LIBRARIES, TARGET, THREADS, chosen, dims, duration, sizes_of_run
from .json_output import JSON, print_json


class _ModelOrList(typer.core.TyperGroup):
    """A group whose first argument may also be a model: ``roundel report model.onnx`` is ``roundel report model model.onnx``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "--install-completion", "--show-completion"):
            args = ["model", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ModelOrList, no_args_is_help=True, 
                  help="Write a page about a model (`roundel report model.onnx -o report.html`), or list what is supported.")
_HEADS = ("operator", "fusion", "tensor expression", "what it does")


def _operators() -> list[tuple[str, ...]]:
    from ..ir.op import all_ops

    return [(f"R.{n}", op.kind.name.lower(), "yes" if op.has("compute") else "composed" if op.has("decompose") else "",
             (op.__doc__ or "").strip().split("\n")[0]) for n, op in all_ops().items()]


def page() -> str:
    """``docs/operators.md``: operators of ONNX, then Roundel's own."""
    from ..frontend.onnx.coverage import markdown

    rows = _operators()
    lines = ["# Operators", "", "`roundel report ops --markdown` generates this page, and a test compares it.", "", "## ONNX", "", markdown(),
             f"## Roundel's graph operators: {len(rows)}", "",
             "*composed*: computed by other operators. The fusion kind says with which operators it may share a kernel.", "",
             "| " + " | ".join(_HEADS) + " |", "|" + " --- |" * len(_HEADS)]
    return "\n".join([*lines, *("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows), ""])


@app.command("model")
def model_command(
    model: Path = typer.Argument(..., help="An ONNX file, or a report made before.", show_default=False),
    out: Path = typer.Option(Path("report.html"), "--output", "-o", help="Where the page is written."),
    against: Path = typer.Option(None, "--against", help="A report made before (of another version, machine or precision) to compare with."),
    dim: list[str] = DIM, fix: list[str] = FIX, target: str = TARGET, threads: int = THREADS, choose: list[str] = CHOOSE, db: str = DB,
    libraries: str = LIBRARIES,
    seconds: float = typer.Option(1.0, "--seconds", callback=duration, help="For how long to measure the kernels, on random inputs; 0: not at all."),
    assembly: bool = typer.Option(True, "--assembly/--no-assembly", help="Whether kernels are compiled to show their inner loops."),
    as_json: bool = JSON,
) -> None:
    """Write one HTML file about a model: its graph, each kernel's choice, alternatives, programs at every stage and inner loop, roofline, memory."""
    from ..reports.report import report

    with shown(f"reporting on {model.name}"):
        path = report(model, out=out, target=target, threads=threads, sizes=sizes_of_run(dim, fix), dynamic=dims(fix, "--fix") or None, choices=chosen(choose),
                      seconds=seconds, assembly=assembly, against=against)
    print_json({"report": str(path), "nbytes": path.stat().st_size}) if as_json else typer.echo(str(path))


@app.command("ops")
def ops_command(markdown: bool = typer.Option(False, "--markdown", help="The page docs/operators.md, ONNX's operators included."),
                as_json: bool = JSON) -> None:
    """List the graph operators."""
    from rich.console import Console
    from rich.table import Table

    if markdown:
        typer.echo(page(), nl=False)
        return
    rows = _operators()
    if as_json:
        print_json([dict(zip(("name", "fusion", "tensor_expression", "what"), row, strict=True)) for row in rows])
        return
    table = Table(title=f"{len(rows)} operators")
    for name in _HEADS:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    Console(emoji=False).print(table)


@app.command("torch")
def torch_command(as_json: bool = JSON) -> None:
    """The page docs/torch-operators.md: PyTorch's operators, and how each is compiled."""
    from ..frontend.torch.support import markdown, rows

    if as_json:
        print_json([{"name": name, "how": how, "complex": bool(pairs)} for name, how, pairs in rows()])
        return
    typer.echo(markdown(), nl=False)


@app.command("onnx")
def onnx_command(as_json: bool = JSON) -> None:
    """List the operators of ONNX and com.microsoft: versions, and how each is imported."""
    from ..frontend.onnx.coverage import rows

    if as_json:
        print_json([{"domain": r.domain or "ai.onnx", "name": r.name, "versions": r.versions, "how": r.how} for r in rows()])
        return
    for r in rows():
        typer.echo(f"{r.domain or 'ai.onnx'}::{r.name}  versions {', '.join(map(str, r.versions))}  {r.how}")
