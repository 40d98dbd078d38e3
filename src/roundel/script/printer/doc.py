# SPDX-License-Identifier: Apache-2.0
"""Lines of text with indentation, and the nodes in them that are underlined or annotated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .options import PrinterOptions

_BEGIN, _END = "\x0e", "\x0f"  # around the text of an expression that is underlined; no script has these characters
_HEAD = re.compile(r"\s*(with|for|if|while|def|class|else)\b.*:$")
_STRING_OR_PREFIX = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\b([ITR])(?=\.)|(?<= import )(ir|tir|relax)(?= as [ITR])( as )([ITR])""")


class Doc:
    """Lines, each at the current depth. ``marks``: nodes to underline, each with the statement inside of which (None: anywhere);
    ``notes``: nodes and the comments about them; ``metadata``: values that the text names by kind and number."""

    def __init__(self, options: PrinterOptions | None = None) -> None:
        self.options = options or PrinterOptions()
        self.constants = None if self.options.constants is None else str(self.options.constants)
        self.lines: list[str] = []
        self.unit, self.depth = " " * self.options.indent, 0
        self.marks: dict[Any, Any] = {}
        self.notes: dict[Any, str] = {}
        self.metadata: dict[str, list[Any]] = {}
        self._inside: list[Any] = []  # the statements around
        self._underlined: list[tuple[int, int]] = []  # lines, from and up to
        self._noted: list[tuple[int, int, str]] = []

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

    def above(self, *texts: str) -> None:
        """Lines above all others."""
        self.lines[:0] = texts
        self._underlined = [(first + len(texts), last + len(texts)) for first, last in self._underlined]
        self._noted = [(first + len(texts), last + len(texts), note) for first, last, note in self._noted]

    # ---- nodes that are spoken of

    @contextmanager
    def about(self, node: Any) -> Iterator[None]:
        """The lines written inside are those of ``node``, a statement, function or module."""
        if not self.marks and not self.notes:
            yield
            return
        first = len(self.lines)
        self._inside.append(node)
        yield
        self._inside.pop()
        if node in self.marks:
            self._underlined.append((first, len(self.lines)))
        if node in self.notes:
            self._noted.append((first, len(self.lines), self.notes[node]))

    def marked(self, expr: Any, text: str) -> str:
        """The text of an expression, between marks where it is to be underlined."""
        if expr not in self.marks:
            return text
        owner = self.marks[expr]
        return f"{_BEGIN}{text}{_END}" if owner is None or owner in self._inside else text

    # ---- the text

    def text(self) -> str:
        """All lines, as the options say."""
        lines = self._with_notes()
        if any(k != v for k, v in self.options.prefixes.items()):
            lines = [with_prefixes(line, self.options.prefixes) for line in lines]
        return layout(lines, self.options)

    def _with_notes(self) -> list[str]:
        lines = list(self.lines)
        for first, last in self._underlined:
            for k in range(first, last):
                blank = len(lines[k]) - len(lines[k].lstrip())
                lines[k] = lines[k][:blank] + _BEGIN + _clean(lines[k])[blank:] + _END if lines[k].strip() else lines[k]
        for first, last, note in sorted(self._noted, reverse=True):
            if last - first == 1 and not _HEAD.match(_clean(lines[first])):
                lines[first] += f"  # {note}"
            else:
                lines.insert(first, re.match(r"\s*", lines[first])[0] + f"# {note}")  # type: ignore[index]
        return lines


def _clean(line: str) -> str:
    return line.replace(_BEGIN, "").replace(_END, "")


def with_prefixes(line: str, prefixes: Mapping[str, str]) -> str:
    """A line with the names of the three namespaces replaced, outside of texts."""

    def change(found: re.Match) -> str:
        if found[1] is not None:
            return found[1]
        return prefixes[found[2]] if found[2] else f"{found[3]} as {prefixes[found[5]]}"

    return _STRING_OR_PREFIX.sub(change, line)


def underline(line: str) -> tuple[str, str | None]:
    """A line without its marks, and the line of ``^^^`` below it (None where there are no marks)."""
    if _BEGIN not in line:
        return line, None
    text, below, depth = [], [], 0
    for c in line:
        if c in (_BEGIN, _END):
            depth += 1 if c == _BEGIN else -1
        else:
            text.append(c)
            below.append("^" if depth else " ")
    return "".join(text), "".join(below).rstrip()


def layout(lines: Sequence[str], options: PrinterOptions) -> str:
    """The lines with numbers, underlining and what is left out between (TVM's printer is the model)."""
    pairs = [underline(line) for line in lines]
    context = options.num_context_lines
    marked = [k for k, (_, below) in enumerate(pairs) if below]
    shown = set(range(len(pairs)))
    if context >= 0 and marked:
        shown = {k for m in marked for k in range(max(0, m - context), min(len(pairs), m + context + 1))}
        around = shown | {-1, len(pairs)}
        shown |= {k for k in range(len(pairs)) if {k - 1, k + 1} <= around}  # one line is not worth a remark
    width = len(str(len(pairs))) + 1 if options.print_line_numbers else 0
    out: list[str] = []
    skipped = 0
    for k, (text, below) in enumerate(pairs):
        if k not in shown:
            skipped += 1
            continue
        if skipped:
            out.append(_skipped(skipped))
            skipped = 0
        out.append(f"{k + 1:>{width - 1}} {text}" if width else text)
        if below:
            out.append(" " * width + below)
    if skipped:
        out.append(_skipped(skipped))
    return "\n".join(out)


def _skipped(count: int) -> str:
    return f"(... {count} line{'s' if count > 1 else ''} skipped ...)"
