# SPDX-License-Identifier: Apache-2.0
"""Where in a tensor program buffers are used: the innermost loop or block around all uses."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import tir
from ...ir.visit import Visitor, free_vars, on

Path = tuple[tir.Stmt, ...]  # loops and blocks from the outside in


def detect_buffer_access_lca(func: tir.PrimFunc) -> dict[tir.Buffer, tir.Stmt | None]:
    """For each buffer of a parameter or a block the innermost loop or block around all its accesses, in which it could be allocated;
    None where that is the function. (The lowest common ancestor.)

    A buffer that a block updates over reduction loops has to live outside of those loops, and global memory that the blocks of a GPU's
    grid touch outside of their loops. A view counts as an access of what it views.
    """
    found = _Uses(func)
    found.visit(func.body)
    return {b: path[-1] if path else None for b, path in found.paths.items()}


class _Uses(Visitor):
    def __init__(self, func: tir.PrimFunc) -> None:
        self.around: Path = ()
        self.grid: list[Path] = []  # what is around the loops over the blocks of the grid, those included
        self.paths: dict[tir.Buffer, Path] = {}
        self.pointers: dict[tir.Var, tir.Buffer] = {b.data: b for _, b in func.buffer_map}
        self.views: set[tir.Buffer] = set()
        self.outside: list[tuple[frozenset[tir.Buffer], Path]] = []  # written over reduction loops, and where those begin

    def use(self, buffer: tir.Buffer, path: Path | None = None) -> None:
        """An access here (or at ``path``)."""
        if buffer in self.views or buffer.data not in self.pointers:
            return
        paths = [self.around if path is None else path]
        paths += [p for written, p in self.outside if buffer in written]
        paths += self.grid if buffer.scope == "global" else []
        paths += [self.paths[buffer]] if buffer in self.paths else []
        self.paths[buffer] = _common(paths)

    @on(tir.For)
    def _for(self, s: tir.For) -> None:
        outer = self.around
        self.around = (*outer, s)
        is_grid = s.thread is not None and s.thread.startswith("blockIdx")
        self.grid += [self.around] if is_grid else []
        self.generic(s)
        self.grid = self.grid[:-1] if is_grid else self.grid
        self.around = outer

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        block, outer = s.block, self.around
        self.pointers.update({b.data: b for b in block.alloc_buffers})
        over = {v for iv, value in zip(block.iter_vars, s.iter_values) if iv.kind is not tir.IterKind.SPATIAL for v in free_vars(value)}
        loops = [k for k, n in enumerate(outer) if isinstance(n, tir.For) and n.loop_var in over]
        before = len(self.outside)
        if loops:
            written = frozenset(w.buffer for w in block.writes)
            self.outside.append((written, outer[: loops[0]]))
        for e in (*s.iter_values, s.predicate):
            self.visit(e)
        self.around = (*outer, block)
        for m in block.match_buffers:
            self.use(m.source.buffer)
            self.views.add(m.buffer)
            self.pointers[m.buffer.data] = m.buffer
        for part in (block.init, block.body):
            if part is not None:
                self.visit(part)
        self.around = outer
        del self.outside[before:]

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, n: tir.BufferLoad | tir.BufferStore) -> None:
        self.use(n.buffer)
        self.generic(n)

    @on(tir.Var)
    def _variable(self, v: tir.Var) -> None:
        if v in self.pointers:
            self.use(self.pointers[v])


def _common(paths: Iterable[Path]) -> Path:
    """The beginning that all paths share."""
    first, *rest = paths
    for other in rest:
        first = first[: next((k for k, (a, b) in enumerate(zip(first, other)) if a is not b), min(len(first), len(other)))]
    return first


def find_anchor_block(func: tir.PrimFunc) -> tir.Block | None:
    """The block that most of the arithmetic is in: of the blocks that reduce (have an init) the one with the most operations, else None."""
    from .flops import estimate_tir_flops

    candidates = []

    def search(n: tir.Stmt, times: float) -> None:
        for child in n._below():
            if isinstance(child, tir.For):
                extent = child.extent.value if isinstance(child.extent, tir.IntImm) else 1
                search(child, times * extent)
            elif isinstance(child, tir.Stmt):
                if isinstance(child, tir.Block) and child.init is not None:
                    candidates.append((times * max(estimate_tir_flops(child), 1), child))
                search(child, times)

    search(tir.Seq((func.body,)), 1)
    return max(candidates, key=lambda c: c[0])[1] if candidates else None
