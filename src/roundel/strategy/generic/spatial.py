# SPDX-License-Identifier: Apache-2.0
"""Every way in which a program without a reduction may become a loop nest: which axis becomes lanes, which other one is tiled beside it, and the order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...ir import tir
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, combinations
from ..cost import cycles
from ..match.accesses import BlockInfo, blocks_of, extent_of
from ..parallelism import parallelize
from ..program import Program
from ..sketch import Applied, Sketch, rule
from ..statements import LANES, UNROLLED, Loop, Statement, statement_of

NAMES = ("vector", "lanes", "vectors", "row", "rows", "block", "sweep")
VECTORS = (1, 2, 4)
ROWS = (2, 4, 8, 16)
BLOCKS = (0, 16, 64)  # iterations of the row's loop inside of the vector's: what lies across is read again while it is near (0: all)
MOST_ROWS = 2         # axes for rows, the longest
MANY = 64             # tiles that are enough for all threads
ASSUMED = 128         # of symbolic extents


@rule
def spatial(program: Program) -> Iterator[Sketch]:
    """Fits programs of plain blocks without reductions that are one block once the others are computed where they are read."""
    if program.reductions or not program.is_plain or not program.blocks:
        return
    start = program.inlined()
    infos = blocks_of(start.func)
    table = candidates(infos[0], program.target) if len(infos) == 1 and infos[0].is_plain else None
    if table is not None:
        yield Sketch("spatial", start, partial(_scheduled, target=program.target), table)


def candidates(info: BlockInfo, target: Target) -> Candidates | None:
    """``vector`` is the axis (by position) whose neighbours are ``lanes`` of ``vectors`` vectors, ``row`` another one (-1: none) of which ``rows`` are
    written out, in blocks of ``block``; ``sweep``: 1 where the tiles of the row follow each other, 0 where those of the vectors do."""
    axes = info.block.iter_vars
    extents = [extent_of(a) or ASSUMED for a in axes]
    long = [k for k, n in enumerate(extents) if n > 1]
    bits = max(max(a.buffer.dtype.storage_bits for a in info.accesses), 8)
    full = max(target.vector_bytes * 8 // bits, 1)
    columns: dict[str, list[np.ndarray]] = {n: [] for n in NAMES}
    expected = []
    for vector, lanes in itertools.product(long, dict.fromkeys((full, max(full // 2, 1), 1))):
        if lanes > max(1, extents[vector]):
            continue
        plain = statement_of(info.block, vector, target)
        for row in [-1, *sorted((k for k in long if k != vector), key=lambda k: -extents[k])[:MOST_ROWS]]:
            domains = {"vectors": [n for n in VECTORS if n * lanes <= max(extents[vector], lanes)],
                       "rows": [n for n in ROWS if n <= extents[row]] if row >= 0 else [1],
                       "block": [n for n in BLOCKS if n < extents[row]] if row >= 0 else [0], "sweep": [1, 0] if row >= 0 else [1]}
            table: dict[str, np.ndarray] = combinations(domains, lambda t: (t["block"] == 0) | (t["block"] >= t["rows"]))
            if not len(table["rows"]):
                continue
            for name, value in (("vector", vector), ("lanes", lanes), ("row", row)):
                table[name] = np.full_like(table["rows"], value)
            for name in NAMES:
                columns[name].append(table[name])
            expected.append(_cycles(plain, table, vector, lanes, row, extents, target))
    return Candidates({n: np.concatenate(c) for n, c in columns.items()}, np.concatenate(expected)) if expected else None


def _cycles(plain: Statement, t: dict[str, np.ndarray], vector: int, lanes: int, row: int, extents: list[int], target: Target) -> np.ndarray:
    out = np.zeros(len(t["rows"]))
    for sweep in (0, 1):
        chosen = np.flatnonzero(t["sweep"] == sweep)
        if not len(chosen):
            continue
        rows, vectors, block = (t[n][chosen] for n in ("rows", "vectors", "block"))
        outside = [Loop(k, extents[k]) for k in range(len(extents)) if k not in (vector, row)]
        tiles = Loop(vector, -(-extents[vector] // (vectors * lanes)))
        if row >= 0:
            inside = np.where(block > 0, block // rows, -(-extents[row] // rows))
            around = Loop(row, -(-extents[row] // (inside * rows)))
            within = [tiles, Loop(row, inside)] if sweep else [Loop(row, inside), tiles]
            outside += [around, *within, Loop(row, rows, UNROLLED)]
        else:
            outside.append(tiles)
        loops = (*outside, Loop(vector, vectors, UNROLLED), Loop(vector, lanes, LANES))
        statement = Statement(loops, plain.touches, plain.operations, plain.accumulates, edges=1 * (extents[vector] % lanes > 0))
        out[chosen] = np.broadcast_to(cycles(target, statement), len(chosen))
    return out


def _scheduled(sch: Schedule, choice: dict[str, int], target: Target) -> Applied:
    """The nest for one choice."""
    (info,) = blocks_of(sch.func)
    block = sch.get_block(info.name)
    loops = dict(enumerate(sch.get_loops(block)))
    vector, row = choice["vector"], choice["row"]
    tiles, vectors, lanes = sch.split(loops.pop(vector), [None, choice["vectors"], choice["lanes"]])
    inside: list[Any] = [vectors]
    outside = [loops[k] for k in loops if k != row]
    if row >= 0:
        across, rows = sch.split(loops[row], [None, choice["rows"]])
        inside = [rows, vectors]
        if choice["block"]:
            around, across = sch.split(across, [None, max(choice["block"] // choice["rows"], 1)])
            outside.append(around)
        outside += [tiles, across] if choice["sweep"] else [across, tiles]
    else:
        outside.append(tiles)
    sch.reorder(*outside, *inside, lanes)
    for loop in inside:
        sch.unroll(loop)
    if choice["lanes"] > 1:
        sch.vectorize(lanes)
    extents = [sch.get(x).extent for x in outside]
    count, together = 1, 0
    while together < len(outside) and (count < MANY or not together):
        count *= extents[together].value if isinstance(extents[together], tir.IntImm) else ASSUMED
        together += 1
    each = float(info.cost * choice["rows"] * choice["vectors"])
    for n in extents[together:]:
        each *= n.value if isinstance(n, tir.IntImm) else ASSUMED
    whole = sch.fuse(*outside[:together]) if together > 1 else outside[0]
    return Applied(sch, decisions=choice | parallelize(sch, whole, each, target))
