# SPDX-License-Identifier: Apache-2.0
"""What a statement touches: every load and store of a block's body, in its variables and those of the loops inside.

What pointers reach (opaque calls) is what the block around the call declares; views count as what they are views of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from roundel.ir import Buffer, Var, Visitor, on, substitute, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.tir import Block, BufferLoad, BufferRegion, BufferStore, Expr, Range, Stmt
from roundel.ir.visit import walk_once

from .updates import family

Region = tuple[Range, ...]
INIT = "init"  # the role of an init's stores


@dataclass(frozen=True, eq=False, slots=True)
class Access:
    """A part of a buffer that one instance of a statement loads or stores.

    ``inside`` has the loops that run within the instance. ``update`` is the operation with which a store, and the load of the old
    value, combine the old value and another ("Add"), where the order of such updates does not matter; or ``INIT``.
    """

    buffer: Buffer
    region: Region
    store: bool
    inside: Mapping[Var, Range]
    update: str | None = None


def accesses_of(stmt: Stmt) -> tuple[Access, ...]:
    """What a block (or a statement outside of blocks) touches, memory of its own left out; each access once, wherever it occurs."""
    found = _Collect()
    if type(stmt) is Block:
        found.enter(stmt)
    else:
        found.visit(stmt)
    different = {(a.buffer, tuple((r.min, r.extent) for r in a.region), a.store, a.update, *a.inside): a for a in found.found}
    return tuple(a for a in different.values() if a.buffer not in found.own)


def loads_of(*exprs: Expr) -> tuple[Access, ...]:
    """What expressions load."""
    found = _Collect()
    for e in exprs:
        found.visit(e)
    return tuple(found.found)


def own_pointer(buffer: Buffer) -> Var:
    """The memory of a buffer, where no view is another name of it."""
    return buffer.data


def told_by(region: Region, *values: Expr, of: Callable[[Buffer], Var] = own_pointer) -> frozenset[Var]:
    """The memory that tells where a region is, and other values; ``of`` says to which memory a buffer belongs (``Tree.memory``)."""
    data = [e for e in (*values, *(e for r in region for e in (r.min, r.extent))) if not e.is_index]
    return frozenset(of(a.buffer) for a in loads_of(*data)) if data else frozenset()


class _Collect(Visitor):
    def __init__(self) -> None:
        self.found: list[Access] = []
        self.own: set[Buffer] = set()
        self.inside: dict[Var, Range] = {}
        self.table: dict[Var, Expr] = {}  # variables of blocks and Lets inside, in terms of what is outside
        self.lets: set[Var] = set()
        self.views: dict[Buffer, BufferRegion] = {}
        self.blocks: list[Block] = []
        self.init = False
        self.met: set[Expr] = set()  # what was gone into where the visit is: an expression has the same loads at each place

    def enter(self, block: Block) -> None:
        """Visit the inside of a block whose variables are known."""
        self.own.update(block.alloc_buffers)
        for m in block.match_buffers:
            self.views[m.buffer] = BufferRegion(m.source.buffer, tuple(map(self._range, m.source.region)))
        self.blocks.append(block)
        if block.init is not None:
            before, self.init = self.init, True
            self.visit(block.init)
            self.init = before
        self.visit(block.body)
        self.blocks.pop()

    def visit(self, node: Any) -> None:
        """Dispatch on the node's type; index expressions load nothing, unless a variable in them stands for a load."""
        if not isinstance(node, Expr):
            self.met = set()
        elif node in self.met or (node.is_index and not self.lets):
            return
        else:
            self.met.add(node)
        super().visit(node)

    def generic(self, node: Any) -> None:
        """Visit the children."""
        for child in node._below():
            self.visit(child)

    def _range(self, r: Range) -> Range:
        return Range(substitute(r.min, self.table), substitute(r.extent, self.table))

    def _record(self, buffer: Buffer, region: Region, store: bool, update: str | None = None) -> None:
        region = tuple(map(self._range, region)) if self.table else region
        while buffer in self.views:
            source = self.views[buffer]
            lead = len(source.region) - len(region)
            flat = all(type(n) is tir.IntImm and n.value == 0 for n in (buffer.elem_offset,) if n is not None)
            if lead < 0 or buffer.strides or not flat:
                region = source.region
            else:
                inner = (Range(tir.add(s.min, r.min), r.extent) for s, r in zip(source.region[lead:], region, strict=True))
                region = (*source.region[:lead], *inner)
            buffer = source.buffer
        self.found.append(Access(buffer, region, store, dict(self.inside), INIT if self.init else update))

    def _declared(self) -> None:
        """What an opaque call may do: all that the blocks around it declare, the innermost that declares anything."""
        block = next((b for b in reversed(self.blocks) if b.reads or b.writes), None)
        for regions, store in ((block.reads, False), (block.writes, True)) if block is not None else ():
            for r in regions:
                self._record(r.buffer, r.region, store)

    @on(BufferLoad)
    def _load(self, e: BufferLoad) -> None:
        self._record(e.buffer, _points(e.indices, e.buffer), False)
        self.generic(e)

    @on(BufferStore)
    def _store(self, s: BufferStore) -> None:
        value = substitute(s.value, self.table) if self.table else s.value
        update = family(s.replace(value=value), self.blocks[-1] if self.blocks else None)
        region = _points(s.indices, s.buffer)
        self._record(s.buffer, region, True, update)
        mine, written = self.found[-1], {w.buffer for b in self.blocks[-1:] for w in b.writes}
        for i in s.indices:
            self.visit(i)
        if s.predicate is not None:
            self.visit(s.predicate)
        first, self.met = len(self.found), set()
        self.visit(value)
        if update is not None:
            for k, a in enumerate(self.found[first:], first):
                mates = written if update == "choice" else {mine.buffer}
                if a.buffer in mates and all(x.min is y.min for x, y in zip(a.region, mine.region)):
                    self.found[k] = Access(a.buffer, a.region, a.store, a.inside, mine.update)

    @on(tir.Call)
    def _call(self, e: tir.Call) -> None:
        if e.op == "address_of" or any(type(a) is Var and a.dtype.is_handle for a in e.args):
            self._declared()
        self.generic(e)

    @on(tir.For)
    def _loop(self, s: tir.For) -> None:
        self.visit(s.min)
        self.visit(s.extent)
        self.inside[s.loop_var] = self._range(Range(s.min, s.extent))
        self.visit(s.body)

    @on(tir.Let)
    def _let(self, s: tir.Let) -> None:
        self.table[s.var] = substitute(s.value, self.table)
        self.lets.add(s.var)
        self.visit(s.body)

    @on(Var)
    def _variable(self, v: Var) -> None:
        if v in self.lets:  # what it stands for is loaded where it is used
            self.visit(self.table[v])

    @on(tir.Allocate)
    def _allocate(self, s: tir.Allocate) -> None:
        self.own.add(s.buffer)
        self.visit(s.body)

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        for v in (*s.iter_values, s.predicate):
            self.visit(v)
        for iv, value in zip(s.block.iter_vars, s.iter_values, strict=True):
            self.table[iv.var] = substitute(value, self.table)
        self.enter(s.block)


def _points(indices: tuple[Expr, ...], buffer: Buffer) -> Region:
    """One element; the whole dimension where an index is a vector."""
    return tuple(
        Range(i, tir.IntImm(1, i.dtype)) if i.dtype.lanes == 1 else Range(tir.IntImm(0, n.dtype), n) for i, n in zip(indices, buffer.shape)
    )


_REFERRING = frozenset((BufferLoad, BufferStore, BufferRegion, tir.MatchBufferRegion, tir.Allocate, tir.DeclBuffer))


@lru_cache(maxsize=4096)
def memory_of(block: Block) -> frozenset[Var]:
    """The pointers to all memory that a block, or one in it, refers to."""
    found, seen = {b.data for b in block.alloc_buffers}, set()
    stack = block._below()
    while stack:
        n = stack.pop()
        if isinstance(n, Expr):
            if n in seen:
                continue
            seen.add(n)
        if type(n) is Block:
            found |= memory_of(n)
            continue
        if type(n) in _REFERRING:
            found.add(n.buffer.data)
        elif type(n) is Var:
            found.add(n)
        stack += [c for c in n._below() if not (isinstance(c, Expr) and c.is_index)]
    return frozenset(found)


def variables_of(node: Any) -> frozenset[Var]:
    """Every variable that occurs in a statement or expression."""
    return frozenset(n for n in walk_once(node) if type(n) is Var)
