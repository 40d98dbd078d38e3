# SPDX-License-Identifier: Apache-2.0
"""``roundel compile``: a model to one shared library."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from ..ir.errors import CallError, ModelError
from ..ir.escape import markup, message
from ..passes.progress import shown
from ..runtime.toolchain import OTHER_ENDINGS
from .arguments import ACCURACY, BOUNDS_CHECKS, CHOOSE, DB, FIX, HOT, LIBRARIES, NO_DIM, PRECISION, TARGET, THREADS, VERIFY, WEIGHTS, chosen, dims
from .json_output import JSON, print_json, tensor_facts


def compile_command(
    model: Path = typer.Argument(..., help="An ONNX file.", show_default=False),
    output: Path = typer.Option(None, "-o", "--output",
                                help="The library (.so), object to link (.o), C source (.c) or WebAssembly module (.wasm) to write. Default: the "
                                "model's name with .so, for a board without a system .o."),
    target: str = TARGET, threads: int = THREADS, fix: list[str] = FIX, dim: list[str] = NO_DIM, hot: list[str] = HOT, verify: bool = VERIFY,
    accuracy: str = ACCURACY, precision: str = PRECISION, weights: str = WEIGHTS, bounds_checks: bool = BOUNDS_CHECKS, choose: list[str] = CHOOSE,
    db: str = DB, libraries: str = LIBRARIES,
    header: bool = typer.Option(False, "--header", help="Also write a C header beside the library; beside a WebAssembly module, the ES module that runs it."),
    side_file: bool = typer.Option(False, "--side-file", help="Keep the weights in a file beside the library, mapped when it is loaded."),
    ram: str = typer.Option(None, "--ram", help="The memory of a board without a system (65536, 256K, 1M): a model that needs more is refused, with how "
                            "much it needs."),
    max_size: str = typer.Option(None, "--max-size", help="The most bytes (4000000, 40M, 1G) that the library and its weights may have; more is an error."),
    as_json: bool = JSON,
) -> None:
    """Compile a model to a shared library that needs nothing but libc, to an object, to C source or to WebAssembly."""
    from rich.console import Console

    from .. import api

    start = time.perf_counter()
    if not model.name:
        raise ModelError(f"{model} is a folder", hint="give an ONNX file")
    output = output or model.with_suffix(_ending(target))
    target = target or OTHER_ENDINGS.get(output.suffix, ("", None))[1]
    _check_tools(target, output)
    compiled = api.compile(model, target=target, threads=threads, verify=verify, dynamic=dims(fix, "--fix") or None,
                           hot=[dims(h.split(","), "--hot") for h in hot], accuracy=accuracy, precision=precision, weights=weights,
                           bounds_checks=bounds_checks, choices=chosen(choose))
    with shown(f"writing {output}"):
        path = compiled.save(output, side_file=side_file, header=header, **{k: v for k, v in {"ram": ram, "max_size": max_size}.items() if v is not None})
    activations = None
    with suppress(CallError):  # it depends on symbolic sizes, or the target is another machine
        activations = compiled.arena_nbytes()
    if as_json:
        print_json({"file": path, "header": _header(path) if header else None, "bytes": path.stat().st_size, "weights": compiled.weights_nbytes,
                    "activations": activations, "seconds": time.perf_counter() - start, "inputs": tensor_facts(compiled.inputs),
                    "outputs": tensor_facts(compiled.outputs), "metadata": compiled.metadata})
        return
    console = Console(emoji=False)
    sizes = f"{_size(path.stat().st_size)}, packed weights {_size(compiled.weights_nbytes)}"
    if activations is not None:
        sizes += f", activations {_size(activations)}"
    console.print(f"[bold]{markup(str(path))}[/]  {sizes}, {time.perf_counter() - start:.1f} s")
    if levels := compiled.metadata.get("levels"):
        console.print(f"  levels {', '.join(levels)}; here runs {_running(compiled)}", highlight=False)
    if board := compiled.metadata.get("board"):
        stack = "" if board["stack"] is None else f", stack {board['stack']:,} bytes"
        console.print(f"  takes flash {board['flash']:,} bytes, RAM {board['ram']:,} bytes{stack}", highlight=False)
    if records := compiled.metadata.get("records"):
        console.print(f"  {records['kernels']} kernels from records of {markup(records['database'])}", highlight=False)
    for kind, infos in (("in ", compiled.inputs), ("out", compiled.outputs)):
        for info in infos:
            console.print(message(f"  {kind} {info}"), highlight=False, markup=False)
    if header:
        console.print(f"[bold]{markup(str(_header(path)))}[/]")
    for beside in (path.with_suffix(".weights"), path.with_name(f"{path.name}.weights")):
        if side_file and beside.exists():
            console.print(f"[bold]{markup(str(beside))}[/]  {beside.stat().st_size:,} bytes", highlight=False)


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:.1f} MB" if nbytes >= 100_000 else f"{nbytes:,} bytes"


def _check_tools(target: str | None, output: Path) -> None:
    """Raises BuildError where what makes the file for that machine is not installed: a model compiles for minutes before it is needed."""
    from ..build.link import foreign_triple
    from ..runtime import toolchain
    from ..target import Target
    from ..target.levels import levels_of

    if output.suffix == ".c":
        return
    levels = levels_of(target)
    made = levels[0].target if levels else None if target is None else Target(target)
    if made is not None and made.is_bare:
        from ..build.bare_metal import compiler_for_objects

        compiler_for_objects(made.cpu)
    elif made is not None and made.ending == ".wasm":
        toolchain.module_linker()
    else:
        toolchain.compiler(None if made is None or made.kind == "c" else foreign_triple(made.triple))


def _ending(target: str | None) -> str:
    """Of what is written for a target where nobody says under which name."""
    from ..target import Target
    from ..target.levels import levels_of
    from ..target.spec import library_ending

    if levels := levels_of(target):
        return library_ending(levels[0].target.triple)
    made = None if target is None else Target(target)
    return ".so" if made is None else ".o" if made.is_bare else ".wasm" if made.ending == ".wasm" else library_ending(made.triple)


def _running(compiled: Any) -> str:
    """The level of a model that this machine runs."""
    from ..runtime import ForeignModel

    return "none of them" if isinstance(compiled, ForeignModel) else str(compiled.metadata["level"])


def _header(path: Path) -> Path:
    return path.with_name("roundel.mjs") if path.suffix == ".wasm" else path.with_suffix(".h")
