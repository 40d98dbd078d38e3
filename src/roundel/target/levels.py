# SPDX-License-Identifier: Apache-2.0
"""Several machines of one family that one file is compiled for: its levels, of which a process runs the best that its processor can."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from .machines import LEVELS
from .target import Target, TargetLike


@dataclass(frozen=True)
class Level:
    """``name``: by which ``ROUNDEL_LEVEL`` asks for it and a file tells of it."""

    name: str
    target: Target

    @property
    def rank(self) -> tuple[int, int]:
        """Of two levels that a processor can run, it is given the one with the larger rank: wider vectors, then more features."""
        return self.target.vector_bytes, len(self.target.features)


def levels_of(given: Any) -> tuple[Level, ...]:
    """The levels that users name: ``"x86-64-any"``, ``"x86-64-v2,haswell,skylake-avx512"``, or a list of machines and of such names; the best first. A
    single machine, and None, have none.

    Raises OptionError for machines that cannot be in one file: of several families, without a loader that could choose, or two that need the same."""
    if isinstance(given, str):
        named = (given.strip(),) if given.strip() in LEVELS else _separate(given)
    else:
        named = tuple(given) if isinstance(given, list | tuple) else ()
    names: list[TargetLike] = []
    for name in named:
        several = LEVELS.get(name, (name,)) if isinstance(name, str) else (name,)
        names += [level for level in several if len(several) == 1 or level not in names]
    if isinstance(given, list | tuple) and not names:
        raise OptionError("the list of targets is empty", hint=f"for example {LEVELS['x86-64-any'][1:3]}, or the name {' or '.join(LEVELS)}")
    found = sorted((_level(name) for name in names), key=lambda level: level.rank, reverse=True)
    _check(found)
    return tuple(found)


def _separate(text: str) -> tuple[str, ...]:
    """Names with commas between them; the options of a single machine may have commas too."""
    first = text.strip().partition(" ")[0]
    return tuple(name.strip() for name in text.split(",")) if "," in first and not first.startswith("{") else ()


def _level(named: TargetLike) -> Level:
    target = Target(named)
    return Level(named if isinstance(named, str) and named in Target.named() else target.cpu, target)


def _check(levels: list[Level]) -> None:
    first = levels[0].target if levels else None
    for level in levels:
        target = level.target
        if first is not None and (target.arch, target.triple, target.kind) != (first.arch, first.triple, first.kind):
            raise OptionError(f"{levels[0].name} and {level.name} cannot be in one file", why=f"that is for {first.triple} and this for {target.triple}",
                              hint="compile a file for each")
        if target.kind != "llvm" or target.ending or target.is_bare:
            raise OptionError(f"{level.name} cannot be one of several machines of a file", why="nothing chooses between them when it is loaded there")
    for better, level in pairwise(levels):
        if better.name == level.name or (better.rank == level.rank and better.target.features == level.target.features):
            raise OptionError(f"{better.name} and {level.name} are levels for the same processors", why="they need the same features, so one would never run",
                              hint="leave one of them out")
