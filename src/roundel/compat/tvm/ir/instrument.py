# SPDX-License-Identifier: Apache-2.0
"""``tvm.ir.instrument``: what is called before and after each pass of a ``PassContext``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class PassInstrument:
    """Base of instruments; each method is optional, ``should_run(mod, info)`` tells whether a pass runs."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """A class with `enter_pass_ctx`, `exit_pass_ctx`, `should_run`, `run_before_pass` or `run_after_pass` as an instrument: a decorator"""
    return (lambda found: found) if pi_cls is None else pi_cls


class PassTimingInstrument(PassInstrument):
    """The times of passes; those that a list of passes runs stand below it."""

    def __init__(self) -> None:
        self.times: list[tuple[int, str, float]] = []
        self._open: list[tuple[int, float]] = []

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Start the clock."""
        self._open.append((len(self.times), time.perf_counter()))
        self.times.append((len(self._open) - 1, info.name, 0.0))

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Stop the clock."""
        place, start = self._open.pop()
        self.times[place] = (*self.times[place][:2], time.perf_counter() - start)

    def render(self) -> str:
        """A line for each pass that ran, in microseconds."""
        return "".join(f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us\n" for depth, name, seconds in self.times)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names."""

    def __init__(self, print_before_pass_names: Sequence[str], print_after_pass_names: Sequence[str]) -> None:
        self.before, self.after = tuple(print_before_pass_names), tuple(print_after_pass_names)

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Print it."""
        if info.name in self.before:
            print(f"Print IR before: {info.name}\n{mod}\n")

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Print it."""
        if info.name in self.after:
            print(f"Print IR after: {info.name}\n{mod}\n")


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Print it."""
        print(f"Before Running Pass: {info.name}\n{mod}")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Print it."""
        print(f"After Running Pass: {info.name}\n{mod}")


class DumpIR(PassInstrument):
    """Writes the module after each pass into a folder, numbered."""

    def __init__(self, dump_dir: Path | str, refresh: bool = False) -> None:
        self.folder, self.counter = Path(dump_dir), 0
        if refresh:
            for old in self.folder.glob("*.py"):
                old.unlink()

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Write it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.counter:03d}_{info.name}.py").write_text(mod.script())
        self.counter += 1


__all__ = ["DumpIR", "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "pass_instrument"]
