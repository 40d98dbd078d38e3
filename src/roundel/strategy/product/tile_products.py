# SPDX-License-Identifier: Apache-2.0
"""The strategy for products with a constant matrix on machines with tile registers: matrix products and convolutions of narrow numbers.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])          bytes of either sign; bfloat16 and float32 alike

The instruction adds the product of two tiles to a tile of sums. A block of ``rows`` x ``columns`` tiles of sums stays in the registers while the
reduction goes over tiles of both operands. Both lie in memory as the registers want them: B is packed so when the model is compiled, A is copied
right before it is used, one block of rows for ``panels`` blocks of columns (or all of it before, ``once``). In the copy axes are fused, what is
missing to whole tiles is filled with zeros, and the windows of convolutions are unfolded. Sums go through a small buffer to whatever elementwise
blocks follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from ...ir import tir
from ...ir.annotations import PREFETCH, Prefetch
from ...ir.visit import free_vars
from ...schedule.schedule import Schedule
from ...target import Target
from ..guarded import guarded
from ..match.accesses import blocks_of
from ..match.moves import moves, surrounds
from ..match.tile_product import TileProduct, matches
from ..parallelism import is_little, loop_extent, parallelize, together
from ..pointwise.elementwise import schedule_spatial
from ..pointwise.inline import inline_moves
from ..program import Program
from ..sketch import Applied, Refusal, Sketch, rule
from .contraction import store_of
from .dot_products import INSTRUCTIONS, one_product
from .tile_products_candidates import (
    bytes_of_panel,
    candidates,
    cycles_of_block,
    cycles_of_copy,
    held_operands,
    lanes_copied,
    of_one_row,
    streamed_operands,
    wide_extents,
)

MOST_WRITTEN = 64  # copies of a row's elements that are written out one after another


@rule(model=INSTRUCTIONS)
def tile_products(program: Program) -> Iterator[Sketch | Refusal]:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    if len(program.reductions) != 1 or not program.is_plain:
        return
    block, prologue = one_product(program, moves)
    refused = []
    for found in matches(block, program.is_constant, program.target):
        if isinstance(found, TileProduct):
            steps = partial(_for_few_rows_too, found=found, prologue=prologue, target=program.target)
            yield Sketch("tile_products", program.inlined(keep=prologue), steps, candidates(found, program.target))
            return
        refused.append(found)
    for name, why in dict.fromkeys(refused):
        yield Refusal(f"tile_products by {name}", why)


def _for_few_rows_too(sch: Schedule, choice: dict[str, int], found: TileProduct, prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice; where only the run tells how many rows there are, one for those that fit one tile of rows stands beside it: there others
    would compute on zeros."""
    few = sch.fork(seed=0)
    made = _scheduled(sch, choice, found, prologue, target)
    size, others = _size_of_rows(found)
    if size is None or choice["rows"] == 1 or others > found.instruction.rows:
        return made
    beside = _scheduled(few, choice | of_one_row(found, choice), found, prologue, target)
    both = Schedule(guarded([(size, found.instruction.rows // others, beside.func)], made.func))
    both.trace = made.schedule.trace
    return replace(made, schedule=both)


def _size_of_rows(p: TileProduct) -> tuple[tir.Var | None, int]:
    """The size that tells how many rows there are, and how many there are for each of it; None where it is none, or there are several."""
    extents = [p.info.block.iter_vars[k].dom.extent for k in p.rows]
    unknown = [n for n in extents if not isinstance(n, tir.IntImm)]
    return (unknown[0] if len(unknown) == 1 and isinstance(unknown[0], tir.Var) else None), prod(n.value for n in extents if isinstance(n, tir.IntImm))


def _scheduled(sch: Schedule, choice: dict[str, int], found: TileProduct, prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice; the blocks ``prologue`` stay."""
    position = sch.func.buffer_params.index(found.weight.buffer)
    if choice.get("slide"):
        inline_moves(sch, [i.name for i in blocks_of(sch.func) if i.name in prologue and surrounds(i)])
    mapping = _layout(found, choice["columns"])
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    sums = store_of(sch, found.info)
    tiles = _tiles(found, choice)
    if choice.get("slide"):
        copy = sch.slide_einsum(block, sums, found.factor, tiles, _places(found), found.slides)
    else:
        copy = sch.tile_einsum(block, sums, found.factor, tiles)
    sch.set_scope(block, 0, "global")
    grain = _schedule(sch, found, block, sums, copy, choice, target)
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied(sch, {position: mapping}, choice | grain)


def fused(axes: tuple[int, ...], at: Any, p: TileProduct, wide: Mapping[int, int] | None = None) -> Any:
    """Several axes as one, some of them wider than they are."""
    out: Any = tir.index_const(0)
    for k in axes:
        out = out * (wide or {}).get(k, p.info.block.iter_vars[k].dom.extent) + at[k]
    return out


def _layout(p: TileProduct, columns: int) -> tir.IndexMap:
    """Of the constant: blocks of columns, steps of the sum, then the tiles of one step."""
    t = p.instruction
    position = {i: d for d, i in enumerate(p.weight.indices) if isinstance(i, tir.Var)}
    place = {k: position[a.var] for k, a in enumerate(p.info.block.iter_vars) if a.var in position}

    def moved(*i: Any) -> list[Any]:
        at = {k: i[d] for k, d in place.items()}
        n, k = fused(p.columns, at, p), fused(p.reduce, at, p)
        width = t.columns * columns
        return [n // width, k // t.products, n % width // t.columns if columns > 1 else 0, k % t.products // t.group, n % t.columns, k % t.group]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _places(p: TileProduct) -> tir.IndexMap:
    """Of the data that windows slide over: the sum's other axes by rows of tiles, then places, and what is in a row of a tile."""
    t, wide = p.instruction, wide_extents(p)

    def moved(*i: Any) -> list[Any]:
        k = fused(p.others, i, p)
        return [k // t.products, fused(p.rows, i, p, wide), k % t.products // t.group, k % t.group]

    return tir.IndexMap.from_func(moved, len(p.info.block.iter_vars))


def _tiles(p: TileProduct, choice: Mapping[str, int]) -> tir.IndexMap:
    """Of the block's axes: blocks of rows, blocks of columns, steps of the sum, tiles of rows and of columns, then the instruction's axes."""
    t, rows, columns = p.instruction, choice["rows"], choice["columns"]
    wide = wide_extents(p) if choice.get("slide") else None

    def moved(*i: Any) -> list[Any]:
        m, n, k = (fused(axes, i, p, wide) for axes in (p.rows, p.columns, p.reduce))
        high, width = t.rows * rows, t.columns * columns
        return [m // high, n // width, k // t.products, m % high // t.rows, n % width // t.columns, m % t.rows, n % t.columns, k % t.products // t.group,
                k % t.group]

    return tir.IndexMap.from_func(moved, len(p.info.block.iter_vars))


def _schedule(sch: Schedule, p: TileProduct, block: Any, sums: Any, copy: Any, choice: dict[str, int], target: Target) -> dict[str, int]:
    """Bring loops into order; the decision of how many iterations a thread takes at once."""
    t, role = p.instruction, p.instruction.intrin.companions
    row, column, step, tile_row, tile_column, i, *_ = sch.get_loops(block)
    first, step, steps = _steps_apart(sch, p, step) if choice.get("slide") else (step, step, 1)
    group, column = sch.split(column, [None, choice["panels"]])
    sch.reorder(group, row, column)
    if not choice["once"]:
        sch.compute_at(copy, row, preserve_unit_loops=True)
    sch.reverse_compute_at(sums, column, preserve_unit_loops=True)
    stored = sch.cache_write(block, 0, t.scope)
    operands = [r.buffer for r in sch.get(block).reads if r.buffer is not sch.get(block).writes[0].buffer]
    made = sch.get(copy).writes[0].buffer
    left = _in_tiles(sch, block, _read(sch, block, made), t.scope)
    right = sch.cache_read(block, _read(sch, block, next(b for b in operands if b is not made)), t.scope)
    left_at, right_at = held_operands(choice["rows"], choice["columns"])
    sch.compute_at(right, step if right_at else tile_column, preserve_unit_loops=True)
    sch.compute_at(left, step if left_at else tile_row, preserve_unit_loops=True)
    init = sch.decompose_reduction(block, first)
    outside = len(sch.get_loops(block)) - 6
    streamed = {f"load_{name}": f"stream_{name}" for name in streamed_operands(p, target, choice) if f"stream_{name}" in role}
    moved = ((left, "load_A", 3, outside), (right, "load_B", 3, outside), (stored, "store", 2, outside - steps), (init, "init", 2, outside - steps))
    for tile, name, inner, around in moved:
        loops = sch.get_loops(tile)
        for loop in loops[around:-inner]:
            if sch.get(loop).kind is not tir.ForKind.UNROLLED:
                sch.unroll(loop)
        sch.tensorize(loops[-inner], role[streamed.get(name, name)])
    for loop in (tile_row, tile_column):
        sch.unroll(loop)
    sch.tensorize(i, t.intrin.name)
    if choice.get("slide"):
        _copy_of_rows(sch, p, copy)
    else:
        _copy_in_vectors(sch, p, copy)
    _sums_in_vectors(sch, p, sums)
    if choice["once"]:
        work = cycles_of_copy(p, target, choice)
        if not is_little(sch, sch.get_loops(copy)[:1], work, target):
            parallelize(sch, sch.get_loops(copy)[0], work, target)
    return _parallel(sch, p, [group, row, column], choice, target)


def _in_tiles(sch: Schedule, block: Any, read: int, scope: str) -> Any:
    """The stage that loads what the product reads of a buffer, by the product's own axes: where windows slide, several of these lead to the same place."""
    node = sch.get(block)
    used = {v for r in node.reads[read].region for v in free_vars(r.min)}
    axes = [k for k, iv in enumerate(node.iter_vars) if iv.var in used]
    return sch.reindex_cache_read(block, read, scope, tir.IndexMap.from_func(lambda *i: [i[k] for k in axes], len(node.iter_vars)))


def _read(sch: Schedule, block: Any, buffer: tir.Buffer) -> int:
    return [r.buffer for r in sch.get(block).reads].index(buffer)


def _steps_apart(sch: Schedule, p: TileProduct, step: Any) -> tuple[Any, Any, int]:
    """Steps of the sum as loops over the places of a window, and inside of these over what is there: the first, the last, and how many."""
    window = [p.number((k,), 1) for k in p.windows]
    loops = sch.split(step, [*window, (loop_extent(sch, step) or 1) // prod(window)])
    return loops[0], loops[-1], len(loops)


def _copy_of_rows(sch: Schedule, p: TileProduct, copy: Any) -> None:
    """What windows slide over is copied a row of pixels after another."""
    *_, place, depth, group = sch.get_loops(copy)
    sch.vectorize(sch.fuse(depth, group))
    wide = list(wide_extents(p).values())
    if len(wide) > 1:
        sch.split(place, [None, wide[-1]])


def _copy_in_vectors(sch: Schedule, p: TileProduct, copy: Any) -> None:
    """The copy goes along rows, as many neighbours at a time as lie side by side there. Where these lie is known of each in advance when they are written
    out, or when one step of the sum after another goes over the places of a window."""
    step, tile, row, depth, group = sch.get_loops(copy)[-5:]
    sch.reorder(tile, row, step, depth, group)
    lanes, inner = lanes_copied(p), [depth, group]
    if lanes > 1:
        whole = sch.fuse(depth, group)
        *inner, lane = sch.split(whole, [None, lanes]) if lanes < p.instruction.products else [whole]
        sch.vectorize(lane)
    steps, pieces = loop_extent(sch, step) or 1, p.instruction.products // lanes
    written = [step, *inner]
    if steps * pieces > MOST_WRITTEN:
        written = inner if pieces <= MOST_WRITTEN else []
        window = p.number(p.windows, 1)
        if window > 1 and p.number(p.others, 1) % p.instruction.products == 0:
            sch.split(step, [*(p.number((k,), 1) for k in p.windows), steps // window])
    for loop in written if len(p.reduce) > 1 else ():
        sch.unroll(loop)


def _sums_in_vectors(sch: Schedule, p: TileProduct, sums: Any) -> None:
    """What becomes of the sums is computed for one row of a block after another."""
    tile_row, tile_column, row, lanes = sch.get_loops(sums)[-4:]
    sch.reorder(tile_row, row, tile_column, lanes)
    sch.unroll(tile_column)
    sch.vectorize(lanes)


def _parallel(sch: Schedule, p: TileProduct, loops: list[Any], choice: dict[str, int], target: Target) -> dict[str, int]:
    """Blocks of rows of all groups of columns run in parallel; where it cannot be shown that these store to different places, only the one or the other."""
    group, row, column = loops
    work = cycles_of_block(p, target, choice) * (loop_extent(sch, column) or 1)
    groups, rows = (loop_extent(sch, loop) for loop in (group, row))
    whole = row
    if groups != 1 and together(sch, [group, row]) != 1:
        whole = sch.fuse(group, row)
    if groups != 1 and rows is not None and choice["panels"] == 1:
        _fetch_panels(sch, p, whole, rows, choice, target)
    little = [whole] if whole is not row else [group, row]
    if is_little(sch, little, work, target):
        return {}
    if whole is row and groups != 1 and rows is not None and (groups or 0) > rows:
        return parallelize(sch, group, work * (rows or 1), target)
    return parallelize(sch, whole, work, target)


def _fetch_panels(sch: Schedule, p: TileProduct, loop: Any, rows: int, choice: Mapping[str, int], target: Target) -> None:
    """While all rows are multiplied by one panel of columns, the next one comes from memory; ``loop`` goes over blocks of rows, ``rows`` for each panel.
    Where they are one block, tiles are waited for all the time, and those not far ahead are fetched."""
    width, panel = p.instruction.columns * p.instruction.products * choice["columns"], bytes_of_panel(p, choice)
    each = p.weight.buffer.dtype.storage_bits // 8
    sch.annotate(loop, PREFETCH, Prefetch(p.weight.buffer.name, (panel if rows > 1 else 4 * target.ahead_bytes) // each, step=width, passes=rows))
