# SPDX-License-Identifier: Apache-2.0
"""What ``build`` knows of a code generator, and the code generators that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Protocol

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.errors import BuildError
from ..lower.facts import Facts, facts_of
from ..target.spec import MachineSpec
from .data import Data


@dataclass(frozen=True)
class Function:
    """A flat tensor program to be written as the function ``symbol``; ``symbols`` gives the symbols of those that it calls."""

    symbol: str
    program: tir.PrimFunc
    symbols: Callable[[str], str] = str
    facts: Facts = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.facts is None:
            object.__setattr__(self, "facts", facts_of(self.program))


@dataclass(frozen=True)
class Emitted:
    """Text of a code generator. ``pipeline`` says how it is to be compiled, ``risky`` that compiling it may end the process. ``parts``: the functions,
    each in a text of its own, whose objects are together what that of the text is; none where they are not to be had apart."""

    text: str
    pipeline: str
    risky: bool = False
    parts: Callable[[], Sequence[str]] = tuple


class Backend(Protocol):
    """A code generator: flat tensor programs (`roundel.lower.flat`) and constant data to text, text to an object."""

    @property
    def version(self) -> str:
        """What objects depend on besides their text and the machine."""

    def check(self, spec: MachineSpec) -> None:
        """Raises OptionError for a machine that the code generator does not know."""

    def emit(self, functions: Sequence[Function], spec: MachineSpec, data: Sequence[Data] = ()) -> Emitted:
        """Functions that are compiled together, a kernel before its tasks, and data that refers to them. Raises BuildError."""

    def object(self, text: str, spec: MachineSpec, pipeline: str) -> bytes:
        """The object that a text is compiled to, or what it is until all units are put together. Raises BuildError."""

    def linkable(self, objects: Sequence[bytes], spec: MachineSpec) -> list[bytes]:
        """What a linker takes, of all units of a module. Raises BuildError."""

    def features(self, spec: MachineSpec, called: Callable[[], Collection[str]]) -> list[str]:
        """The features of a processor without which the code cannot run, by LLVM's names. ``called`` tells the instructions that it calls by name."""

    def optimised(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """The text after the compiler's passes, for people."""

    def assembly(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """The text as assembly, for people."""


def _llvm() -> Backend:
    from .llvm.backend import BACKEND

    return BACKEND


def _c() -> Backend:
    from .c.backend import BACKEND

    return BACKEND


BACKENDS = {"llvm": _llvm, "c": _c}
"""Kinds of targets that there is a code generator for, and what imports it when it is needed first."""


def backend_of(kind: str) -> Backend:
    """The code generator for a kind of target. Raises BuildError where there is none."""
    if kind not in BACKENDS:
        raise BuildError(f"there is no code generator for target kind {kind} yet", hint=f"kinds with one are {', '.join(BACKENDS)}")
    return BACKENDS[kind]()
