# SPDX-License-Identifier: Apache-2.0
"""The steps that schedule attention once its decisions are made: over all keys at once, or over blocks of keys (online)."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from ...ir import tir
from ...ir.annotations import EDGE
from ...ir.errors import ScheduleError
from ...schedule import Schedule
from ...target import Target
from ..match.accesses import Access, extent_of
from ..parallelism import parallelize
from ..partial import partial_results
from .stage_times import TYPICAL, of_block
from .stages import Stages

UNROLLED_FMAS = 224   # multiply-adds in the body of an inner loop


class Steps:
    """The steps, from the result up to the queries. ``span``: keys of a block, 0 for all keys at once."""

    def __init__(self, sch: Schedule, stages: Stages, decisions: dict[str, int], target: Target) -> None:
        self.sch, self.stages, self.target, self.lanes = sch, stages, target, target.lanes("float32")
        self.block, self.keys, self.rows, self.vectors, self.packed, self.span = (
            decisions[n] for n in ("block", "keys", "rows", "vectors", "packed", "span"))
        self.causal = stages.causal
        self.cycles = of_block(stages, decisions, target)

    def run(self) -> dict[str, int]:
        """Schedule the whole program; the grain of its parallel loop."""
        sch, s = self.sch, self.stages
        self.weighted, self.total, self.share, self.exps, self.top = (
            sch.get_block(i.name) for i in (s.weighted, s.total, s.share, s.exps, s.top))
        scores = sch.get_block(s.scores.name)
        if s.store is s.scores:
            store = sch.cache_write(scores, 0, "local")
        else:
            store = sch.get_block(s.store.name)
            sch.set_scope(scores, 0, "local")
        turned = self.copied(scores, s.queries, s.inner, s.row)
        packs = [self.copied(scores, s.keys, s.key, s.inner), self.copied(self.weighted, s.values, s.weighted.reduce[0], s.column)] if self.packed else []
        for made in (store, self.weighted, self.top, self.exps, self.total, self.share):
            sch.set_scope(made, 0, "local")  # whole vectors of rows, whatever is left of them at the end
        around, rows, tile = self.result()
        loop, largest = self.online(rows) if self.span else self.at_once(rows, tile)
        sch.compute_at(store, loop, preserve_unit_loops=True)
        self.merge(self.scores(scores, store, turned, loop), largest)
        if self.span and self.causal:
            with suppress(ScheduleError):  # rows that see every block of keys leave none out
                sch.drop_unused(loop)
            self.edge(loop)
        sch.compute_at(turned, rows, preserve_unit_loops=True)
        self.along_rows(turned, rows, s.queries.indices.index(s.row.var))
        for copy in packs:
            sch.compute_at(copy, around[-1])
            sch.vectorize(sch.split(sch.get_loops(copy)[-1], [None, self.lanes])[1])
        if self.packed:
            whole = sch.fuse(*around) if len(around) > 1 else around[0]
            blocks = sch.get(rows).extent
            return parallelize(sch, whole, self.cycles * (blocks.value if isinstance(blocks, tir.IntImm) else TYPICAL // self.lanes), self.target)
        whole = sch.fuse(*around, rows) if around else rows
        return parallelize(sch, whole, self.cycles, self.target)

    def at_once(self, rows: Any, tile: Any) -> tuple[Any, Any]:
        """Compute all scores of a block of rows, then their exponentials, then the result tile by tile. Returns the loop inside of which the scores
        are computed, and the loop over tiles of keys that finds their maxima."""
        sch = self.sch
        sch.compute_at(self.weighted, tile, preserve_unit_loops=True)
        self.product(self.weighted, tile)
        sch.compute_at(self.share, rows, preserve_unit_loops=True)
        self.along_rows(self.share, rows, -1)
        sch.compute_at(self.total, rows, preserve_unit_loops=True)
        summed = self.over_keys(self.total, rows, beyond=self.causal)
        sch.compute_at(self.exps, rows, preserve_unit_loops=True)
        self.merge(self.over_keys(self.exps, rows), summed)
        sch.compute_at(self.top, rows, preserve_unit_loops=True)
        return rows, self.over_keys(self.top, rows, self.keys, self.causal)

    def online(self, rows: Any) -> tuple[Any, Any]:
        """Scores, exponentials and products of one block of keys after another, with what was summed up scaled when a maximum grows. The
        loop over blocks of keys, that over tiles in which maxima are found."""
        sch = self.sch
        part = self.partial(self.weighted)
        sch.compute_at(self.weighted, rows, preserve_unit_loops=True)
        *units, row, column, spans = self.inside(self.weighted, rows)
        tiles, within = sch.split(row, [None, self.rows])
        panels, vectors, lanes = sch.split(column, [None, self.vectors, self.lanes])
        sch.reorder(spans, *units, panels, tiles, within, vectors, lanes)
        sch.compute_at(part, tiles, preserve_unit_loops=True)
        self.start_spans(self.weighted, spans)
        self.product(part, tiles)
        self.straight(self.weighted, 3)
        sch.compute_at(self.share, rows, preserve_unit_loops=True)
        self.along_rows(self.share, rows, -1)
        part = self.partial(self.total)
        sch.compute_at(self.total, rows, preserve_unit_loops=True, index=1)
        *units, row, of_total = self.inside(self.total, rows)
        vectors, lanes = sch.split(row, [None, self.lanes])
        sch.reorder(of_total, *units, vectors, lanes)
        sch.compute_at(part, of_total, preserve_unit_loops=True)
        self.start_spans(self.total, of_total)
        summed = self.over_keys(part, of_total, beyond=self.causal)
        self.straight(self.total, 2)
        spans = sch.merge(of_total, spans)
        sch.compute_at(self.exps, spans, preserve_unit_loops=True)
        self.merge(self.over_keys(self.exps, spans), summed)
        sch.compute_at(self.top, rows, preserve_unit_loops=True)
        first, largest = self.over_spans(self.top, rows)
        return sch.merge_online(first, spans), largest

    def start_spans(self, block: Any, spans: Any) -> None:
        """The init of a sum over blocks of keys in front of them; without those that no row sees."""
        self.sch.decompose_reduction(block, spans)
        if self.causal:
            self.sch.drop_neutral(block, spans)

    def partial(self, block: Any) -> Any:
        """The block of sums over one block of keys each."""
        sch = self.sch
        spans, _ = sch.split(sch.get_loops(block)[-1], [None, self.span])
        part = partial_results(sch, block, spans)
        sch.set_scope(part, 0, "local")
        return part

    def copied(self, block: Any, access: Access, *axes: tir.IterVar) -> Any:
        """Copy an operand into a buffer in which these axes of the block are the last dimensions."""
        sch = self.sch
        reads = [r.buffer for r in sch.get(block).reads]
        copy = sch.cache_read(block, reads.index(access.buffer), "global", [block])
        last = [access.indices.index(a.var) for a in axes]
        order = [k for k in range(len(access.indices)) if k not in last] + last
        sch.transform_layout(copy, ("write", 0), tir.IndexMap.from_func(lambda *i: tuple(i[k] for k in order), len(order)))
        return copy

    def result(self) -> tuple[list[Any], Any, Any]:
        """The loops of the result: those around a block of rows, the one over blocks, and the one over tiles of rows in a block."""
        sch, s = self.sch, self.stages
        block = sch.get_block(s.result.name)
        loops = dict(zip([a.var for a in s.result.spatial], sch.get_loops(block), strict=True))
        row, column = loops.pop(s.result_row.var), loops.pop(s.result_column.var)
        rows, inside = sch.split(row, [None, self.block * self.lanes])
        tiles, within = sch.split(inside, [None, self.rows])
        panels, vectors, lanes = sch.split(column, [None, self.vectors, self.lanes])
        around = list(loops.values())
        sch.reorder(*around, rows, panels, tiles, within, vectors, lanes)
        for loop in (within, vectors):
            sch.unroll(loop)
        sch.vectorize(lanes)
        return around, rows, tiles

    def merge(self, first: Any, second: Any) -> None:
        """Merge two loops over keys, unless they have a single iteration or end at different keys."""
        extent = self.sch.get(first).extent
        if extent is self.sch.get(second).extent and not (isinstance(extent, tir.IntImm) and extent.value == 1):
            self.edge(self.sch.merge(first, second))

    def edge(self, loop: Any) -> None:
        """Mark a loop over keys, or over blocks of keys, as the one to split where the keys end, so that the loops around it stay whole."""
        if self.span:
            self.sch.annotate(loop, EDGE, True)

    def inside(self, block: Any, loop: Any) -> list[Any]:
        """The loops of a block inside of the given loop."""
        sch = self.sch
        token, loops = sch.get(loop).token, sch.get_loops(block)
        return loops[next(k for k, x in enumerate(loops) if sch.get(x).token is token) + 1:]

    def product(self, block: Any, tile: Any) -> None:
        """The product of exponentials and values: a register tile of rows and columns, reduced over keys."""
        sch = self.sch
        row, column, key = self.inside(block, tile)[-3:]
        unroll = self.unroll(self.span or extent_of(self.stages.key), self.rows * self.vectors)
        outer, step = sch.split(key, [None, math.gcd(unroll, self.keys) if self.causal else unroll])
        sch.reorder(outer, step, row, column)
        values = self.stages.values.buffer
        reads = [r.buffer for r in sch.get(block).reads]
        self.reduce(block, next(b for b in reads if b is values or b.name == values.name + "_global"), outer, step)
        if self.causal:
            sch.drop_neutral(block, outer, self.keys)
        self.edge(outer)

    def scores(self, block: Any, store: Any, turned: Any, loop: Any) -> Any:
        """The product of keys and queries: a register tile of keys and rows, reduced over the width of a head. Returns the loop over tiles."""
        sch = self.sch
        *units, key, row = self.inside(store, loop)
        tiles, within = sch.split(key, [None, self.keys])
        vectors, lanes = sch.split(row, [None, self.lanes])
        sch.reorder(tiles, *units, within, vectors, lanes)
        sch.compute_at(block, tiles, preserve_unit_loops=True)
        key, row, inner = self.inside(block, tiles)[-3:]
        outer, step = sch.split(inner, [None, self.unroll(extent_of(self.stages.inner), self.keys * self.block)])
        sch.reorder(outer, step, key, row)
        self.reduce(block, sch.get(turned).writes[0].buffer, outer, step)
        for x in (within, vectors):
            sch.unroll(x)
        sch.vectorize(lanes)
        return tiles

    def reduce(self, block: Any, vector: tir.Buffer, outer: Any, step: Any) -> None:
        """Reduce into a register tile, with the operand vectors of each step in registers."""
        sch = self.sch
        reads = [r.buffer for r in sch.get(block).reads]
        panel = sch.cache_read(block, reads.index(vector), "local", [block])
        sch.compute_at(panel, step)
        init = sch.decompose_reduction(block, outer)
        self.in_vectors(panel, step)
        for b in (block, init):
            loops = sch.get_loops(b)
            split = sch.split(loops[-1], [None, self.lanes])
            for loop in (loops[-2], split[0]):
                sch.unroll(loop)
            sch.vectorize(split[1])
        sch.unroll(step)

    def in_vectors(self, block: Any, loop: Any) -> None:
        """Unroll the loops and vectorize the last one; of one element there are none."""
        sch, loops = self.sch, self.inside(block, loop)
        if not loops:
            return
        *others, last = loops
        vectors, lanes = sch.split(last, [None, self.lanes])
        for other in (*others, vectors):
            sch.unroll(other)
        sch.vectorize(lanes)

    def straight(self, block: Any, count: int) -> None:
        """Unroll the last loops of a block and vectorize the innermost one."""
        *others, lanes = self.sch.get_loops(block)[-count:]
        for other in others:
            self.sch.unroll(other)
        self.sch.vectorize(lanes)

    def along_rows(self, block: Any, rows: Any, at: int) -> None:
        """A block of a value per row (and something else) in vectors of rows, over which its loop ``at`` is."""
        sch = self.sch
        others = self.inside(block, rows)
        vectors, lanes = sch.split(others.pop(at), [None, self.lanes])
        sch.reorder(*others, vectors, lanes)
        sch.unroll(vectors)
        sch.vectorize(lanes)

    def over_keys(self, block: Any, loop: Any, tile: int = 1, beyond: bool = False) -> Any:
        """A block over rows and keys: one key after another (in tiles of ``tile``, written out), rows in vectors. The loop over keys.
        ``beyond``: without the keys that no row sees."""
        sch = self.sch
        reduces = sch.get(block).init is not None
        *units, key, row = self.inside(block, loop)
        if reduces:
            key, row = row, key
        keys, within = sch.split(key, [None, tile]) if tile > 1 else (key, None)
        vectors, lanes = sch.split(row, [None, self.lanes])
        written = [vectors] if within is None else [within, vectors]
        sch.reorder(keys, *units, *written, lanes)
        if reduces:
            self.start(block, keys)
        if beyond:
            sch.drop_neutral(block, keys, self.keys)
        for x in written:
            sch.unroll(x)
        sch.vectorize(lanes)
        return keys

    def over_spans(self, block: Any, rows: Any) -> tuple[Any, Any]:
        """A reduction over keys in blocks, and in these in tiles written out, rows in vectors. The loops over blocks and tiles."""
        sch = self.sch
        *units, row, key = self.inside(block, rows)
        spans, tiles, within = sch.split(key, [None, self.span // self.keys, self.keys])
        vectors, lanes = sch.split(row, [None, self.lanes])
        sch.reorder(spans, tiles, *units, within, vectors, lanes)
        self.start(block, spans)
        if self.causal:
            sch.drop_neutral(block, tiles, self.keys)
        for x in (within, vectors):
            sch.unroll(x)
        sch.vectorize(lanes)
        return spans, tiles

    def start(self, block: Any, loop: Any) -> None:
        """Put the init of a reduction over rows in front of a loop, vectorized."""
        *_, vectors, lanes = self.sch.get_loops(self.sch.decompose_reduction(block, loop))
        self.sch.unroll(vectors)
        self.sch.vectorize(lanes)

    def unroll(self, extent: int | None, chains: int) -> int:
        """How many steps of a reduction of this length are unrolled."""
        most = max(1, min(UNROLLED_FMAS // chains, 8))
        return 1 if extent is None else max(u for u in range(1, most + 1) if extent % u == 0)
