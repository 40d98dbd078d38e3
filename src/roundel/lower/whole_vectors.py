# SPDX-License-Identifier: Apache-2.0
"""Register tiles consist of whole vectors: a row that does not fill its last vector computes a few more elements, which are not stored.

    acc = alloc_local((6, 24))                                 acc = alloc_local((6, 32))
    for j0, j in (2, T.vectorized(16)):                        for j0, j in (2, T.vectorized(16)):
        if j0 * 16 + j < 24:                             ->        acc[i, j0 * 16 + j] += a[i] * b[j0 * 16 + j] if j0 * 16 + j < 24 else 0
            acc[i, j0 * 16 + j] += a[i] * b[j0 * 16 + j]

A masked store would keep the tile in memory. Other memory is still read under the condition, unless it is padded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, on, tir
from roundel.ir.visit import OnceVisitor, free_vars, walk

from .kernel_pass import kernel_pass
from .loop_facts import inside
from .statements import StatementRewriter
from .vector_expr import as_vector, conjuncts


class _Unguard(StatementRewriter):
    """Removes from stores to local memory the guards that only keep lanes within the buffer, and records how large the buffer has to be."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.lanes: list[Var] = []
        self.shapes: dict[tir.Buffer, list[tir.Expr]] = {}

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        vector = loop.kind is tir.ForKind.VECTORIZED
        with inside(self.analyzer, loop):
            self.lanes += [loop.loop_var] if vector else []
            out = self.generic(loop)
            del self.lanes[len(self.lanes) - vector:]
        return out

    @on(tir.If)
    def _if(self, stmt: tir.If) -> tir.Stmt:
        store = stmt.then_case
        if stmt.else_case is not None or type(store) is not tir.BufferStore or store.buffer.scope != "local" or not self.lanes:
            return self.generic(stmt)
        dropped = [c for c in conjuncts(stmt.condition) if self.is_edge(c, store)]
        if not dropped or _may_trap(store.value, self.lanes[-1]):
            return stmt
        value = _Guard(tir.logical_and(*dropped), self.lanes[-1], self.analyzer, self.shapes).rewrite(store.value)
        rest = [c for c in conjuncts(stmt.condition) if c not in dropped]
        store = store.replace(value=value)
        return tir.If(tir.logical_and(*rest), store) if rest else store

    def is_edge(self, c: tir.Expr, store: tir.BufferStore) -> bool:
        """Whether the condition says no more than that a lane is inside of the buffer."""
        if type(c) is not tir.LT or type(c.b) is not tir.IntImm or self.lanes[-1] not in free_vars(c.a):
            return False
        last = self.analyzer.bounds(c.a)[1]
        for k, (index, extent) in enumerate(zip(store.indices, store.buffer.shape, strict=True)):
            if index is c.a and type(extent) is tir.IntImm and extent.value == c.b.value and isinstance(last, int):
                shape = self.shapes.setdefault(store.buffer, list(store.buffer.shape))
                shape[k] = tir.const(max(last + 1, shape[k].value), extent.dtype)
                return True
        return False


def _may_trap(value: tir.Expr, lane: Var) -> bool:
    """Whether a value divides integers by something that may be zero in a lane beyond the end (extents, by which indices are divided, are not)."""
    divisions = (n for n in walk(value) if type(n) in (tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod))
    return any(n.dtype.is_int and type(n.b) is not tir.IntImm and (not n.is_index or lane in free_vars(n)) for n in divisions)


class _Guard(Rewriter):
    """Reads memory under the condition, unless it has all elements of the vector, as local memory has that is as large as its vectors."""

    def __init__(self, condition: tir.Expr, lane: Var, analyzer: Analyzer, shapes: Mapping[tir.Buffer, Sequence[tir.Expr]]) -> None:
        self.condition, self.lane, self.analyzer, self.shapes = condition, lane, analyzer, shapes

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        if self.lane not in free_vars(load) or self.is_within(load):
            return load
        return tir.if_then_else(self.condition, load, tir.const(0, load.dtype))

    def is_within(self, load: tir.BufferLoad) -> bool:
        """Whether the buffer is known to have all these elements; of local memory only lanes are in question."""
        extents = self.shapes.get(load.buffer, load.buffer.shape)
        asked = [(i, n) for i, n in zip(load.indices, extents, strict=True) if load.buffer.scope != "local" or self.lane in free_vars(i)]
        bounds = [(*self.analyzer.bounds(i), n) for i, n in asked]
        return all(type(n) is tir.IntImm and low >= 0 and high < n.value for low, high, n in bounds)


class Enlarge(Rewriter):
    """Buffers replaced by larger ones."""

    def __init__(self, table: dict[tir.Buffer, tir.Buffer]) -> None:
        self.table = table

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        return self.table.get(buffer, buffer)


@kernel_pass("whole_vectors")
def whole_vectors(func: tir.PrimFunc) -> tir.PrimFunc:
    """Makes local buffers as large as the vectors that reach beyond their end."""
    unguard = _Unguard()
    body = unguard.rewrite(func.body)
    if not unguard.shapes:
        return func
    table = {b: b.replace(shape=tuple(s)) for b, s in unguard.shapes.items()}
    return func.replace(body=Enlarge(table).rewrite(body))


class _Unmask(Rewriter):
    """``unused``: the condition of the store around, in whose other lanes nothing of its value is used."""

    unused: tir.Expr | None = None

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        load = self.generic(load)
        if not _is_masked_register(load) or not _is_within(load):
            return load
        whole, lanes = load.replace(predicate=None), load.dtype.lanes
        if load.predicate is self.unused:
            return whole
        return tir.Select(as_vector(load.predicate, lanes), whole, as_vector(tir.const(0, load.dtype.element), lanes))

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        self.unused = store.predicate
        store = self.generic(store)
        self.unused = None
        if not _is_masked_register(store) or store.predicate.dtype.lanes == 1 or not _is_within(store):
            return store
        kept = tir.BufferLoad(store.buffer, store.indices)
        return store.replace(value=tir.Select(store.predicate, store.value, kept), predicate=None)


def _is_masked_register(access: Any) -> bool:
    return type(access) in (tir.BufferLoad, tir.BufferStore) and access.predicate is not None and access.buffer.scope == "local"


class _Masks(OnceVisitor):
    """Whether any register is masked."""

    found = False

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: tir.BufferLoad | tir.BufferStore) -> None:
        self.found = self.found or _is_masked_register(access)
        self.generic(access)

    @on(tir.IntImm, tir.FloatImm, tir.Ramp, Var)
    def _leaf(self, e: tir.Expr) -> None:
        """A node without accesses inside."""


def _is_within(access: tir.BufferLoad | tir.BufferStore) -> bool:
    """Whether all lanes are elements of the buffer, at places known now."""
    for i, n in zip(access.indices, access.buffer.shape, strict=True):
        base, step, lanes = (i.base, i.stride, i.lanes) if type(i) is tir.Ramp else (i, None, 1)
        if type(base) is not tir.IntImm or type(n) is not tir.IntImm or (step is not None and type(step) is not tir.IntImm):
            return False
        last = base.value + (lanes - 1) * (step.value if step is not None else 0)
        if min(base.value, last) < 0 or max(base.value, last) >= n.value:
            return False
    return True


@kernel_pass("unmask_registers")
def unmask_registers(func: tir.PrimFunc) -> tir.PrimFunc:
    """Removes masks from register tiles, which would keep them in memory. Masked elements exist: loads give zero for them where they are used, and stores
    write the old value back."""
    masks = _Masks()
    masks.visit(func.body)
    return func.replace(body=_Unmask().rewrite(func.body)) if masks.found else func
