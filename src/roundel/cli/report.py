# SPDX-License-Identifier: Apache-2.0
"""``roundel report``: what is supported."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="Report what Roundel supports.")


@app.command("ops")
def ops_command(markdown: bool = typer.Option(False, "--markdown", help="As a Markdown table.")) -> None:
    """List the graph operators."""
    from rich.console import Console
    from rich.table import Table

    from ..ir.op import all_ops

    rows = [(f"R.{n}", op.kind.name.lower(), "yes" if op.has("compute") else "composed" if op.has("decompose") else "",
             (type(op).__doc__ or "").strip().split("\n")[0]) for n, op in all_ops().items()]
    heads = ("operator", "fusion", "tensor expression", "what it does")
    if markdown:
        typer.echo("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
        for row in rows:
            typer.echo("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |")
        return
    table = Table(title=f"{len(rows)} operators")
    for name in heads:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


@app.command("onnx")
def onnx_command() -> None:
    """List the ONNX operators, with the opset versions that have their own converter."""
    from ..frontend.onnx import ops, registry  # noqa: F401

    for (domain, name), versions in registry.known().items():
        typer.echo(f"{domain or 'ai.onnx'}::{name}  since {', '.join(map(str, versions))}")


@app.command("torch")
def torch_command() -> None:
    """List the ATen operators and how each is supported, as a Markdown page."""
    from ..frontend.torch.support import markdown

    typer.echo(markdown(), nl=False)
