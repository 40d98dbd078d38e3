# SPDX-License-Identifier: Apache-2.0
"""The table of TensorIntrins. Those of Roundel are loaded on the first look: every module of this package may register some."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from roundel.ir import PrimFunc
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import RoundelError
from roundel.target import Target

SCALAR = "scalar"
"""What is in ``needs`` of sums that processors without a system compute in registers of their integers: no feature that LLVM knows."""

_table: dict[str, TensorIntrin] = {}
_families: dict[str, Callable[..., TensorIntrin]] = {}
_loaded = False


@dataclass(frozen=True)
class Cost:
    """Of one use of an instruction: ``latency`` is the cycles from its operands to its result, ``slots`` how many vector multiply-adds a core could
    issue in its place (1: as one of them; 2: twice as many). ``slots_with``: how many on processors with a feature, where some take longer. ``shared``: of
    the slots those that make one operand what is multiplied, which all uses of this operand share. ``registers``: how many it takes beside those of its
    operands and sums."""

    latency: float = 4.0
    slots: float = 1.0
    slots_with: tuple[tuple[str, float], ...] = ()
    shared: float = 0.0
    registers: int = 0

    def slots_on(self, features: Collection[str]) -> float:
        """``slots`` on a processor with these features."""
        return next((slots for feature, slots in self.slots_with if feature in features), self.slots)


@dataclass(frozen=True)
class TensorIntrin:
    """``desc`` and ``impl`` are tensor programs with the same buffer parameters.

    ``desc`` is one block (no init) in a nest of loops with constant extents, reading and writing its parameters;
    ``impl`` does the same to them. ``needs`` are the features of a machine that has it, by LLVM's names; ``cost`` is None where nobody said.
    ``storage`` is the scope that the memory of an operand must have, by the operand's name (none: any memory). ``companions`` are other
    instructions that go with it by their role (``init``, ``load``, ``store``, ``configure``, ``release``). ``has_effects``: it changes state of the
    machine beside its operands, so that it is neither moved nor left out. ``flushes_denormals``: numbers too small for a normal float32 count as zero.
    """

    name: str
    desc: PrimFunc
    impl: PrimFunc
    needs: tuple[str, ...] = ()
    cost: Cost | None = None
    storage: Mapping[str, str] = field(default_factory=dict, hash=False)
    companions: Mapping[str, str] = field(default_factory=dict, hash=False)
    has_effects: bool = False
    flushes_denormals: bool = False

    def runs_on(self, target: Target) -> bool:
        """Whether a machine has it."""
        return all(target.has(feature) or (feature == SCALAR and target.is_bare) for feature in self.needs)

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False, **facts: Any) -> TensorIntrin:
        """Enter an instruction into the table; ``facts`` are the other fields. Raises RoundelError when its programs do not go together, or where
        ``storage`` names no operand."""
        if name in _table and not override:
            raise RoundelError(f"there is a tensor intrinsic {name!r} already", hint="override=True replaces it")
        shapes = [[(b.dtype, b.shape) for b in f.buffer_params] for f in (desc, impl)]
        if shapes[0] != shapes[1]:
            raise RoundelError(f"description and implementation of {name!r} have different parameters", why=f"{shapes[0]}\n{shapes[1]}")
        if desc.root_block is None or impl.root_block is None:
            raise RoundelError(f"description and implementation of {name!r} have to be in block form")
        made = TensorIntrin(name, desc, impl, **facts)
        if unknown := set(made.storage) - {b.name for b in desc.buffer_params}:
            raise RoundelError(f"{name!r} says where {', '.join(sorted(unknown))} is stored, which is no operand of it")
        _table[name] = made
        return _table[name]

    @staticmethod
    def family(pattern: str, make: Callable[..., TensorIntrin]) -> None:
        """Instructions that are made when they are asked for: ``make`` registers one, given the groups of its name's pattern."""
        _families[pattern] = make

    @staticmethod
    def get(name: str) -> TensorIntrin:
        """The instruction of this name; raises RoundelError naming close ones."""
        load()
        if name not in _table:
            for pattern, make in _families.items():
                if found := re.fullmatch(pattern, name):
                    return make(*found.groups())
            near = get_close_matches(name, _table)
            raise RoundelError(
                f"there is no tensor intrinsic {name!r}",
                hint=f"did you mean {near[0]}?" if near else f"known are {', '.join(_table)}",
            )
        return _table[name]

    @staticmethod
    def names() -> list[str]:
        """All names."""
        load()
        return sorted(_table)

    @staticmethod
    def all() -> list[TensorIntrin]:
        """Every instruction of the table, in the order in which they were entered."""
        load()
        return list(_table.values())


def load() -> None:
    """Enter Roundel's own instructions, once in a process."""
    global _loaded
    if not _loaded:
        _loaded = True
        for path in sorted(Path(__file__).parent.glob("*.py")):
            import_module(f"{__package__}.{path.stem}")
