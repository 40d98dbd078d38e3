# SPDX-License-Identifier: Apache-2.0
"""Views of buffers (``T.match_buffer(A[0:16, j:j + 16], (16, 16), ...)``) are replaced by the buffers that they view.

An access of the view becomes an access of the source; the view's stride, offset and pointer variables become
expressions of the source's.
"""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import Rewriter, Var, on, tir
from roundel.ir.errors import LowerError
from roundel.ir.visit import substitute


def strides_of(buffer: tir.Buffer) -> tuple[tir.Expr, ...]:
    """The strides of a buffer in elements, also when it is compact."""
    return buffer.strides or tuple(tir.product_of(buffer.shape[k + 1 :]) for k in range(buffer.ndim))


def offset_of(buffer: tir.Buffer, indices: Sequence[tir.Expr]) -> tir.Expr:
    """The element offset from ``buffer.data`` of an access."""
    steps = [i * s for i, s in zip(indices, strides_of(buffer), strict=True)]
    return tir.sum_of([*steps, *([] if buffer.elem_offset is None else [buffer.elem_offset])])


class _Redirect(Rewriter):
    """Accesses of views become accesses of their sources."""

    def __init__(self, views: dict[tir.Buffer, tir.BufferRegion]) -> None:
        self.views = views

    def indices(self, view: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        region = self.views[view].region
        own = list(reversed([self.rewrite(i) for i in indices]))
        out = []
        for k, r in enumerate(reversed(region)):  # leading unit dimensions of the source may be missing in the view
            out.append(r.min + own[k] if k < len(own) else r.min)
        return tuple(reversed(out))

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        if load.buffer not in self.views:
            return self.generic(load)
        predicate = None if load.predicate is None else self.rewrite(load.predicate)
        return tir.BufferLoad(self.views[load.buffer].buffer, self.indices(load.buffer, load.indices), predicate)

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        if store.buffer not in self.views:
            return self.generic(store)
        predicate = None if store.predicate is None else self.rewrite(store.predicate)
        return store.replace(
            buffer=self.views[store.buffer].buffer,
            indices=self.indices(store.buffer, store.indices),
            value=self.rewrite(store.value),
            predicate=predicate,
        )

    @on(tir.BufferRegion)
    def _region(self, region: tir.BufferRegion) -> tir.BufferRegion:
        if region.buffer not in self.views:
            return self.generic(region)
        starts = self.indices(region.buffer, tuple(r.min for r in region.region))
        missing = len(starts) - len(region.region)
        extents = [tir.index_const(1)] * missing + [self.rewrite(r.extent) for r in region.region]
        return tir.BufferRegion(
            self.views[region.buffer].buffer, tuple(tir.Range(s, e) for s, e in zip(starts, extents, strict=True))
        )


def _bind(view: tir.Buffer, source: tir.BufferRegion) -> dict[Var, tir.Expr]:
    """Values of the variables that the view's declaration introduces."""
    values: dict[Var, tir.Expr] = {view.data: source.buffer.data}
    missing = source.buffer.ndim - view.ndim
    if missing < 0:
        raise LowerError(
            f"buffer {view.name} of rank {view.ndim} is matched with a region of rank {source.buffer.ndim}",
            where=view.span,
        )
    for dim, r in zip(view.shape, source.region[missing:], strict=True):
        if type(dim) is Var:
            values[dim] = r.extent
    for stride, actual in zip(view.strides, strides_of(source.buffer)[missing:], strict=False):
        if type(stride) is Var:
            values[stride] = actual
    if type(view.elem_offset) is Var:
        values[view.elem_offset] = offset_of(source.buffer, [r.min for r in source.region])
    return values


def inline_match_buffers(block: tir.Block) -> tir.Block:
    """The block with its views replaced by their sources."""
    if not block.match_buffers:
        return block
    views: dict[tir.Buffer, tir.BufferRegion] = {}
    values: dict[Var, tir.Expr] = {}
    for match in block.match_buffers:
        views[match.buffer] = match.source
        values |= _bind(match.buffer, match.source)
    redirect = _Redirect(views)
    init = None if block.init is None else substitute(redirect.rewrite(block.init), values)
    return block.replace(body=substitute(redirect.rewrite(block.body), values), init=init, match_buffers=())
