# SPDX-License-Identifier: Apache-2.0
"""Unique, readable names: the hint where it is free, else with a number; names of closed scopes are free again."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ...ir.dataclass import dataclass
from ...ir.escape import python_identifier

_RESERVED = frozenset((*keyword.kwlist, *dir(builtins), "T", "R", "I", "cls"))


@dataclass
class _Frame:
    """A scope: the names that are taken in it, what each node was called outside of it, and the last number behind each name that was asked for."""

    taken: set[str] = field(default_factory=set)
    outside: list[Any] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)


class Names:
    """What each variable, buffer or function is called here."""

    def __init__(self, reserved: Iterable[str] = (), addresses: bool = False) -> None:
        self.texts: dict[Any, str] = {}
        self.addresses = addresses  # names end in the address of what they name
        self.frames = [_Frame({*_RESERVED, *reserved})]

    def __contains__(self, node: Any) -> bool:
        return node in self.texts

    def __getitem__(self, node: Any) -> str:
        return self.texts[node]

    def get(self, node: Any) -> str | None:
        """The name, or None."""
        return self.texts.get(node)

    def fresh(self, hint: str) -> str:
        """A new name, taken in this scope."""
        base = python_identifier(hint)
        k = max(frame.numbers.get(base, 0) for frame in self.frames)  # all below are taken
        name = f"{base.rstrip('_')}_{k}" if k else base
        while any(name in frame.taken for frame in self.frames):
            k += 1
            name = f"{base.rstrip('_')}_{k}"
        self.frames[-1].taken.add(name)
        self.frames[-1].numbers[base] = k
        return name

    def define(self, node: Any, hint: str) -> str:
        """A new name for ``node`` in this scope."""
        name = self.fresh(f"{hint}_{id(node):#x}" if self.addresses else hint)
        self.alias(node, name)
        return name

    def alias(self, node: Any, text: str) -> None:
        """``node`` is written as ``text`` in this scope."""
        self.frames[-1].outside.append((node, self.texts.get(node)))
        self.texts[node] = text

    @contextmanager
    def frame(self) -> Iterator[None]:
        """A nested scope."""
        self.frames.append(_Frame())
        try:
            yield
        finally:
            for node, before in reversed(self.frames.pop().outside):
                if before is None:
                    del self.texts[node]
                else:
                    self.texts[node] = before
