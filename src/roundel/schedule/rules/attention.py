# SPDX-License-Identifier: Apache-2.0
"""Two matrix products with a softmax between them: attention, of which only a block of rows of scores is ever held.

    for batch, head, block of rows (in parallel):
        turned[d, row] = queries[row, d]
        for tile of keys:    scores[key, row] = sum over d of keys[key, d] * turned[d, row]     # and mask, scale, ...
        top[row], exps[key, row] = exp(scores[key, row] - top[row]), total[row], share[row] = 1 / total[row]
        for tile of rows:    result[row, column] = share[row] * sum over keys of exps[key, row] * values[key, column]

Rows are the lanes of the scores, so that keys and values are read as they lie, nothing as large as the keys is turned, and maxima and
sums are those of whole vectors. Elementwise blocks behind the first product go into its store, those behind the second into the result's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir import tir
from .accesses import Access, blocks_of, extent_of, product
from .applied import Applied
from .attention_stages import Stages, find, kept
from .candidates import Candidates, Columns, chosen, combinations
from .elementwise import inline_producers
from .parallelism import parallelize
from .times import step_cycles

UNROLLED_FMAS = 224   # multiply-adds in the body of an inner loop
ASSUMED = (32, 128, 512, 2048)  # keys or rows whose number is not known
TYPICAL = 256         # ... where one number is asked for
LOAD_CYCLES = 0.1     # what a broadcast costs beside the multiply-adds that hide most of it
STREAMED = 8.0        # times as much for a vector from beyond the first-level cache
EXP_CYCLES = 12.0     # for a vector of scores: exponential, maximum, sum
TURN_CYCLES = 16.0    # for a vector of queries
NEAR_BYTES = 40.0     # per cycle, of keys and values that the second-level cache holds
FAR_BYTES = 10.0      # from beyond it
STREAM_BYTES = 20.0   # ... where they lie together
COPIED_BYTES = 20.0   # of keys and values copied
SCATTERED_SHARE = 0.2   # of the second-level cache that is of use to rows that lie far apart


def attention(sch: Any, target: Any) -> Applied | None:
    """Fits chains of a product, elementwise blocks, the stages of a softmax, a product and elementwise blocks."""
    names = kept(blocks_of(sch.func))
    if names is None:
        return None
    inline_producers(sch, keep=names)
    stages = find(blocks_of(sch.func))
    if stages is None:
        return None
    table = candidates(stages, target)
    decisions = chosen(sch, table)
    _Schedule(sch, stages, decisions, target.lanes("float32")).run()
    return Applied(decisions=decisions, candidates=table)


def candidates(stages: Stages, target: Any) -> Candidates:
    """Register tiles of both products: ``keys`` x ``block`` vectors of rows, ``rows`` x ``vectors`` of columns; whether the keys and values
    of a head are copied to where they lie together (``packed``; then heads run in parallel, not rows). Sizes that are no numbers are
    taken as several, each as likely."""
    lanes, registers = target.lanes("float32"), target.vector_registers
    keys, across = extent_of(stages.key) or max(ASSUMED), -(-(extent_of(stages.column) or lanes) // lanes)
    heads = [extent_of(a) for a in stages.result.spatial if a not in (stages.result_row, stages.result_column)]
    apart = len({id(a.buffer) for a in (stages.queries, stages.keys, stages.values)}) == 3  # a copy replaces all that is read of a buffer
    domains = {"block": (1, 2, 4), "keys": range(1, min(keys, 16) + 1), "rows": (1, 2, 4, 8, 16),
               "vectors": [v for v in (1, 2, 3, 4) if across % v == 0], "packed": (0, 1) if apart and heads and product(heads, 1) >= target.cores else (0,)}

    def legal(c: Columns) -> np.ndarray:
        first, second = c["keys"] * c["block"] + c["block"] + 1, c["rows"] * c["vectors"] + c["vectors"] + 1
        return (first <= registers) & (second <= registers) & (c["block"] * lanes % c["rows"] == 0)

    c = combinations(domains, legal)
    times = [_cycles(stages, target, c, size) for size in (ASSUMED if None in (extent_of(stages.row), extent_of(stages.key)) else (1,))]
    return Candidates(c, np.exp(np.mean(np.log(times), axis=0)))


def _cycles(stages: Stages, target: Any, c: Columns, unknown: int) -> np.ndarray:
    """Of one head, with sizes that are no numbers taken as ``unknown``."""
    lanes = target.lanes("float32")
    count, keys, width, inner = (extent_of(a) or unknown for a in (stages.row, stages.key, stages.column, stages.inner))
    blocks = -(-count // (c["block"] * lanes))
    scores = _tiles(target, keys, c["keys"], c["block"]) * inner
    weighted = _tiles(target, c["block"] * lanes, c["rows"], c["vectors"]) * (-(-width // lanes) // c["vectors"]) * keys
    rest = c["block"] * (keys * EXP_CYCLES + inner * TURN_CYCLES)
    held = 2 * 4.0 * keys * c["block"] * lanes  # scores and exponentials, each written and read
    rest = rest + np.where(held > target.l1_bytes, 2 * held / NEAR_BYTES, 0.0)
    operands = 4.0 * keys * (inner + width)
    rate = NEAR_BYTES if operands <= target.l2_bytes * SCATTERED_SHARE else FAR_BYTES
    packed = blocks * operands / (NEAR_BYTES if operands <= target.l2_bytes else STREAM_BYTES) + operands / COPIED_BYTES
    return blocks * (scores + weighted + rest) + np.where(c["packed"] > 0, packed, blocks * operands / rate)


def _tiles(target: Any, extent: Any, height: Any, vectors: Any) -> Any:
    """Cycles of one step for all the tiles of ``height`` along an extent, the last one of what is left."""
    def step(rows: Any) -> Any:
        return step_cycles(target, rows, vectors) + LOAD_CYCLES * (rows + STREAMED * vectors)

    full, rest = extent // height, extent % height
    return full * step(height) + np.where(rest > 0, step(np.maximum(rest, 1)), 0.0)


class _Schedule:
    """The steps, from the result up to the queries."""

    def __init__(self, sch: Any, stages: Stages, decisions: dict[str, int], lanes: int) -> None:
        self.sch, self.stages, self.lanes = sch, stages, lanes
        self.block, self.keys, self.rows, self.vectors, self.packed = (decisions[n] for n in ("block", "keys", "rows", "vectors", "packed"))
        self.causal = stages.causal

    def run(self) -> None:
        """Schedule the whole program."""
        sch, s = self.sch, self.stages
        weighted, total, share, exps, top = (sch.get_block(i.name) for i in (s.weighted, s.total, s.share, s.exps, s.top))
        scores = sch.get_block(s.scores.name)
        if s.store is s.scores:
            store = sch.cache_write(scores, 0, "local")
        else:
            store = sch.get_block(s.store.name)
            sch.set_scope(scores, 0, "local")
        turned = self.copied(scores, s.queries, s.inner, s.row)
        packs = [self.copied(scores, s.keys, s.key, s.inner), self.copied(weighted, s.values, s.weighted.reduce[0], s.column)] if self.packed else []
        for made in (store, top, exps, total, share):
            sch.set_scope(made, 0, "local")  # whole vectors of rows, whatever is left of them at the end
        around, rows, tile = self.result()
        self.product(weighted, tile)
        sch.compute_at(share, rows, preserve_unit_loops=True)
        self.along_rows(share, rows, -1)
        sch.compute_at(total, rows, preserve_unit_loops=True)
        summed = self.over_keys(total, rows, beyond=self.causal)
        sch.compute_at(exps, rows, preserve_unit_loops=True)
        self.merge(self.over_keys(exps, rows), summed)
        sch.compute_at(top, rows, preserve_unit_loops=True)
        largest = self.over_keys(top, rows, self.keys, self.causal)
        sch.compute_at(store, rows, preserve_unit_loops=True)
        self.merge(self.scores(scores, store, turned, rows), largest)
        sch.compute_at(turned, rows, preserve_unit_loops=True)
        self.along_rows(turned, rows, s.queries.indices.index(s.row.var))
        for copy in packs:
            sch.compute_at(copy, around[-1])
            sch.vectorize(sch.split(sch.get_loops(copy)[-1], [None, self.lanes])[1])
        if self.packed:
            whole = sch.fuse(*around) if len(around) > 1 else around[0]
            blocks = sch.get(rows).extent
            parallelize(sch, whole, self.cycles() * (blocks.value if isinstance(blocks, tir.IntImm) else TYPICAL // self.lanes))
        else:
            whole = sch.fuse(*around, rows) if around else rows
            parallelize(sch, whole, self.cycles())

    def cycles(self) -> float:
        """Of one block of rows."""
        s = self.stages
        keys, width, inner = (extent_of(a) or TYPICAL for a in (s.key, s.column, s.inner))
        return keys * self.block * (inner / 2 + width / 2 + EXP_CYCLES)

    def copied(self, block: Any, access: Access, *axes: tir.IterVar) -> Any:
        """A copy of an operand in which these axes of the block are the last ones."""
        sch = self.sch
        reads = [r.buffer for r in sch.get(block).reads]
        copy = sch.cache_read(block, reads.index(access.buffer), "global")
        last = [access.indices.index(a.var) for a in axes]
        order = [k for k in range(len(access.indices)) if k not in last] + last
        sch.transform_layout(copy, ("write", 0), tir.IndexMap.from_func(lambda *i: tuple(i[k] for k in order), len(order)))
        return copy

    def result(self) -> tuple[list[Any], Any, Any]:
        """Loops of the result: those around a block of rows, that over blocks, that over tiles of rows in it."""
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
        """Two loops over the same keys become one, unless that has a single iteration."""
        extent = self.sch.get(first).extent
        if not (isinstance(extent, tir.IntImm) and extent.value == 1):
            self.sch.merge(first, second)

    def inside(self, block: Any, loop: Any) -> list[Any]:
        """The loops of a block below one that is around it."""
        sch = self.sch
        token, loops = sch.get(loop).token, sch.get_loops(block)
        return loops[next(k for k, x in enumerate(loops) if sch.get(x).token is token) + 1:]

    def product(self, block: Any, tile: Any) -> None:
        """Exponentials times values: a tile of rows and columns in registers over all keys."""
        sch = self.sch
        sch.set_scope(block, 0, "local")
        sch.compute_at(block, tile, preserve_unit_loops=True)
        row, column, key = self.inside(block, tile)[-3:]
        unroll = self.unroll(self.stages.key, self.rows * self.vectors)
        outer, step = sch.split(key, [None, math.gcd(unroll, self.keys) if self.causal else unroll])
        sch.reorder(outer, step, row, column)
        values = self.stages.values.buffer
        reads = [r.buffer for r in sch.get(block).reads]
        self.reduce(block, next(b for b in reads if b is values or b.name == values.name + "_global"), outer, step)
        if self.causal:
            sch.drop_neutral(block, outer, self.keys)

    def scores(self, block: Any, store: Any, turned: Any, rows: Any) -> Any:
        """Keys times queries: a tile of keys and rows in registers over their width. The loop over tiles."""
        sch = self.sch
        *units, key, row = self.inside(store, rows)
        tiles, within = sch.split(key, [None, self.keys])
        vectors, lanes = sch.split(row, [None, self.lanes])
        sch.reorder(tiles, *units, within, vectors, lanes)
        sch.compute_at(block, tiles, preserve_unit_loops=True)
        key, row, inner = self.inside(block, tiles)[-3:]
        outer, step = sch.split(inner, [None, self.unroll(self.stages.inner, self.keys * self.block)])
        sch.reorder(outer, step, key, row)
        self.reduce(block, sch.get(turned).writes[0].buffer, outer, step)
        for loop in (within, vectors):
            sch.unroll(loop)
        sch.vectorize(lanes)
        return tiles

    def reduce(self, block: Any, vector: tir.Buffer, outer: Any, step: Any) -> None:
        """A register tile over a reduction, with the vectors of each step in registers."""
        sch = self.sch
        reads = [r.buffer for r in sch.get(block).reads]
        panel = sch.cache_read(block, reads.index(vector), "local")
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
        """Straight code in vectors along the last loop."""
        sch = self.sch
        *others, last = self.inside(block, loop)
        vectors, lanes = sch.split(last, [None, self.lanes])
        for other in (*others, vectors):
            sch.unroll(other)
        sch.vectorize(lanes)

    def along_rows(self, block: Any, rows: Any, at: int) -> None:
        """A block of a value per row (and something else) in vectors of rows, over which its loop ``at`` is."""
        sch = self.sch
        others = self.inside(block, rows)
        vectors, lanes = sch.split(others.pop(at), [None, self.lanes])
        sch.reorder(*others, vectors, lanes)
        sch.unroll(vectors)
        sch.vectorize(lanes)

    def over_keys(self, block: Any, rows: Any, tile: int = 1, beyond: bool = False) -> Any:
        """A block over rows and keys: one key after another (in tiles of ``tile``, written out), rows in vectors. The loop over keys.
        ``beyond``: without the keys that no row sees."""
        sch = self.sch
        reduces = sch.get(block).init is not None
        *units, key, row = self.inside(block, rows)
        if reduces:
            key, row = row, key
        keys, within = sch.split(key, [None, tile]) if tile > 1 else (key, None)
        vectors, lanes = sch.split(row, [None, self.lanes])
        written = [vectors] if within is None else [within, vectors]
        sch.reorder(keys, *units, *written, lanes)
        if reduces:
            init = sch.decompose_reduction(block, keys)
            *_, a, b = sch.get_loops(init)
            sch.unroll(a)
            sch.vectorize(b)
        if beyond:
            sch.drop_neutral(block, keys, self.keys)
        for loop in written:
            sch.unroll(loop)
        sch.vectorize(lanes)
        return keys

    def unroll(self, axis: tir.IterVar, chains: int) -> int:
        """Steps of a reduction written out."""
        extent, most = extent_of(axis), max(1, min(UNROLLED_FMAS // chains, 8))
        return 1 if extent is None else max(u for u in range(1, most + 1) if extent % u == 0)

