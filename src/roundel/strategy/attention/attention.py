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
from typing import Any

import numpy as np

from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import L2, L3
from ..candidates import Candidates, Columns, combinations
from ..cost import SHARPNESS, exposed
from ..match.accesses import blocks_of, extent_of, product
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .stages import Stages, find, kept
from .steps import Steps

SPANS = (64, 96, 120, 128, 168, 240, 336)  # keys of a block: numbers of many divisors
ASSUMED = (32, 128, 512, 2048)  # keys or rows whose number is not known
ASSUMED_HEADS = 8     # ... and of batches of heads


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

    c = combinations(domains, legal)
    times = [_cycles(stages, target, c, size) for size in (ASSUMED if None in (extent_of(stages.row), extent_of(stages.key)) else (1,))]
    return Candidates(c, product(heads, ASSUMED_HEADS) * np.exp(np.mean(np.log(times), axis=0)))


def _cycles(stages: Stages, target: Target, c: Columns, unknown: int) -> np.ndarray:
    """Of one head, with sizes that are no numbers taken as ``unknown``."""
    lanes = target.lanes("float32")
    near, far, streaming = (share * target.bytes_per_cycle(level) for share, level in ((1.0, L2), (target.attention_far, L3), (target.attention_together, L3)))
    count, keys, width, inner = (extent_of(a) or unknown for a in (stages.row, stages.key, stages.column, stages.inner))
    blocks = -(-count // (c["block"] * lanes))
    span = np.where(c["span"] > 0, np.minimum(c["span"], keys), keys)
    made = _seen(stages, count, keys, c["block"] * lanes + np.where(c["span"] > 0, c["span"], c["keys"]))
    used = _seen(stages, count, keys, c["rows"] + c["keys"])
    parts = -(-made // span)
    scores = _tiles(target, made, c["keys"], c["block"]) * inner
    weighted = _tiles(target, c["block"] * lanes, c["rows"], c["vectors"]) * (-(-width // lanes) // c["vectors"]) * used
    rest = c["block"] * (made * target.exponential_cycles + inner * target.turn_cycles)
    held = 2 * 4.0 * np.minimum(span, made) * c["block"] * lanes  # scores and exponentials, each written and read
    rest = rest + np.where(held > target.l1_bytes, 2 * held * parts / np.where(held > target.l2_bytes * target.cache_room, streaming, near), 0.0)
    again = 4.0 * np.minimum(span, made) * (c["vectors"] * lanes)  # values of a panel, which every tile of rows reads
    tiles = c["block"] * lanes // c["rows"] * (-(-width // lanes) // c["vectors"]) * parts
    rest = rest + np.where(again > target.l1_bytes * target.cache_room, tiles * again * target.attention_exposed / near, 0.0)
    sums = c["block"] * (target.rescale_cycles + target.update_cycles * lanes * -(-width // lanes)) + tiles / parts * target.tile_cycles
    tail = np.where((keys % np.maximum(c["span"], 1) > 0) & (not stages.causal), c["block"] * target.tail_cycles, 0.0)
    rest = rest + np.where(c["span"] > 0, parts * sums + tail, 0.0)
    rest = rest + c["block"] * c["block"] * lanes * target.edge_cycles * stages.causal
    operands, read = 4.0 * keys * (inner + width), blocks * 4.0 * made * (inner + width)
    rate = near if operands <= target.l2_bytes * target.scattered_room else far
    packed = read / (near if operands <= target.l2_bytes else streaming) + operands / streaming
    return blocks * (scores + weighted + rest) + np.where(c["packed"] > 0, packed, read / rate)


def _seen(stages: Stages, count: int, keys: int, granule: Any) -> Any:
    """Keys that a block of rows takes, as a mean; the last row sees all. ``granule``: rows and keys that are taken together."""
    return np.minimum(keys, keys - min(count, keys) // 2 + granule // 2) if stages.causal else keys


def _tiles(target: Target, extent: Any, height: Any, vectors: Any) -> Any:
    """Cycles of one step for all the tiles of ``height`` along an extent, the last one of what is left."""
    streamed = target.attention_streamed * target.vector_bytes / target.bytes_per_cycle(L2)

    def step(rows: Any) -> Any:
        return _step(target, rows, vectors) + target.broadcast_cycles * rows + streamed * vectors

    full, rest = extent // height, extent % height
    return full * step(height) + np.where(rest > 0, step(np.maximum(rest, 1)), 0.0)


def _step(target: Target, rows: Any, vectors: Any) -> Any:
    """Cycles of one step of a long reduction for a register tile, four of which are written out."""
    chains = rows * vectors
    instructions = chains + vectors + np.where((vectors == 1) & (rows > 1), 0, rows) + 0.75
    limits = (chains / target.fma_ports, target.fma_latency * exposed(target, np.inf), (rows + vectors) / target.loads, instructions / target.issue)
    return sum(x**SHARPNESS for x in limits) ** (1.0 / SHARPNESS) + target.loop_cycles / 4
