# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers with a constant matrix, by instructions that multiply and add four pairs at once.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])      A unsigned, B signed and constant

The instruction sums four products for each of a vector's lanes, so B is laid out as [columns / lanes, K / 4, lanes, 4], four elements of
a row of A are broadcast, and a tile of rows and vectors of sums stays in registers. Convolutions with 1 x 1 kernels in blocked layouts
are such products too. Where a target lacks the instruction the rule leaves programs to others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir import tir
from .accesses import Access, BlockInfo, blocks_of, extent_of, product
from .applied import Applied
from .contraction import store_of
from .elementwise import inline_producers, schedule_spatial
from .parallelism import is_little, parallelize
from .register_tile import choose_tile

GROUP = 4  # products that one lane sums
ASSUMED_ROWS = 120
TASKS = 8
WIDTHS = (16, 8, 4)


@dataclass(frozen=True)
class _Product:
    """The block, its operands, and its axes: ``column`` runs along vectors of weights, ``columns`` move the weights otherwise, ``rows``
    the data; ``group`` is summed by fours, ``reduce`` are the other axes of the sum."""

    info: BlockInfo
    data: Access
    weight: Access
    column: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    group: int
    reduce: tuple[int, ...]

    def extent(self, axis: int) -> int | None:
        """Of an axis, where it is a number."""
        return extent_of(self.info.block.iter_vars[axis])


def dot_products(sch: Any, target: Any) -> Applied | None:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    infos = blocks_of(sch.func)
    reductions = [i for i in infos if i.reduce]
    if len(reductions) != 1 or not all(i.is_plain for i in infos):
        return None
    found = _match(reductions[0], sch)
    lanes = 0 if found is None else _lanes(found, target)
    if found is None or not lanes:
        return None
    prologue = [i.name for i in infos[: infos.index(reductions[0])]]
    inline_producers(sch, keep=prologue)
    split = found.extent(found.column) != lanes
    total = -(-(found.extent(found.column) or 1) // lanes) if split else (found.extent(found.columns[-1]) or 1) if found.columns else 1
    tile = choose_tile(target, found.extent(found.rows[-1]) if found.rows else 1, range(1, total + 1), lanes, total)
    position = sch.func.buffer_params.index(found.weight.buffer)
    mapping = _layout(found, lanes, split)
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    _schedule(sch, found, tile, split, store_of(sch, found.info))
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied({position: mapping}, {"rows": tile.rows, "vectors": tile.vectors, "lanes": lanes})


def _lanes(p: _Product, target: Any) -> int:
    """Of the widest vectors that the columns fill; 0 for none."""
    columns = p.extent(p.column) or 1
    return next((n for n in WIDTHS if n <= target.lanes("int32") and columns % n == 0 and target.has_dot_product(n)), 0)


def _match(info: BlockInfo, sch: Any) -> _Product | None:
    body, axes = info.block.body, info.block.iter_vars
    if type(body) is not tir.BufferStore or type(body.value) is not tir.Add or body.buffer.dtype != "int32" or type(body.value.b) is not tir.Mul:
        return None
    sides = [f.value if type(f) is tir.Cast else None for f in (body.value.b.a, body.value.b.b)]
    if not all(type(s) is tir.BufferLoad for s in sides) or [s.buffer.dtype for s in sides] != ["uint8", "int8"]:
        return None
    data, weight = (next(a for a in info.loads if a.buffer is s.buffer and a.indices == s.indices) for s in sides)
    params = sch.func.buffer_params
    if weight.buffer not in params or params.index(weight.buffer) not in sch.func.attrs.get("constant_params", ()):
        return None
    place = {i.var: k for k, i in enumerate(axes)}
    at = [place.get(i) for i in weight.indices]
    plain = all(k is not None or (isinstance(i, tir.IntImm) and i.value == 0) for k, i in zip(at, weight.indices, strict=True))
    spatial = [k for k, i in enumerate(axes) if i.kind is tir.IterKind.SPATIAL]
    if not plain or at[-1] not in spatial or len({k for k in at if k is not None}) < len([k for k in at if k is not None]):
        return None
    moves = {k: (not data.steps(axes[k].var, 0), k in at) for k in spatial}
    group = next((k for k, i in enumerate(axes) if k not in spatial and k in at and data.steps(i.var, 1)), None)
    if group is None or any(all(m) for m in moves.values()) or (extent_of(axes[group]) or 1) % GROUP or extent_of(axes[at[-1]]) is None:
        return None
    if not info.stores[0].steps(axes[at[-1]].var, 1):
        return None
    columns = tuple(k for k in spatial if k != at[-1] and moves[k][1])
    rows = tuple(k for k in spatial if not moves[k][1])
    reduce = tuple(k for k in range(len(axes)) if k not in (*spatial, group))
    return _Product(info, data, weight, at[-1], columns, rows, group, reduce)


def _layout(p: _Product, lanes: int, split: bool) -> tir.IndexMap:
    """Four numbers of the sum innermost, then a vector's columns."""
    deep = p.weight.indices.index(p.info.block.iter_vars[p.group].var)

    def moved(*i: Any) -> list[Any]:
        n, k = i[-1], i[deep]
        others = [v for d, v in enumerate(i[:-1]) if d != deep]
        return [*others, *([n // lanes] if split else []), k // GROUP, n % lanes if split else n, k % GROUP]

    return tir.IndexMap.from_func(moved, len(p.weight.indices))


def _schedule(sch: Any, p: _Product, tile: Any, split: bool, epilogue: Any) -> None:
    block = sch.get_block(p.info.name)
    loops = sch.get_loops(block)
    outside, inner = [loops[k] for k in p.columns], []
    lanes = loops[p.column]
    if split:
        column, vectors, lanes = sch.split(lanes, [None, tile.vectors, tile.lanes])
        outside.append(column)
    elif outside and tile.vectors > 1:
        outside[-1], vectors = sch.split(outside[-1], [None, tile.vectors])
    else:
        vectors = None
    outside += [loops[k] for k in p.rows]
    if p.rows:
        outside[-1], row = sch.split(outside[-1], [None, tile.rows])
        inner.append(row)
    inner += [vectors] if vectors is not None else []
    step, group = sch.split(loops[p.group], [None, GROUP])
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
    sch.tensorize(lanes, f"dot_{tile.lanes}x4_u8i8i32")
    if outside:
        _parallel(sch, outside, tile.rows * tile.vectors * product([p.extent(k) for k in (*p.reduce, p.group)], 256) / GROUP / 2, tile)


def _parallel(sch: Any, loops: list[Any], work: float, tile: Any) -> None:
    """As few of the outer loops as make enough tasks."""
    extents = [sch.get(x).extent for x in loops]
    numbers = [e.value if isinstance(e, tir.IntImm) else -(-ASSUMED_ROWS // tile.rows) for e in extents]
    count = next((k + 1 for k in range(len(loops)) if product(numbers[: k + 1], 1) >= TASKS), len(loops))
    work *= product(numbers[count:], 1)
    if is_little(sch, loops[:count], work):
        return
    parallelize(sch, sch.fuse(*loops[:count]) if count > 1 else loops[0], work)
