# SPDX-License-Identifier: Apache-2.0
"""What was measured of a tensor program, in a form that outlives the process: a record of a schedule and how long it took.

A record holds the steps of the schedule themselves (`replay`), so that a later change of the rule that proposed them does not change what is
compiled from the record. Where records come from is not known here: the compiler asks an object that has the methods of `Records`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..ir import options, tir
from ..ir.digest import structural_digest
from ..ir.visit import walk
from ..target import Target
from .program import Program

OF_THE_CALL = ("constant_params", "decisions", "fuse_kind", "global_symbol", "noalias", "num_outputs", "pinned_at", "schedule_notes", "target", "tir.noalias")
"""Attributes of a program that say who calls it, how, and what was asked for, and nothing of what it computes."""


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
    """How long a call took at one combination of sizes, in the order of `sizes_of`: the median in ``seconds``, its ``spread`` (the distance
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
class Record:
    """One measured schedule of a program.

    ``sketch`` and ``decisions`` tell a reader where it came from. ``trace`` are its steps and ``layouts`` those of the constants, by the position
    of the parameter, both as `replay` reads them; without a trace it is a trial, which is remembered and not compiled from. ``error`` says how
    the candidate failed. ``default`` is what the untuned kernel took, in seconds, measured in turn with this one. ``by`` and ``at`` (seconds
    since 1970) say who measured it and when, ``versions`` with what, ``name`` what the kernel was called then.
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

    @property
    def seconds(self) -> float:
        """The sum over all sizes; infinite where nothing was measured, or the candidate failed."""
        return sum(t.seconds for t in self.timings) if self.timings and not self.error else float("inf")


class Records(Protocol):
    """What the compiler asks for measurements."""

    def best(self, program: Program) -> Record | None:
        """The fastest schedule that was measured of a program, on a machine like its target."""

    def tell(self, message: str) -> None:
        """Warn of a record that cannot be used."""


def key_of(program: Program, threads: int) -> Key:
    """The key of what is measured of a program with so many threads, under the current options."""
    return Key(program_digest(program), target_digest(program.target), threads, shaping_options())


def program_digest(program: Program) -> str:
    """That of a program and the positions of its constants."""
    return program.once("digest", lambda: structural_digest((program.func, tuple(program.constants)), without_attrs=OF_THE_CALL))


def target_digest(target: Target) -> str:
    """That of the code that a machine can run and the width of its vectors. Rates and sizes of caches do not count: a record tells what is fast
    here, however a model explains it."""
    return structural_digest((target.kind, target.triple, target.cpu, tuple(sorted(target.features)), target.vector_bytes, target.vector_registers,
                              tuple((k, str(v)) for k, v in target.attrs)))[:16]


def shaping_options() -> str:
    """Options that decide which schedules may be taken, as text."""
    return f"accuracy={options.get('accuracy')}"


def sizes_of(func: tir.PrimFunc) -> tuple[tir.Var, ...]:
    """The symbolic sizes of a program in the order in which its parameters name them."""
    named = [x for p in func.params for x in ([p] if p not in func.buffers else func.buffers[p].shape)]
    return tuple(dict.fromkeys(v for x in named for v in walk(x) if isinstance(v, tir.Var) and v.is_index))
