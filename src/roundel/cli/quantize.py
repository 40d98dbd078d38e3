# SPDX-License-Identifier: Apache-2.0
"""``roundel quantize``: an ONNX model to one whose products are of integers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import typer

from ..ir.errors import CallError
from ..ir.escape import markup, message
from .json_output import JSON, print_json


def quantize_command(
    model: Path = typer.Argument(..., help="An ONNX file.", show_default=False),
    output: Path = typer.Option(None, "-o", "--output", help="The ONNX file to write. Default: the model's name with .int8.onnx or .int4.onnx."),
    data: list[Path] = typer.Option([], "--data", "-d", help="Calibration data: an .npz file with an array for each input, for each run one."),
    mode: str = typer.Option(None, "--mode", help="static, dynamic or weights. Default: static with --data, else dynamic."),
    bits: int = typer.Option(8, "--bits", help="Of weights: 8, or 4 with --mode weights."),
    group: int = typer.Option(None, "--group", help="So many weights share a scale, with --mode weights: 16, 32, 64, 128 or 256."),
    asymmetric: bool = typer.Option(False, "--asymmetric", help="Weights have zero points, with --mode weights."),
    per_tensor: bool = typer.Option(False, "--per-tensor", help="One scale for a weight instead of one for each channel."),
    percentile: float = typer.Option(None, "--percentile", help="Ranges hold so many percent of the numbers, such as 99.99. Default: all of them."),
    exclude: list[str] = typer.Option([], "--exclude", help="What stays as it is: names of nodes, patterns of names, conv or matmul."),
    as_json: bool = JSON,
) -> None:
    """Quantise an ONNX model, and tell what each layer loses."""
    from rich.console import Console

    from .. import api

    found = api.quantize(model, [_sample(f) for f in data] or None, mode=mode, bits=bits, group=group, symmetric=not asymmetric, per_channel=not per_tensor,
                         ranges="min-max" if percentile is None else "percentile", percentile=99.99 if percentile is None else percentile, exclude=exclude)
    path = found.save(output or model.with_suffix(f".int{bits}.onnx"))
    if as_json:
        print_json({"file": path, "bytes": path.stat().st_size, "layers": [asdict(x) for x in found.layers]})
        return
    console = Console(emoji=False)
    console.print(message(str(found)), highlight=False, markup=False, soft_wrap=True)
    console.print(f"[bold]{markup(str(path))}[/]  {path.stat().st_size / 1e6:.1f} MB, {len(found.layers)} layers", highlight=False)


def _sample(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file; raises CallError."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise CallError(f"{path} cannot be read as arrays by name", why=str(error), hint="np.savez(path, x=array) writes such a file") from None
