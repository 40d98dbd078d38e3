# SPDX-License-Identifier: Apache-2.0
"""What was measured, as plain data: of a tensor program a schedule and how long it took, of a node of a model the best way to compute it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from .dataclass import dataclass


@dataclass(frozen=True)
class Key:
    """What a measurement holds for: the ``program`` (a digest without names; which parameters are constants counts), the machine's ``target``
    (a digest of what code it can run, whatever its rates were taken for), the number of ``threads``, and ``options`` that shape code."""

    program: str
    target: str
    threads: int
    options: str = ""


@dataclass(frozen=True)
class Timing:
    """How long a call took at one combination of sizes, in the order in which the parameters name them: the median in ``seconds``, its ``spread`` (the distance
    between the quartiles as a share of the median), and in how many ``runs``."""

    sizes: tuple[int, ...]
    seconds: float
    spread: float = 0.0
    runs: int = 1


@dataclass(frozen=True)
class Rival:
    """What came behind the winner: a sketch with its decisions, and the seconds that it took."""

    sketch: str
    decisions: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class Guarded:
    """Another schedule of a program with symbolic sizes, which runs where the size number ``size``, in the order in which the parameters name them, is no
    more than ``most``. It lays constants out as the record does."""

    most: int
    sketch: str
    decisions: Mapping[str, Any]
    trace: Sequence[Any]
    size: int = 0


@dataclass(frozen=True)
class Record:
    """One measured schedule of a program.

    ``sketch`` and ``decisions`` tell a reader where it came from. ``trace`` are its steps and ``layouts`` those of the constants, by the position
    of the parameter, both as `roundel.strategy.replay` reads them; without a trace it is a trial, which is remembered and not compiled from. ``error`` says how
    the candidate failed. ``default`` is what the untuned kernel took, in seconds, measured in turn with this one. ``by`` and ``at`` (seconds
    since 1970) say who measured it and when, ``versions`` with what, ``name`` what the kernel was called then. ``variants`` run in its place where their
    guards hold, the first that does.
    """

    key: Key
    sketch: str
    decisions: Mapping[str, Any] = field(default_factory=dict)
    trace: Sequence[Any] | None = None
    layouts: Mapping[str, Any] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    error: str = ""
    default: float | None = None
    second: tuple[Rival, ...] = ()
    by: str = ""
    at: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    variants: tuple[Guarded, ...] = ()

    @property
    def seconds(self) -> float:
        """The sum over all sizes; infinite where nothing was measured, or the candidate failed."""
        return sum(t.seconds for t in self.timings) if self.timings and not self.error else float("inf")

    @property
    def origin(self) -> str:
        """Who measured it and when, in words."""
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at)) if self.at else "at an unknown time"
        return f"measured {day} by {self.by or 'somebody unknown'}"


@dataclass(frozen=True)
class ChoiceRecord:
    """The best way to compute nodes of a kind. ``key.program`` is the signature of the choice (`roundel.ir.choice.Choosing.signature`), ``taken`` one
    of its alternatives, ``seconds`` what each that was measured took: a run of the whole model, or of the part that is chosen for. ``subject`` says what
    is computed there; ``libraries`` are the versions of the backends among the alternatives, ``wrong`` says of those that computed something else
    what it was, ``crashed`` of those that ended the process or never came back how, ``sizes`` what it was measured for where sizes are symbolic.
    ``by``, ``at`` and ``versions`` as for a `Record`."""

    key: Key
    taken: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    subject: str = ""
    by: str = ""
    at: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    crashed: Mapping[str, str] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, int]] = ()
