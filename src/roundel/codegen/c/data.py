# SPDX-License-Identifier: Apache-2.0
"""Constant data as C: structures of ``csrc/roundel.h``, arrays of them, and functions with the types that they say."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import escape
from ...ir.dtype import DType
from ..data import Array, Data, Number, Record, Symbol, Text, Value
from .functions import c_name
from .types import int_text

LONGEST = 500  # characters of a literal; C99 promises 4095 bytes


class _Tables:
    """Definitions, each different one once, ahead of what refers to them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def add(self, head: str, rest: str) -> str:
        """The name of a static constant: ``head`` is its type, ``rest`` what follows the name."""
        key = head + rest
        if key not in self.known:
            self.known[key] = f"rd_table_{len(self.known)}"
            self.lines.append(f"static {head}{self.known[key]}{rest};")
        return self.known[key]

    def text(self, text: str) -> str:
        """A text as a literal, a long one as an array."""
        raw = escape.encoded(text)
        if len(raw) <= LONGEST:
            return f'"{escape.c_string(raw)}"'
        codes = ", ".join(str(b - 256 if b > 127 else b) for b in raw + b"\0")
        return self.add("const char ", f"[] = {{{codes}}}")

    def value(self, v: Value) -> str:
        """A value as an initializer."""
        match v:
            case Number():
                return int_text(v.value, DType(f"int{v.bits}")) if v.value >= -(1 << 63) and v.value < 1 << 63 else f"UINT64_C({v.value})"
            case Text():
                return self.text(v.text)
            case Symbol():
                return "0" if v.name is None else self.entry(v)
            case Record():
                return "{" + ", ".join(map(self.value, v.fields)) + "}"
            case Array(()):
                return "0"
            case Array():
                first = v.items[0]
                kind = first.kind if isinstance(first, Record) else f"int{first.bits}_t" if isinstance(first, Number) else "char *const"
                return self.add(f"const {kind} ", f"[] = {{{', '.join(map(self.value, v.items))}}}")

    def entry(self, v: Symbol) -> str:
        """A function with the parameters that the structure wants."""
        name = f"{c_name(v.name or '')}_entry"
        params = ", ".join(f"{t}{'' if t.endswith('*') else ' '}a{k}" for k, t in enumerate(v.parameters))
        args = ", ".join("a0" if t.startswith("RdContext") else f"(void *)a{k}" for k, t in enumerate(v.parameters))
        result = f"int{v.bits}_t" if v.bits else "void"
        line = f"static {result} {name}({params}) {{ {'return ' if v.bits else ''}{c_name(v.name or '')}({args}); }}"
        if line not in self.lines:
            self.lines.append(line)
        return name


def data_text(data: Iterable[Data]) -> list[str]:
    """The data as definitions."""
    tables = _Tables()
    named = [f"RD_TABLE const {d.value.kind} {d.name} = {tables.value(d.value)};" for d in data]
    return [*tables.lines, *named]
