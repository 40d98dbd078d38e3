# SPDX-License-Identifier: Apache-2.0
"""Accesses in vectorized loops that move along more than their last dimension get a flat view of the buffer.

    for v in T.vectorized(16):                              flat = T.decl_buffer((n * 300,), data=A.data)
        ... A[(i * 16 + v) // 300, (i * 16 + v) % 300]  ->  for v in T.vectorized(16):
                                                                ... flat[i * 16 + v]

so that loops fused over contiguous dimensions become contiguous vectors.
"""

from __future__ import annotations

from roundel.arith import Analyzer
from roundel.ir import Rewriter, Var, decl_buffer, on, tir
from roundel.ir.visit import free_vars

from .kernel_pass import kernel_pass
from .loop_facts import inside


class _Flatten(Rewriter):
    """``params``: buffers that are given, of which all loops share one view, so that equal loads in copies of a loop stay equal."""

    def __init__(self, params: tuple[tir.Buffer, ...]) -> None:
        self.params = frozenset(params)
        self.shared: dict[tir.Buffer, tir.Buffer] = {}
        self.vectors: set[Var] = set()
        self.views: dict[tir.Buffer, tir.Buffer] = {}
        self.private: set[tir.Buffer] = set()  # allocated in the vectorized loop: each lane has its own
        self.an = Analyzer()

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        with inside(self.an, loop):
            return self._within(loop)

    def _within(self, loop: tir.For) -> tir.Stmt:
        if loop.kind is not tir.ForKind.VECTORIZED:
            return self.generic(loop)
        saved, self.views = self.views, {}
        self.vectors.add(loop.loop_var)
        out: tir.Stmt = self.generic(loop)
        self.vectors.discard(loop.loop_var)
        for flat in self.views.values():
            out = tir.DeclBuffer(flat, out)
        self.views = saved
        return out

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> tir.Allocate:
        if self.vectors:
            self.private.add(alloc.buffer)
        return self.generic(alloc)

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.BufferLoad:
        new = self.generic(load)
        at = self._flat(new)
        return new if at is None else tir.BufferLoad(self._view(new.buffer), (at,))

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.BufferStore:
        new = self.generic(store)
        at = self._flat(new)
        return new if at is None else new.replace(buffer=self._view(new.buffer), indices=(at,))

    def _flat(self, access: tir.BufferLoad | tir.BufferStore) -> tir.Expr | None:
        """The flat index, when a vector variable is in another index than the last and the buffer is compact memory."""
        b = access.buffer
        if b in self.private or b.strides or b.scope not in ("global", "local") or access.predicate is not None or b.ndim < 2:
            return None
        if not any(free_vars(i) & self.vectors for i in access.indices[:-1]) or b.dtype.storage_bits < 8:
            return None
        at: tir.Expr = tir.index_const(0)
        for i, n in zip(access.indices, b.shape, strict=True):
            at = at * n + i
        return self.an.simplify(at)

    def _view(self, b: tir.Buffer) -> tir.Buffer:
        views = self.shared if b in self.params else self.views
        if b not in views:
            views[b] = decl_buffer((tir.product_of(b.shape),), b.dtype, b.name, data=b.data, elem_offset=b.elem_offset, scope=b.scope)
        return views[b]


@kernel_pass("flatten_accesses")
def flatten_accesses(func: tir.PrimFunc) -> tir.PrimFunc:
    """Flat views where a vectorized loop runs over several dimensions."""
    flatten = _Flatten(func.buffer_params)
    body = flatten.rewrite(func.body)
    for flat in flatten.shared.values():
        body = tir.DeclBuffer(flat, body)
    return func if body is func.body else func.replace(body=body)
