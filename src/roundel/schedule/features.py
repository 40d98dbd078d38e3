# SPDX-License-Identifier: Apache-2.0
"""Features of a scheduled program as closed forms: work, tails, parallelism, registers, bytes touched below each loop.

In a sketch they are expressions of its open decisions, which NumPy evaluates for columns of candidates; in a program without
open decisions they are numbers. A *stage* is a block without blocks inside it, with all the loops around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from roundel.arith import Analyzer, detect_iter_map, estimate_region, numpy_function
from roundel.arith.int_set import interval
from roundel.ir import Var, free_vars, substitute, tir, walk
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ArithError
from roundel.ir.tir import Block, BlockRealize, Buffer, BufferRegion, Expr, For, ForKind, Range

from .operations import flops
from .tree import Tree, bind_loop, is_true

Number = Any  # an Expr in a stage, an array (or scalar) in an evaluated one
WRITTEN_OUT = (ForKind.UNROLLED, ForKind.VECTORIZED)


@dataclass(frozen=True)
class Touch:
    """What a stage touches of one buffer. ``bytes[d]``: in one iteration of its first ``d`` loops (0: of the whole program);
    ``moves[k]``: whether the k-th loop moves the place."""

    buffer: Buffer
    bytes: tuple[Number, ...]
    moves: tuple[bool, ...]


@dataclass(frozen=True)
class Stage:
    """One stage. ``issued``: how often its body is reached; ``useful``: how often its predicate holds there (no more than ``issued``;
    the rest are tails); ``flops``: operations each time."""

    name: str
    loops: tuple[str, ...]
    kinds: tuple[ForKind, ...]
    extents: tuple[Number, ...]
    issued: Number
    useful: Number
    flops: int
    touches: tuple[Touch, ...]

    def over(self, *kinds: ForKind) -> Number:
        """The product of the extents of loops of these kinds."""
        out: Number = 1
        for kind, n in zip(self.kinds, self.extents):
            out = out * n if kind in kinds else out
        return out

    @property
    def parallel(self) -> Number:
        """Iterations that may run at once."""
        return self.over(ForKind.PARALLEL)

    @property
    def lanes(self) -> Number:
        """Lanes of its vectors."""
        return self.over(ForKind.VECTORIZED)

    @property
    def registers(self) -> Number:
        """Bytes of local buffers in use below the loops that are not written out: the register tile."""
        depth = len(self.kinds)
        while depth and self.kinds[depth - 1] in WRITTEN_OUT:
            depth -= 1
        out: Number = 0
        for t in self.touches:
            out = out + t.bytes[depth] if t.buffer.scope == "local" else out
        return out

    def traffic(self, capacity: int) -> np.ndarray:
        """Bytes that cross into a cache of so many bytes (evaluated stages only): at the outermost loop below which everything
        fits, each operand comes once per iteration of the loops around that move it, innermost ones that do not left out."""
        needed = [sum((t.bytes[d] for t in self.touches), start=np.int64(0)) for d in range(len(self.extents) + 1)]
        total: Any = np.int64(0)
        for t in self.touches:
            moved = t.bytes[-1] * self._trips(t, len(self.extents))
            for d in reversed(range(len(self.extents) + 1)):
                moved = np.where(needed[d] <= capacity, t.bytes[d] * self._trips(t, d), moved)
            total = total + moved
        return np.asarray(total)

    def _trips(self, t: Touch, depth: int) -> Any:
        trips: Any = np.int64(1)
        still: Any = np.bool_(True)
        for moves, n in zip(reversed(t.moves[:depth]), reversed(self.extents[:depth])):
            still = still & ((n == 1) if moves else True)
            trips = np.where(still, trips, trips * n)
        return trips


@dataclass(frozen=True)
class Features:
    """The stages of a program, in order."""

    stages: tuple[Stage, ...]

    def __getitem__(self, name: str) -> Stage:
        return next(s for s in self.stages if s.name == name)

    @property
    def flops(self) -> Number:
        """Useful operations of the whole program."""
        out: Number = 0
        for s in self.stages:
            out = out + s.useful * s.flops
        return out

    def evaluate(self, columns: Mapping[Var, Any]) -> Features:
        """The features of columns of candidates: arrays in place of expressions."""
        exprs = [e for s in self.stages for e in (*s.extents, s.issued, s.useful, *(b for t in s.touches for b in t.bytes))]
        values = iter(numpy_function(exprs, list(columns))(*columns.values()))
        take = lambda n: tuple(np.asarray(next(values)) for _ in range(n))
        made = []
        for s in self.stages:
            extents, (issued, useful) = take(len(s.extents)), take(2)
            touches = tuple(Touch(t.buffer, take(len(t.bytes)), t.moves) for t in s.touches)
            made.append(Stage(s.name, s.loops, s.kinds, extents, issued, useful, s.flops, touches))
        return Features(tuple(made))


def features(tree: Tree) -> Features:
    """The closed forms of a program (``Schedule.features`` of the function worked on)."""
    leaves = [r for r in walk(tree.func.body) if type(r) is BlockRealize and not tree.children(r.block)]
    return Features(tuple(_Reader(tree, r).stage() for r in leaves if r.block is not tree.func.root_block))


class _Reader:
    """Reads one stage."""

    def __init__(self, tree: Tree, realize: BlockRealize) -> None:
        self.tree, self.realize = tree, realize
        around = [realize, *tree.ancestors(realize)][::-1]
        self.loops: list[For] = [s for s in around if type(s) is For]
        self.an = Analyzer()
        for fact in tree.facts:
            self.an.assume(fact)
        self.values: dict[Var, Expr] = {}
        self.predicate: Expr = tir.const(True)
        for s in around:
            if type(s) is For:
                bind_loop(self.an, s)
            elif type(s) is BlockRealize:
                self.predicate = tir.logical_and(self.predicate, substitute(s.predicate, self.values))
                self.values |= {iv.var: substitute(v, self.values) for iv, v in zip(s.block.iter_vars, s.iter_values)}
        self.domain = {x.loop_var: Range(x.min, x.extent) for x in self.loops}

    def stage(self) -> Stage:
        block: Block = self.realize.block
        extents = tuple(self._free(x.extent) for x in self.loops)
        stores = [s for s in walk(block.body) if type(s) is tir.BufferStore]
        issued = self.an.simplify(tir.product_of(list(extents)))
        touched: dict[Buffer, list[BufferRegion]] = {}
        for r in (*block.reads, *block.writes):
            touched.setdefault(r.buffer, []).append(r)
        return Stage(
            block.name,
            tuple(x.loop_var.name for x in self.loops),
            tuple(x.kind for x in self.loops),
            extents,
            issued,
            self._useful(issued),
            sum(flops(s.value) for s in stores),
            tuple(self._touch(b, regions) for b, regions in touched.items()),
        )

    def _free(self, e: Expr) -> Expr:
        """The largest value of an expression over all iterations of the loops: one of decisions and sizes alone."""
        found = interval(self.an, e, self.domain).max if free_vars(e) & self.domain.keys() else e
        if found is None:
            raise ArithError("this has no bound that is known before the loops run", why=f"{e!r} in block {self.realize.block.name}")
        return self.an.simplify(found)

    def _useful(self, issued: Expr) -> Expr:
        """Points for which the predicates hold, where the block's variables are an affine map of the loops."""
        if is_true(self.predicate):
            return issued
        values = [self.values[iv.var] for iv in self.realize.block.iter_vars]
        try:
            found = [detect_iter_map(values, self.domain, c, an=self.an).extents() for c in (self.predicate, True)]
        except ArithError:
            return issued
        true, all_ = (tir.product_of([self._free(n) for n in extents]) for extents in found)
        return self.an.simplify(tir.min_(issued, tir.floordiv(issued, all_) * true))  # the quotient: loops that only repeat

    def _touch(self, buffer: Buffer, regions: Sequence[BufferRegion]) -> Touch:
        places = [BufferRegion(buffer, tuple(substitute(r, self.values) for r in region.region)) for region in regions]
        moved = frozenset(v for p in places for r in p.region for v in free_vars(r.min))
        sizes = [self._bytes(buffer, places, depth) for depth in range(len(self.loops) + 1)]
        return Touch(buffer, tuple(sizes), tuple(x.loop_var in moved for x in self.loops))

    def _bytes(self, buffer: Buffer, places: Sequence[BufferRegion], depth: int) -> Expr:
        """Of the largest of the boxes that the places sweep in one iteration of the first ``depth`` loops."""
        inner = {x.loop_var: Range(x.min, x.extent) for x in self.loops[depth:]}
        boxes = []
        for place in places:
            found = estimate_region(place, inner, an=self.an)
            dims = [tir.min_(self._free(r.extent), n) for r, n in zip(found, buffer.shape)]
            boxes.append(tir.product_of(dims))
        bits = buffer.dtype.bits * buffer.dtype.lanes
        largest = boxes[0]
        for box in boxes[1:]:
            largest = largest if box is largest else tir.max_(largest, box)
        return self.an.simplify(tir.ceildiv(largest * bits, 8))

