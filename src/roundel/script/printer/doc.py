# SPDX-License-Identifier: Apache-2.0
"""Lines of text with indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Doc:
    """Lines, each at the current depth; ``constants`` is the file that holds a module's constants."""

    def __init__(self, indent: int = 4, constants: str | None = None) -> None:
        self.lines: list[str] = []
        self.constants = constants
        self.unit, self.depth = " " * indent, 0

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(self.unit * self.depth + text if text else "")

    @contextmanager
    def body(self, head: str) -> Iterator[None]:
        """``head`` and what is written inside, one level deeper; ``pass`` where that is nothing."""
        self.line(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)
