# SPDX-License-Identifier: Apache-2.0
"""Blocks become plain statements.

Iteration variables are replaced by their values, predicates become ``If``, ``alloc_buffers`` become ``Allocate``, and
``match_buffers`` are views that disappear into their sources. The init of a reduction moves in front of the outermost
loop that it reduces over; where it cannot (a ``while`` or an ``if`` lies between) it runs in the first iteration:

    for i, k in T.grid(n, m):                          for i in range(n):
        with T.block("C"):                                 C[i] = 0
            vi, vk = T.axis.remap("SR", [i, k])     ->     for k in range(m):
            with T.init(): C[vi] = 0                           C[i] = C[i] + A[i, k]
            C[vi] = C[vi] + A[vi, vk]
"""

from __future__ import annotations

from roundel.arith import Analyzer
from roundel.ir import Attrs, Var, free_vars, on, tir
from roundel.ir.annotations import BUFFER_DIM_ALIGN, DIM_ALIGN, IMPORT_LLVM, PRAGMA_IMPORT_LLVM, texts
from roundel.ir.dataclass import dataclass
from roundel.ir.visit import statements, substitute, walk

from .kernel_pass import kernel_pass
from .match_buffers import inline_match_buffers
from .statements import StatementRewriter


@dataclass
class _Init:
    """An init on its way out of the loops over ``reduce``."""

    body: tir.Stmt
    reduce: frozenset[Var]

    def leave(self, loop: tir.For) -> _Init:
        """The init outside of ``loop``: spatial loops go with it, reduction loops stay behind."""
        if loop.loop_var in self.reduce:
            return _Init(self.body, self.reduce - {loop.loop_var})
        if loop.loop_var not in _vars_used(self.body):
            return self
        var = Var(loop.loop_var.name, loop.loop_var.dtype)
        body = substitute(self.body, {loop.loop_var: var})
        return _Init(loop.replace(loop_var=var, body=body, token=None), self.reduce)


def _vars_used(stmt: tir.Stmt) -> set[Var]:
    return {n for n in walk(stmt) if type(n) is Var}


class _LowerBlocks(StatementRewriter):
    def __init__(self) -> None:
        self.loops: list[tir.For] = []
        self.fence = 0  # an init cannot leave the loops before this position
        self.pending: list[_Init] = []
        self.imported: dict[str, None] = {}  # LLVM texts that loops are annotated with
        self.analyzer = Analyzer()

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        outside, self.pending = self.pending, []
        self.loops.append(loop)
        body = self.rewrite(loop.body)
        self.loops.pop()
        left = [init.leave(loop) for init in self.pending]
        self.pending = outside + [i for i in left if i.reduce]
        if PRAGMA_IMPORT_LLVM in loop.annotations:
            self.imported[getattr(text := loop.annotations[PRAGMA_IMPORT_LLVM], "value", text)] = None
            loop = loop.replace(annotations=Attrs({k: v for k, v in loop.annotations.items() if k != PRAGMA_IMPORT_LLVM}))
        return tir.seq(*[i.body for i in left if not i.reduce], loop.replace(body=body))

    @on(tir.Seq)
    def _seq(self, stmt: tir.Seq) -> tir.Stmt:
        return tir.seq(*map(self.rewrite, stmt.stmts))

    @on(tir.While, tir.If, tir.Let, tir.Allocate, tir.DeclBuffer, tir.AttrStmt)
    def _fenced(self, stmt: tir.Stmt) -> tir.Stmt:
        fence, self.fence = self.fence, len(self.loops)
        stmt = self.generic(stmt)
        self.fence = fence
        return stmt

    @on(tir.BlockRealize)
    def _realize(self, realize: tir.BlockRealize) -> tir.Stmt:
        block = inline_match_buffers(realize.block)
        values = {iv.var: value for iv, value in zip(block.iter_vars, realize.iter_values, strict=True)}
        body, own = substitute(block.body, values), block.alloc_buffers
        if own and values:
            buffers = tuple(b.replace(shape=tuple(substitute(s, values) for s in b.shape)) for b in own)
            body, own = substitute(body, {}, dict(zip(own, buffers, strict=True))), buffers
        fence = self.fence
        if own or not _is_true(realize.predicate):
            self.fence = len(self.loops)
        body = self.rewrite(body)
        self.fence = fence
        for old, new in reversed(list(zip(block.alloc_buffers, own, strict=True))):
            body = tir.Allocate(new, body, _alignment(old, block.body))
        if block.init is not None:
            body = tir.seq(self._init(self.rewrite(substitute(block.init, values)), realize), body)
        return _guarded(realize.predicate, body)

    def _init(self, init: tir.Stmt, realize: tir.BlockRealize) -> tir.Stmt | None:
        """What of the init stays with the block; None when it has been put on its way out."""
        bound = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
        reduce = [(iv, value) for iv, value in bound if iv.kind is tir.IterKind.REDUCE]
        loops = {x.loop_var: k for k, x in enumerate(self.loops)}
        over = frozenset().union(*(free_vars(value) for _, value in reduce)) & loops.keys()
        start: dict[Var, tir.Expr] = {}
        for x in self.loops:
            if x.loop_var in over:
                start[x.loop_var] = substitute(x.min, start)
        first = tir.logical_and(*(tir.eq(value, iv.dom.min) for iv, value in reduce))
        if not self.analyzer.prove(substitute(first, start)):
            return tir.If(first, init)  # one part of a reduction in several parts, perhaps not the first
        if not over:
            return init
        spatial = {v for iv, value in bound if iv.kind is not tir.IterKind.REDUCE for v in free_vars(value)}
        outermost = min(loops[v] for v in over)
        if over & spatial or outermost < self.fence or _reads_written(init, self.loops[outermost].body):
            return tir.If(first, init)
        self.pending.append(_Init(_guarded(substitute(realize.predicate, start), substitute(init, start)), over))
        return None


def _alignment(buffer: tir.Buffer, body: tir.Stmt) -> Attrs:
    """What ``storage_align`` asked for of a buffer: (axis, factor, offset)s as ``dim_align``."""
    asked = [
        tuple(entry[1:])
        for n in statements(body)
        if type(n) is tir.Block and BUFFER_DIM_ALIGN in n.annotations
        for entry in n.annotations[BUFFER_DIM_ALIGN]
        if n.writes[entry[0]].buffer is buffer
    ]
    return Attrs({DIM_ALIGN: asked} if asked else {})


def _reads_written(init: tir.Stmt, body: tir.Stmt) -> bool:
    """Whether the init loads from a buffer that ``body`` writes."""
    loaded = {n.buffer for n in walk(init) if type(n) is tir.BufferLoad}
    written = {
        n.buffer if type(n) is tir.BufferStore else n.source.buffer
        for n in statements(body)
        if type(n) in (tir.BufferStore, tir.MatchBufferRegion)
    }
    return not loaded.isdisjoint(written)


def _is_true(condition: tir.Expr) -> bool:
    return type(condition) is tir.IntImm and bool(condition.value)


def _guarded(condition: tir.Expr, body: tir.Stmt) -> tir.Stmt:
    if type(condition) is tir.IntImm:
        return body if condition.value else tir.Seq(())
    return tir.If(condition, body)


@kernel_pass("lower_blocks")
def lower_blocks(func: tir.PrimFunc) -> tir.PrimFunc:
    """Block form to loops, loads and stores."""
    lowering = _LowerBlocks()
    func = func.replace(body=lowering.rewrite(func.body))
    imported = {IMPORT_LLVM: (*texts(func.attrs, IMPORT_LLVM), *lowering.imported)} if lowering.imported else {}
    return func.replace(attrs=func.attrs | imported) if imported else func
