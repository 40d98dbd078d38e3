# SPDX-License-Identifier: Apache-2.0
"""What was measured of a tensor program, in a form that outlives the process: a record of a schedule and how long it took.

A record holds the steps of the schedule themselves (`replay`), so that a later change of the rule that proposed them does not change what is
compiled from the record. Where records come from is not known here: the compiler asks an object that has the methods of `Records`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..ir import options, tir
from ..ir.choice import OF_THE_CALL
from ..ir.digest import structural_digest
from ..ir.record import ChoiceRecord, Key, Record, Rival, Timing
from ..ir.visit import walk
from .program import Program

__all__ = ["Key", "Record", "Records", "Rival", "Timing", "key_of", "program_digest", "sizes_of"]


class Records(Protocol):
    """What the compiler asks for measurements that were made for its target, threads and options. ``backends``: those (`roundel.backends`) that were
    measured to be the fastest for anything."""

    @property
    def backends(self) -> Sequence[str]:
        """Their names."""

    def best(self, program: str) -> Record | None:
        """The fastest schedule that was measured of a program (its digest)."""

    def choice(self, signature: str) -> ChoiceRecord | None:
        """What was measured to be the best at nodes of a kind (`roundel.ir.choice.Choosing.signature`)."""

    def choices_at(self, signature: str) -> Sequence[ChoiceRecord]:
        """What was measured last at nodes of a kind, with any number of threads and any options: what is wrong with one is wrong with all."""

    def taken(self, kernel: str, record: Record) -> None:
        """A kernel is compiled from a record."""

    def tell(self, message: str) -> None:
        """Warn of a record that cannot be used."""


def key_of(program: Program, threads: int) -> Key:
    """The key of what is measured of a program with so many threads, under the current options."""
    return Key(program_digest(program), program.target.fingerprint, threads, options.of_schedules())


def program_digest(program: Program) -> str:
    """That of a program and the positions of its constants."""
    return program.once("digest", lambda: structural_digest((program.func, tuple(program.constants)), without_attrs=OF_THE_CALL))


def sizes_of(func: tir.PrimFunc) -> tuple[tir.Var, ...]:
    """The symbolic sizes of a program in the order in which its parameters name them."""
    named = [x for p in func.params for x in ([p] if p not in func.buffers else func.buffers[p].shape)]
    return tuple(dict.fromkeys(v for x in named for v in walk(x) if isinstance(v, tir.Var) and v.is_index))
