# SPDX-License-Identifier: Apache-2.0
"""Copies of statements in which everything that they define (loop variables, lets, buffers) is new."""

from __future__ import annotations

from collections.abc import Mapping

from roundel.ir import Var, tir
from roundel.ir.visit import statements, substitute


def fresh_copy(stmt: tir.Stmt, values: Mapping[Var, tir.Expr] | None = None) -> tir.Stmt:
    """``stmt`` with ``values`` put in and its own variables and buffers renewed: both may stand in one function."""
    table: dict[Var, tir.Expr] = dict(values or {})
    for n in statements(stmt):
        var = _BINDERS.get(type(n), lambda n: None)(n)
        if var is not None:
            table[var] = Var(var.name, var.dtype, var.size)
    return substitute(stmt, table) if table else stmt


_BINDERS = {tir.For: lambda n: n.loop_var, tir.Let: lambda n: n.var, tir.Allocate: lambda n: n.buffer.data}
