# SPDX-License-Identifier: Apache-2.0
"""``roundel web``: a page that runs a model in the browser."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..ir.errors import ModelError, OptionError
from ..ir.escape import markup
from .arguments import ACCURACY, FIX, WEIGHTS, dims, one_of
from .json_output import JSON, print_json

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

_KINDS = ("picture", "detection", "recognition", "sound", "text", "embedding", "generation", "numbers")


def web_command(
    model: Path = typer.Argument(..., help="An ONNX or GGUF file.", show_default=False),
    output: Path = typer.Option(Path("site"), "-o", "--output", help="The folder to write."),
    title: str = typer.Option(None, "--title", help="The page's heading. Default: the model's name.", show_default=False),
    kind: str = typer.Option(None, "--kind", autocompletion=one_of(*_KINDS), show_default=False,
                             help=f"What the page is for: {', '.join(_KINDS)}. Default: what the model takes and gives decides."),
    labels: Path = typer.Option(None, "--labels", help="A text file with the classes' names, or with letters, one a line. Default: what the model's file, or "
                                "config.json beside it, says.", show_default=False),
    tokenizer: Path = typer.Option(None, "--tokenizer", help="The file tokenizer.json of a model of text. Default: the one beside the model, or what a GGUF "
                                   "file says.", show_default=False),
    template: str = typer.Option("{prompt}", "--template", help="What a model that generates text is given; {prompt} is the user's text, \\n a new line."),
    sample: Path = typer.Option(None, "--sample", help="A picture or a recording that the page offers.", show_default=False),
    mean: str = typer.Option(None, "--mean", metavar="R,G,B", show_default=False, help="What is taken from each channel of a picture, of numbers from 0 to "
                             "1. Default: ImageNet's where channels come first, else 0.5; 0 for boxes by rows."),
    std: str = typer.Option(None, "--std", metavar="R,G,B", help="... and what that is divided by.", show_default=False),
    bgr: bool = typer.Option(False, "--bgr", help="Pictures have blue first."),
    size: int = typer.Option(0, "--size", min=0, max=4096, help="The side of pictures in pixels, where the model leaves it open; 0: 224, for boxes 640."),
    rate: int = typer.Option(16000, "--rate", min=1000, max=192000, help="Samples of sound in a second."),
    window: int = typer.Option(0, "--window", min=0, help="New samples of each run of a model of sound; 0: what the model takes."),
    overlap: int = typer.Option(0, "--overlap", min=0, help="Samples of the run before that come ahead of them."),
    mel: str = typer.Option("", "--mel", show_default=False, help="The model takes a spectrogram of the sound: log or whisper, with changes "
                            "behind it, such as log,hop=320,bands=40,high=7600."),
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
    advice: list[str] = []
    with _listening(output, port) if serve else nullcontext() as server:  # first, as a port that is taken costs no time then
        with shown(f"writing {output}"):
            template = template.replace("\\n", "\n")
            index = pages.write_site(model, output, title=title, kind=kind, labels=labels, tokenizer=tokenizer, template=template, sample=sample,
                                     mean=_numbers("--mean", mean), std=_numbers("--std", std), bgr=bgr, size=size, rate=rate, window=window,
                                     overlap=overlap, mel=mel, dynamic=dims(fix, "--fix") or None, accuracy=accuracy, weights=weights, tell=advice.append)
        for line in advice:
            Console(stderr=True, emoji=False).print(f"{markup(model.name)} {line}", highlight=False)
        files = {name: (output / name).stat().st_size for name in sorted(pages.files_of(output))}
        if as_json:
            print_json({"index": index, "files": files})
        else:
            Console(emoji=False).print(f"[bold]{markup(str(index))}[/]  {sum(files.values()) / 1e6:.1f} MB in {len(files)} files, kind {pages.kind_of(output)}",
                                       highlight=False)
        if server is not None:
            Console(stderr=True, emoji=False).print(f"http://localhost:{server.server_port}/  (Ctrl-C ends it)", highlight=False)
            server.serve_forever()


def _listening(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server that listens; raises OptionError where the port cannot be had."""
    from .. import pages

    try:
        return pages.serve(folder, port)
    except OSError as error:
        raise OptionError(f"--port {port} cannot be used", why=error.strerror, hint="--port 0 takes a free one") from None


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
