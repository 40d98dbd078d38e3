# SPDX-License-Identifier: Apache-2.0
"""Statements in a few words, for operators that are loops rather than expressions (scatter, scan, sort)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from roundel.ir import tir
from roundel.ir.dtype import BOOL, INT64

ZERO = tir.index_const(0)


def for_each(extents: Sequence[Any], body: Callable[..., tir.Stmt], name: str = "j") -> tir.Stmt:
    """``body`` for every index of a box, in row-major order."""
    variables = [tir.Var(f"{name}{k}" if len(extents) > 1 else name, INT64) for k in range(len(extents))]
    out = body(*variables)
    for v, n in zip(reversed(variables), reversed(list(extents))):
        out = tir.For(v, ZERO, tir.as_index(n), tir.ForKind.SERIAL, out)
    return out


def side_by_side(count: Any, body: Callable[[tir.Var], tir.Stmt]) -> tir.Stmt:
    """``body`` for 0..count-1 in vectors; sums and extremes that it accumulates in one place are made in an order of their own."""
    v = tir.Var("lane", INT64)
    return tir.For(v, ZERO, tir.as_index(count), tir.ForKind.VECTORIZED, body(v))


def repeat_while(condition: Any, body: tir.Stmt) -> tir.Stmt:
    """``body`` as long as the condition holds."""
    return tir.While(tir.const(condition, BOOL), body)


def store(buffer: tir.Buffer, index: Sequence[Any], value: Any) -> tir.Stmt:
    """``buffer[index] = value``"""
    return tir.BufferStore(buffer, tir.const(value, buffer.dtype), tuple(map(tir.as_index, index)))


def load(buffer: tir.Buffer, index: Sequence[Any]) -> tir.Expr:
    """``buffer[index]``"""
    return buffer[tuple(index)]


def let(value: tir.Expr, body: Callable[[tir.Var], tir.Stmt], name: str = "v") -> tir.Stmt:
    """``body`` of a variable that holds ``value``, evaluated once."""
    v = tir.Var(name, value.dtype)
    return tir.Let(v, value, body(v))


def let_all(values: Sequence[tir.Expr], body: Callable[..., tir.Stmt]) -> tir.Stmt:
    """``body`` of variables that hold the values, each evaluated once, in order."""
    return let(values[0], lambda v: let_all(values[1:], lambda *rest: body(v, *rest))) if values else body()


def when(condition: Any, then: tir.Stmt, otherwise: tir.Stmt | None = None) -> tir.Stmt:
    """A conditional statement; a condition that is known decides at once."""
    condition = tir.const(condition, BOOL)
    if type(condition) is tir.IntImm:
        return then if condition.value else otherwise if otherwise is not None else tir.Evaluate(tir.index_const(0))
    return tir.If(condition, then, otherwise)
