# SPDX-License-Identifier: Apache-2.0
"""``roundel web``: a page that runs a model in the browser."""

from __future__ import annotations

from pathlib import Path

import typer

from ..ir.errors import ModelError, OptionError
from ..ir.escape import markup
from .arguments import ACCURACY, FIX, WEIGHTS, dims, one_of
from .json_output import JSON, print_json


def web_command(
    model: Path = typer.Argument(..., help="An ONNX file.", show_default=False),
    output: Path = typer.Option(Path("site"), "-o", "--output", help="The folder to write."),
    title: str = typer.Option(None, "--title", help="The page's heading. Default: the model's name.", show_default=False),
    kind: str = typer.Option(None, "--kind", autocompletion=one_of("picture", "numbers"), show_default=False,
                             help="What the page asks for: picture (the model gives scores of classes) or numbers. Default: what the model takes decides."),
    labels: Path = typer.Option(None, "--labels", help="A text file with the classes' names, one a line.", show_default=False),
    mean: str = typer.Option(None, "--mean", metavar="R,G,B", show_default=False, help="What is taken from each channel of a picture, of numbers from 0 to "
                             "1. Default: ImageNet's where channels come first, else 0.5."),
    std: str = typer.Option(None, "--std", metavar="R,G,B", help="... and what that is divided by.", show_default=False),
    fix: list[str] = FIX, accuracy: str = ACCURACY, weights: str = WEIGHTS,
    serve: bool = typer.Option(False, "--serve", help="Serve the page on this machine until Ctrl-C."),
    port: int = typer.Option(0, "--port", min=0, max=65535, help="The port to serve it on; 0: a free one."),
    as_json: bool = JSON,
) -> None:
    """Write a static page that runs a model in the browser, for any server of files; it works without a network from the second visit on."""
    from rich.console import Console

    from .. import pages
    from ..passes.progress import shown

    if not model.name:
        raise ModelError(f"{model} is a folder", hint="give an ONNX file")
    with shown(f"writing {output}"):
        index = pages.write_site(model, output, title=title, kind=kind, labels=labels, mean=_numbers("--mean", mean), std=_numbers("--std", std),
                                 dynamic=dims(fix, "--fix") or None, accuracy=accuracy, weights=weights)
    files = {path.name: path.stat().st_size for path in sorted(output.iterdir()) if path.is_file()}
    if as_json:
        print_json({"index": index, "files": files})
    else:
        Console(emoji=False).print(f"[bold]{markup(str(index))}[/]  {sum(files.values()) / 1e6:.1f} MB in {len(files)} files", highlight=False)
    if not serve:
        return
    with pages.serve(output, port) as server:
        Console(stderr=True, emoji=False).print(f"http://localhost:{server.server_port}/  (Ctrl-C ends it)", highlight=False)
        server.serve_forever()


def _numbers(option: str, text: str | None) -> tuple[float, ...]:
    """Numbers with commas between; raises OptionError."""
    if text is None:
        return ()
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = (float("nan"),)
    if any(not abs(v) <= 1e6 for v in values):
        raise OptionError(f"{option} {text!r} is no list of numbers", hint=f"such as {option} 0.485,0.456,0.406")
    return values
