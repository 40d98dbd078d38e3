# SPDX-License-Identifier: Apache-2.0
"""The table of TensorIntrins; those of Roundel are loaded on the first look."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

from roundel.ir import PrimFunc
from roundel.ir.errors import RoundelError

_table: dict[str, TensorIntrin] = {}
_families: dict[str, Callable[..., TensorIntrin]] = {}
_BUILTIN = ("x86", "generic", "transpose")
_loaded = False


@dataclass(frozen=True)
class TensorIntrin:
    """``desc`` and ``impl`` are tensor programs with the same buffer parameters.

    ``desc`` is one block (no init) in a nest of loops with constant extents, reading and writing its parameters;
    ``impl`` does the same to them.
    """

    name: str
    desc: PrimFunc
    impl: PrimFunc

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Enter an instruction into the table; raises RoundelError when its programs do not go together."""
        if name in _table and not override:
            raise RoundelError(f"there is a tensor intrinsic {name!r} already", hint="override=True replaces it")
        shapes = [[(b.dtype, b.shape) for b in f.buffer_params] for f in (desc, impl)]
        if shapes[0] != shapes[1]:
            raise RoundelError(f"description and implementation of {name!r} have different parameters", why=f"{shapes[0]}\n{shapes[1]}")
        if desc.root_block is None or impl.root_block is None:
            raise RoundelError(f"description and implementation of {name!r} have to be in block form")
        _table[name] = TensorIntrin(name, desc, impl)
        return _table[name]

    @staticmethod
    def family(pattern: str, make: Callable[..., TensorIntrin]) -> None:
        """Instructions that are made when they are asked for: ``make`` registers one, given the groups of its name's pattern."""
        _families[pattern] = make

    @staticmethod
    def get(name: str) -> TensorIntrin:
        """The instruction of this name; raises RoundelError naming close ones."""
        _load()
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
        _load()
        return sorted(_table)


def _load() -> None:
    global _loaded
    if not _loaded:
        _loaded = True
        for module in _BUILTIN:
            import_module(f"{__package__}.{module}")
