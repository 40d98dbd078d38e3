# SPDX-License-Identifier: Apache-2.0
"""The reference: what is public, by module, and pages of Markdown made of signatures and docstrings.

Names are taken from the imported modules and not from their sources, since many (operators, intrinsics, primitives) are made from tables.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

PUBLIC = {
    "ir": "nodes of both levels, equality, walking and rewriting them",
    "ir.errors": "what is raised",
    "ir.options": "options, and setting them for a while",
    "ir.visit": "walking and rewriting nodes",
    "script": "text to modules and back",
    "script.tir": "the words of tensor programs (`T`)",
    "script.relax": "the words of graph functions (`R`); the operators are a [page of their own](../operators.md)",
    "script.ir": "the words of modules (`I`)",
    "script.ir_builder": "tensor programs built by statements of Python",
    "te": "tensor expressions",
    "tir": "tensor programs from Python",
    "tir.analysis": "what tensor programs do",
    "tir.stmt_functor": "walking and rewriting statements",
    "relax": "graph functions from Python",
    "relax.analysis": "what graph functions do",
    "relax.dpl": "the pattern language of graph functions",
    "relax.expr_functor": "walking and rewriting graph functions",
    "relax.frontend.nn": "models as modules with parameters",
    "graph.layout.convert_layout": "convolutions in the layouts that are asked for",
    "graph.tidy.lift_params": "what a model makes of its parameters alone",
    "training": "losses, optimizers and steps of training",
    "builder": "graph functions built step by step",
    "ops": "operators",
    "arith": "integers: simplification, bounds, equations, maps of iterators",
    "schedule": "schedules and their primitives",
    "strategy": "rules and templates that propose schedules, and what they cost",
    "tune": "search by measurement",
    "tune.database": "what was measured",
    "intrinsics": "instructions of machines",
    "target": "machines",
    "backends": "libraries and kernels of your own in place of generated code",
    "passes": "passes, pipelines and observers",
    "graph.pattern": "patterns of operators and rewriting by them",
    "graph.rewriter": "rewriting graph functions node by node",
    "lower": "scheduled programs to flat loops",
    "driver": "from a module to what runs, pass by pass",
    "interp": "the reference interpreter",
    "boards": "models run on other machines",
    "pages": "models as static pages that run them in a browser",
    "runtime": "loading and calling what was compiled",
    "frontend.onnx": "ONNX files",
    "frontend.torch": "PyTorch modules",
    "frontend.relay": "Relay modules of TVM",
    "embed.onnx.backend": "the ONNX standard's interface for engines",
}
"""The modules of ``roundel`` that pages of the documentation tell users to import, and what is in them."""

_SPAN = re.compile(r"(``.+?``|`[^`\n]+`)", re.S)
_MEANT = re.compile(r"([*_<\[|])")


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its ``__all__``, or else what it defines without an underscore."""
    offered = getattr(module, "__all__", None)
    if offered is not None:
        return [n for n in offered if not n.startswith("_")]
    return [n for n, thing in vars(module).items() if not n.startswith("_") and getattr(thing, "__module__", None) == module.__name__]


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class itself defines; overridden ones of its bases are described there."""
    for name, thing in vars(kind).items():
        function = thing.fget if isinstance(thing, property) else getattr(thing, "func", getattr(thing, "__func__", thing))
        if not name.startswith("_") and inspect.isfunction(function) and function.__name__ != "<lambda>":
            yield name, thing


def page(room: str) -> str:
    """The page of a module."""
    module = import_module(f"roundel.{room}")
    parts = [f"# roundel.{room}", f"{PUBLIC[room][0].upper()}{PUBLIC[room][1:]}." if PUBLIC[room] else "", prose(module.__doc__ or "")]
    for name in sorted(public_names(module), key=str.lower):
        thing = getattr(module, name)
        if not isinstance(thing, ModuleType):
            parts += entry(thing, f"roundel.{room}.{name}", name)
    return "\n\n".join(filter(None, parts)) + "\n"


def entry(thing: Any, anchor: str, name: str) -> Iterator[str]:
    """Heading, signature and description of a name, and of a class its members."""
    yield f"## `{name}` {{ #{anchor} }}"
    yield from described(thing, name)
    if inspect.isclass(thing):
        for member, found in members(thing):
            yield f"### `{name}.{member}` {{ #{anchor}.{member} }}"
            plain = found.fget if isinstance(found, property) else getattr(found, "func", found)
            yield from described(getattr(plain, "__func__", plain), member, isinstance(found, property) or hasattr(found, "func"))


def described(thing: Any, name: str, attribute: bool = False) -> Iterator[str]:
    """The signature, where it has one, and the docstring; of what is no class and no function its value."""
    if inspect.isclass(thing) and not (is_dataclass(thing) or "__init__" in vars(thing)):
        shown = ""
    elif attribute or not callable(thing):
        shown = ""
    else:
        shown = signature(thing, name)
    if shown:
        yield f"```text\n{shown}\n```"
    text = inspect.getdoc(thing) or ""
    if not inspect.isclass(thing) and not callable(thing) and text == (type(thing).__doc__ or ""):
        text = f"A `{type(thing).__name__}`." if len(repr(thing)) > 200 else f"`{thing!r}`"
    if text:
        yield prose(text)


def signature(thing: Any, name: str) -> str:
    """As it would be written, an argument a line where it is long."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    arguments = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    text = re.sub(r"(: |-> )'([\w.\[\], |]+)'", r"\1\2", f"{name}{found.replace(parameters=arguments)}")
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    if len(text) <= 100:
        return text
    inside, result = text[len(name) + 1 :].rsplit(")", 1)
    return f"{name}(\n" + "".join(f"    {a},\n" for a in split_arguments(inside)) + f"){result}"


def split_arguments(text: str) -> list[str]:
    """At the commas that are in no bracket and no string."""
    depth, quote, parts = 0, "", [""]
    for c in text:
        if quote or c in "'\"":
            quote = "" if c == quote else quote or c
        depth += (c in "([{") - (c in ")]}") if not quote else 0
        if c == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def prose(text: str) -> str:
    """A docstring as Markdown: what is in backticks stays, and other signs mean nothing."""
    lines = []
    for line in inspect.cleandoc(text).split("\n"):
        if not line.startswith("    "):
            begun = "- " if line.startswith("- ") else ""
            spans = _SPAN.split(line[len(begun) :])
            line = begun + "".join(s if s.startswith("`") else _MEANT.sub(r"\\\1", s) for s in spans)
        lines.append(line)
    return "\n".join(lines)


def with_docstrings(text: str) -> str:
    """The page of ``rd``'s names, with signature and description put under each heading."""
    import roundel as rd

    def insert(found: re.Match[str]) -> str:
        name = found[1]
        first, *rest = entry(getattr(rd, name), f"roundel.{name}", f"rd.{name}")
        return "\n\n".join([first, *(part.replace("### `rd.", "#### `") if part.startswith("###") else part for part in rest)])

    return re.sub(r"^## `rd\.(\w+)`$", insert, text, flags=re.M)
