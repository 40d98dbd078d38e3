# SPDX-License-Identifier: Apache-2.0
"""Which operators of the standard and of com.microsoft can be imported, and how."""

from __future__ import annotations

from typing import Any

from ...ir.dataclass import dataclass
from . import (
    ops,  # noqa: F401  (fills the table)
    registry,
)

PYTHON = {"StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch", "ImageDecoder"}
"""Operators that are Python functions of the process that compiles: a model with one of them cannot be shipped without Python.
Cast between strings and numbers and Unique of strings are, too."""


FAMILIES = {
    "floats": ("float16", "bfloat16", "float", "double"), "integers": tuple(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)), "bool": ("bool",),
    "strings": ("string",), "8-bit floats": ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
    "4-bit floats": ("float4e2m1",), "4- and 2-bit integers": ("int4", "uint4", "int2", "uint2"),
}
"""Types of elements that go together."""


@dataclass(frozen=True)
class Row:
    """``versions``: opset versions in which the operator changed; ``how``: native, function (the standard's body), Python or no;
    ``types``: of the elements of the first operand (of the result where there is none) in the newest version."""

    domain: str
    name: str
    versions: tuple[int, ...]
    how: str
    types: tuple[str, ...] = ()


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
            types = () if key not in versions or how in ("no", "deprecated") else _types(onnx.defs.get_schema(name, domain=domain))
            out.append(Row(domain, name, tuple(sorted(versions.get(key, {1}))), how, types))
    return out


def _types(schema: Any) -> tuple[str, ...]:
    """The types that the standard allows for an operator, complex numbers and 6-bit floats left out: families where all of them are,
    else one by one."""
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    first = next(iter([*schema.inputs, *schema.outputs]), None)
    if first is None:
        return ()
    allowed = {t.split("(")[-1].rstrip(")") for t in constraints.get(first.type_str, [first.type_str])}
    out: list[str] = []
    for family, members in FAMILIES.items():
        mine = [m for m in members if m in allowed]
        out += [family] if len(mine) == len(members) else mine
    return tuple(out)


def markdown() -> str:
    """A table for each domain."""
    import onnx

    text = [f"The tables are for onnx {onnx.__version__}.", "",
            "- *native*: compiled code.",
            "- *function*: expanded into the operators by which the standard defines it, then compiled.",
            "- *Python*: a function of the compiling process, so the model cannot be shipped without Python.",
            "- *types*: element types of the first operand in the newest version. Operators that move elements also take complex numbers, which are not "
            "listed. 6-bit floats are refused.", "",
            "`python -m tests.frontend.onnx.operator_matrix` compares operators with the standard's reference in every type.", "",
            "; ".join(f"*{family}*: {', '.join(members)}" for family, members in FAMILIES.items() if len(members) > 1) + ".", ""]
    table = rows()
    for domain in dict.fromkeys(r.domain for r in table):
        mine = [r for r in table if r.domain == domain]
        done = sum(r.how in ("native", "function", "Python") for r in mine)
        of = "" if domain == "com.microsoft" else f" of {sum(r.how != 'deprecated' for r in mine)}"
        text += [f"### {domain or 'ai.onnx'}: {done}{of} operators", "", "| operator | versions | how | types |", "| --- | --- | --- | --- |"]
        text += [f"| {r.name} | {', '.join(map(str, r.versions)) if domain != 'com.microsoft' else '1'} | {r.how} | {', '.join(r.types)} |" for r in mine]
        text.append("")
    return "\n".join(text)
