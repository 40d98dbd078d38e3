# SPDX-License-Identifier: Apache-2.0
"""Observers of pipelines: a timing table, printing after passes, the log of what was rewritten."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.module import IRModule
from ..ir.tir import BaseFunc
from .run import Observer


@dataclass(frozen=True)
class Timed:
    """Seconds that a pass took and whether it changed anything."""

    name: str
    seconds: float
    changed: bool


class Timing(Observer):
    """Measures passes: ``timing.records``, ``timing.total``, ``timing.table()`` for a terminal."""

    def __init__(self) -> None:
        self.records: list[Timed] = []

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        """Note how long the pass took, in seconds."""
        self.records.append(Timed(name, seconds, before is not after))

    @property
    def total(self) -> float:
        """Seconds of all passes."""
        return sum(r.seconds for r in self.records)

    def table(self) -> Any:
        """A ``rich`` table, in pipeline order."""
        from rich.table import Table

        table = Table("pass", "ms", "%", "changed", title="passes")
        for r in self.records:
            table.add_row(
                r.name,
                f"{r.seconds * 1e3:.2f}",
                f"{100 * r.seconds / (self.total or 1):.0f}",
                "yes" if r.changed else "",
            )
        table.add_row("total", f"{self.total * 1e3:.2f}", "100", "", style="bold")
        return table


class PrintAfter(Observer):
    """Prints the module after the named passes (``"*"``: after each that changed something; ``"input"``: before the
    first).
    """

    def __init__(self, names: Collection[str], show: Callable[[str, IRModule], None] | None = None) -> None:
        self.names, self.show = {names} if isinstance(names, str) else set(names), show or _print

    def begin(self, mod: IRModule) -> None:
        """Print the module as it came, where ``input`` is among the names."""
        if "input" in self.names:
            self.show("input", mod)

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        """Print the module, if this is the pass."""
        if name in self.names or ("*" in self.names and before is not after):
            self.show(name, after)


def _print(name: str, mod: IRModule) -> None:
    sys.stdout.write(f"# after {name}\n{mod.script()}\n")


@dataclass(frozen=True)
class Rewrite:
    """One function that a pass changed; ``before`` or ``after`` is None where it appeared or went away."""

    pass_name: str
    function: str
    before: BaseFunc | None
    after: BaseFunc | None

    def scripts(self) -> tuple[str, str]:
        """The function before and after as script."""
        return ("" if self.before is None else self.before.script()), (
            "" if self.after is None else self.after.script()
        )

    def diff(self, context: int = 3) -> str:
        """Unified diff of the two scripts."""
        old, new = self.scripts()
        lines = difflib.unified_diff(
            old.splitlines(),
            new.splitlines(),
            f"{self.function} before {self.pass_name}",
            f"{self.function} after {self.pass_name}",
            lineterm="",
            n=context,
        )
        return "\n".join(lines)


class RewriteLog(Observer):
    """Keeps what every pass changed: ``log.records``."""

    def __init__(self) -> None:
        self.records: list[Rewrite] = []

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        """Note the difference that the pass made, as lines of the script."""
        for function in changed(before, after):
            self.records.append(Rewrite(name, function, before.functions.get(function), after.functions.get(function)))


def changed(before: IRModule, after: IRModule) -> list[str]:
    """Names of functions that differ, appeared or went away (by identity)."""
    if before is after:
        return []
    return [n for n in {**before.functions, **after.functions} if before.functions.get(n) is not after.functions.get(n)]


__all__ = ["PrintAfter", "Rewrite", "RewriteLog", "Timed", "Timing", "changed"]
