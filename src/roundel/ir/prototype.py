# SPDX-License-Identifier: Apache-2.0
"""How a C function is called. A program's attribute ``import_c_calls`` holds it as text, because programs print as scripts."""

from __future__ import annotations

import re

from .dataclass import dataclass

_WORDS = re.compile(r"(?P<who>.*?): (?P<result>\w+) (?P<name>\w+)\((?P<parameters>.*)\)")


@dataclass(frozen=True)
class Prototype:
    """``who`` calls the function ``name``; ``result`` is its type, ``parameters`` are as a C programmer writes them, such as ``const float *x``."""

    who: str
    result: str
    name: str
    parameters: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.who}: {self.declaration}"

    @property
    def declaration(self) -> str:
        """Of the function, without who calls it."""
        return f"{self.result} {self.name}({', '.join(self.parameters)})"

    @staticmethod
    def of(text: str) -> Prototype:
        """That of a text which `str` made."""
        found = _WORDS.fullmatch(text)
        assert found is not None, text
        return Prototype(found["who"], found["result"], found["name"], tuple(p for p in found["parameters"].split(", ") if p))
