# SPDX-License-Identifier: Apache-2.0
"""What of a loop without iterations still happens: the inits of reductions over it.

A reduction over nothing gives its init, as in NumPy and as decomposed programs have it. (A loop over elements that has no iterations makes none.)
"""

from __future__ import annotations

from ..ir import tir
from ..ir.visit import free_vars

_LOOPS: dict[tir.For, tir.Stmt | None] = {}  # statements are never changed
MOST = 4096


def inits_of(loop: tir.For) -> tir.Stmt | None:
    """The inits of blocks that reduce over a loop, for all their elements; None where there are none."""
    if loop not in _LOOPS:
        if len(_LOOPS) > MOST:
            _LOOPS.clear()
        _LOOPS[loop] = _inits(loop.body, {loop.loop_var})
    return _LOOPS[loop]


def _inits(s: tir.Stmt, empty: set[tir.Var]) -> tir.Stmt | None:
    if type(s) is tir.Seq:
        parts = [p for p in (_inits(c, empty) for c in s.stmts) if p is not None]
        return tir.seq(*parts) if parts else None
    if type(s) is tir.BlockRealize:
        return _init(s, empty)
    if type(s) not in (tir.For, tir.Let, tir.AttrStmt, tir.Allocate, tir.DeclBuffer):
        return None
    body = _inits(s.body, empty)  # type: ignore[attr-defined]
    return None if body is None else s.replace(body=body)


def _init(s: tir.BlockRealize, empty: set[tir.Var]) -> tir.BlockRealize | None:
    block = s.block
    spatial = [v for iv, v in zip(block.iter_vars, s.iter_values, strict=True) if iv.kind is not tir.IterKind.REDUCE]
    reducing = frozenset().union(*(free_vars(v) for v in s.iter_values)) - frozenset().union(*map(free_vars, spatial))
    if block.init is None or not reducing & empty or any(free_vars(v) & empty for v in spatial):
        return None
    asked = [c for c in _conjuncts(s.predicate) if not free_vars(c) & reducing]
    return s.replace(predicate=tir.logical_and(*asked), block=block.replace(body=tir.Seq(())))


def _conjuncts(e: tir.Expr) -> list[tir.Expr]:
    return [*_conjuncts(e.a), *_conjuncts(e.b)] if type(e) is tir.And else [e]
