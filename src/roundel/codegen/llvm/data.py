# SPDX-License-Identifier: Apache-2.0
"""Constant data as LLVM text."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import escape
from ..data import Array, Data, Number, Record, Symbol, Text, Value


class _Constants:
    """Private constants of a module, each different one once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def add(self, value: str) -> str:
        """The name of the constant with this type and value."""
        name = self.known.get(value)
        if name is None:
            name = self.known[value] = f"@.rd{len(self.known)}"
            self.lines.append(f"{name} = private constant {value}")
        return name

    def value(self, v: Value) -> str:
        """A value without its type."""
        match v:
            case Number():
                return str(v.value)
            case Symbol():
                return f"@{v.name}" if v.name else "null"
            case Text():
                raw = escape.encoded(v.text) + b"\0"
                return self.add(f'[{len(raw)} x i8] c"{escape.llvm_string(raw)}"')
            case Record():
                return "{ " + ", ".join(f"{_type(f)} {self.value(f)}" for f in v.fields) + " }"
            case Array(()):
                return "null"
            case Array():
                kind = _type(v.items[0])
                return self.add(f"[{len(v.items)} x {kind}] [{', '.join(f'{kind} {self.value(i)}' for i in v.items)}]")


def _type(v: Value) -> str:
    if isinstance(v, Number):
        return f"i{v.bits}"
    return "{ " + ", ".join(map(_type, v.fields)) + " }" if isinstance(v, Record) else "ptr"


def data_text(data: Iterable[Data]) -> str:
    """The data as definitions."""
    table = _Constants()
    named = [f"@{d.name} = constant {_type(d.value)} {table.value(d.value)}" for d in data]
    return "\n".join([*table.lines, *named])
