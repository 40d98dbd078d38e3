# SPDX-License-Identifier: Apache-2.0
"""The strategy for matrix products and convolutions: a sum of products of two operands, computed in register tiles.

    for row, column, k: C[row, column] += A[row, k] * B[k, column]

One operand (here B) is loaded in vectors along the columns; the other (A) is loaded element by element, and each element is broadcast to a
vector. A register tile is a group of rows times a group of vectors of columns: its accumulators stay in registers over the whole reduction,
so that every loaded vector serves all rows of the tile and every broadcast all of its vectors. ``match/contraction`` finds the role of each
axis, ``contraction_candidates`` lists the decisions and rates them. A vector operand that is constant is packed at compile time into panels as
wide as the tile; elementwise operators after the product are computed when a tile is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...ir import tir
from ...ir.annotations import PREFETCH, PREFETCH_LINES, PREFETCH_PASS, Prefetch, PrefetchLines
from ...ir.dataclass import dataclass
from ...ir.visit import free_vars
from ...schedule.schedule import Schedule
from ...target import Target
from ...target.target import MEMORY
from ..match.accesses import Access, BlockInfo, blocks_of, extent_of, product
from ..match.borders import leave_out_borders, zero_borders
from ..match.contraction import Contraction, match
from ..match.moves import keeps_rows, read_seldom
from ..parallelism import is_little, loop_extent, parallelize
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..pointwise.inline import inline_moves
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .contraction_candidates import candidates, copied_rate
from .panels import shared_half, shared_panels
from .reduction_blocks import cut_reduction, schedule_blocks, streams_blocks
from .register_tile import Tile, in_vectors

ASSUMED_TILES = 16  # along a symbolic axis
FEW_TILES = 4        # of rows
CHUNKS = 2           # for each core, of panels that few tiles go over


@dataclass(frozen=True)
class Plan:
    """What is known of a program before any decision: the contraction, blocks before it that stay (``prologue``), and those of them that only
    move data and are read where they lie in the end (``moved``)."""

    contraction: Contraction
    prologue: tuple[str, ...]
    moved: tuple[str, ...]


@rule
def contraction(program: Program) -> Iterator[Sketch]:
    """Fits programs with exactly one reduction block, a contraction; elementwise blocks after it go into its store."""
    if len(program.reductions) != 1 or not program.is_plain:
        return
    found = match(program.reductions[0])
    if found is None:
        return
    before = program.blocks[: program.blocks.index(found.info)]
    borders = zero_borders(before, found)
    prologue = tuple(i.name for i in before if i.name not in borders)
    moved = tuple(i.name for i in before if i.name in prologue and keeps_rows(i) and read_seldom(i, found.info))
    start = program.inlined(keep=prologue)
    if borders:
        found = match(next(i for i in blocks_of(start.func) if i.name == found.info.name))
        assert found is not None
        found = replace(found, windows=tuple(dict.fromkeys(k for window in borders.values() for k in window)))
    found = replace(found, is_data=not program.is_constant(found.vector.buffer))
    steps = partial(_scheduled, plan=Plan(found, prologue, moved), target=program.target)
    yield Sketch("contraction", start, steps, candidates(found, program.target), partial(cycles_beside, start, program.target, moved))


def _scheduled(sch: Schedule, choice: dict[str, int], plan: Plan, target: Target) -> Applied:
    """The steps for one choice."""
    found, total = plan.contraction, None
    tile = Tile(choice["rows"], choice["vectors"], choice["lanes"])
    if choice.get("blocks", 1) > 1:
        found, total = cut_reduction(sch, found, choice["blocks"])
    layouts = _pack(sch, found, tile, target)
    packed = next(iter(layouts), None)
    panels = _copy(sch, found, tile, target) if choice.get("copied") else found.vector.buffer if packed is None else sch.func.buffer_params[packed]
    if total is None:
        grain = _schedule(sch, found, tile, choice, store_of(sch, found.info), packed, panels, target)
    else:
        weights = None if packed is None else sch.func.buffer_params[packed]
        around = schedule_blocks(sch, found, total, tile, choice, panels, weights)
        grain = _blocks_over_threads(sch, found, tile, choice, around, weights, target)
    inline_moves(sch, plan.moved)
    for info in blocks_of(sch.func):
        if info.name in plan.prologue:
            schedule_spatial(sch, info, target)
    return Applied(sch, layouts, choice | grain)


def _pack(sch: Schedule, c: Contraction, tile: Tile, target: Target) -> dict[int, tir.IndexMap]:
    """A constant vector operand goes into panels as wide as the tile, so that the reduction streams through it. One panel is enough for few columns, where
    its rows end in a vector that is not full: filled up, they are read without a mask, each vector from one line."""
    params = sch.func.buffer_params
    buffer = c.vector.buffer
    width = tile.vectors * tile.lanes
    axis = c.info.block.iter_vars[c.vector_axis]
    position = params.index(buffer) if buffer in params else -1
    extent = extent_of(axis)
    if c.is_data or extent is None or c.vector.indices[-1] is not axis.var:
        return {}
    is_alone = all(c.extent(k) == 1 for k in c.columns) and buffer.ndim == len(c.reduce) + len(c.columns) + 1
    if extent > width and is_alone:
        panels = lambda *i: (i[-1] // width, *i[:-1], i[-1] % width)
    elif extent % tile.lanes and tile.vectors > 1 and tile.rows > 1 and is_alone:
        panels = lambda *i: (i[-1] // width, *i[:-1], i[-1] % width // tile.lanes, i[-1] % tile.lanes)
    elif extent == tile.lanes and tile.vectors > 1 and c.columns and c.vector.indices[0] is c.info.block.iter_vars[c.columns[-1]].var:
        panels = lambda *i: (i[0] // tile.vectors, *i[1:-1], i[0] % tile.vectors, i[-1])
    else:
        return {}
    first = [d for k in c.windows for d, i in enumerate(c.vector.indices) if i is c.info.block.iter_vars[k].var]

    def in_order(*i: Any) -> tuple[Any, ...]:
        """Of a panel, the axes of the window first, as they run outside of the others."""
        panel, *inside = panels(*i)
        window = [i[d] for d in first]
        return (panel, *window, *(x for x in inside if not any(x is w for w in window)))

    half = shared_half(c, target)
    mapping = tir.IndexMap.from_func(in_order, buffer.ndim) if half is None else shared_panels(half, width)
    read = _read_index(sch, sch.get_block(c.info.name), buffer)
    sch.transform_layout(sch.get_block(c.info.name), ("read", read), mapping, pad_value=0)
    return {position: mapping}


def _copy(sch: Schedule, c: Contraction, tile: Tile, target: Target) -> tir.Buffer:
    """Data that is the vector operand is copied into panels as wide as the tile before the product begins."""
    block, width, buffer = sch.get_block(c.info.name), tile.vectors * tile.lanes, c.vector.buffer
    copy = sch.cache_read(block, _read_index(sch, block, buffer), "global")
    mapping = tir.IndexMap.from_func(lambda *i: (*i[:-2], i[-1] // width, i[-2], i[-1] % width), buffer.ndim)
    sch.transform_layout(copy, ("write", 0), mapping, pad_value=0)
    *batch, depth, column = sch.get_loops(copy)
    panel, vectors, lanes = sch.split(column, [None, tile.vectors, tile.lanes])
    sch.reorder(*batch, panel, depth, vectors, lanes)
    sch.unroll(vectors)
    sch.vectorize(lanes)
    whole = sch.fuse(*batch, panel) if batch else panel
    parallelize(sch, whole, product([c.extent(k) for k in c.reduce], 256) * width * buffer.dtype.storage_bits / 8 / copied_rate(target), target)
    return sch.get(copy).writes[0].buffer


def store_of(sch: Schedule, info: BlockInfo) -> Any:
    """The block that stores a reduction's result from its accumulators: the one elementwise block that reads it (others are
    inlined into it by now), or a copy."""
    block = sch.get_block(info.name)
    users = sch.get_consumers(block)
    if len(users) == 1 and info.stores[0].buffer not in sch.func.buffer_params and _same_shape(sch, users[0], info):
        sch.set_scope(block, 0, "local")
        return users[0]
    return sch.cache_write(block, 0, "local")


def _same_shape(sch: Schedule, user: Any, info: BlockInfo) -> bool:
    other = BlockInfo(sch.get(user))
    reads = [a for a in other.loads if a.buffer is info.stores[0].buffer]
    if not other.is_plain or other.reduce or len(reads) != 1:
        return False
    mine, theirs = _long_axes(info), _long_axes(other)
    if [i.dom.extent for i in mine] != [i.dom.extent for i in theirs]:
        return False
    return _indexed_by(reads[0], theirs) and _indexed_by(info.stores[0], mine)


def _long_axes(info: BlockInfo) -> list[tir.IterVar]:
    return [i for i in info.spatial if extent_of(i) != 1]


def _indexed_by(access: Access, axes: list[tir.IterVar]) -> bool:
    """Whether the buffer's dimensions, those of extent 1 aside, are just these axes in order."""
    long = [i for i, n in zip(access.indices, access.buffer.shape, strict=True) if not (isinstance(n, tir.IntImm) and n.value == 1)]
    return len(long) == len(axes) and all(i is v.var for i, v in zip(long, axes, strict=True))


@dataclass(frozen=True)
class Nest:
    """The loops of a contraction once they are split and ordered, outermost first: those ``outside`` of a tile (``rows`` are those of them over
    tiles of rows), the reduction (``reduce``, and ``step``, its part that is unrolled), the rows and vectors ``inside`` of a tile, the lanes of
    a vector. ``axes``: the loop of each axis before it was split."""

    block: Any
    axes: list[Any]
    outside: list[Any]
    rows: list[Any]
    reduce: list[Any]
    step: Any
    inside: list[Any]
    lanes: Any


def _schedule(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], epilogue: Any, packed: int | None, panels: tir.Buffer,
              target: Target) -> dict[str, int]:
    """All steps for one choice. Returns the decision of how many iterations a thread takes at once."""
    nest = _nest(sch, c, tile, choice)
    _in_tile(sch, c, tile, choice, nest, epilogue, panels, target)
    return _over_threads(sch, c, tile, choice, nest, packed, panels, target) if nest.outside else {}


def _nest(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int]) -> Nest:
    """Split rows and columns into tiles and the reduction into steps, and order the loops."""
    block = sch.get_block(c.info.name)
    axes = sch.get_loops(block)
    columns, vectors, lanes = _columns(sch, c, tile, axes)
    rows, row, step = [axes[k] for k in c.rows], None, None
    if rows:
        rows[-1], row = sch.split(rows[-1], [None, tile.rows])
    between = [k for k in c.reduce if k not in c.windows and k != choice["inner"]]
    reduce = [axes[k] for k in (*c.windows, *between, choice["inner"])]
    if choice["unroll"] > 1:
        reduce[-1], step = sch.split(reduce[-1], [None, choice["unroll"]])
    order = choice["order"]
    outside = [*(axes[k] for k in c.batch), *rows[:order], *columns, *rows[order:]]
    inside = [x for x in (row, vectors) if x is not None]
    sch.reorder(*outside, *reduce, *([] if step is None else [step]), *inside, lanes)
    return Nest(block, axes, outside, rows, reduce, step, inside, lanes)


def _columns(sch: Schedule, c: Contraction, tile: Tile, axes: list[Any]) -> tuple[list[Any], Any, Any]:
    """The loops over columns outside of a tile, the loop over its vectors (None where it has one), and that over lanes."""
    columns = [axes[k] for k in c.columns]
    if c.extent(c.vector_axis) != tile.lanes:
        outer, vectors, lanes = sch.split(axes[c.vector_axis], [None, tile.vectors, tile.lanes])
        return [*columns, outer], vectors, lanes
    vectors = None
    if columns and tile.vectors > 1:
        columns[-1], vectors = sch.split(columns[-1], [None, tile.vectors])
    return columns, vectors, axes[c.vector_axis]


def _in_tile(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], nest: Nest, epilogue: Any, panels: tir.Buffer, target: Target) -> None:
    """Accumulate one tile in registers: operands are loaded for each step, the result is stored at its end."""
    depth, panel = len(nest.outside), None
    if nest.outside:
        sch.reverse_compute_at(epilogue, nest.outside[-1])
    operand = _read_index(sch, nest.block, panels)
    if tile.rows > 1 and operand is not None and nest.outside:
        panel = _in_registers(sch, c, operand, tile, panels is c.vector.buffer)
        sch.compute_at(panel, nest.step if nest.step is not None else nest.reduce[-1])
    init = sch.decompose_reduction(nest.block, nest.reduce[0])
    leave_out_borders(sch, nest.block, c, nest.axes)
    _fetch_rows(sch, c, nest.axes, choice, target)
    _fetch_blocks(sch, c, tile, choice, nest, target)
    for stored in (init, epilogue):
        in_vectors(sch, stored, depth, tile.lanes)
    for loop in [*nest.inside, *([] if nest.step is None else [nest.step])]:
        sch.unroll(loop)
    sch.vectorize(nest.lanes)
    if panel is not None:
        in_vectors(sch, panel, depth + len(nest.reduce) + (nest.step is not None), tile.lanes)


def _over_threads(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], nest: Nest, packed: int | None, panels: tir.Buffer,
                  target: Target) -> dict[str, int]:
    """Run the outer loops in parallel, and have them prefetch the next panel of packed weights. Returns the decision of how many iterations a
    thread takes at once."""
    outside, rows, is_product = nest.outside, nest.rows, len(nest.reduce) == 1
    count = _parallel_count(sch, c, tile, choice, nest, target)
    weights = None if packed is None else sch.func.buffer_params[packed]
    has_next = weights is not None and choice["order"] == 0 and panels.shape[0].value > 1  # there is a panel to prefetch
    few = False  # rows, so that panels come from memory as fast as they can
    if has_next and len(rows) == 1 and c.extent(c.rows[0]) != 1 and is_product and count < len(outside):
        few = (c.extent(c.rows[0]) or 0) <= FEW_TILES * tile.rows
        panel = math.prod(n.value for n in weights.shape[1:])
        sch.annotate(rows[0], PREFETCH, Prefetch(weights.name, panel, step=choice["unroll"] * tile.vectors * tile.lanes))
    work = _cycles(c, tile) * product([loop_extent(sch, x) for x in outside[count:]], ASSUMED_TILES)
    if weights is not None and panels.shape[0].value > 1:  # every panel comes from memory
        work = max(work, _panel_cycles(c, tile, 1, target))
    if is_little(sch, outside[:count], work, target):
        return {}
    passes = product([loop_extent(sch, x) for x in rows if x in outside[:count]], 0)
    whole = sch.fuse(*outside[:count]) if count > 1 else outside[0]
    if has_next and rows and not is_product:
        _prefetch(sch, c, tile, passes, whole, outside[count:], weights, choice["unroll"])
    return parallelize(sch, whole, work, target, CHUNKS * target.cores if few else None)


def _blocks_over_threads(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], around: list[Any], weights: tir.Buffer | None,
                         target: Target) -> dict[str, int]:
    """Run the loops around whole panels in parallel, where a panel's reduction is in blocks. Returns the decision of how many a thread takes at once."""
    rows = product([c.extent(k) for k in c.rows], 1) / tile.rows
    streams = weights is not None and streams_blocks(c)
    if streams:
        rows = ASSUMED_TILES
    work = choice["blocks"] * _cycles(c, tile) * rows
    if streams:
        work = max(work, _panel_cycles(c, tile, choice["blocks"], target))
    return _in_parallel(sch, around, work, target, CHUNKS * target.cores if streams else None)


def _panel_cycles(c: Contraction, tile: Tile, blocks: int, target: Target) -> float:
    """In which a panel of weights comes from memory."""
    panel_bytes = blocks * product([c.extent(k) for k in c.reduce], 256) * tile.vectors * tile.lanes * c.vector.buffer.dtype.bits / 8
    return panel_bytes / (target.weights_share * target.bytes_per_cycle(MEMORY))


def _parallel_count(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], nest: Nest, target: Target) -> int:
    """How many of the outer loops run in parallel. Loops whose last tile is not full, or lies at a border, are not among them where the
    others keep the cores busy: such a tile is split off a loop of its own."""
    outside, rows = nest.outside, c.extent(c.rows[-1]) or 0 if c.rows else 0
    count = _parallel_prefix(sch, outside, target)
    if len(nest.reduce) > 1:
        has_tail = choice["order"] < len(c.rows) and bool(rows % tile.rows)
        count = len(outside) - 1 if has_tail and count < len(outside) else len(outside)
    if c.windows and rows > tile.rows:
        count = _before(sch, outside, nest.rows[-1], target) or count
    return count


def _in_registers(sch: Schedule, c: Contraction, operand: int, tile: Tile, as_given: bool) -> Any:
    """The block that loads the vectors that a step reads. Where the last one is not full and they move with a window too, they are
    indexed by the axes of the contraction: then they begin at zero and may be whole (``lower/whole_vectors``)."""
    block, axes, extent = sch.get_block(c.info.name), c.info.block.iter_vars, c.extent(c.vector_axis)
    if not as_given or extent is None or extent % tile.lanes == 0 or c.vector.indices[-1] is axes[c.vector_axis].var:
        return sch.cache_read(block, operand, "local")
    panel = sch.reindex(block, ("read", operand))
    sch.set_scope(panel, 0, "local")
    used = [k for k, axis in enumerate(axes) if any(axis.var in free_vars(i) for i in c.vector.indices)]
    at = used.index(c.vector_axis)
    sch.transform_layout(panel, ("write", 0), tir.IndexMap.from_func(lambda *i: (*i[:at], *i[at + 1 :], i[at]), len(used)))
    return panel


def _prefetch(sch: Schedule, c: Contraction, tile: Tile, passes: int, loop: Any, inside: Sequence[Any], packed: tir.Buffer, unroll: int) -> None:
    """While the rows run over one panel of a convolution's weights, the next one comes from memory. ``passes``: over a panel, that are iterations of the
    loop; the loops over rows ``inside`` of it pass over the panel as often as they run. Of a single pass the hardware's prefetchers follow the panels."""
    width = tile.vectors * tile.lanes
    panel = product([c.extent(k) for k in c.reduce], 0) * width
    if panel and passes * product([loop_extent(sch, x) for x in inside], 2) > 1 and None not in [c.extent(r) for r in c.rows]:
        sch.annotate(loop, PREFETCH, Prefetch(packed.name, panel, step=unroll * width, passes=passes))
        for x in inside:
            sch.annotate(x, PREFETCH_PASS, True)


def _fetch_rows(sch: Schedule, c: Contraction, loops: list[Any], choice: Mapping[str, int], target: Target) -> None:
    """While a row of results is computed, the elements that the next one adds come from memory, where a row of the broadcast operand is
    its innermost axis (a picture whose channels are planes): each is a short stream, and there are many."""
    axes, data = c.info.block.iter_vars, c.broadcast
    if len(c.rows) < 2 or data.buffer not in sch.func.buffer_params:
        return
    down, across = (data.stride(axes[k].var) for k in c.rows[-2:])
    window = next((k for k in c.reduce if data.steps(axes[k].var, 1) and (k != choice["inner"] or choice["unroll"] == 1)), None)
    if window is None or not isinstance(down, int) or not isinstance(across, int) or across * data.buffer.dtype.bits >= 8 * target.line_bytes:
        return
    sch.annotate(loops[window], PREFETCH_LINES, PrefetchLines(data.buffer.name, down))


def _fetch_blocks(sch: Schedule, c: Contraction, tile: Tile, choice: Mapping[str, int], nest: Nest, target: Target) -> None:
    """While a block of channels is added, what the tile's rows have of the next one comes from the caches: blocks of a large picture are pages apart,
    so that no hardware prefetcher finds it."""
    axes, data = c.info.block.iter_vars, c.broadcast
    blocks = [k for k in c.reduce if k != choice["inner"] and c.extent(k) != 1]
    sizes = [n.value for n in data.buffer.shape if type(n) is tir.IntImm]
    if len(blocks) != 1 or blocks[0] in c.windows or not c.rows or data.buffer not in sch.func.buffer_params or len(sizes) < data.buffer.ndim:
        return
    if math.prod(sizes) * data.buffer.dtype.storage_bits // 8 < target.far_times * target.l2_bytes:
        return
    apart, across, inside = (data.stride(axes[k].var) for k in (blocks[0], c.rows[-1], choice["inner"]))
    steps = -(-(c.extent(choice["inner"]) or 1) // choice["unroll"])
    if inside == 1 and isinstance(apart, int) and isinstance(across, int) and apart * data.buffer.dtype.storage_bits // 8 >= target.page_bytes:
        sch.annotate(nest.axes[blocks[0]], PREFETCH, Prefetch(data.buffer.name, apart, step=-(-tile.rows * across // steps), passes=1))


def _parallel_prefix(sch: Schedule, loops: list[Any], target: Target) -> int:
    """How many of the outer loops run in parallel: as few as keep all cores busy to the end. The others stay loops of their own,
    whose tails are cut off them."""
    total = 1
    for k, loop in enumerate(loops):
        extent = sch.get(loop).extent
        total *= extent.value if isinstance(extent, tir.IntImm) else 1
        if total >= 4 * target.cores:
            return k + 1
    return len(loops)


def _in_parallel(sch: Schedule, loops: list[Any], cycles: float, target: Target, most_chunks: int | None = None) -> dict[str, int]:
    """The outer ones of loops, ``cycles`` for an iteration of them all, in parallel, in at most so many chunks: the decision of how many iterations a
    thread takes at once."""
    if not loops:
        return {}
    count = _parallel_prefix(sch, loops, target)
    whole = sch.fuse(*loops[:count]) if count > 1 else loops[0]
    return parallelize(sch, whole, cycles * product([loop_extent(sch, x) for x in loops[count:]], ASSUMED_TILES), target, most_chunks)


def _before(sch: Schedule, loops: list[Any], last: Any, target: Target) -> int:
    """How many loops there are before the last one, if these keep all cores busy; else 0."""
    count = loops.index(last)
    return count if product([loop_extent(sch, x) for x in loops[:count]], ASSUMED_TILES) >= 2 * target.cores else 0


def _read_index(sch: Schedule, block: Any, buffer: tir.Buffer) -> int | None:
    reads = [r.buffer for r in sch.get(block).reads]
    return reads.index(buffer) if buffer in reads else None


def _cycles(c: Contraction, tile: Tile) -> float:
    total = 1.0
    for k in c.reduce:
        total *= c.extent(k) or 256
    return total * tile.rows * tile.vectors / 2
