# SPDX-License-Identifier: Apache-2.0
"""Divisions, roots and other functions that are the same in all iterations of a loop are computed in front of it.

    for j in range(48):                                             scale = 1 / sqrt(var[0] + eps)
        y[j * 16:j * 16 + 16] = x[...] * (1 / sqrt(var[0] + eps))   ->  for j in range(48):
                                                                            y[j * 16:j * 16 + 16] = x[...] * scale

What is computed may only read memory of the program's own at constant places: it is there even if the loop makes no iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

from roundel.arith.effects import somewhere
from roundel.ir import Rewriter, Var, free_vars, on, tir
from roundel.ir.visit import statements, walk

from .kernel_pass import kernel_pass
from .statements import StatementRewriter

MOST = 8  # values in front of a loop
_SIMPLE = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Max, tir.Min, tir.FloatImm, tir.IntImm, tir.Broadcast, tir.Ramp, Var)


@kernel_pass("hoist_values")
def hoist_values(func: tir.PrimFunc) -> tir.PrimFunc:
    """What takes long and is the same in all iterations of a loop stands in front of it."""
    if not any(_is_costly(s.value) for s in statements(func.body) if type(s) is tir.BufferStore):
        return func
    body = _Hoist(func.buffer_params).rewrite(func.body)
    return func if body is func.body else func.replace(body=body)


class _Hoist(StatementRewriter):
    def __init__(self, params: tuple[tir.Buffer, ...]) -> None:
        super().__init__()
        self.given = frozenset(b.data for b in params)

    @on(tir.Seq)
    def _seq(self, seq: tir.Seq) -> tir.Stmt:
        """What stands in front of a loop serves the statements behind it too, such as the loop's last, incomplete step."""
        for k, loop in enumerate(seq.stmts[:-1]):
            found = self.found(loop)
            rest = tir.seq(*seq.stmts[k + 1 :])
            if found and {n.buffer.data for e in found for n in walk(e) if type(n) is tir.BufferLoad}.isdisjoint(_written(rest)):
                return tir.seq(*map(self.rewrite, seq.stmts[:k]), self.ahead(found, tir.seq(loop, rest)))
        return self.generic(seq)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        found = self.found(loop)
        return self.ahead(found, loop) if found else self.generic(loop)

    def found(self, loop: tir.Stmt) -> list[tir.Expr]:
        """What is to stand in front of a statement."""
        if type(loop) is not tir.For or loop.kind is not tir.ForKind.SERIAL:
            return []
        return list(dict.fromkeys(self.invariant(loop)))[:MOST]

    def ahead(self, found: list[tir.Expr], stmt: tir.Stmt) -> tir.Stmt:
        """A statement with these values as variables, computed in front of it."""
        values = {e: Var("value", e.dtype) for e in found}
        out: tir.Stmt = self.rewrite(_Known(values).rewrite(stmt))
        for e, var in reversed(values.items()):
            out = tir.Let(var, e, out)
        return out

    def invariant(self, loop: tir.For) -> Iterator[tir.Expr]:
        """The largest parts of what a loop stores that are costly and always the same."""
        inside = list(statements(loop.body))
        stores = [s for s in inside if type(s) is tir.BufferStore]
        if not any(_is_costly(s.value) for s in stores):
            return
        if any(type(s) is tir.Evaluate or type(s) is tir.While for s in inside):  # whatever else may write
            return
        changed = _written(loop.body) | self.given
        bound = {loop.loop_var, *(s.loop_var for s in inside if type(s) is tir.For), *(s.var for s in inside if type(s) is tir.Let)}
        left: list[tir.Expr] = [s.value for s in stores]
        seen: set[tir.Expr] = set()
        while left:
            e = left.pop()
            if e in seen or not _is_costly(e):
                continue
            seen.add(e)
            if e.dtype.is_float and free_vars(e).isdisjoint(bound) and all(_stays(n, changed) for n in walk(e)):
                yield e
            elif type(e) is not tir.BufferLoad:
                left += [x for x in e._below() if isinstance(x, tir.Expr)]


def _written(stmt: tir.Stmt) -> set[Var]:
    """The memory that a statement stores to, or makes."""
    return {s.buffer.data for s in statements(stmt) if type(s) in (tir.BufferStore, tir.Allocate, tir.DeclBuffer)}


class _Known(Rewriter):
    """Expressions that are variables now."""

    def __init__(self, values: dict[tir.Expr, Var]) -> None:
        super().__init__()
        self.values = values

    def rewrite(self, node):  # type: ignore[no-untyped-def]
        """The variable of an expression that has one; what has no costly part stays as it is."""
        if not isinstance(node, tir.Expr):
            return super().rewrite(node)
        return self.values[node] if node in self.values else super().rewrite(node) if _is_costly(node) else node


def _stays(e: tir.Expr, changed: set[Var]) -> bool:
    """Whether a node of an expression can be computed ahead: arithmetic, a function, or a load of an own element that nobody changes."""
    if type(e) is tir.BufferLoad:
        return e.predicate is None and e.buffer.data not in changed and all(map(_is_constant, e.indices))
    return type(e) in _SIMPLE or (type(e) is tir.Call and isinstance(e.op, str) and tir.effect(e) is tir.Effect.PURE)


def _is_constant(index: tir.Expr) -> bool:
    return type(index) is tir.IntImm or (type(index) is tir.Ramp and type(index.base) is tir.IntImm and type(index.stride) is tir.IntImm)


def _is_costly(e: tir.Expr) -> bool:
    """Whether there is a division or a function in an expression."""
    return somewhere(e, "costly", type(e) in (tir.Div, tir.Call) and e.dtype.is_float, _is_costly)
