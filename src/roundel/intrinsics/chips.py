# SPDX-License-Identifier: Apache-2.0
"""The accelerators that targets may name: those that a program registered, and those of installed packages. Compilers ask here whether a target has one, which
most have not, so what describes a chip is imported by those who describe one (`roundel.intrinsics.accelerators`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roundel.ir import extensions
from roundel.ir.errors import RoundelError

if TYPE_CHECKING:
    from .accelerators import Accelerator

ATTRIBUTE = "accelerator"  # of programs that run on one: what lowering has to know of it, in JSON
_registered: dict[str, Accelerator] = {}
_looked_for: set[str] = set()  # names for which installed packages were asked


def register(chip: Accelerator) -> Accelerator:
    """Let targets name a chip (``-device=``). Models that are compiled while one is registered are not kept in the cache on disk. Raises RoundelError
    where another one has its name."""
    if _registered.get(chip.name, chip) is not chip:
        raise RoundelError(f"there is an accelerator {chip.name!r} already", hint="unregister it first")
    _registered[chip.name] = chip
    extensions.add(chip)
    return chip


def unregister(chip: Accelerator) -> None:
    """Forget a chip. Raises RoundelError where it is not registered."""
    if _registered.get(chip.name) is not chip:
        raise RoundelError(f"accelerator {chip.name!r} is not registered")
    del _registered[chip.name]
    extensions.remove(chip)


def of_target(target: Any) -> Accelerator | None:
    """The chip that a target names, if one of that name is registered, or an installed package has it (entry point ``roundel.accelerators``)."""
    name = dict(target.attrs).get("device", "") if target.attrs else ""
    if name and name not in _registered and name not in _looked_for:
        from importlib.metadata import entry_points

        _looked_for.add(name)
        for entry in entry_points(group="roundel.accelerators", name=name):
            register(entry.load())
    return _registered.get(name)


def is_scope(scope: str) -> bool:
    """Whether memory of this scope belongs to a registered chip."""
    return any(scope in chip.memories for chip in _registered.values())
