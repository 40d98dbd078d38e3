# SPDX-License-Identifier: Apache-2.0
"""Which operators of the standard and of com.microsoft can be imported, and how."""

from __future__ import annotations

from dataclasses import dataclass

from . import (
    ops,  # noqa: F401  (fills the table)
    registry,
)

PYTHON = {"StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch", "ImageDecoder"}
"""Operators that are Python functions of the process that compiles: a model with one of them cannot be shipped without Python.
Cast between strings and numbers and Unique of strings are, too."""


@dataclass(frozen=True)
class Row:
    """``versions``: opset versions in which the operator changed; ``how``: native, function (the standard's body), Python or no."""

    domain: str
    name: str
    versions: tuple[int, ...]
    how: str


def rows() -> list[Row]:
    """Every operator of the installed ``onnx`` package, and those of com.microsoft that are known here."""
    import onnx

    versions: dict[tuple[str, str], set[int]] = {}
    bodies, gone = set(), set()
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        versions.setdefault(key, set()).add(schema.since_version)
        if schema.has_function or schema.has_context_dependent_function:
            bodies.add(key)
        if schema.deprecated:
            gone.add(key)
    known = registry.known()
    out = []
    for key in sorted({*versions, *known}):
        domain, name = key
        if domain not in ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"):
            continue
        if key in known:
            how = "Python" if name in PYTHON else "native"
        else:
            how = "function" if key in bodies else "deprecated" if key in gone else "no"
        if domain == "com.microsoft" or key in versions:
            out.append(Row(domain, name, tuple(sorted(versions.get(key, {1}))), how))
    return out


def markdown() -> str:
    """A table for each domain."""
    import onnx

    text = [f"Of onnx {onnx.__version__}. *native*: compiled code; *function*: expanded into the operators that the standard defines it by, then "
            "compiled; *Python*: a function of the process that compiles, so the model cannot be shipped without Python.", ""]
    table = rows()
    for domain in dict.fromkeys(r.domain for r in table):
        mine = [r for r in table if r.domain == domain]
        done = sum(r.how in ("native", "function", "Python") for r in mine)
        of = "" if domain == "com.microsoft" else f" of {sum(r.how != 'deprecated' for r in mine)}"
        text += [f"### {domain or 'ai.onnx'}: {done}{of} operators", "", "| operator | versions | how |", "| --- | --- | --- |"]
        text += [f"| {r.name} | {', '.join(map(str, r.versions)) if domain != 'com.microsoft' else '1'} | {r.how} |" for r in mine]
        text.append("")
    return "\n".join(text)
