# SPDX-License-Identifier: Apache-2.0
"""The strategy for attention: two matrix products with a softmax between them, of which only one block of rows of scores is held at a time.

    for batch, head, block of rows (in parallel):
        turned[d, row] = queries[row, d]
        for tile of keys:    scores[key, row] = sum over d of keys[key, d] * turned[d, row]     # and mask, scale, ...
        top[row], exps[key, row] = exp(scores[key, row] - top[row]), total[row], share[row] = 1 / total[row]
        for tile of rows:    result[row, column] = share[row] * sum over keys of exps[key, row] * values[key, column]

The rows of a block fill the lanes of vectors. Keys and values are therefore read in the order in which they lie in memory, only the queries
are transposed, and maxima and sums over keys are operations on whole vectors. Elementwise operators after the first product are computed when
its scores are stored, those after the second when the result is.

Where the scores of all keys would not fit the caches, the keys are taken in blocks, as in FlashAttention (Dao et al., 2022): the largest score
so far is kept, and when it grows, the sums so far are scaled (``merge_online``). The memory that is needed then does not depend on the number
of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import blocks_of, extent_of, product
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .stage_times import SIZE, StageTimes
from .stages import Stages, find, kept
from .steps import Steps

SPANS = (64, 96, 120, 128, 168, 240, 336)  # keys of a block: numbers of many divisors
ASSUMED = (32, 128, 512, 2048)  # keys or rows whose number is not known


@rule
def attention(program: Program) -> Iterator[Sketch]:
    """Fits chains of a product, elementwise blocks, the stages of a softmax, a product and elementwise blocks."""
    names = kept(program.blocks)
    if names is None:
        return
    start, target = program.inlined(keep=names), program.target
    stages = find(blocks_of(start.func))
    if stages is None:
        return
    yield Sketch("attention", start, partial(_scheduled, stages=stages, target=target), candidates(stages, target))


def _scheduled(sch: Schedule, choice: dict[str, int], stages: Stages, target: Target) -> Applied:
    return Applied(sch, decisions=choice | Steps(sch, stages, choice, target).run())


def candidates(stages: Stages, target: Target) -> Candidates:
    """Register tiles of both products: ``keys`` x ``block`` vectors of rows, ``rows`` x ``vectors`` of columns; whether the keys and values
    of a head are copied to where they lie together (``packed``; then heads run in parallel, not rows); how many keys are taken together
    (``span``; 0: all).
    Sizes that are no numbers are taken as several, each as likely."""
    lanes, registers = target.lanes("float32"), target.vector_registers
    keys, across = extent_of(stages.key) or max(ASSUMED), -(-(extent_of(stages.column) or lanes) // lanes)
    heads = [extent_of(a) for a in stages.result.spatial if a not in (stages.result_row, stages.result_column)]
    apart = len({id(a.buffer) for a in (stages.queries, stages.keys, stages.values)}) == 3  # a copy replaces all that is read of a buffer
    domains = {"block": (1, 2, 4), "keys": range(1, min(keys, 16) + 1), "rows": (1, 2, 4, 8, 16),
               "vectors": [v for v in (1, 2, 3, 4) if across % v == 0], "span": [n for n in (0, *SPANS) if n < keys],
               "packed": (0, 1) if apart and heads and product(heads, 1) >= target.cores else (0,)}

    def legal(c: Columns) -> np.ndarray:
        first, second = c["keys"] * c["block"] + c["block"] + 1, c["rows"] * c["vectors"] + c["vectors"] + 1
        return (first <= registers) & (second <= registers) & (c["block"] * lanes % c["rows"] == 0) & (c["span"] % c["keys"] == 0)

    columns = combinations(domains, legal)
    return Candidates(columns, expected_of(stages, target, columns))


def expected_of(stages: Stages, target: Target, columns: Columns) -> np.ndarray:
    """Cycles of all heads; where sizes are no numbers, the geometric mean over several."""
    sizes = ASSUMED if None in map(extent_of, (stages.row, stages.key, stages.inner, stages.column)) else ASSUMED[:1]
    every = {n: np.tile(x, len(sizes)) for n, x in columns.items()} | {SIZE: np.repeat(sizes, len(next(iter(columns.values()))))}
    return np.exp(np.log(StageTimes(stages, target, every).cycles()).reshape(len(sizes), -1).mean(axis=0))
