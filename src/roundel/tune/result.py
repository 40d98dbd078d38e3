# SPDX-License-Identifier: Apache-2.0
"""What tuning found: a row for each task, and what it means for the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.errors import TuneError
from ..runtime.toolchain import atomic_output
from ..schedule import Schedule
from .attempt import Attempt
from .graphs import Chosen
from .paths import Compared


@dataclass(frozen=True)
class Row:
    """A task. ``weight``: calls in a run of the model. ``default_ms`` and ``best_ms``: milliseconds of a call, untuned and tuned (None: it was not
    measured, ``note`` says why). ``sketch`` and ``decisions`` are those of the schedule that is used from now on."""

    name: str
    weight: float
    trials: int
    failures: int
    default_ms: float | None
    best_ms: float | None
    sketch: str
    decisions: Mapping[str, Any]
    is_tuned: bool
    note: str = ""

    @property
    def gain(self) -> float:
        """How many times as fast as untuned."""
        return self.default_ms / self.best_ms if self.default_ms and self.best_ms else 1.0


@dataclass(frozen=True, eq=False)
class Result:
    """What ``rd.tune`` gives: the rows by task, also under the kernels' names, ``result["main"]``. ``seconds``: for how long it tuned. ``paths``: parts
    of the model with the times of generated code and of libraries. ``inside``: what a run of the model took with the winners, relative to one without
    them, by turns; nothing where that was not measured, or no winner stayed. ``chosen``: the choices of the graph, where they were measured."""

    attempts: Sequence[Attempt]
    seconds: float
    database: Path | None
    was_interrupted: bool = False
    paths: Sequence[Compared] = ()
    inside: Sequence[float] = ()
    chosen: Chosen | None = None

    @property
    def rows(self) -> list[Row]:
        """One for each task, those that take the most time first."""
        return sorted(map(row, self.attempts), key=lambda r: -r.weight * (r.default_ms or 0.0))

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, kernel: str) -> Row:
        return row(self._attempt(kernel))

    def _attempt(self, kernel: str | None) -> Attempt:
        for attempt in self.attempts:
            if kernel in attempt.task.names or (kernel is None and len(self.attempts) == 1):
                return attempt
        known = ", ".join(n for a in self.attempts for n in a.task.names)
        raise TuneError(f"there is no task {kernel!r}" if kernel else "there are several tasks", hint=f"name one of {known}")

    def schedule(self, kernel: str | None = None) -> Schedule:
        """The fastest schedule of a tensor program (default: of the only one), with its trace. Raises TuneError."""
        return self._attempt(kernel).schedule().schedule

    def func(self, kernel: str | None = None) -> tir.PrimFunc:
        """The tensor program as that schedule makes it, for ``rd.build``. Where the program has constants, they are to be laid out as the schedule
        wants them. Raises TuneError."""
        return self._attempt(kernel).func()

    def model_ms(self) -> tuple[float, float]:
        """Milliseconds of a run of all kernels that were measured, untuned and tuned."""
        known = [r for r in self.rows if r.default_ms is not None and r.best_ms is not None]
        return sum(r.weight * r.default_ms for r in known), sum(r.weight * r.best_ms for r in known)  # type: ignore[operator,misc]

    @property
    def gain(self) -> float:
        """How many times as fast as untuned, kernels alone."""
        before, after = self.model_ms()
        return before / after if after else 1.0

    @property
    def model_gain(self) -> float | None:
        """How many times as fast as untuned a run of the model is, measured from end to end; None where it was not measured."""
        return 1 / median(self.inside) if self.inside else None

    def report(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Write a page of HTML that needs nothing else: for each task how it became faster, what its candidates took by their decisions, and how well
        that was predicted. ``title``: what was tuned. Raises RoundelError."""
        from .report import page

        with atomic_output(Path(path)) as temporary:
            temporary.write_text(page(self, title), encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        before, after = self.model_ms()
        graph = self.chosen.as_dict() if self.chosen is not None else None
        return {"tasks": [asdict(r) | {"gain": r.gain} for r in self.rows], "default_ms": before, "best_ms": after, "gain": self.gain,
                "model_gain": self.model_gain, "graph": graph, "paths": [asdict(c) for c in self.paths],
                "trials": sum(r.trials for r in self.rows), "seconds": self.seconds,
                "database": str(self.database) if self.database else None, "interrupted": self.was_interrupted}

    def __str__(self) -> str:
        lines = [f"{'task':40s} {'weight':>6s} {'trials':>6s} {'default ms':>10s} {'best ms':>10s} {'gain':>6s}"]
        for r in self.rows:
            times = f"{_ms(r.default_ms)} {_ms(r.best_ms)} {r.gain:5.2f}x" if r.default_ms is not None else r.note or "not measured"
            lines.append(f"{r.name[:40]:40s} {r.weight:6g} {r.trials:6d} {times}")
        before, after = self.model_ms()
        lines.append(f"{'together':40s} {'':13s} {_ms(before)} {_ms(after)} {self.gain:5.2f}x")
        if self.model_gain is not None:
            lines.append(f"{'the model, from end to end':40s} {'':35s} {self.model_gain:5.2f}x")
        return "\n".join([*lines, *([str(self.chosen)] if self.chosen is not None and self.chosen.measured else []), *map(str, self.paths)])

    __repr__ = __str__


def _ms(value: float | None) -> str:
    return f"{value:10.4f}" if value is not None else f"{'':10s}"


def row(attempt: Attempt) -> Row:
    """What is known of a task now."""
    task = attempt.task
    if not attempt.is_open:
        return Row(task.name, task.weight, attempt.trials, attempt.failures, None, None, "", {}, False, attempt.why_not)
    chosen = attempt.winner or attempt.best
    return Row(task.name, task.weight, attempt.trials, attempt.failures, attempt.default.total * 1e3, attempt.seconds * 1e3, chosen.sketch,
               dict(chosen.decisions), attempt.is_tuned, f"{len(attempt.variants)} others for smaller sizes" if attempt.variants else "")
