# SPDX-License-Identifier: Apache-2.0
"""Reading x86 assembly text: the hottest loop of a kernel, its multiply-adds and its stack accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"^(\.?[\w$]+):")
_JUMP = re.compile(r"^\s*j\w+\s+(\.?[\w$]+)")
_FRAME = re.compile(r"mov\w*\s+%rsp,\s*%rbp")  # then %rbp points to the stack too


@dataclass(frozen=True)
class Loop:
    """The instructions between a label and the jump back to it."""

    body: tuple[str, ...]
    stack: str  # the operands that are on the stack, as a regular expression

    def count(self, pattern: str) -> int:
        """How many instructions match the regular expression."""
        return sum(1 for line in self.body if re.search(pattern, line))

    @property
    def multiply_adds(self) -> int:
        """Vector multiply-adds."""
        return self.count(r"\bvfn?m(add|sub)\d*[ps][sd]")

    @property
    def stack_accesses(self) -> int:
        """Instructions that read or write the stack: spills."""
        return self.count(self.stack)


def innermost_loops(text: str) -> list[Loop]:
    """Every loop that has no loop inside."""
    lines = [s.split("#")[0].rstrip() for s in text.splitlines()]
    lines = [s for s in lines if s.strip() and (_LABEL.match(s) or not s.strip().startswith("."))]
    labels = {m[1]: k for k, s in enumerate(lines) if (m := _LABEL.match(s))}
    spans = []
    for k, s in enumerate(lines):
        jump = _JUMP.match(s)
        if jump and labels.get(jump[1], k) < k:
            spans.append((labels[jump[1]], k))
    stack = r"\(%r[sb]p" if _FRAME.search(text) else r"\(%rsp"
    inner = [s for s in spans if not any(t != s and s[0] <= t[0] and t[1] <= s[1] for t in spans)]
    return [Loop(tuple(x.strip() for x in lines[a : b + 1] if not _LABEL.match(x)), stack) for a, b in inner]


def hottest_loop(text: str) -> Loop:
    """The innermost loop with the most multiply-adds."""
    return max(innermost_loops(text), key=lambda loop: loop.multiply_adds)
