# SPDX-License-Identifier: Apache-2.0
"""Value numbering within straight code: what has been computed, and which stores make it stale.

Values are grouped by the memory that they were loaded from, so that a store drops whole groups.
"""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.tir.intrin import Effect, effect

Memory = frozenset  # of data pointers; ANY stands for memory that is not known
ANY: Any = "any"
NOWHERE: Memory = frozenset()
ANYWHERE: Memory = frozenset((ANY,))


def memory_of(e: tir.Expr) -> Memory:
    """The data pointers that evaluating ``e`` reads from."""
    kind = type(e)
    if kind is tir.Var or kind is tir.IntImm or kind is tir.FloatImm:
        return NOWHERE
    if e._facts is None:
        e._facts = {}
    known = e._facts.get("memory")
    if known is None:
        known = NOWHERE.union(*map(memory_of, e._below()))
        if kind is tir.BufferLoad:
            known = known | {e.buffer.data}
        elif kind is tir.Call and effect(e) is not Effect.PURE:
            known = known | ANYWHERE
        e._facts["memory"] = known
    return known


class Values:
    """Expression (or any key) to register."""

    __slots__ = ("groups",)

    def __init__(self, groups: dict[Memory, dict[Any, str]] | None = None) -> None:
        self.groups: dict[Memory, dict[Any, str]] = groups if groups is not None else {NOWHERE: {}}

    def group(self, memory: Memory) -> dict[Any, str]:
        """What was computed from this memory."""
        found = self.groups.get(memory)
        if found is None:
            found = self.groups[memory] = {}
        return found

    def copy(self) -> Values:
        """A copy to which a branch may add."""
        return Values({m: dict(g) for m, g in self.groups.items()})

    def clear(self) -> None:
        """Forget everything: a new block begins, or memory has changed in unknown ways."""
        self.groups = {NOWHERE: {}}

    def stored(self, data: tir.Var, distinct: set[tir.Var]) -> None:
        """Memory behind ``data`` has changed; pointers in ``distinct`` do not overlap one another."""
        if data in distinct:
            stale = [m for m in self.groups if m and (data in m or not m <= distinct)]
        else:
            stale = [m for m in self.groups if m]
        for m in stale:
            del self.groups[m]
