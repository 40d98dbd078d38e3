# SPDX-License-Identifier: Apache-2.0
"""Signatures of many arguments, which ``help`` shows an argument a line and without the quotes of postponed annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_WIDTH = 100  # characters that are read as one line


class Page(inspect.Signature):
    """A signature whose text has one argument a line, where it would be long."""

    def __str__(self) -> str:
        """As it would be written."""
        words = inspect.Signature([p.replace(annotation=_Written.of(p.annotation)) for p in self.parameters.values()],
                                  return_annotation=_Written.of(self.return_annotation))
        text = str(words)
        if len(text) <= _WIDTH:
            return text
        lines, kinds = [], [p.kind for p in self.parameters.values()]
        for k, parameter in enumerate(words.parameters.values()):
            before = kinds[k - 1] if k else None
            if before is parameter.POSITIONAL_ONLY is not parameter.kind:
                lines.append("/")
            if parameter.kind is parameter.KEYWORD_ONLY and before not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
                lines.append("*")
            lines.append(str(parameter))
        result = "" if words.return_annotation is self.empty else f" -> {words.return_annotation!r}"
        return "(\n" + "".join(f"    {line},\n" for line in lines) + f"){result}"


class _Written(str):
    """An annotation as it stands in the source."""

    __slots__ = ()
    __repr__ = str.__str__

    @staticmethod
    def of(annotation: Any) -> Any:
        """Of a postponed annotation; others stay as they are."""
        return _Written(annotation) if isinstance(annotation, str) else annotation


def readable(function: _Function) -> _Function:
    """Have ``help`` show a function's signature as a `Page`."""
    found = inspect.signature(function)
    function.__signature__ = Page([*found.parameters.values()], return_annotation=found.return_annotation)  # type: ignore[attr-defined]
    return function
