# SPDX-License-Identifier: Apache-2.0
"""The strategy for products of bytes with a constant matrix on processors that add several products to a sum in a register of integers.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])          A and B signed bytes, B constant

A few rows of A at a time are copied and filled up with zeros to groups of as many as an instruction multiplies: four that are widened to 16 bits, or
eight or sixteen bytes; processors without such an instruction multiply four bytes one after the other. Windows of convolutions are unfolded in the copy,
whose borders are made there too, so that nothing else is copied. All columns pass over these rows, some at a time. Sums of a tile stay in registers, and
go through what follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from ...intrinsics import TensorIntrin
from ...ir import tir
from ...ir.dataclass import dataclass
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import blocks_of
from ..match.moves import surrounds
from ..match.tile_product import TileInstruction, TileProduct, arranged, factors
from ..parallelism import loop_extent
from ..pointwise.elementwise import schedule_spatial
from ..pointwise.inline import inline_moves
from ..program import Program
from ..sketch import Applied, Sketch, rule
from .contraction import store_of
from .contraction_candidates import ASSUMED_ROWS
from .dot_products import INSTRUCTIONS, one_product
from .tile_products import fused

COPIED = 3.0       # instructions that copy an element
STORED = 4.0       # ... that begin and end a sum
STEPPED = 4.0      # ... that count an iteration over steps
SPILLED = 4.0      # ... for each value of a step that has no register
_Inner = Callable[[Any], list[Any]]


@dataclass(frozen=True)
class Form:
    """How an instruction is used: of the sum, it adds ``group`` elements at a time, which the weights and the copied data (of type ``copied``; "": as it
    is) hold in places of their own. ``rows``, ``columns``, ``sums``: the most of a tile, ``steps`` of the sum that are written out. Of the instructions of
    a step, as many load a row, load a column, and multiply the two. ``lanes``: neighbours in a row of results that what follows computes at a time.
    ``is_one``: it is an instruction; else the elements of a group are multiplied one after the other, each of all rows and columns."""

    name: str
    group: int
    weights: _Inner
    data: _Inner
    copied: str
    rows: int
    columns: int
    sums: int
    steps: int
    row_loads: int
    column_loads: int
    products: int
    lanes: int = 1
    is_one: bool = True


def _halves(k: Any) -> list[Any]:
    return [k % 4 // 2, k % 2]


def _vector(kind: str, group: int, products: int) -> Form:
    inner = lambda k: [k % group]
    return Form(f"{kind}.dot_{group}_i8i8i32", group, inner, inner, "", 2, 4, 8, 4, 1, 1, products, lanes=4)


FORMS = (
    *(_vector("mve", group, 1) for group in (16, 8)),
    *(_vector("rvv", group, 4) for group in (16, 8)),
    Form("dsp.pairs_4_i16i8i32", 4, _halves, lambda k: _halves(k)[::-1], "int16", 4, 4, 16, 4, 2, 3, 2),
    Form("scalar.dot_1x4_i8i8i32", 4, lambda k: [k % 4], lambda k: [k % 4], "", 4, 4, 16, 1, 4, 4, 8, is_one=False),
)
"""The best first: of those for groups of one size a processor has one."""


@rule(model=INSTRUCTIONS)
def pair_products(program: Program) -> Iterator[Sketch]:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    if not program.target.is_bare or len(program.reductions) != 1 or not program.is_plain:  # asked first: the table of instructions takes long to load
        return
    forms = _forms(program.target)
    block, prologue = one_product(program)
    for factor in (0, 1) if factors(block) is not None and str(block.stores[0].buffer.dtype) == "int32" else ():
        if any(str(f.dtype) != "int8" for f in factors(block) or ()):
            continue
        found = {group: arranged(block, TileInstruction(TensorIntrin.get(f.name), 1, 1, 1, group, ("int8", "int8", "int32")), factor, program.is_constant)
                 for group, f in forms.items()}
        fitting = {group: p for group, p in found.items() if isinstance(p, TileProduct)}
        if fitting:
            steps = partial(_scheduled, found=fitting, prologue=prologue, target=program.target)
            yield Sketch("pair_products", program.inlined(keep=prologue), steps, candidates(fitting, program.target))
            return


def _forms(target: Target) -> dict[int, Form]:
    """Those that a processor has, by their groups."""
    found: dict[int, Form] = {}
    for f in FORMS:
        if TensorIntrin.get(f.name).runs_on(target):
            found.setdefault(f.group, f)
    return found


def candidates(found: Mapping[int, TileProduct], target: Target) -> Candidates:
    """Every tile of the products by the instruction for each group, and the instructions that it takes."""
    forms = _forms(target)
    tables = [(t, _instructions(p, forms[group], target, t)) for group, p in found.items() for t in (_tables(p, forms[group]),)]
    columns = {name: np.concatenate([t[name] for t, _ in tables]) for name in tables[0][0]}
    return Candidates(columns, np.concatenate([cycles for _, cycles in tables]))


def _tables(p: TileProduct, form: Form) -> Columns:
    rows, columns = p.number(p.rows, ASSUMED_ROWS), p.number(p.columns, 1)
    return combinations({"group": (form.group,), "rows": range(1, min(form.rows, rows) + 1), "columns": range(1, min(form.columns, columns) + 1)})


def _instructions(p: TileProduct, form: Form, target: Target, t: Columns) -> Any:
    """Of all tiles: in a step each row is loaded, each column is loaded and made what is multiplied, and all pairs are."""
    steps = -(-p.number(p.reduce, 1) // form.group)
    rows, columns = (-(-p.number(axes, n) // t[name]) for axes, n, name in ((p.rows, ASSUMED_ROWS, "rows"), (p.columns, 1, "columns")))
    sums = t["rows"] * t["columns"]
    if form.lanes > 1:
        held, room = sums, form.sums
    else:
        held, room = sums + 2 * np.minimum(t["rows"], t["columns"]) + 2, target.vector_registers
    spilled = SPILLED * np.maximum(held - room, 0)
    step = form.row_loads * t["rows"] + form.column_loads * t["columns"] + form.products * sums + spilled + STEPPED / written_out(steps, form)
    ended = STORED * sums * np.where(t["columns"] % form.lanes == 0, 1, form.lanes)
    return rows * (columns * (steps * step + ended) + COPIED * t["rows"] * form.group // _run(p, form) * steps)


def _run(p: TileProduct, form: Form) -> int:
    """Elements that are copied at a time."""
    return gcd(p.run, form.group) if form.lanes > 1 else 1


def _in_lanes(form: Form, columns: int | None) -> bool:
    return form.lanes > 1 and columns is not None and columns % form.lanes == 0


def written_out(steps: int, form: Form) -> int:
    """Steps of the sum in an iteration of the loop over them."""
    return next(n for n in range(form.steps, 0, -1) if steps % n == 0)


def _scheduled(sch: Schedule, choice: dict[str, int], found: Mapping[int, TileProduct], prologue: tuple[str, ...], target: Target) -> Applied:
    """The steps for one choice; the blocks ``prologue`` stay, but for those that only surround a picture."""
    form, p = _forms(target)[choice["group"]], found[choice["group"]]
    inline_moves(sch, [i.name for i in blocks_of(sch.func) if i.name in prologue and surrounds(i)])
    position = sch.func.buffer_params.index(p.weight.buffer)
    mapping = _layout(p, form, choice["columns"])
    block = sch.get_block(p.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(p.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    sums = store_of(sch, p.info)
    copy = sch.tile_einsum(block, sums, p.factor, _tiles(p, form, choice), dtype=form.copied)
    row, column, step, i, j, inside, *_ = sch.get_loops(block)
    sch.compute_at(copy, row, preserve_unit_loops=True)
    sch.reverse_compute_at(sums, column, preserve_unit_loops=True)
    outer, inner = sch.split(step, [None, written_out(loop_extent(sch, step) or 1, form)])
    init = sch.decompose_reduction(block, outer)
    for b in (init, sums):
        *loops, last = sch.get_loops(b)[2:]
        for loop in loops:
            sch.unroll(loop)
        (sch.vectorize if b is sums and _in_lanes(form, loop_extent(sch, last)) else sch.unroll)(last)
    if form.is_one:
        sch.tensorize(inside, form.name)
    else:
        sch.reorder(inside, i, j)
        sch.unroll(inside)
    for loop in (inner, i, j):
        sch.unroll(loop)
    _copied(sch, p, form, copy)
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied(sch, {position: mapping}, choice)


def _layout(p: TileProduct, form: Form, columns: int) -> tir.IndexMap:
    """Of the constant: blocks of columns, steps of the sum, then columns and the elements of a group in their order."""
    place = {v: d for d, v in enumerate(p.weight.indices) if isinstance(v, tir.Var)}
    at_axis = {k: place[a.var] for k, a in enumerate(p.info.block.iter_vars) if a.var in place}

    def moved(*i: Any) -> list[Any]:
        at = {k: i[d] for k, d in at_axis.items()}
        n, k = fused(p.columns, at, p), fused(p.reduce, at, p)
        return [n // columns, k // form.group, n % columns, *form.weights(k)]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _tiles(p: TileProduct, form: Form, choice: dict[str, int]) -> tir.IndexMap:
    """Of the block's axes: blocks of rows, blocks of columns, steps of the sum, rows, columns, and a group's elements."""
    rows, columns = choice["rows"], choice["columns"]

    def moved(*i: Any) -> list[Any]:
        m, n, k = (fused(axes, i, p) for axes in (p.rows, p.columns, p.reduce))
        return [m // rows, n // columns, k // form.group, m % rows, n % columns, *form.data(k)]

    return tir.IndexMap.from_func(moved, len(p.info.block.iter_vars))


def _copied(sch: Schedule, p: TileProduct, form: Form, copy: Any) -> None:
    """A step after another, which are at one place of the window where channels come in groups."""
    step, *rows = sch.get_loops(copy)[2 if p.rows else 1:][: -len(form.data(0))]
    inside = sch.get_loops(copy)[-len(form.data(0)):]
    sch.reorder(*rows, step)
    window = p.number(p.windows, 1)
    if window > 1 and p.number(p.others, 1) % form.group == 0:
        sch.split(step, [*(p.number((k,), 1) for k in p.windows), p.number(p.others, 1) // form.group])
    run = _run(p, form)
    if run > 1:
        *inside, neighbours = sch.split(inside[0], [form.group // run, run])
        sch.vectorize(neighbours)
    for loop in inside:
        sch.unroll(loop)
