# SPDX-License-Identifier: Apache-2.0
"""How many arithmetic operations a tensor program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arith import Analyzer
from ...ir import tir
from ...ir.errors import BuildError
from ...ir.module import IRModule

_COUNTED = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max)


def estimate_tir_flops(program: tir.Stmt | tir.PrimFunc | IRModule) -> float:
    """Arithmetic operations (+ - * / % min max, one each) on the values that a program stores, binds or returns.

    Not counted: indices, conditions, the init of blocks. Of the branches of an ``if`` the larger counts, a loop as often as it runs at
    most. A function's attribute ``estimated_flops`` is believed. Raises BuildError for a loop whose extent has no bound.
    """
    if isinstance(program, IRModule):
        return float(sum(estimate_tir_flops(f) for f in program.functions.values() if isinstance(f, tir.PrimFunc)))
    if isinstance(program, tir.PrimFunc):
        said = program.attrs.get("estimated_flops")
        return float(getattr(said, "value", said)) if said is not None else estimate_tir_flops(program.body)
    return float(_statement(program, Analyzer()))


def _statement(s: Any, an: Analyzer) -> float:
    return _STATEMENTS.get(type(s), lambda s, an: 0)(s, an)


def _expression(e: Any) -> float:
    """Operations of a value; what is inside of indices and conditions is not looked at."""
    if isinstance(e, tir.BufferLoad):
        return 0
    if isinstance(e, tir.Select | tir.IfThenElse):
        return max(_expression(e.true_value), _expression(e.false_value))
    return isinstance(e, _COUNTED) * e.dtype.lanes + sum(_expression(c) for c in e._below() if isinstance(c, tir.Expr))


def _loop(s: tir.For, an: Analyzer) -> float:
    most = an.bounds(an.simplify(s.extent))[1]
    if most == float("inf"):
        raise BuildError(
            f"the operations of the loop over {s.loop_var.name} cannot be counted",
            why=f"its extent {s.extent.script()} has no upper bound",
            hint='say them: func.with_attr("estimated_flops", 1e9)',
        )
    with an.scope():
        an.bind(s.loop_var, tir.Range(s.min, s.extent))
        return max(most, 0) * _statement(s.body, an)


def _branches(s: tir.If, an: Analyzer) -> float:
    return max(_statement(s.then_case, an), _statement(s.else_case, an))


def _let(s: tir.Let, an: Analyzer) -> float:
    with an.scope():
        an.bind(s.var, s.value) if s.var.is_index and s.value.is_index else None
        return _expression(s.value) + _statement(s.body, an)


_STATEMENTS: dict[type, Callable[[Any, Analyzer], float]] = {
    tir.For: _loop,
    tir.If: _branches,
    tir.Let: _let,
    tir.Seq: lambda s, an: sum(_statement(part, an) for part in s.stmts),
    tir.BufferStore: lambda s, an: _expression(s.value),
    tir.Evaluate: lambda s, an: _expression(s.value),
    tir.BlockRealize: lambda s, an: _statement(s.block, an),
    **{t: lambda s, an: _statement(s.body, an) for t in (tir.Block, tir.Allocate, tir.DeclBuffer, tir.AttrStmt, tir.While)},
}
