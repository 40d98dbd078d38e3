# SPDX-License-Identifier: Apache-2.0
"""An immutable, hashable mapping for the attributes of functions, blocks, loops and operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def freeze(value: Any) -> Any:
    """Lists become tuples and dicts become Attrs, all the way down."""
    if isinstance(value, list | tuple):
        return tuple(freeze(v) for v in value)
    return Attrs(value) if isinstance(value, Mapping) and not isinstance(value, Attrs) else value


class Attrs(Mapping[str, Any]):
    """Attributes by name. ``attrs | {...}`` makes a changed copy; ``attrs.without("a")`` drops names."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[str, Any] | None = None, **more: Any) -> None:
        self._items = {str(k): freeze(v) for k, v in {**(items or {}), **more}.items()}
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __or__(self, other: Mapping[str, Any]) -> Attrs:
        return Attrs({**self._items, **other})

    def without(self, *names: str) -> Attrs:
        """A copy without these names."""
        return Attrs({k: v for k, v in self._items.items() if k not in names})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        other = other if isinstance(other, Attrs) else Attrs(other)
        return self._typed() == other._typed()

    def _typed(self) -> dict[str, tuple]:
        return {k: (str if isinstance(v, str) else type(v), v) for k, v in self._items.items()}  # 1, True and 1.0 are three values

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset((k, repr(v)) for k, v in self._items.items()))
        return self._hash

    def __reduce__(self) -> tuple:
        return Attrs, (self._items,)  # not the hash, which differs from process to process

    def __repr__(self) -> str:
        return repr(self._items)


EMPTY = Attrs()
