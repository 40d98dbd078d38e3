# SPDX-License-Identifier: Apache-2.0
"""Assembly for readers: without directives, and the loop in it that does the work."""

from __future__ import annotations

import re

from ..ir.dataclass import dataclass

_LABEL = re.compile(r"^([.\w$]+):")
_DIRECTIVE = re.compile(r"^\s*\.(?!L)")  # a label may begin with .L
_JUMP = re.compile(r"^\s+(?:j\w+|b(?:\.\w+|eq|ne|lt|ge|gt|le|hs|lo|hi|ls|nez|eqz|ltu|geu)?|cbn?z|tbn?z|bdnz)\s+(?:[^#/]*[\s,])?([.\w$]+)\s*(?:[#/].*)?$")
_ARITHMETIC = re.compile(  # of vectors and floating-point numbers: x86 and RISC-V begin such names with v, ARM and RISC-V with f
    r"^\s+(?:v(?!mov|zero|p?xor|p?broadcast|set|[ls]e?\d|perm|shuf|unpck)\w+|(?:add|sub|mul|div|sqrt|max|min)[sp][sd]|f(?!mov|[ls][dwq])\w+|(?:us|su|[us]|bf)dot|tdp\w+)\b")


@dataclass(frozen=True)
class Loop:
    """A loop without a loop in it: its lines, and how many of them compute."""

    lines: tuple[str, ...]
    arithmetic: int


def plain(text: str) -> list[str]:
    """The lines that are instructions or labels, without the comments of the compiler."""
    lines = (re.sub(r"(?:^|\s)\s*(?:#|//|@)(?:\s.*)?$", "", line).rstrip() for line in text.splitlines())
    return [line.expandtabs(8) for line in lines if line.strip() and not _DIRECTIVE.match(line)]


def inner_loops(text: str) -> list[Loop]:
    """The innermost loops of a function, that with the most arithmetic first: from each label to the last jump back to it that leaves out
    no other loop."""
    lines = plain(text)
    labels = {found[1]: k for k, line in enumerate(lines) if (found := _LABEL.match(line))}
    spans = set()
    for k, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and labels.get(jump[1], k) < k:
            spans.add((labels[jump[1]], k))
    inner = [(a, b) for a, b in spans if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in spans)]
    found = [Loop(tuple(lines[a : b + 1]), sum(bool(_ARITHMETIC.match(line)) for line in lines[a : b + 1])) for a, b in inner]
    return sorted(found, key=lambda loop: (-loop.arithmetic, len(loop.lines)))


def working_loop(text: str) -> str:
    """The lines of the innermost loop with the most arithmetic, as one text; all instructions where nothing loops."""
    loops = inner_loops(text)
    return "\n".join(loops[0].lines if loops else plain(text))
