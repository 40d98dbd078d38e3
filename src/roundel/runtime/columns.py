# SPDX-License-Identifier: Apache-2.0
"""Tables as text, no wider than a terminal of 80 columns: names are never cut, lines of notes are folded between words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import field

from ..ir.dataclass import dataclass

WIDTH = 80
_INDENT = "  "


@dataclass(frozen=True)
class Row:
    """A name, figures in columns to the right of it (below it, where it is too long for that), and notes under both."""

    name: str
    figures: Sequence[str]
    notes: Sequence[str] = field(default=())


def table(head: str, columns: Sequence[str], rows: Sequence[Row], title: str = "") -> str:
    """The rows under their heads; each column is as wide as its widest figure. ``head``: of the names."""
    widths = [max(map(len, column)) for column in zip(columns, *(r.figures for r in rows))]
    room = WIDTH - sum(w + 2 for w in widths)  # for names
    room = min(room, max([len(head), *(len(r.name) for r in rows if len(r.name) <= room)]))

    def figures(texts: Sequence[str]) -> str:
        return "".join(f"  {text:>{width}}" for text, width in zip(texts, widths))

    lines = [title, ""] if title else []
    lines += [f"{head:<{room}}{figures(columns)}", "-" * (room + sum(w + 2 for w in widths))]
    for row in rows:
        if len(row.name) <= room:
            lines.append(f"{row.name:<{room}}{figures(row.figures)}")
        else:
            lines += [row.name, " " * room + figures(row.figures)]
        for note in row.notes:
            lines += folded(note)
    return "\n".join(line.rstrip() for line in lines)


def folded(text: str) -> list[str]:
    """A note in lines of at most 80 columns, indented; a word that is longer stays whole."""
    return textwrap.wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_long_words=False, break_on_hyphens=False)


def hanging(text: str) -> list[str]:
    """A sentence in such lines, of which those after the first are indented."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
