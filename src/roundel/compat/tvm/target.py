# SPDX-License-Identifier: Apache-2.0
"""``tvm.target``: targets, and the one that a ``with`` names."""

from __future__ import annotations

from typing import Any

from ...ir.errors import OptionError
from ...target import Target as _Target

_within: list[Any] = []


class Target(_Target):
    """`rd.Target`; ``with target:`` makes it that of ``build`` without one."""

    def __enter__(self) -> Target:
        _within.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _within.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Any:
        """The target of the innermost ``with``; None outside of all, or a ValueError."""
        if not _within and not allow_none:
            raise ValueError("there is no `with target:` around")
        return _within[-1] if _within else None

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device: this machine. Raises OptionError for one that programs cannot run on."""
        kind = getattr(device, "device_type", str(device).split(":")[0])
        if kind not in ("cpu", "llvm"):
            raise OptionError(f"there is no device {kind}", hint="programs run on the processor, tvm.cpu()")
        return Target(_Target.host())


__all__ = ["Target"]
