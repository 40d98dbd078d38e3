# SPDX-License-Identifier: Apache-2.0
"""``@pass_("name")``: a function from module to module that has a name."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.errors import OptionError
from ..ir.module import IRModule

Pass = Callable[[IRModule], IRModule]
_known: dict[str, Pass] = {}


def pass_(name: str) -> Callable[[Pass], Pass]:
    """Names a pass and makes it findable by name (``.name``). A pass returns the same module when nothing changed."""

    def mark(fn: Pass) -> Pass:
        fn.name = name  # type: ignore[attr-defined]
        _known[name] = fn
        return fn

    return mark


def find_pass(name: str) -> Pass:
    """The pass of this name; raises OptionError listing the known ones."""
    if name not in _known:
        raise OptionError(f"there is no pass {name!r}", hint=f"known are {', '.join(sorted(_known))}")
    return _known[name]


def known_passes() -> dict[str, Pass]:
    """All passes that were imported, by name."""
    return dict(sorted(_known.items()))
