# SPDX-License-Identifier: Apache-2.0
"""The strategy for products with a constant matrix on an accelerator that the target names (`roundel.intrinsics.accelerators`).

The processor copies the data into tiles as the instruction wants them (windows of convolutions are unfolded, what is missing to whole tiles is zeros)
and computes what becomes of the sums. In between the chip works: for each block of ``rows`` x ``columns`` tiles of sums, ``steps`` tiles of both operands
at a time are loaded, multiplied, and the sums are stored. Engines work beside each other on two copies of each buffer (``lower/engines``), so that one
block is multiplied while the next is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...intrinsics.chips import ATTRIBUTE, of_target
from ...ir import tir
from ...ir.annotations import IMPORT_C
from ...ir.errors import ScheduleError
from ...lower.engines import COPIES
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accelerated import ChipInstruction, matches
from ..match.accesses import blocks_of
from ..match.moves import moves
from ..match.tile_product import TileProduct
from ..pointwise.elementwise import schedule_spatial
from ..program import Program
from ..sketch import Applied, Refusal, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .dot_products import one_product

if TYPE_CHECKING:
    from ...intrinsics.accelerators import Accelerator

BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # tiles along an axis of a block


@rule
def accelerated(program: Program) -> Iterator[Sketch | Refusal]:
    """Fits programs with one such product, and elementwise blocks before and after it, where the target names a chip."""
    chip = of_target(program.target)
    if chip is None or len(program.reductions) != 1 or not program.is_plain:
        return
    block, prologue = one_product(program, moves)
    refused: dict[str, str] = {}  # by instruction, what came closest
    for found in matches(block, program.is_constant, chip):
        if not isinstance(found, TileProduct):
            refused.setdefault(*found)
            continue
        if missing := _missing(found, chip):
            refused[found.instruction.intrin.name] = missing
            continue
        table = candidates(found, chip)
        if not len(table):
            refused[found.instruction.intrin.name] = "not even one tile of each operand fits the memories of the chip"
            continue
        steps = partial(_scheduled, found=found, prologue=prologue, chip=chip, target=program.target)
        yield Sketch(chip.name, program.inlined(keep=prologue), steps, table)
        return
    for name, why in refused.items():
        yield Refusal(f"{chip.name} by {name}", why)


def _instruction(p: TileProduct) -> ChipInstruction:
    assert isinstance(p.instruction, ChipInstruction)
    return p.instruction


def _missing(p: TileProduct, chip: Accelerator) -> str:
    """Which instruction that moves operands the chip lacks; nothing where it has them all."""
    data, weight, total = _instruction(p).memories
    wanted = (("load", data), ("load", weight), ("clear", total), ("store", total))
    return ", ".join(f"{chip.name} has no instruction to {kind} {scope}" for kind, scope in wanted if (kind, scope) not in chip.moves)


def candidates(p: TileProduct, chip: Accelerator) -> Candidates:
    """Every block of tiles of which the memories hold two copies, or where they hold none such one copy, and what it is expected to take, in cycles of
    the chip. Engines that never work at the same time need one."""
    twice = _candidates(p, chip, COPIES) if len(chip.engines) > 1 else None
    return twice if twice is not None and len(twice) else _candidates(p, chip, 1)


def _candidates(p: TileProduct, chip: Accelerator, copies: int) -> Candidates:
    t = _instruction(p)
    rows, columns, steps = (-(-n // each) for n, each in zip(_sizes(p), (t.rows, t.columns, t.products), strict=True))
    domains = {name: [n for n in BLOCKS if n == 1 or n <= most] for name, most in (("rows", rows), ("columns", columns), ("steps", steps))}

    def legal(c: Columns) -> np.ndarray:
        fits = (steps % c["steps"] == 0) & (columns % c["columns"] == 0)
        wanted: dict[str, Any] = {}
        for scope, each in zip(t.memories, _bytes(p, c), strict=True):
            memory = chip.memories[scope]
            aligned = -(-each // memory.alignment) * memory.alignment
            wanted[scope] = wanted.get(scope, 0) + copies * aligned
            if t.memories.count(scope) * copies <= memory.banks:  # there is a bank for each copy
                fits &= aligned <= memory.nbytes // memory.banks
        for scope, size in wanted.items():
            fits &= size <= chip.memories[scope].nbytes
        return fits

    table = combinations(domains, legal)
    return Candidates(table, _cycles(p, chip, table, (rows, columns, steps)))


def _sizes(p: TileProduct) -> tuple[int, int, int]:
    return p.number(p.rows, ASSUMED_ROWS), p.number(p.columns, 1), p.number(p.reduce, 1)


def _bytes(p: TileProduct, c: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Of one copy of each operand's buffer: of data, constant, sums."""
    t = _instruction(p)
    size = lambda axes: prod(t.axes[k][1] for k in axes)
    data, weight, total = (tir.const(0, x).dtype.storage_bits // 8 for x in t.types)
    return (size(t.data_axes) * data * c["rows"] * c["steps"], size(t.weight_axes) * weight * c["columns"] * c["steps"],
            size(t.sum_axes) * total * c["rows"] * c["columns"])


def _cycles(p: TileProduct, chip: Accelerator, c: Columns, tiles: tuple[int, int, int]) -> np.ndarray:
    """The engine that has most to do decides: each works on what the others have done before. What the first and the last of them have to do alone is
    that for one step and for one block of sums."""
    t = _instruction(p)
    rows, columns, steps = tiles
    data, weight, sums = t.memories
    blocks = -(-rows // c["rows"]) * -(-columns // c["columns"])
    times = steps // c["steps"]
    nbytes = _bytes(p, c)
    busy: dict[str, Any] = dict.fromkeys(chip.engines, 0.0)
    loads = [chip.moves["load", scope] for scope in (data, weight)]
    for operation, each in zip(loads, nbytes[:2], strict=True):
        busy[operation.engine] = busy[operation.engine] + blocks * times * operation.cycles(each)
    product = chip.operations[t.intrin.name]
    tile = c["rows"] * c["columns"] * product.start
    busy[product.engine] = busy[product.engine] + blocks * times * c["steps"] * tile
    clear, store = chip.moves["clear", sums], chip.moves["store", sums]
    busy[clear.engine] = busy[clear.engine] + blocks * clear.cycles(nbytes[2])
    busy[store.engine] = busy[store.engine] + blocks * store.cycles(nbytes[2])
    alone = sum(operation.cycles(each) for operation, each in zip(loads, nbytes[:2], strict=True)) + store.cycles(nbytes[2])
    return np.maximum.reduce([np.broadcast_to(x, blocks.shape).astype(float) for x in busy.values()]) + alone


def _scheduled(sch: Schedule, choice: dict[str, int], found: TileProduct, prologue: tuple[str, ...], chip: Accelerator, target: Target) -> Applied:
    """The steps for one choice; the blocks ``prologue`` stay."""
    t = _instruction(found)
    position = sch.func.buffer_params.index(found.weight.buffer)
    mapping = _layout(found, choice["columns"])
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    sums = store_of(sch, found.info)
    copy = sch.tile_einsum(block, sums, found.factor, _tiles(found, choice))
    _order_data(sch, t, copy)
    sch.set_scope(block, 0, "global")
    _on_the_chip(sch, t, block, copy, choice, chip)
    names = {*prologue, sch.get(copy).name, sch.get(sums).name}
    for info in blocks_of(sch.func):
        if info.name in names:
            with suppress(ScheduleError):  # one thread does what cannot be shown to be independent, such as what rows of pictures become of rows of tiles
                schedule_spatial(sch, info, target)
    return Applied(sch, {position: mapping}, choice, {IMPORT_C: (chip.source,), ATTRIBUTE: chip.facts()})


def _fused(axes: tuple[int, ...], at: Any, p: TileProduct) -> Any:
    out: Any = tir.index_const(0)
    for k in axes:
        out = out * p.info.block.iter_vars[k].dom.extent + at[k]
    return out


def _layout(p: TileProduct, columns: int) -> tir.IndexMap:
    """Of the constant: blocks of columns, steps of the sum, tiles of columns, then the tile as the instruction has it."""
    t = _instruction(p)
    position = {i: d for d, i in enumerate(p.weight.indices) if isinstance(i, tir.Var)}
    place = {k: position[a.var] for k, a in enumerate(p.info.block.iter_vars) if a.var in position}

    def moved(*i: Any) -> list[Any]:
        at = {k: i[d] for k, d in place.items()}
        n, k = _fused(p.columns, at, p), _fused(p.reduce, at, p)
        width = t.columns * columns
        return [n // width, k // t.products, n % width // t.columns if columns > 1 else 0, *t.within(tir.index_const(0), n, k, t.weight_axes)]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _tiles(p: TileProduct, choice: Mapping[str, int]) -> tir.IndexMap:
    """Of the block's axes: blocks of rows and of columns, steps of the sum, tiles of rows and of columns, then the instruction's axes."""
    t, high, width = _instruction(p), p.instruction.rows * choice["rows"], p.instruction.columns * choice["columns"]

    def moved(*i: Any) -> list[Any]:
        m, n, k = (_fused(axes, i, p) for axes in (p.rows, p.columns, p.reduce))
        return [m // high, n // width, k // t.products, m % high // t.rows, n % width // t.columns, *t.within(m, n, k, t.order)]

    return tir.IndexMap.from_func(moved, len(p.info.block.iter_vars))


def _order_data(sch: Schedule, t: ChipInstruction, copy: Any) -> None:
    """Tiles of the data as the instruction has them: they were made in the order of its sums. What runs once is no axis of theirs."""
    made, wanted = ([k for k in axes if k in t.data_axes and t.axes[k][1] != 1] for axes in (t.order, t.data_axes))
    if made != wanted:
        outside = sch.get(copy).writes[0].buffer.ndim - len(made)
        sch.transform_layout(copy, ("write", 0), lambda *i: [*i[:outside], *(i[outside + made.index(k)] for k in wanted)])


def _on_the_chip(sch: Schedule, t: ChipInstruction, block: Any, copy: Any, choice: Mapping[str, int], chip: Accelerator) -> None:
    """The loops over blocks of tiles, and instructions of the chip inside."""
    _, column, step, *inner = sch.get_loops(block)
    step, within = sch.split(step, [None, choice["steps"]])
    tiles, axes = inner[:2], inner[2:]
    sch.reorder(step, within, *tiles, *axes)
    made = sch.get(copy).writes[0].buffer
    data, weight, total = t.memories
    stored = sch.cache_write(block, 0, total)
    sch.reverse_compute_at(stored, column, preserve_unit_loops=True)
    read = lambda wanted: next(k for k, r in enumerate(sch.get(block).reads) if r.buffer is not sch.get(block).writes[0].buffer and wanted(r.buffer))
    left = sch.cache_read(block, read(lambda b: b is made), data)
    right = sch.cache_read(block, read(lambda b: b.scope != data), weight) if data != weight else sch.cache_read(
        block, read(lambda b: b.scope == "global"), weight)
    for operand in (left, right):
        sch.compute_at(operand, step, preserve_unit_loops=True)
    init = sch.decompose_reduction(block, step)
    shape = lambda axes, *outside: [*outside, *(n for n in (t.axes[k][1] for k in axes) if n != 1)]  # what runs once is no axis of a tile
    rows, columns, steps = choice["rows"], choice["columns"], choice["steps"]
    for tile, outside, kind, scope, dtype, extents in (
        (left, 3, "load", data, t.types[0], shape(t.data_axes, steps, rows)), (right, 3, "load", weight, t.types[1], shape(t.weight_axes, steps, columns)),
        (stored, 2, "store", total, t.types[2], shape(t.sum_axes, rows, columns)), (init, 2, "clear", total, t.types[2], shape(t.sum_axes, rows, columns)),
    ):
        sch.tensorize(sch.get_loops(tile)[outside], chip.move(kind, scope, dtype, extents).name)
    sch.tensorize(axes[0], t.intrin.name)
