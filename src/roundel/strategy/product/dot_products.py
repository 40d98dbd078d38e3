# SPDX-License-Identifier: Apache-2.0
"""The strategy for products of narrow numbers with a constant matrix, on machines with an instruction for dot products of them.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])      A unsigned and B signed bytes, B constant; bfloat16 and float32 alike

For each lane of a vector the instruction multiplies a group of pairs (four of bytes, two of 16 bits) and adds their products to the lane's sum. So
B is packed at compile time as [columns / lanes, K / group, lanes, group], a group of consecutive elements of a row of A is broadcast, and the sums
of a tile of rows and vectors stay in registers. Convolutions in layouts with blocks of channels are such products too. Which instruction it is, and
which axes are its own, is found by matching its description (``match/dot_product``); on a machine without one the rule proposes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...ir import tir
from ...schedule.schedule import Schedule
from ...target import Target
from ..match.accesses import BlockInfo, blocks_of, product
from ..match.dot_product import Product, matches
from ..parallelism import is_little, parallelize
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..program import Program
from ..sketch import Applied, Refusal, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .dot_products_candidates import candidates, results
from .register_tile import Tile

TASKS = 8
INSTRUCTIONS = "instructions"
"""The model of costs by which mappings onto instructions compete."""


@rule(model=INSTRUCTIONS)
def dot_products(program: Program) -> Iterator[Sketch | Refusal]:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    if len(program.reductions) != 1 or not program.is_plain:
        return
    refused = []
    block, prologue = one_product(program)
    for found in matches(block, program.is_constant, program.target):
        if not isinstance(found, Product):
            refused.append(found)
            continue
        table = candidates(found, program.target)
        if table is None:
            refused.append((next(iter(found.intrins.values())).name, "its columns fill no vector"))
            continue
        inlined = program.inlined(keep=prologue)
        after = partial(cycles_beside, inlined, program.target, prologue)
        each = lambda choice, found=found, table=table, after=after: (table.expected(choice) + after()) / results(found)
        yield Sketch("dot_products", inlined, partial(_scheduled, found=found, prologue=prologue, each=each, target=program.target), table,
                     partial(cycles_beside, inlined, program.target))
        return
    for name, why in dict.fromkeys(refused):
        yield Refusal(f"dot_products by {name}", why)


def one_product(program: Program, is_read_through: Callable[[BlockInfo], object] = lambda info: None) -> tuple[BlockInfo, tuple[str, ...]]:
    """The product of a program with one sum, as instructions are matched with it, and the names of the blocks before it that stay. Those that only convert
    to a wider type are computed where they are read, and so are those of which ``is_read_through`` holds, and those that feed something else."""
    block = program.reductions[0]
    prologue = tuple(i.name for i in program.feeding(block) if not is_widening(i) and not is_read_through(i))
    if len(prologue) < program.blocks.index(block):
        block = next(i for i in blocks_of(program.inlined(keep=prologue).func) if i.name == block.name)
    return block, prologue


def is_widening(info: BlockInfo) -> bool:
    """Whether a block converts a tensor to a wider type and does nothing else: then the instruction does that."""
    value, store = info.block.body.value, info.stores[0]
    return type(value) is tir.Cast and type(value.value) is tir.BufferLoad and value.value.indices == store.indices \
        and value.value.dtype.bits < value.dtype.bits


def _scheduled(sch: Schedule, choice: dict[str, int], found: Product, prologue: tuple[str, ...], each: Callable[[Any], float], target: Target) -> Applied:
    """The steps for one choice; the blocks ``prologue`` stay. ``each``: cycles of one result, with what is computed of it before it is stored."""
    tile = Tile(choice["rows"], choice["vectors"], choice["lanes"])
    split = bool(found.is_split(tile.lanes))
    position = sch.func.buffer_params.index(found.weight.buffer)
    mapping = _layout(found, tile.lanes, split)
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    grain = _schedule(sch, found, tile, split, store_of(sch, found.info), each(choice), target)
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied(sch, {position: mapping}, choice | grain)


def _layout(p: Product, lanes: int, split: bool) -> tir.IndexMap:
    """A group of the sum innermost, then a vector's columns."""
    deep = p.weight.indices.index(p.info.block.iter_vars[p.axis].var)

    def moved(*i: Any) -> list[Any]:
        n, k = i[-1], i[deep]
        others = [v for d, v in enumerate(i[:-1]) if d != deep]
        return [*others, *([n // lanes] if split else []), k // p.group, n % lanes if split else n, k % p.group]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _schedule(sch: Schedule, p: Product, tile: Tile, split: bool, epilogue: Any, each: float, target: Target) -> dict[str, int]:
    """Bring loops into order; the decision of how many iterations a thread takes at once. ``each``: cycles of one result."""
    block = sch.get_block(p.info.name)
    loops = sch.get_loops(block)
    outside, inner = [loops[k] for k in (*p.batch, *p.columns)], []
    lanes = loops[p.column]
    if split:
        column, vectors, lanes = sch.split(lanes, [None, tile.vectors, tile.lanes])
        outside.append(column)
    elif p.columns and tile.vectors > 1:
        outside[-1], vectors = sch.split(outside[-1], [None, tile.vectors])
    else:
        vectors = None
    outside += [loops[k] for k in p.rows]
    if p.rows:
        outside[-1], row = sch.split(outside[-1], [None, tile.rows])
        inner.append(row)
    inner += [vectors] if vectors is not None else []
    step, group = sch.split(loops[p.axis], [None, p.group])
    reduce = [*(loops[k] for k in p.reduce), step]
    sch.reorder(*outside, *reduce, *inner, lanes, group)
    if outside:
        sch.reverse_compute_at(epilogue, outside[-1])
    init = sch.decompose_reduction(block, reduce[0])
    for b in (init, epilogue):
        inside = sch.get_loops(b)[len(outside):]
        extent = sch.get(inside[-1]).extent
        if isinstance(extent, tir.IntImm) and extent.value > tile.lanes:
            inside = [*inside[:-1], *sch.split(inside[-1], [None, tile.lanes])]
        sch.vectorize(inside[-1])
        for loop in inside[:-1]:
            sch.unroll(loop)
    for loop in inner:
        sch.unroll(loop)
    sch.tensorize(lanes, p.intrins[tile.lanes].name)
    if not outside:
        return {}
    return _parallel(sch, outside, each * tile.rows * tile.vectors * tile.lanes, tile, target)


def _parallel(sch: Schedule, loops: list[Any], work: float, tile: Tile, target: Target) -> dict[str, int]:
    """As few of the outer loops as make enough tasks."""
    extents = [sch.get(x).extent for x in loops]
    numbers = [e.value if isinstance(e, tir.IntImm) else -(-ASSUMED_ROWS // tile.rows) for e in extents]
    count = next((k + 1 for k in range(len(loops)) if product(numbers[: k + 1], 1) >= TASKS), len(loops))
    work *= product(numbers[count:], 1)
    if is_little(sch, loops[:count], work, target):
        return {}
    return parallelize(sch, sch.fuse(*loops[:count]) if count > 1 else loops[0], work, target)
