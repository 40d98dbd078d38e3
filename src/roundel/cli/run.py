# SPDX-License-Identifier: Apache-2.0
"""``roundel run``: a model on inputs from files, or on random ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..ir.escape import file_name, markup
from ..runtime import toolchain
from ..runtime.inputs import with_sizes
from .arguments import (
    DB,
    DIM,
    FIX,
    MODEL,
    ON,
    TARGET,
    THREADS,
    VERIFY,
    described,
    dims,
    gather_inputs,
    interruptible,
    open_model,
    sent_to,
    sizes_of_run,
)
from .json_output import JSON, array_facts, print_json


def run_command(
    model: Path = MODEL,
    inputs: list[str] = typer.Option([], "--input", "-i", metavar="NAME=FILE.npy|FILE.npz", help="An input; those not given are random."),
    output_dir: Path = typer.Option(None, "--output-dir", "-O", help="Write each output as an .npy file into this folder."),
    dim: list[str] = DIM, fix: list[str] = FIX, target: str = TARGET, threads: int = THREADS, verify: bool = VERIFY, db: str = DB, on: str = ON,
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of random inputs."), as_json: bool = JSON,
) -> None:
    """Run a model once and show its outputs."""
    from rich.console import Console

    sizes = sizes_of_run(dim, fix)
    compiled = open_model(model, dynamic=dims(fix, "--fix"), target=target, threads=threads, verify=verify)
    arrays = gather_inputs(compiled.inputs, inputs, sizes, seed)
    remote = sent_to(on, compiled, model, threads)
    if remote is not None:
        outputs, seconds = remote.run(arrays)
        took = float(seconds[0])
    else:
        start = time.perf_counter()
        with interruptible(), with_sizes(compiled.inputs, sizes, inputs):
            result = compiled(*arrays)
        took = time.perf_counter() - start
        outputs = result if isinstance(result, tuple) else (result,)
    files = [_written(output_dir, info.name, value) for info, value in zip(compiled.outputs, outputs, strict=True)] if output_dir is not None else []
    if as_json:
        results = [{**facts, **_statistics(np.asarray(v))} for facts, v in zip(array_facts(compiled.outputs, outputs), outputs, strict=True)]
        print_json({"inputs": array_facts(compiled.inputs, arrays), "outputs": results, "files": files, "milliseconds": took * 1e3})
        return
    console = Console(emoji=False)
    for info, value in zip(compiled.outputs, outputs, strict=True):
        array = np.asarray(value)
        console.print(f"[bold]{markup(info.name)}[/]  {array.dtype}{list(array.shape)}  {_summary(array)}", highlight=False)
    place = f" on {remote.board}" if remote is not None else ""
    console.print(f"{took * 1e3:.2f} ms{place}, called with {described(compiled.inputs, arrays)}", highlight=False, markup=False, soft_wrap=True)


def _written(folder: Path, name: str, value: Any) -> Path:
    """An output as a file."""
    path = folder / f"{file_name(name)}.npy"
    with toolchain.atomic_output(path) as temporary, temporary.open("wb") as sink:
        np.save(sink, np.asarray(value))
    return path


def _statistics(array: np.ndarray) -> dict[str, Any]:
    """All values of a small output, some numbers about a large one."""
    if array.size <= 8:
        return {"values": array.reshape(-1)}
    if array.dtype.kind not in "iuf":
        return {}
    wide = array.astype("float64")
    return {"min": wide.min(), "max": wide.max(), "mean": wide.mean()}


def _summary(array: np.ndarray) -> str:
    if array.size == 0:
        return "empty"
    if array.size <= 8:
        return np.array2string(array.reshape(-1), precision=5)
    return "  ".join(f"{name} {value:.5g}" for name, value in _statistics(array).items())
