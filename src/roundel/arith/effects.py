# SPDX-License-Identifier: Apache-2.0
"""What evaluating an expression may do: memoised, context-free."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import tir
from ..ir.tir import Buffer, Effect, Expr


def parts(e: Expr) -> list[Expr]:
    """Operands of an expression."""
    return [x for x in e._below() if isinstance(x, Expr)]


def somewhere(e: Expr, name: str, own: bool, rule: Callable[[Expr], bool]) -> bool:
    """Whether ``own`` holds of an expression, or ``rule`` of one of its parts; memoised by ``name``, because nodes are shared. The parts of an
    index expression are not asked: it is made of variables and numbers alone."""
    if own or e.is_index:
        return own
    facts = e._facts
    if facts is None:
        facts = e._facts = {}
    hit = facts.get(name)
    if hit is None:
        hit = facts[name] = any(map(rule, parts(e)))
    return hit


def has_effect(e: Expr) -> bool:
    """Whether some call in it has an effect (so it is not dropped, moved or duplicated)."""
    return somewhere(e, "effect", type(e) is tir.Call and tir.effect(e) is Effect.OPAQUE, has_effect)


def buffers_of(e: Expr) -> frozenset[Buffer]:
    """The buffers that it loads from (memoised)."""
    if e.is_index:
        return frozenset()
    facts = e._facts
    if facts is None:
        facts = e._facts = {}
    hit = facts.get("buffers")
    if hit is None:
        own = (e.buffer,) if type(e) is tir.BufferLoad else ()
        hit = facts["buffers"] = frozenset(own).union(*map(buffers_of, parts(e)))
    return hit


def reads_memory(e: Expr) -> bool:
    """Whether its value depends on memory, which stores change."""
    own = type(e) is tir.BufferLoad or (type(e) is tir.Call and tir.effect(e) is not Effect.PURE)
    return somewhere(e, "reads", own, reads_memory)
