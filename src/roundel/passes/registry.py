# SPDX-License-Identifier: Apache-2.0
"""What a pass is: a named function from module to module, found by name from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from ..ir import above
from ..ir.errors import OptionError
from ..ir.module import IRModule

Transform = Callable[[IRModule], IRModule]
_passes: dict[str, Pass] = {}


class Pass:
    """A named pass; calling it applies it. It returns the same object when nothing changed."""

    def __init__(self, name: str, fn: Transform) -> None:
        self.name, self.fn, self.__wrapped__ = name, fn, fn
        self.__name__, self.__doc__, self.__module__ = name, fn.__doc__, fn.__module__

    def __call__(self, mod: IRModule) -> IRModule:
        if not isinstance(mod, IRModule):
            raise OptionError(f"the pass {self.name} takes a module, not a {type(mod).__name__}", hint='a function becomes one by IRModule({"main": func})')
        return self.fn(mod)

    def __repr__(self) -> str:
        return self.name


def pass_(name: str) -> Callable[[Transform], Pass]:
    """``@pass_("fold_constants") def fold_constants(mod): ...`` makes a named, registered pass."""

    def make(fn: Transform) -> Pass:
        made = _passes[name] = Pass(name, fn)
        return made

    return make


def name_of(p: Any) -> str:
    """The name of a pass, or of a plain function used as one."""
    return str(getattr(p, "name", None) or getattr(p, "__name__", type(p).__name__))


def get_pass(name: str) -> Pass:
    """The registered pass of this name; raises OptionError naming close ones."""
    if name not in _passes:
        above.define_passes()
    if name not in _passes:
        near = get_close_matches(name, _passes)
        raise OptionError(f"there is no pass {name!r}", hint=f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(_passes))}")
    return _passes[name]


def all_passes() -> dict[str, Pass]:
    """Every pass by name: Roundel's own and those that were registered so far."""
    above.define_passes()
    return dict(sorted(_passes.items()))


def flatten(pipeline: Iterable[Any]) -> list[Transform]:
    """A pipeline as a flat list: nested lists are spliced, names looked up. Raises OptionError for what is no pass."""
    out: list[Transform] = []
    for p in [pipeline] if isinstance(pipeline, str) else pipeline:
        if not isinstance(p, list | tuple | str) and not callable(p):
            raise OptionError(f"{p!r} is not a pass", hint="a pass is a function from module to module, or the name of one")
        out += flatten(p) if isinstance(p, list | tuple) else [get_pass(p)] if isinstance(p, str) else [p]
    return out
