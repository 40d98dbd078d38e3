# SPDX-License-Identifier: Apache-2.0
"""``tag_scope``: a tag for every stage that is made in a ``with`` statement or in a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from roundel.ir.errors import ScriptError

_tag: ContextVar[str] = ContextVar("tag", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Stages made inside have the attribute ``tag``; also decorates functions. Raises ScriptError inside of another ``tag_scope``."""
    if _tag.get():
        raise ScriptError(f"tag_scope {tag!r} stands inside of tag_scope {_tag.get()!r}", hint="a stage has one tag")
    before = _tag.set(tag)
    try:
        yield
    finally:
        _tag.reset(before)


def current_tag() -> str:
    """The tag of the ``tag_scope`` around, or nothing."""
    return _tag.get()
