# SPDX-License-Identifier: Apache-2.0
"""The loop nest of a reduction under given decisions: a register tile of independent accumulators, operands turned where they have to be.

    for tiles (in parallel):
        for tile of the result: accumulators = 0
        for all steps of the reduction:
            for row in the tile, for vector in the tile (written out):  accumulators[row, vector] += ...
        the tile of the result = what is fused after the reduction
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.errors import ScheduleError
from ...ir.visit import free_vars, walk
from ...schedule import Schedule
from ...target import Target
from ..match.accesses import Access, blocks_of
from ..parallelism import loop_extent, parallelize
from ..product.contraction import store_of
from ..product.register_tile import in_vectors
from ..reduction.rows import in_vectors as in_vectors_of_a_row
from ..window.borders import skip_border
from .stage import Stage


@dataclass(frozen=True)
class Decisions:
    """Of one reduction; axes by position. ``vector``: the axis whose neighbours are lanes; ``vectors``: of them in a tile; ``lanes``: elements
    of a vector. ``row``, ``rows``: another axis in the tile and its part (axis -1: none); ``beside``, ``others``: a third one. ``inner``: the
    reduction axis that runs innermost; ``unroll``: steps of it that are written out; ``sweep``: 1 where the tiles of the row axis follow
    each other, 0 where those of the vector axis do; ``turned``: whether operands that are strided along the vector axis are copied
    (2: and constants that are not are laid out in panels, 3: and so are all operands whose rows lie far apart); ``straight``: how many other axes
    of the reduction, from the innermost, are written out, so that windows that overlap along several axes share what they load."""

    vector: int
    vectors: int
    lanes: int
    row: int
    rows: int
    beside: int
    others: int
    inner: int
    unroll: int
    sweep: int
    turned: int
    straight: int = 0


def schedule_nest(sch: Schedule, stage: Stage, d: Decisions, target: Target, constants: tuple[int, ...]) -> dict[int, tir.IndexMap]:
    """Order the loops of a reduction. Returns the layouts of constant operands, by position."""
    if d.vector in stage.reduce:
        _along_the_reduction(sch, stage, d, target)
        return {}
    layouts = _turn(sch, stage, d, target, constants) if d.turned else {}
    name = stage.info.name
    block = sch.get_block(name)
    operands = _vector_operands(sch, stage, d)
    epilogue = _store(sch, stage)
    _lanes_last(sch, stage, d)
    loops = dict(enumerate(sch.get_loops(block)))
    if stage.extents[d.vector] == d.lanes and not _symbolic(stage, d.vector):
        tiles, vectors, lanes = None, None, loops[d.vector]
    else:
        tiles, vectors, lanes = sch.split(loops[d.vector], [None, d.vectors, d.lanes])
    inside: list[Any] = []
    outer = {k: loops[k] for k in stage.spatial if k != d.vector}
    for axis, size in ((d.row, d.rows), (d.beside, d.others)):
        if axis >= 0 and size > 1:
            outer[axis], part = sch.split(loops[axis], [None, size])
            inside.append(part)
    outside = [outer[k] for k in outer if k not in (d.row, d.beside)]
    rows = [outer[k] for k in (d.row, d.beside) if k >= 0]
    columns = [tiles] if tiles is not None else []
    outside += [*columns, *rows] if d.sweep else [*rows, *columns]
    others = [k for k in stage.reduce if k != d.inner]
    looping, last = others[: len(others) - d.straight], loops[d.inner]
    steps = [loops[k] for k in others[len(looping) :]]
    if d.unroll > 1:
        last, step = sch.split(last, [None, d.unroll])
        steps.append(step)
    reduce = [*(loops[k] for k in looping), last, *steps]
    tile = [*inside, *([vectors] if vectors is not None else [])]
    sch.reorder(*outside, *reduce, *tile, lanes)
    if outside:
        sch.reverse_compute_at(epilogue, outside[-1])
    depth = len(outside)
    at = reduce[-1]
    copies = []
    if outside and d.rows * d.others > 1:
        for buffer in operands:
            copies.append(_in_registers(sch, block, buffer, at))
    init = sch.decompose_reduction(block, reduce[0])
    if any(loop_extent(sch, x) != 1 for x in reduce[: len(looping) + 1]):
        whole = [d.inner] if d.unroll == 1 else []  # a loop over all of an axis
        skip_border(sch, block, stage.info, {stage.axes[k]: loops[k] for k in (*looping, *whole)})
    in_vectors(sch, init, depth, d.lanes)
    _in_order(sch, stage, d, epilogue, depth)
    in_vectors(sch, epilogue, depth, d.lanes)
    for loop in (*tile, *steps):
        sch.unroll(loop)
    sch.vectorize(lanes)
    for copy in copies:
        if copy is not None:
            in_vectors(sch, copy, depth + len(reduce), d.lanes)
    _in_parallel(sch, outside, cycles_of_tile(stage, d), target, bool(columns) and not d.sweep)
    return layouts


def _along_the_reduction(sch: Schedule, stage: Stage, d: Decisions, target: Target) -> None:
    """Reduce along the last axis into vectors of partial results, one element of the result at a time, with elements in parallel."""
    epilogue = _store(sch, stage)
    loops = sch.get_loops(epilogue)
    whole = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    block = sch.get_block(stage.info.name)
    sch.compute_at(block, whole)
    in_vectors_of_a_row(sch, type(stage.info)(sch.get(block)), target, 1, None, None, d.vectors)
    parallelize(sch, whole, cycles_of_tile(stage, d) / d.vectors / d.lanes, target)


def _store(sch: Schedule, stage: Stage) -> Any:
    """The block that stores the result: an elementwise consumer all of whose other operands exist by then, or else a copy."""
    block = sch.get_block(stage.info.name)
    order = [i.name for i in blocks_of(sch.func)]
    made_later = {n for n in order[order.index(stage.info.name) + 1 :]}
    users = sch.get_consumers(block)
    waits = any(sch.get(p).name in made_later for u in users for p in sch.get_producers(u))
    return sch.cache_write(block, 0, "local") if waits else store_of(sch, stage.info)


def _lanes_last(sch: Schedule, stage: Stage, d: Decisions) -> None:
    """Lay out the accumulators with the vectorized axis last, whichever axis of the result that is."""
    block = sch.get_block(stage.info.name)
    indices = type(stage.info)(sch.get(block)).stores[0].indices
    at = next((k for k, i in enumerate(indices) if i is stage.axes[d.vector].var), len(indices) - 1)
    if at != len(indices) - 1:
        sch.transform_layout(block, ("write", 0), tir.IndexMap.from_func(lambda *i: (*i[:at], *i[at + 1 :], i[at]), len(indices)))


def _in_order(sch: Schedule, stage: Stage, d: Decisions, epilogue: Any, depth: int) -> None:
    """Make the loop over lanes the innermost one of the block that stores a tile, wherever its axis is in the result."""
    node = sch.get(epilogue)
    realize = next(n for n in walk(sch.func.body) if type(n) is tir.BlockRealize and n.block is node)
    at = next((k for k, i in enumerate(stage.store.indices) if i is stage.axes[d.vector].var), None)
    stored = type(stage.info)(node).stores[0].indices
    if at is None or len(stored) != len(stage.store.indices):
        return
    values = {i.var: v for i, v in zip(node.iter_vars, realize.iter_values, strict=True)}
    inside = sch.get_loops(epilogue)[depth:]
    moving = {v for i in free_vars(stored[at]) for v in free_vars(values.get(i, i))}
    chosen = [x for x in inside if sch.get(x).loop_var in moving]
    if len(chosen) == 1 and chosen[0] is not inside[-1]:
        sch.reorder(*(x for x in inside if x is not chosen[0]), chosen[0])


def cycles_of_tile(stage: Stage, d: Decisions) -> float:
    """Rough cycles of one tile, from which the size of chunks for threads follows."""
    steps = 1.0
    for k in stage.reduce:
        steps *= stage.extents[k]
    return steps * d.vectors * d.rows * d.others * max(stage.info.cost / 4, 0.25)


def _symbolic(stage: Stage, axis: int) -> bool:
    return not isinstance(stage.axes[axis].dom.extent, tir.IntImm)


def _vector_operands(sch: Schedule, stage: Stage, d: Decisions) -> list[tir.Buffer]:
    """The operands that are loaded in vectors and do not depend on the row of a tile: each vector is loaded once for all rows."""
    found = []
    block = sch.get(sch.get_block(stage.info.name))
    info = type(stage.info)(block)
    own = Stage(info)
    rows = [k for k, n in ((d.row, d.rows), (d.beside, d.others)) if k >= 0 and n > 1]
    for a in own.loads:
        turned = d.turned and a.buffer not in {x.buffer for x in stage.loads}
        moves = turned or own.step(a, d.vector) == 1
        if moves and not any(own.depends(a, k) for k in rows) and sum(x.buffer is a.buffer for x in own.loads) == 1:
            found.append(a.buffer)
    return found


def _in_registers(sch: Schedule, block: Any, buffer: tir.Buffer, at: Any) -> Any:
    """The block that loads the vectors of an operand for one step into registers; None where that is not possible."""
    reads = [r.buffer for r in sch.get(block).reads]
    if buffer not in reads:
        return None
    before = sch.fork()
    try:
        copy = sch.cache_read(block, reads.index(buffer), "local", [block])
        sch.compute_at(copy, at)
    except ScheduleError:
        sch.__dict__.update(before.__dict__)
        return None
    return copy


def _turn(sch: Schedule, stage: Stage, d: Decisions, target: Target, constants: tuple[int, ...]) -> dict[int, tir.IndexMap]:
    """Operands that neighbours would gather are copied into panels as wide as the tile; constants are laid out so from the start."""
    width = d.vectors * d.lanes
    var = stage.axes[d.vector].var
    params, layouts = sch.func.buffer_params, {}
    for access in stage.panelled(d.vector, d.turned, [params[k] for k in constants]):
        block = sch.get_block(stage.info.name)
        at = next(k for k, i in enumerate(access.indices) if i is var)
        others = sorted((k for k in range(len(access.indices)) if k != at), key=partial(_rank, stage, access, d))
        mapping = _panels(access.buffer.ndim, at, others, width)
        read = [r.buffer for r in sch.get(block).reads].index(access.buffer)
        position = params.index(access.buffer) if access.buffer in params else -1
        if position in constants:
            sch.transform_layout(block, ("read", read), mapping, pad_value=0)
            layouts[position] = mapping
            continue
        copy = sch.cache_read(block, read, "global", [block])
        sch.transform_layout(copy, ("write", 0), mapping, pad_value=0)
        _schedule_copy(sch, copy, at, d, target)
    return layouts


def _panels(rank: int, at: int, others: list[int], width: int) -> tir.IndexMap:
    """Panels of one dimension, the other dimensions in this order inside."""
    return tir.IndexMap.from_func(lambda *i: (i[at] // width, *(i[k] for k in others), i[at] % width), rank)


def _rank(stage: Stage, access: Access, d: Decisions, dimension: int) -> int:
    """Where a dimension of an operand goes in its panels: the innermost reduction axis last, other reduction axes before it."""
    index = access.indices[dimension]
    axis = next((k for k, a in enumerate(stage.axes) if a.var is index), -1)
    return 2 if axis == d.inner else 1 if axis in stage.reduce else 0


def _schedule_copy(sch: Schedule, copy: Any, at: int, d: Decisions, target: Target) -> None:
    loops = sch.get_loops(copy)
    panel, vectors, lanes = sch.split(loops[at], [None, d.vectors, d.lanes])
    others = [x for k, x in enumerate(loops) if k != at]
    sch.reorder(panel, vectors, *others, lanes)
    sch.vectorize(lanes)
    work = 1.0
    for x in others:
        work *= loop_extent(sch, x) or 64
    whole = sch.fuse(panel, vectors)
    parallelize(sch, whole, work * d.lanes * target.move_cycles, target)


def _in_parallel(sch: Schedule, outside: list[Any], cycles: float, target: Target, columns_last: bool) -> None:
    """Parallelize as many of the outermost loops as keep all cores busy."""
    if not outside:
        return
    total, count = 1, len(outside)
    for k, loop in enumerate(outside):
        total *= loop_extent(sch, loop) or 1
        if total >= 4 * target.cores:
            count = k + 1
            break
    for loop in outside[count:]:
        cycles *= loop_extent(sch, loop) or 16
    whole = sch.fuse(*outside[:count]) if count > 1 else outside[0]
    parallelize(sch, whole, cycles, target)
