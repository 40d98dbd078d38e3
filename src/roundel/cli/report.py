# SPDX-License-Identifier: Apache-2.0
"""``roundel report``: what is supported."""

from __future__ import annotations

import typer

from .json_output import JSON, print_json

app = typer.Typer(no_args_is_help=True, help="Report what Roundel supports.")
_HEADS = ("operator", "fusion", "tensor expression", "what it does")


def _operators() -> list[tuple[str, ...]]:
    from ..ir.op import all_ops

    return [(f"R.{n}", op.kind.name.lower(), "yes" if op.has("compute") else "composed" if op.has("decompose") else "",
             (op.__doc__ or "").strip().split("\n")[0]) for n, op in all_ops().items()]


def page() -> str:
    """``docs/operators.md``: operators of ONNX, then Roundel's own."""
    from ..frontend.onnx.coverage import markdown

    rows = _operators()
    lines = ["# Operators", "", "Made by `roundel report ops --markdown`; a test compares.", "", "## ONNX", "", markdown(),
             f"## Roundel's graph operators: {len(rows)}", "",
             "*composed*: of other operators. The fusion kind says what may be computed together with it.", "",
             "| " + " | ".join(_HEADS) + " |", "|" + " --- |" * len(_HEADS)]
    return "\n".join([*lines, *("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows), ""])


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
    Console().print(table)


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
