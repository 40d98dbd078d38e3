# SPDX-License-Identifier: Apache-2.0
"""The strategy for products of a few rows with a matrix whose rows are contiguous: every result is the dot product of two contiguous rows.

    for i, j, k: y[i, j] += x[i, k] * a[j, k]      ->      for j0 (in parallel), j1, i:  y[i, j] = sum over k of x[i, k] * a[j, k]

Vectors run along the reduction, as in ``reduction/rows``, because no operand is contiguous along the columns of the result. Each row of the
matrix is read once, where it lies, also where the matrix is put together from several tensors (``match/moves``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import tir
from ...ir.visit import free_vars, walk
from ...schedule import Schedule
from ..match.accesses import BlockInfo, blocks_of, extent_of, product
from ..match.contraction import sums_products
from ..match.moves import READS, moves
from ..pointwise.inline import inline_cheap, inline_moves
from ..program import Program
from ..reduction.rows import sketch_of_rows
from ..sketch import Sketch, rule

BLOCK = 8192     # elements of the matrix that make a block of its rows
ROWS = 32        # ... of which it has no more than so many


@rule
def matvec(program: Program) -> Iterator[Sketch]:
    """Fits programs with one reduction, sums of products over one axis along which both operands are contiguous, of one operand a few rows."""
    if len(program.reductions) != 1 or not program.is_plain or len(program.reductions[0].reduce) != 1 or not sums_products(program.reductions[0]):
        return
    before = program.blocks[: program.blocks.index(program.reductions[0])]
    if not all(map(moves, before)) or (not before and _few(program.blocks[0]) is None):
        return
    sch, target = program.fork(), program.target
    inline_moves(sch, [i.name for i in before])
    few = _few(blocks_of(sch.func)[0])
    if few is None:
        return
    inline_cheap(sch)
    inside = _block(sch, few)
    yield from sketch_of_rows("matvec", sch, target, far=int(target.l2_bytes * target.panel_room), inside=inside)


def _few(info: BlockInfo) -> list[tir.IterVar] | None:
    """The axes of the operand that has a few rows; None where there is no such operand."""
    if not info.reduce or not sums_products(info) or len(info.reduce) != 1:
        return None
    along = info.reduce[0].var
    asked = any(along in free_vars(n.condition) for n in walk(info.block.body) if type(n) is tir.IfThenElse)
    if asked or len(info.loads) < 2 or not all(a.steps(along, 1) for a in info.loads):
        return None
    for access in info.loads:
        still = [a for a in info.spatial if access.steps(a.var, 0)]
        if product([extent_of(a) for a in still], READS + 1) <= READS:
            return still
    return None


def _block(sch: Schedule, few: list[tir.IterVar]) -> int:
    """Split the rows of the matrix into blocks, with the few rows inside. Returns how many of the result's loops are inside of a block."""
    infos = blocks_of(sch.func)
    if infos[-1].reduce:
        sch.cache_write(sch.get_block(infos[-1].name), 0, "local")
        infos = blocks_of(sch.func)
    made, last = infos[0].stores[0], infos[-1]
    read = next((a for a in last.loads if a.buffer is made.buffer), None)
    if read is None:
        return 0
    inner = {i for i, own in zip(read.indices, made.indices, strict=True) if any(own is a.var for a in few)}
    loops = sch.get_loops(sch.get_block(last.name))
    long = [(x, a) for x, a in zip(loops, last.spatial, strict=True) if extent_of(a) != 1]
    outside, inside = ([x for x, a in long if (a.var in inner) is within] for within in (False, True))
    count = min(ROWS, BLOCK // (extent_of(infos[0].reduce[0]) or BLOCK))
    if not outside or count < 2:
        return 0
    blocks, within = sch.split(outside[-1], [None, count])
    last_long = loops.index(long[-1][0])  # loops of one iteration behind it stay where they are
    sch.reorder(*(x for x in loops[:last_long] if all(x is not y for y, _ in long)), *outside[:-1], blocks, within, *inside)
    return 1 + len(inside)
