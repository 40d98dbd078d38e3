# SPDX-License-Identifier: Apache-2.0
"""What the stages of attention are expected to take before they are scheduled: each is one statement of the model of costs, in the loops that
``steps`` puts it into.

Rows are cut into blocks and keys into spans. What stages hand to each other is memory of one block and one span, which the loops around reuse;
parameters move with these loops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars
from ...target import Target
from ...target.target import L3
from ..candidates import Columns
from ..cost import capacities, cycles
from ..match.accesses import BlockInfo, extent_of, product
from ..nest import Operand, chosen
from ..statements import LANES, UNROLLED, Column, Loop, Operation, Statement, Touch, in_registers, statement_of
from .stages import Stages

ROWS, SPANS = "blocks of rows", "spans of keys"  # the axes of the loops around
SIZE = "size"         # the column of what is no number
TYPICAL = 256         # rows or keys whose number is not known, where chunks of work are cut
MOST_VECTORS = 4      # of rows in a block
ASSUMED_HEADS = 8     # batches of heads whose number is not known
WRITTEN = 4           # steps of a product that are written out, about


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Of every candidate of ``columns``, whose column ``SIZE`` has what sizes that are no numbers are taken as."""

    stages: Stages
    target: Target
    columns: Columns

    def cycles(self) -> Column:
        """Of all stages, for all heads."""
        also = ("keys", SIZE) if self.stages.causal else (SIZE,)  # how many keys a row sees depends on how many are taken together
        total: Column = sum(self._over((*names, *also), stage) for stage, names in _STAGES.items())
        if not np.any(self.columns["packed"]):
            return total
        return total + np.where(self.columns["packed"] > 0, self._packing(), 0.0)

    def _over(self, names: Sequence[str], stage: Callable[[StageTimes], Column]) -> Column:
        """A stage for every candidate, worked out once for those that agree in the decisions on which it depends."""
        names = tuple(dict.fromkeys(names))
        number = np.ravel_multi_index([self.columns[n] for n in names], [int(self.columns[n].max()) + 1 for n in names])
        _, first, of = np.unique(number, return_index=True, return_inverse=True)
        return np.broadcast_to(stage(replace(self, columns={n: x[first] for n, x in self.columns.items()})), first.shape)[of]

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.target.lanes("float32")

    @cached_property
    def height(self) -> Column:
        """Rows of a block."""
        return self.columns["block"] * self.lanes

    def extent(self, axis: tir.IterVar) -> Column:
        """Of an axis that is no head."""
        found = extent_of(axis)
        return self.columns[SIZE] if found is None else found

    @cached_property
    def made(self) -> Column:
        """Keys whose scores a block of rows computes, as a mean."""
        return self._seen(self.height + chosen(self.columns["span"] > 0, self.columns["span"], self.columns["keys"]))

    @cached_property
    def used(self) -> Column:
        """Keys whose values go into a tile of results, as a mean."""
        return self._seen(self.columns["rows"] + self.columns["keys"])

    def _seen(self, granule: Column) -> Column:
        """``granule``: rows and keys that are taken together. The last row sees all keys."""
        keys = self.extent(self.stages.key)
        rows = np.minimum(self.extent(self.stages.row), keys)
        return np.minimum(keys, keys - rows // 2 + granule // 2) if self.stages.causal else np.broadcast_to(keys, granule.shape)

    @cached_property
    def span(self) -> Column:
        """Keys that are taken together."""
        return np.where(self.columns["span"] > 0, np.minimum(self.columns["span"], self.made), self.made)

    @cached_property
    def parts(self) -> Column:
        """How many spans a block of rows goes over, the last of which need not be whole."""
        return self.made / self.span

    @cached_property
    def handed_on(self) -> frozenset[tir.Buffer]:
        """What stages make for each other."""
        s = self.stages
        return frozenset(i.stores[0].buffer for i in (s.scores, s.store, s.top, s.exps, s.total, s.share, s.weighted))

    def _stage(self, info: BlockInfo, lane: tir.IterVar, row: tir.IterVar, key: tir.IterVar | None, own: Collection[tir.IterVar]) -> Statement:
        """A stage without its loops; its axes are those of the block by position. ``own``: axes that are no heads."""
        axes = info.block.iter_vars
        found = statement_of(info.block, axes.index(lane), self.target, has_guards=False, sizes=self._largest(info))
        heads = {k for k, a in enumerate(axes) if a not in own}
        around = {axes.index(row): (ROWS, self.height)} | ({} if key is None else {axes.index(key): (SPANS, self.span)})
        return replace(found, touches=tuple(self._private(t, heads, around) if t.buffer in self.handed_on else _moved(t, around) for t in found.touches))

    def _largest(self, info: BlockInfo) -> Mapping[str, int]:
        """What sizes that are no numbers are at most."""
        named = [v for a in info.accesses for n in a.buffer.shape for v in free_vars(n)]
        return {v.name: int(self.columns[SIZE].max()) for v in named}

    def _private(self, t: Touch, heads: Collection[int], around: Mapping[int, tuple[str, Column]]) -> Touch:
        """Memory of one head, block of rows and span of keys."""
        inside = lambda steps: {a: s for a, s in (steps or {}).items() if a not in heads}
        sides = tuple((n, inside(steps)) for n, steps in t.operand.sides)
        names = {name for k, (name, _) in around.items() if k in t.moves}
        return replace(t, operand=replace(t.operand, sides=sides, is_packed=True), steps=inside(t.steps), moves=t.moves | names)

    def _around(self, info: BlockInfo, own: Collection[tir.IterVar]) -> list[Loop]:
        """Heads and blocks of rows."""
        heads = [Loop(k, extent_of(a) or ASSUMED_HEADS) for k, a in enumerate(info.block.iter_vars) if a not in own]
        return [*(x for x in heads if x.extent != 1), Loop(ROWS, -(-self.extent(self.stages.row) // self.height))]

    def _priced(self, found: Sequence[Statement], loops: Sequence[Loop]) -> Column:
        kept = tuple(x for x in loops if np.any(x.extent != 1) or x.kind == LANES)
        return cycles(self.target, *(replace(s, loops=kept) for s in found))

    def _vectors(self, info: BlockInfo, row: tir.IterVar) -> list[Loop]:
        """The rows of a block, in vectors."""
        at = info.block.iter_vars.index(row)
        return [Loop(at, self.columns["block"], UNROLLED), Loop(at, self.lanes, LANES)]

    def _in_tiles(self, step: Statement, around: Sequence[Loop], axis: int, extent: Column, height: Column, inside: Sequence[Loop],
                  body: Sequence[Loop]) -> Column:
        """A statement in tiles along an axis, the last of which is what is left."""
        nest = lambda tiles, rows: replace(step, loops=(*around, Loop(axis, tiles), *inside, Loop(axis, rows, UNROLLED), *body))
        left = extent % height
        return cycles(self.target, nest(-(-extent // height), height), pieces=[nest(extent // height, height), nest(1 * (left > 0), np.maximum(left, 1))])

    def _turned(self) -> Column:
        """The copy of a block of queries, transposed."""
        s, read, axes = self.stages, self.stages.queries, self.stages.scores.block.iter_vars
        row, inner = axes.index(s.row), axes.index(s.inner)
        found = self._stage(s.scores, s.row, s.row, None, (s.row, s.key, s.inner))
        source = next(t for t in found.touches if t.buffer is read.buffer)
        loops = [*self._around(s.scores, (s.row, s.key, s.inner)), Loop(inner, self.extent(s.inner)), *self._vectors(s.scores, s.row)]
        return self._priced([Statement((), (self._copy_of_queries(row, inner, is_store=True), source), ())], loops)

    def _copy_of_queries(self, row: int, inner: int, is_store: bool = False) -> Touch:
        s, rows = self.stages, MOST_VECTORS * self.lanes
        bits, deep = s.queries.buffer.dtype.storage_bits, int(np.max(self.extent(s.inner)))
        operand = Operand(((deep, {inner: 1}), (rows, {row: 1})), bits / 8, self.target.line_bytes, is_packed=True)
        return Touch(operand, frozenset((row, inner, ROWS)), 1, is_store, False, bits, "turned", {inner: rows, row: 1})

    def _where_packed(self, stage: Callable[[bool], Column]) -> Column:
        packed = self.columns["packed"] > 0
        return np.where(packed, stage(True), stage(False)) if np.any(packed) else stage(False)

    def _scores(self, packed: bool) -> Column:
        """The product of keys and queries, in tiles of keys, and what is computed of each score before it is stored."""
        s, axes, own = self.stages, self.stages.scores.block.iter_vars, (self.stages.row, self.stages.key, self.stages.inner)
        row, key, inner = (axes.index(a) for a in own)
        found = in_registers(self._stage(s.scores, s.row, s.row, s.key, own))
        turned = self._copy_of_queries(row, inner)
        touches = [turned if t.buffer is s.queries.buffer and t.lane != 0 else t for t in found.touches]
        found = replace(found, touches=tuple(_packed(t, own, axes) if packed and t.buffer is s.keys.buffer else t for t in touches))
        around = [*self._around(s.scores, own), Loop(SPANS, self.parts)]
        inside = [Loop(inner, self.extent(s.inner), written=np.minimum(WRITTEN, self.extent(s.inner)))]
        spent = self._in_tiles(found, around, key, self.span, self.columns["keys"], inside, self._vectors(s.scores, s.row))
        if s.store is s.scores:
            return spent
        *_, key_axis, row_axis = s.store.block.iter_vars
        stored = self._stage(s.store, row_axis, row_axis, key_axis, (key_axis, row_axis))
        made = s.scores.stores[0].buffer
        stored = replace(stored, touches=tuple(replace(t, register=True) if t.buffer is made else t for t in stored.touches))
        at = len(s.store.block.iter_vars) - 2
        loops = [*self._around(s.store, (key_axis, row_axis)), Loop(SPANS, self.parts), Loop(at, -(-self.span // self.columns["keys"])),
                 Loop(at, self.columns["keys"], UNROLLED), *self._vectors(s.store, row_axis)]
        return spent + self._priced([stored], loops)

    def _maxima(self) -> Column:
        """The largest score of each row, in the tiles in which scores are computed."""
        s = self.stages
        row, key = s.top.spatial[-1], s.top.reduce[0]
        at = s.top.block.iter_vars.index(key)
        found = in_registers(self._stage(s.top, row, row, key, (row, key)))
        loops = [*self._around(s.top, (row, key)), Loop(SPANS, self.parts), Loop(at, -(-self.span // self.columns["keys"])),
                 Loop(at, self.columns["keys"], UNROLLED), *self._vectors(s.top, row)]
        return self._priced([found], loops)

    def _exponentials(self) -> Column:
        """Exponentials of scores, and in the same loop their sums."""
        s = self.stages
        *_, key, row = s.exps.block.iter_vars
        exps = self._stage(s.exps, row, row, key, (key, row))
        at, to = len(s.exps.block.iter_vars) - 2, len(s.exps.block.iter_vars) - 1
        loops = [*self._around(s.exps, (key, row)), Loop(SPANS, self.parts), Loop(at, self.span), Loop(to, self.columns["block"], UNROLLED),
                 Loop(to, self.lanes, LANES)]
        adding = Operation(1.0, frozenset((at, to)), 32)
        return self._priced([replace(exps, operations=(*exps.operations, adding))], loops)

    def _weighted(self, packed: bool) -> Column:
        """The product of exponentials and values, in tiles of rows and columns."""
        s = self.stages
        axes, row, key = s.weighted.block.iter_vars, s.weighted.spatial[-2], s.weighted.reduce[0]
        own = (row, s.column, key)
        found = in_registers(self._stage(s.weighted, s.column, row, key, own))
        found = replace(found, touches=tuple(_packed(t, own, axes) if packed and t.buffer is s.values.buffer else t for t in found.touches))
        keys = np.where(self.columns["span"] > 0, self.span, self.used)
        at, column = axes.index(key), axes.index(s.column)
        loops = [*self._around(s.weighted, own), Loop(SPANS, self.parts), *self._tiles(axes.index(row), column),
                 Loop(at, keys, written=np.minimum(WRITTEN, keys)), *self._tile(axes.index(row), column)]
        return self._priced([found], loops)

    def _tiles(self, row: int, column: int) -> list[Loop]:
        panels = -(-self.extent(self.stages.column) // (self.columns["vectors"] * self.lanes))
        return [Loop(column, panels), Loop(row, self.height // self.columns["rows"])]

    def _tile(self, row: int, column: int) -> list[Loop]:
        return [Loop(row, self.columns["rows"], UNROLLED), Loop(column, self.columns["vectors"], UNROLLED), Loop(column, self.lanes, LANES)]

    def _result(self) -> Column:
        """What is computed of the sums, and stored."""
        s = self.stages
        own = (s.result_row, s.result_column)
        found = self._stage(s.result, s.result_column, s.result_row, None, own)
        row, column = (s.result.block.iter_vars.index(a) for a in own)
        return self._priced([found], [*self._around(s.result, own), *self._tiles(row, column), *self._tile(row, column)])

    def _rescaled(self) -> Column:
        """Sums over spans: those before, scaled, and those of a span are added. Nothing where all keys are taken at once."""
        s = self.stages
        if not np.any(self.columns["span"]):
            return 0.0
        axes, row, key = s.weighted.block.iter_vars, s.weighted.spatial[-2], s.weighted.reduce[0]
        found = self._stage(s.weighted, s.column, row, None, (row, s.column, key))
        total = next(t for t in found.touches if t.is_store)
        at, column = axes.index(row), axes.index(s.column)
        added = Statement((), (total, replace(total, is_store=False)), (Operation(1.0, total.moves, total.bits),))
        around = [*self._around(s.weighted, (row, s.column, key)), Loop(SPANS, np.ceil(self.parts))]
        spent = self._priced([added], [*around, *self._tiles(at, column), *self._tile(at, column)])
        *_, key, row = s.exps.block.iter_vars
        exps = self._stage(s.exps, row, row, None, (key, row))  # by how much the sums of a row are scaled
        scale = replace(exps, touches=tuple(replace(t, register=True) for t in exps.touches))
        loops = [*self._around(s.exps, (key, row)), Loop(SPANS, np.ceil(self.parts)), *self._vectors(s.exps, row)]
        vectors = self.blocks * self.columns["block"]
        begun = vectors * np.ceil(self.parts) * self.target.span_cycles
        tail = vectors * self.target.tail_cycles * ((self.extent(s.key) % np.maximum(self.columns["span"], 1) > 0) & (not s.causal))
        return np.where(self.columns["span"] > 0, spent + self._priced([scale], loops) + begun + tail, 0.0)

    def _edges(self) -> Column:
        """Where a mask hides some of the scores of a vector, near the last key that a block of rows sees."""
        if not self.stages.causal:
            return 0.0
        vectors = self.blocks * self.columns["block"]
        return vectors * self.height * self.target.edge_cycles

    @cached_property
    def blocks(self) -> Column:
        """Blocks of rows, of all heads."""
        s = self.stages
        return -(-self.extent(s.row) // self.height) * product([extent_of(a) for a in s.scores.spatial if a not in (s.row, s.key)], ASSUMED_HEADS)

    def _scattered(self) -> Column:
        """Keys and values of a head that lie among those of others, so far apart that the second-level cache does not hold them, are waited for by each
        block of rows: nothing fetches their lines ahead."""
        s, target = self.stages, self.target
        way = target.l2_bytes // target.l2_ways
        boxes = []
        for info, access, along in ((s.scores, s.keys, (s.key, s.inner)), (s.weighted, s.values, (s.weighted.reduce[0], s.column))):
            axes = info.block.iter_vars
            found = statement_of(info.block, axes.index(along[1]), target, has_guards=False, sizes=self._largest(info))
            operand = next(t for t in found.touches if t.buffer is access.buffer).operand
            boxes.append((operand, operand.box({axes.index(a): self.extent(a) for a in along})))
        if not any(apart for _, (_, _, apart) in boxes):
            return 0.0
        room = sum(operand.room(box, way) for operand, box in boxes)
        read = sum(pieces * span for _, (pieces, span, _) in boxes) * self.made / self.extent(s.key)
        rate = target.scattered_share * target.bytes_per_cycle(L3)
        waited = self.blocks * read / rate
        return np.where((self.columns["packed"] > 0) | (room <= capacities(target)[1]), 0.0, waited)

    def _packing(self) -> Column:
        """Copies of the keys and values of each head to where they lie together."""
        s = self.stages
        spent: Column = 0.0
        for info, access, own, along in ((s.scores, s.keys, (s.row, s.key, s.inner), s.inner),
                                         (s.weighted, s.values, (s.weighted.spatial[-2], s.column, s.weighted.reduce[0]), s.column)):
            axes = info.block.iter_vars
            key = own[1] if info is s.scores else own[2]
            found = statement_of(info.block, axes.index(along), self.target, has_guards=False, sizes=self._largest(info))
            source = next(t for t in found.touches if t.buffer is access.buffer)
            stored = replace(_packed(source, own, axes), is_store=True, buffer="packed")
            heads = [Loop(k, extent_of(a) or ASSUMED_HEADS) for k, a in enumerate(axes) if a not in own]
            loops = [*heads, Loop(axes.index(key), self.extent(key)), Loop(axes.index(along), -(-self.extent(along) // self.lanes)),
                     Loop(axes.index(along), self.lanes, LANES)]
            spent = spent + self._priced([Statement((), (stored, source), ())], loops)
        return spent


def of_block(stages: Stages, decisions: Mapping[str, int], target: Target) -> float:
    """Cycles of one block of rows of one head."""
    own = StageTimes(stages, target, {n: np.array([v]) for n, v in (*decisions.items(), (SIZE, TYPICAL))})
    return float(own.cycles()[0] / own.blocks[0])


_STAGES: Mapping[Callable[[StageTimes], Column], Sequence[str]] = {
    StageTimes._turned: ("block",),
    lambda own: own._where_packed(own._scores): ("block", "keys", "span", "packed"),
    StageTimes._scattered: ("block", "keys", "span", "packed"),
    StageTimes._maxima: ("block", "keys", "span"),
    StageTimes._exponentials: ("block", "span"),
    lambda own: own._where_packed(own._weighted): ("block", "rows", "vectors", "span", "packed"),
    StageTimes._rescaled: ("block", "rows", "vectors", "span"),
    StageTimes._result: ("block", "rows", "vectors"),
    StageTimes._edges: ("block",),
}
"""Each stage with the decisions on which its time depends."""


def _moved(t: Touch, around: Mapping[int, tuple[str, Column]]) -> Touch:
    """A touch of a parameter, which moves with the loops over blocks too."""
    def wider(steps: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
        more = {name: steps[k] * width for k, (name, width) in around.items() if steps and steps.get(k) is not None}
        return {**steps, **more} if steps and more else steps

    sides = tuple((n, wider(steps)) for n, steps in t.operand.sides)
    names = {name for k, (name, _) in around.items() if k in t.moves}
    return replace(t, operand=replace(t.operand, sides=sides), moves=t.moves | names)


def _packed(t: Touch, own: Collection[tir.IterVar], axes: Sequence[tir.IterVar]) -> Touch:
    """An operand of one head that lies together."""
    kept = {axes.index(a) for a in own} | {ROWS, SPANS}
    sides = tuple((n, {a: s for a, s in (steps or {}).items() if a in kept}) for n, steps in t.operand.sides)
    return replace(t, operand=replace(t.operand, sides=tuple(x for x in sides if x[1]), is_packed=True))
