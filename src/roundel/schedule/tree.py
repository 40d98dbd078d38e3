# SPDX-License-Identifier: Apache-2.0
"""A tensor program with an index over it: where each loop and block token stands, and edits that rebuild only paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Token, Var, on, substitute, tir
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import Block, BlockRealize, Expr, For, IterKind, PrimFunc, Seq, Stmt

if TYPE_CHECKING:
    from .decisions import Decision

FIELDS: dict[type, tuple[str, ...]] = {
    tir.For: ("body",),
    tir.While: ("body",),
    tir.If: ("then_case", "else_case"),
    tir.Seq: ("stmts",),
    tir.Let: ("body",),
    tir.Allocate: ("body",),
    tir.DeclBuffer: ("body",),
    tir.AttrStmt: ("body",),
    tir.Block: ("init", "body"),
    tir.BlockRealize: ("block",),
}


_INSIDE: dict[type, Callable[[Any], tuple[Stmt, ...]]] = {
    kind: lambda s: (s.body,) for kind in (tir.For, tir.While, tir.Let, tir.Allocate, tir.DeclBuffer, tir.AttrStmt)
} | {
    tir.If: lambda s: (s.then_case,) if s.else_case is None else (s.then_case, s.else_case),
    tir.Seq: lambda s: s.stmts,
    tir.Block: lambda s: (s.body,) if s.init is None else (s.init, s.body),
    tir.BlockRealize: lambda s: (s.block,),
}


def child_stmts(stmt: Stmt) -> tuple[Stmt, ...]:
    """Statements directly inside, in program order."""
    inside = _INSIDE.get(type(stmt))
    return () if inside is None else inside(stmt)


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a conjunction, in order; what is always true is none."""
    if type(condition) is tir.And:
        return conjuncts(condition.a) + conjuncts(condition.b)
    return [] if is_true(condition) else [condition]


class Tree:
    """An immutable program; ``nodes`` finds a token's For or Block, ``parents`` the statement around a statement.

    ``decisions`` are those left open, whose variables occur in the program; ``facts`` hold for them.
    """

    __slots__ = ("_children", "decisions", "facts", "func", "nodes", "order", "parents")

    def __init__(self, func: PrimFunc, decisions: tuple[Decision, ...] = (), facts: tuple[Expr, ...] = ()) -> None:
        self.func = func
        self.decisions = decisions
        self.facts = facts
        nodes: dict[Token, Any] = {}
        parents: dict[Stmt, Stmt | None] = {func.body: None}
        order: dict[Stmt, int] = {}
        stack = [func.body]
        while stack:  # one is made by every step of every schedule
            s: Any = stack.pop()
            order[s] = len(order)
            kind = type(s)
            if kind is For or kind is Block:
                nodes[s.token] = s
            if kind is For or kind is BlockRealize:  # which most statements are
                one = s.body if kind is For else s.block
                parents[one] = s
                stack.append(one)
                continue
            inside = _INSIDE.get(kind)
            if inside is not None:
                below = inside(s)
                for c in below:
                    parents[c] = s
                stack += below[::-1]
        self.nodes, self.parents, self.order = nodes, parents, order
        self._children: dict[Block, list[BlockRealize]] = {}

    # --- finding

    def ancestors(self, stmt: Stmt) -> Iterator[Stmt]:
        """The statements around ``stmt``, innermost first, without itself."""
        at = self.parents[stmt]
        while at is not None:
            yield at
            at = self.parents[at]

    def realize(self, token: Token) -> BlockRealize:
        """The realize of a block."""
        return self.parents[self.nodes[token]]  # type: ignore[return-value]

    def scope(self, stmt: Stmt) -> Block:
        """The innermost block around a statement (for a block: around its realize)."""
        found = next((a for a in self.ancestors(stmt) if type(a) is Block), None)
        if found is None:
            raise ScheduleError("the root block stands in no scope, so it cannot be transformed", where=self.name)
        return found

    def loops(self, stmt: Stmt) -> list[For]:
        """The loops around a statement up to its scope, outermost first."""
        out: list[For] = []
        at = self.parents[stmt]
        if type(stmt) is Block and at is not None:
            at = self.parents[at]
        while at is not None and type(at) is not Block:
            if type(at) is For:
                out.append(at)
            at = self.parents[at]
        return out[::-1]

    def conditions(self, stmt: Stmt, within: Stmt | None = None) -> list[Stmt]:
        """The statements (If, While) that decide whether and how often a statement runs, inside of one around it (None: in its scope)."""
        out: list[Stmt] = []
        for a in self.ancestors(stmt):
            if a is within or type(a) is Block:
                break
            out += [a] if type(a) in (tir.If, tir.While) else []
        return out

    def realizes(self, stmt: Stmt) -> list[BlockRealize]:
        """Realizes of the blocks at or under ``stmt`` in program order, without going into blocks."""
        out: list[BlockRealize] = []
        stack = [stmt]
        while stack:
            s = stack.pop()
            while type(s) is For:
                s = s.body
            if type(s) is BlockRealize:
                out.append(s)
            else:
                stack.extend(reversed(child_stmts(s)))
        return out

    def children(self, block: Block) -> list[BlockRealize]:
        """Realizes of the blocks directly inside a block, in program order."""
        known = self._children.get(block)
        if known is None:
            known = self._children[block] = self.realizes(block.body)
        return known

    def memory(self, stmt: Stmt) -> Callable[[tir.Buffer], Var]:
        """To which memory (its pointer) a buffer belongs where ``stmt`` stands, through the views that blocks around made."""
        views = {m.buffer: m.source.buffer for a in self.ancestors(stmt) if type(a) is Block for m in a.match_buffers}

        def of(buffer: tir.Buffer) -> Var:
            while buffer in views:
                buffer = views[buffer]
            return buffer.data

        return of

    def under(self, stmt: Stmt, top: Stmt) -> bool:
        """Whether ``stmt`` is ``top`` or inside it."""
        return stmt is top or any(a is top for a in self.ancestors(stmt))

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return str(self.func.attrs.get("global_symbol", "function"))

    @property
    def root(self) -> Block:
        """The root block."""
        block = self.func.root_block
        if block is None:
            raise ScheduleError(f"{self.name} has no root block", why="only tensor programs in block form can be scheduled")
        return block

    def blocks(self) -> list[Block]:
        """Every block in program order, the root first."""
        return [s for s in self.order if type(s) is Block]

    def analyzer(self, stmt: Stmt, *, inside: bool = False, units: bool = True) -> Analyzer:
        """What is known at a statement: ranges of the loops and block variables around it, and predicates.

        ``inside`` counts the statement itself; without ``units`` loops of one iteration keep their variables.
        """
        an = Analyzer()
        for fact in self.facts:
            an.assume(fact)
        around = [*reversed(list(self.ancestors(stmt))), *([stmt] if inside else [])]
        for s in around:
            rule = _FACTS.get(type(s))
            if rule is not None:
                rule(an, s, units)
        return an

    # --- editing

    def edit(self, changes: Mapping[Stmt, Stmt | None]) -> Tree:
        """The program with statements replaced; None removes one, with the loops that become empty."""
        touched = {a for s in changes for a in self.ancestors(s)}
        body = _rebuild(self.func.body, changes, touched)
        return self.with_func(self.func.replace(body=body if body is not None else Seq(())))

    def with_func(self, func: PrimFunc) -> Tree:
        """A tree over another version of the function."""
        return self if func is self.func else Tree(func, self.decisions, self.facts)

    def with_decision(self, decision: Decision) -> Tree:
        """The program with one more decision left open."""
        return Tree(self.func, (*self.decisions, decision), (*self.facts, *decision.facts))

    def assuming(self, fact: Expr) -> Tree:
        """The program with one more fact known of its open decisions."""
        return Tree(self.func, self.decisions, (*self.facts, fact))


def bind_loop(an: Analyzer, loop: For, units: bool = True) -> None:
    """Tell an analyzer the range of a loop's variable."""
    if units or not is_one(loop.extent):
        an.bind(loop.loop_var, tir.Range(loop.min, loop.extent))


def _bind_block(an: Analyzer, block: Block, units: bool) -> None:
    for iv in block.iter_vars:
        if units or not is_one(iv.dom.extent):
            an.bind(iv.var, iv.dom)


def _bind_realize(an: Analyzer, realize: BlockRealize, units: bool) -> None:
    if not is_true(realize.predicate):
        an.assume(realize.predicate)


_FACTS = {For: bind_loop, Block: _bind_block, BlockRealize: _bind_realize}


def _rebuild(s: Stmt, changes: Mapping[Stmt, Stmt | None], touched: set[Stmt]) -> Stmt | None:
    if s in changes:
        return changes[s]
    if s not in touched:
        return s
    if type(s) is Seq:
        parts = [p for p in (_rebuild(c, changes, touched) for c in s.stmts) if p is not None]
        return tir.seq(*parts) if parts else None
    new: dict[str, Any] = {}
    for name in FIELDS[type(s)]:
        old = getattr(s, name)
        if old is not None:
            new[name] = _rebuild(old, changes, touched)
    if all(v is None for v in new.values()):
        if type(s) is not Block:
            return None
        new["body"] = Seq(())
    if type(s) is tir.If and new["then_case"] is None:
        return tir.If(tir.logical_not(s.condition), new["else_case"], None, s.span)
    return s.replace(**new)


# --- small questions and constructions


def is_true(condition: Expr) -> bool:
    """Whether a condition is the constant true."""
    return type(condition) is tir.IntImm and bool(condition.value)


def is_one(extent: Expr) -> bool:
    """Whether an extent is the constant 1."""
    return type(extent) is tir.IntImm and extent.value == 1


def is_zero(e: Expr) -> bool:
    """Whether an expression is the constant 0."""
    return type(e) is tir.IntImm and e.value == 0


TRUE = tir.const(True)


def nest(body: Stmt, loops: list[tuple[Var, Expr]]) -> Stmt:
    """Fresh serial loops from 0 around a statement, outermost first."""
    for v, extent in reversed(loops):
        body = For(v, tir.index_const(0), extent, tir.ForKind.SERIAL, body)
    return body


def loop_var(name: str, like: Expr | None = None) -> Var:
    """A new loop variable."""
    return Var(name, like.dtype if like is not None else tir.index_const(0).dtype)


def unique_block_name(tree: Tree, hint: str) -> str:
    """``hint``, or with a number when a block of the program has that name."""
    taken = {b.name for b in tree.blocks()}
    name, k = hint, 0
    while name in taken:
        k += 1
        name = f"{hint}_{k}"
    return name


def has_reduction(block: Block) -> bool:
    """Whether some iteration variable reduces."""
    return any(iv.kind is IterKind.REDUCE for iv in block.iter_vars)


class _Fresh(Rewriter):
    """Copies statements with variables, buffers and tokens of their own; ``blocks`` names the copied blocks."""

    def __init__(self, rename: Any) -> None:
        self.rename = rename
        self.table: dict[Var, Expr] = {}
        self.buffers: dict[Any, Any] = {}
        self.copies: dict[Token, Token] = {}

    def rewrite(self, node: Any) -> Any:
        if type(node) is Var:
            return self.table.get(node, node)
        return super().rewrite(node)

    def _fresh(self, v: Var) -> Var:
        new = self.table[v] = Var(v.name, v.dtype, v.size)
        return new

    def _own(self, buffer: Any) -> Any:
        data = self._fresh(buffer.data)
        new = self.buffers[buffer] = substitute_buffer(buffer, self.table).replace(data=data)
        return new

    def _view(self, match: Any) -> Any:
        """A view with a pointer, an offset and strides of its own (what is variable of these is bound by the view)."""
        buffer = match.buffer
        for e in (buffer.elem_offset, *buffer.strides):
            if type(e) is Var and not e.size and e not in self.table:
                self._fresh(e)
        return match.replace(buffer=self._own(buffer))

    def buffer(self, buffer: Any) -> Any:
        return self.buffers.get(buffer, buffer)

    def _token(self, old: Any) -> Token:
        new = self.copies[old.token] = Token()
        return new

    @on(For)
    def _for(self, loop: For) -> For:
        var = self._fresh(loop.loop_var)
        return self.generic(loop).replace(loop_var=var, token=self._token(loop))

    @on(Block)
    def _block(self, block: Block) -> Block:
        ivs = [iv.replace(dom=self._range(iv.dom)) for iv in block.iter_vars]
        ivs = [iv.replace(var=self._fresh(iv.var)) for iv in ivs]
        for b in block.alloc_buffers:
            self._own(b)
        matches = tuple(m.replace(source=self.rewrite(m.source)) for m in block.match_buffers)
        matches = tuple(map(self._view, matches))
        return block.replace(
            iter_vars=tuple(ivs),
            reads=tuple(map(self.rewrite, block.reads)),
            writes=tuple(map(self.rewrite, block.writes)),
            name=self.rename(block),
            body=self.rewrite(block.body),
            init=None if block.init is None else self.rewrite(block.init),
            alloc_buffers=tuple(self.buffers[b] for b in block.alloc_buffers),
            match_buffers=matches,
            token=self._token(block),
        )

    def _range(self, r: tir.Range) -> tir.Range:
        return tir.Range(self.rewrite(r.min), self.rewrite(r.extent))

    @on(tir.BufferStore, tir.Evaluate, tir.Assert)
    def _leaf(self, stmt: Stmt) -> Stmt:
        new = self.generic(stmt)
        return type(stmt)(*(getattr(stmt, name) for name in stmt._fields)) if new is stmt else new  # (a statement stands in one place)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Let:
        value = self.rewrite(let.value)
        var = self._fresh(let.var)
        return let.replace(var=var, value=value, body=self.rewrite(let.body))


def substitute_buffer(buffer: tir.Buffer, table: Mapping[Var, Expr]) -> tir.Buffer:
    """A copy of a buffer with variables of its shape, strides and offset replaced; always a new identity."""
    return tir.Buffer(
        buffer.name,
        buffer.dtype,
        tuple(substitute(s, table) for s in buffer.shape),
        tuple(substitute(s, table) for s in buffer.strides),
        None if buffer.elem_offset is None else substitute(buffer.elem_offset, table),
        buffer.scope,
        buffer.data,
        buffer.align,
        buffer.offset_factor,
        buffer.axis_separators,
        buffer.span,
    )


def fresh_copy(stmt: Stmt, rename: Any = lambda block: block.name) -> tuple[Stmt, dict[Token, Token]]:
    """A copy that shares no loop variable, block variable, own buffer or token; with where each token's copy is."""
    copier = _Fresh(rename)
    return copier.rewrite(stmt), copier.copies


def with_own_tokens(func: PrimFunc) -> PrimFunc:
    """The function itself, or a copy with fresh tokens and statements when some occur twice in it."""
    seen: set[Any] = set()
    stack = [func.body]
    while stack:
        s = stack.pop()
        keys = {s} | ({s.token} if type(s) in (For, Block) else set())
        if keys & seen:
            return func.replace(body=fresh_copy(func.body)[0])
        seen |= keys
        stack.extend(child_stmts(s))
    return func
