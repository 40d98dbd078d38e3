# SPDX-License-Identifier: Apache-2.0
"""What a user's program adds to Roundel: models compiled with it are not kept on disk, where another program would find them."""

from __future__ import annotations

from typing import Any

_added: list[Any] = []


def note(thing: Any) -> None:
    """Remember a function or class that was registered, unless it is one of Roundel's own."""
    if getattr(thing, "__module__", "").partition(".")[0] != __name__.partition(".")[0]:
        _added.append(thing)


def add(thing: Any) -> None:
    """Remember something that was registered, whoever made it."""
    _added.append(thing)


def remove(thing: Any) -> None:
    """Forget what is registered no more."""
    if thing in _added:
        _added.remove(thing)


def added() -> bool:
    """Has anything been added in this process?"""
    return bool(_added)
