# SPDX-License-Identifier: Apache-2.0
"""Places in long loops where a run may be ended (Ctrl-C, see ``rd_checkpoint`` of the runtime).

    for i in range(n):                for i in range(n):
        for j in range(m):     ->         for j in range(m):
            B[i, j] = ...                     B[i, j] = ...
                                          T.checkpoint(4 * m)

The operand says how much work has been done since that place was last passed; where it is reached often, the generated code only counts. The
checkpoints are as far inside as whole iterations take many operations, so what a loop does in its innermost iterations costs nothing. An
innermost loop that may have very many iterations, and stands in no other, runs in blocks. Programs whose work is known and small stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from roundel.ir import IRModule, tir
from roundel.ir.dtype import VOID
from roundel.ir.visit import free_vars, statements, walk
from roundel.passes import pass_

from .engines import UNBROKEN
from .kernel_pass import is_kernel

Work = int | tir.Expr
"""Operations, about: a number, or an expression in sizes that the run tells."""

SMALL = 1 << 22  # operations of a program, some milliseconds at most
WHOLE = 1 << 16  # operations of a loop nest in which nobody is asked
FEW = 64  # iterations of a block, each of which takes a time that only the run tells
WORTH = 1 << 10  # operations to which a subtraction and a branch add nothing that could be measured
SIMPLE = 7  # terms of an expression that is computed beside a subtraction and a branch
STATEMENT, UNKNOWN = 4, 1 << 10  # operations of a store or a call; of a loop of which nothing is known


class _Places:
    """Rewrites the loops of one program. Each method returns the statement, and the work in it that is behind its last checkpoint."""

    def __init__(self) -> None:
        self.depth = 0  # loops around
        self.tiles = 0  # buffers around that lie in registers, which a call would spill

    def visit(self, s: tir.Stmt) -> tuple[tir.Stmt, Work]:
        handler = _HANDLERS.get(type(s))
        return (s, STATEMENT) if handler is None else handler(self, s)

    def sequence(self, s: tir.Seq) -> tuple[tir.Stmt, Work]:
        parts = [self.visit(item) for item in s.stmts]
        total: Work = 0
        for _, work in parts:
            total = total + work
        same = all(new is old for (new, _), old in zip(parts, s.stmts, strict=True))
        return s if same else tir.seq(*(new for new, _ in parts)), total

    def inside(self, s: tir.Stmt) -> tuple[tir.Stmt, Work]:
        if type(s) is tir.AttrStmt and s.key == UNBROKEN:
            return s, 0
        body, work = self.visit(s.body)
        if type(s) is tir.Let:
            work = _known_outside(work, s.var)
        return s if body is s.body else s.replace(body=body), work

    def allocate(self, s: tir.Allocate) -> tuple[tir.Stmt, Work]:
        local = s.buffer.scope == "local"
        self.tiles += local
        made = self.inside(s)
        self.tiles -= local
        return made

    def branch(self, s: tir.If) -> tuple[tir.Stmt, Work]:
        yes, work = self.visit(s.then_case)
        no, other = (None, 0) if s.else_case is None else self.visit(s.else_case)
        same = yes is s.then_case and no is s.else_case
        return s if same else s.replace(then_case=yes, else_case=no), _greater(work, other)

    def repeat(self, s: tir.While) -> tuple[tir.Stmt, Work]:
        if not _levels(s.body):
            return s, UNKNOWN
        body, work = self.within(s.body)
        return s.replace(body=_then(body, work)), 0

    def within(self, body: tir.Stmt) -> tuple[tir.Stmt, Work]:
        self.depth += 1
        made = self.visit(body)
        self.depth -= 1
        return made

    def loop(self, s: tir.For) -> tuple[tir.Stmt, Work]:
        body, work = self.within(s.body)
        whole = s if body is s.body else s.replace(body=body)
        known = isinstance(work, int)
        total = _known_outside(work * _iterations(s), s.loop_var) if not known or work else 0
        if isinstance(total, int) and total <= WHOLE and known:  # nothing, where the loops inside have places of their own
            return whole, total
        if _levels(s.body) > 1 if self.tiles and not known else not self.tiles and (not known or work >= WORTH):
            return s.replace(body=_then(body, work)), 0
        if self.depth or (isinstance(total, int) and total <= SMALL):
            return whole, total
        return _in_blocks(whole, max(WHOLE // work, 1) if known else FEW), 0


def _iterations(s: tir.For) -> Work:
    count = s.extent if s.step is None else tir.ceildiv(s.extent, s.step)
    if isinstance(count, tir.IntImm):
        return count.value
    parts = list(walk(count))
    bound = any(type(part) is tir.Var and not part.size for part in parts)  # such are computed anew in each iteration of another loop
    return UNKNOWN if (bound and len(parts) > SIMPLE) or any(type(part) is tir.BufferLoad for part in parts) else tir.max_(count, 0)


def _greater(a: Work, b: Work) -> Work:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else tir.max_(a, b)


def _known_outside(work: Work, var: tir.Var) -> Work:
    """The work where a variable has no value any more."""
    return UNKNOWN if isinstance(work, tir.Expr) and var in free_vars(work) else work


def _levels(s: tir.Stmt) -> int:
    """How deep the loops of a statement are nested."""
    return max((1 + _levels(part.body) for part in statements(s) if type(part) in (tir.For, tir.While)), default=0)


def _then(body: tir.Stmt, work: Work) -> tir.Stmt:
    return tir.seq(body, tir.Evaluate(tir.Call("checkpoint", (tir.index_const(work) if isinstance(work, int) else work,), VOID)))


def _in_blocks(s: tir.For, count: int) -> tir.Stmt:
    """The loop as two, with a checkpoint in the outer one after so many iterations."""
    block = count * (1 if s.step is None else s.step)
    outer = tir.Var(s.loop_var.name + "_block", s.loop_var.dtype)
    start = outer * block
    inner = s.replace(min=s.min + start, extent=tir.min_(s.extent - start, block))
    return tir.For(outer, tir.index_const(0), tir.ceildiv(s.extent, block), tir.ForKind.SERIAL, _then(inner, WHOLE))


_HANDLERS: dict[type, Callable[[_Places, tir.Stmt], tuple[tir.Stmt, Work]]] = {
    tir.Seq: _Places.sequence,
    tir.Let: _Places.inside,
    tir.Allocate: _Places.allocate,
    tir.DeclBuffer: _Places.inside,
    tir.AttrStmt: _Places.inside,
    tir.If: _Places.branch,
    tir.While: _Places.repeat,
    tir.For: _Places.loop,
}


def _extents_of_tasks(mod: IRModule) -> dict[str, tir.Expr]:
    """How many iterations each task has in all."""
    calls = (s.value for f in mod.functions.values() if is_kernel(f) for s in statements(f.body) if type(s) is tir.Evaluate)
    return {c.args[0].value: c.args[1] for c in calls if type(c) is tir.Call and c.op == "parallel_for"}


def _most(s: tir.Stmt) -> Work:
    """All the work of a statement, at most."""
    kind = type(s)
    if kind is tir.Seq:
        return sum((_most(item) for item in s.stmts), 0)
    if kind is tir.If:
        return _most(s.then_case) + (0 if s.else_case is None else _most(s.else_case))
    if kind is tir.For:
        return _most(s.body) * _iterations(s)
    if kind is tir.While:
        return _most(s.body) * UNKNOWN
    return _most(s.body) if kind in (tir.Let, tir.Allocate, tir.DeclBuffer, tir.AttrStmt) else STATEMENT


@pass_("checkpoints")
def checkpoints(mod: IRModule) -> IRModule:
    """Long loops get places where the run may be ended."""
    extents = _extents_of_tasks(mod)
    changed = {}
    for name, func in mod.items():
        if not isinstance(func, tir.PrimFunc) or func.attrs.get("kind") in ("host", "plain"):
            continue
        body = func.body
        if name in extents and type(body) is tir.For:
            body = body.replace(extent=extents[name])
        work = _most(body)
        if isinstance(work, tir.Expr) or work > SMALL:
            made, _ = _Places().visit(func.body)
            if made is not func.body:
                changed[name] = func.replace(body=made)
    return mod.with_functions(changed) if changed else mod
