# SPDX-License-Identifier: Apache-2.0
"""Accesses of one buffer become accesses of another one, at other places."""

from __future__ import annotations

from collections.abc import Sequence

from roundel.ir import Buffer
from roundel.ir.tir import BufferLoad, BufferStore, Expr, Stmt
from roundel.ir.visit import Rewriter, on


class Redirect(Rewriter):
    """What touches ``old`` touches ``new`` instead; a subclass says by ``at`` at which indices, and what becomes of regions."""

    old: Buffer
    new: Buffer

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices of the new buffer for those of the old one."""
        raise NotImplementedError

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.new if buffer is self.old else buffer

    @on(BufferLoad)
    def _load(self, load: BufferLoad) -> Expr:
        if load.buffer is not self.old:
            return self.generic(load)
        return load.replace(buffer=self.new, indices=self.at(tuple(map(self.rewrite, load.indices))))

    @on(BufferStore)
    def _store(self, store: BufferStore) -> Stmt:
        if store.buffer is not self.old:
            return self.generic(store)
        indices = self.at(tuple(map(self.rewrite, store.indices)))
        return store.replace(buffer=self.new, value=self.rewrite(store.value), indices=indices)
