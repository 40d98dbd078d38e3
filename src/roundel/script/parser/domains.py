# SPDX-License-Identifier: Apache-2.0
"""Whether the loops around blocks run through the domains that their axes name: a program where they do not is taken, with a warning."""

from __future__ import annotations

from ...ir import tir
from ...ir.errors import ScriptWarning
from ...ir.tir import BlockRealize, For, IntImm, PrimFunc
from ...ir.visit import statements
from ...ir.warning import warn

Loops = dict[tir.Expr, For]


def warn_of_domains(func: PrimFunc) -> None:
    """Warn of ``T.axis.spatial(128, i)`` in a loop ``i`` of 127 iterations (or 129), where no other block writes what the block does."""
    found: list[tuple[BlockRealize, Loops]] = []
    _realizes(func.body, {}, found)
    for realize, loops in found:
        for iv, value in zip(realize.block.iter_vars, realize.iter_values):
            loop = loops.get(value)
            if loop is None or not all(type(e) is IntImm for e in (loop.min, loop.extent, iv.dom.min, iv.dom.extent)):
                continue
            low, high = loop.min.value, loop.min.value + loop.extent.value  # type: ignore[attr-defined]
            first, end = iv.dom.min.value, iv.dom.min.value + iv.dom.extent.value  # type: ignore[attr-defined]
            whole = type(realize.predicate) is IntImm
            if high > end and whole:
                _warn(func, realize, f"axis {iv.var.name} ends before {end}, and loop {loop.loop_var.name} runs to {high - 1}")
            elif (low > first or high < end) and not _written_elsewhere(realize, found):
                _warn(func, realize, f"axis {iv.var.name} is {first} to {end - 1}, and loop {loop.loop_var.name} {low} to {high - 1}: elements are left out")


def _warn(func: PrimFunc, realize: BlockRealize, what: str) -> None:
    span = realize.block.span or func.span
    place = f"{span}: " if span is not None else ""
    name = func.attrs.get("global_symbol", "function")
    warn(f"{place}{name}, block {realize.block.name}: {what}", ScriptWarning)


def _realizes(stmt: tir.Stmt, loops: Loops, found: list[tuple[BlockRealize, Loops]]) -> None:
    """The blocks of a statement, at any depth, with the loops around each."""
    for s in (stmt,) if type(stmt) is not tir.Seq else stmt.stmts:
        if type(s) is BlockRealize:
            found.append((s, loops))
            _realizes(s.block.body, loops, found)
        elif type(s) is For:
            _realizes(s.body, {**loops, s.loop_var: s}, found)
        else:
            for name in ("then_case", "else_case", "body"):
                inner = getattr(s, name, None)
                if isinstance(inner, tir.Stmt):
                    _realizes(inner, loops, found)


def _written_elsewhere(realize: BlockRealize, found: list[tuple[BlockRealize, Loops]]) -> bool:
    """Whether other blocks write what a block does, as the parts of a partitioned loop do."""
    written = {r.buffer for r in realize.block.writes}
    return any(w.buffer in written for r, _ in found if r is not realize and not _inside(r, realize) for w in r.block.writes)


def _inside(inner: BlockRealize, outer: BlockRealize) -> bool:
    return any(s is inner for s in statements(outer.block.body)) or any(s is outer for s in statements(inner.block.body))
