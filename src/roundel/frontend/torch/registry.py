# SPDX-License-Identifier: Apache-2.0
"""The table of ATen converters by overload name (``aten.add.Tensor``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Converter = Callable[..., Any]
TABLE: dict[str, Converter] = {}


def converter(*names: str) -> Callable[[Converter], Converter]:
    """Register ``(node: NodeContext, *args, **kwargs) -> value or tuple``; a name without overload covers all its overloads.

    Tensor arguments are graph expressions, sizes ints or index expressions, the rest plain Python values.
    """

    def mark(fn: Converter) -> Converter:
        for name in names:
            TABLE[name if "." in name and not name.startswith("aten.") else name.removeprefix("aten.")] = fn
        return fn

    return mark


OWN: set[str] = set()
"""Names that users supplied: PyTorch's and our decompositions leave them whole."""


def operator(*names: str) -> Callable[[Converter], Converter]:
    """Register a user's converter, before anything Roundel knows about the operators; see ``converter``."""
    OWN.update(name.removeprefix("aten.") for name in names)
    return converter(*names)


@contextmanager
def supplying(converters: Mapping[str, Converter]) -> Iterator[None]:
    """Within, a user's converters by overload stand before all others."""
    from . import ops  # noqa: F401  (fills the table)

    table, own = dict(TABLE), set(OWN)
    for name, convert in converters.items():
        operator(name)(convert)
    try:
        yield
    finally:
        for whole, before in ((TABLE, table), (OWN, own)):
            whole.clear()
            whole.update(before)  # type: ignore[attr-defined]


def supplied(name: str) -> bool:
    """Whether a user supplied the overload."""
    short = name.removeprefix("aten.")
    return short in OWN or short.rsplit(".", 1)[0] in OWN


def find(name: str) -> Converter | None:
    """The converter of an overload such as ``aten.add.Tensor``, by its full name or without the overload. Roundel's own operators stand for PyTorch's."""
    short = name.removeprefix("aten.").removeprefix("roundel.")
    return TABLE.get(short) or TABLE.get(short.rsplit(".", 1)[0])
