# SPDX-License-Identifier: Apache-2.0
"""What passes ask of expressions again and again is found out once for each: they are shared, and never change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from roundel.ir import tir
from roundel.ir.visit import statements

T = TypeVar("T")


def remembered(fn: Callable[[Any], T]) -> Callable[[Any], T]:
    """A function of expressions whose answers are kept on them: what it answers (never None) follows from the expression alone."""
    name = f"{fn.__module__}.{fn.__name__}"

    def ask(e: Any) -> T:
        if e._facts is None:
            e._facts = {}
        found = e._facts.get(name)
        if found is None:
            found = e._facts[name] = fn(e)
        return found

    return ask


def expressions(stmt: tir.Stmt) -> Iterator[tir.Expr]:
    """The whole expressions of a statement and of those in it, in the order of the program."""
    for s in statements(stmt):
        for e in s._below():
            if isinstance(e, tir.Expr):
                yield e
