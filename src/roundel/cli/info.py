# SPDX-License-Identifier: Apache-2.0
"""``roundel info``: what a compiled model's file tells of itself, and whether it is whole."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import typer

from ..ir.processors import this_family
from ..runtime.inputs import known_dims
from .arguments import DIM, dims
from .json_output import JSON, print_json, tensor_facts


def info_command(
    model: Path = typer.Argument(..., help="A model compiled by `roundel compile` (.so), for this machine or another.", show_default=False),
    verify: bool = typer.Option(False, "--verify", help="Also read all weights and compare them with their digest, whatever their size."),
    dim: list[str] = DIM, as_json: bool = JSON,
) -> None:
    """Show what a compiled model was made from, for what, with which inputs and outputs, and how large it is; exit status 1 where it is damaged."""
    facts = gathered(model, verify=verify, sizes=dims(dim))
    if as_json:
        print_json(facts)
        return
    from rich.console import Console

    Console(soft_wrap=True, emoji=False).print(table(facts))


def gathered(path: Path, *, verify: bool = False, sizes: dict[str, int] | None = None) -> dict[str, Any]:
    """All facts by name. Sizes are bytes; ``activations`` and ``threads`` are None where this machine cannot run the model or where
    ``sizes`` lacks a dimension. Raises ModelError for a damaged file."""
    from ..ir.errors import RoundelError
    from ..runtime import load_executable
    from ..runtime.integrity import SMALL, SavedFile

    with SavedFile(path, contents=verify) as saved:
        functions, notes = saved.metadata()
        weights = saved.trailer.nbytes
        code = len(saved.head) + len(saved.tail)
        beside = None if saved.weights_path is None else str(saved.weights_path)
        verified = "everything" if verify or weights <= SMALL else "everything but the weights"
        machine = saved.machine
    known_dims((d for f in functions.values() for i in f.inputs for d in i.shape if isinstance(d, str) and d.isidentifier()), sizes or {})
    facts: dict[str, Any] = {"file": str(path), "version": notes.get("version"), "machine": machine, "runs_here": machine == this_family()}
    facts |= {name: notes.get(name) for name in ("target", "cpu", "features", "levels", "options", "source")}
    facts["functions"] = [{"name": f.name, "inputs": tensor_facts(f.inputs), "outputs": tensor_facts(f.outputs)} for f in functions.values()]
    facts |= {"code": code, "weights": weights, "weights_file": beside, "verified": verified, "activations": None, "threads": None, "level": None}
    if facts["runs_here"]:
        try:
            executable = load_executable(path)
            facts["level"] = executable.metadata.get("level")
            facts["threads"] = executable.num_threads
            with contextlib.suppress(RoundelError):  # a symbolic size was not given
                facts["activations"] = max(executable[name].arena_nbytes(**sizes or {}) for name in functions)
        except RoundelError as error:
            facts["runs_here"], facts["why_not"] = False, str(error)
    return facts


def table(facts: dict[str, Any]) -> Any:
    """The facts for people."""
    from rich.table import Table
    from rich.text import Text

    from ..ir.escape import message

    out = Table(show_header=False, box=None, pad_edge=False)
    out.add_column(style="bold", no_wrap=True)
    out.add_column(overflow="fold")
    source = facts["source"] or {}
    here = "yes" if facts["runs_here"] else f"no: {facts.get('why_not') or 'it is another machine'}"
    rows = [
        ("file", facts["file"]), ("verified", facts["verified"]), ("made by", f"Roundel {facts['version']}" if facts["version"] else "unknown"),
        ("source", " ".join(filter(None, [source.get("file") or source.get("kind"), source.get("sha256") and f"sha256 {source['sha256']}"]))),
        ("target", facts["target"] or facts["machine"]), ("levels", _levels(facts)), ("needs", " ".join(facts["features"] or ()) or "nothing special"),
        ("runs here", here),
        ("options", "  ".join(f"{k} {v}" for k, v in (facts["options"] or {}).items())),
    ]
    for f in facts["functions"]:
        rows.append(("function", f["name"]))
        rows += [(f"  {role}", f"{t['name']}: {t['dtype']}[{', '.join(map(str, t['shape']))}]") for role in ("input", "output") for t in f[role + "s"]]
    rows += [("code", _bytes(facts["code"])), ("weights", _bytes(facts["weights"]) + (f" in {facts['weights_file']}" if facts["weights_file"] else ""))]
    if facts["activations"] is not None:
        rows.append(("activations", _bytes(facts["activations"])))
    elif facts["runs_here"]:
        rows.append(("activations", "depend on symbolic sizes: give them with --dim"))
    if facts["threads"]:
        rows.append(("threads", str(facts["threads"])))
    for name, value in rows:
        if value:
            out.add_row(name, Text(message(value)))
    return out


def _levels(facts: dict[str, Any]) -> str:
    here = f"; this machine runs {facts['level']}" if facts["level"] else ""
    return ", ".join(facts["levels"]) + here if facts["levels"] else ""


def _bytes(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 10_000 else f"{count} bytes"
