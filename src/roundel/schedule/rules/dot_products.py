# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit integers with a constant matrix, by instructions that multiply and add four pairs at once.

    for i, j, k: C[i, j] += int32(A[i, k]) * int32(B[k, j])      A unsigned, B signed and constant

The instruction sums four products for each of a vector's lanes, so B is laid out as [columns / lanes, K / 4, lanes, 4] (zeros where it
ends), four elements of a row of A are broadcast, and a tile of rows and vectors of sums stays in registers. Where a target lacks the
instruction it is expanded, which is slower than what other rules do with wider integers: the rule leaves such targets alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir import tir
from .accesses import Access, BlockInfo, blocks_of, extent_of
from .applied import Applied
from .contraction import store_of
from .elementwise import inline_producers, schedule_spatial
from .parallelism import is_little, parallelize
from .register_tile import choose_tile

GROUP = 4  # products that one lane sums
ASSUMED_ROWS = 120


@dataclass(frozen=True)
class _Product:
    """The block, its operands, and which of its axes are the columns and the sum; the others are rows."""

    info: BlockInfo
    data: Access
    weight: Access
    column: int
    reduce: int


def dot_products(sch: Any, target: Any) -> Applied | None:
    """Fits programs with one such product, and elementwise blocks before and after it."""
    infos = blocks_of(sch.func)
    reductions = [i for i in infos if i.reduce]
    lanes = target.lanes("int32")
    if len(reductions) != 1 or not all(i.is_plain for i in infos) or not target.has_dot_product(lanes):
        return None
    found = _match(reductions[0], sch)
    if found is None or (extent_of(found.info.block.iter_vars[found.reduce]) or 1) % GROUP:
        return None
    prologue = [i.name for i in infos[: infos.index(reductions[0])]]
    inline_producers(sch, keep=prologue)
    axes = found.info.block.iter_vars
    rows = [k for k, i in enumerate(axes) if k not in (found.column, found.reduce)]
    columns = extent_of(axes[found.column])
    total = -(-columns // lanes)
    tile = choose_tile(target, extent_of(axes[rows[-1]]) if rows else 1, range(1, total + 1), lanes, total)
    position = sch.func.buffer_params.index(found.weight.buffer)
    mapping = tir.IndexMap.from_func(lambda k, n: (n // lanes, k // GROUP, n % lanes, k % GROUP), 2)
    block = sch.get_block(found.info.name)
    read = [r.buffer for r in sch.get(block).reads].index(found.weight.buffer)
    sch.transform_layout(block, ("read", read), mapping, pad_value=0)
    _schedule(sch, found, rows, tile, store_of(sch, found.info))
    for info in blocks_of(sch.func):
        if info.name in prologue:
            schedule_spatial(sch, info, target)
    return Applied({position: mapping}, {"rows": tile.rows, "vectors": tile.vectors, "lanes": lanes})


def _match(info: BlockInfo, sch: Any) -> _Product | None:
    body, axes = info.block.body, info.block.iter_vars
    if type(body) is not tir.BufferStore or type(body.value) is not tir.Add or body.buffer.dtype != "int32" or len(info.reduce) != 1:
        return None
    factors = body.value.b
    if type(factors) is not tir.Mul:
        return None
    sides = [f.value if type(f) is tir.Cast else None for f in (factors.a, factors.b)]
    if not all(type(s) is tir.BufferLoad for s in sides) or [s.buffer.dtype for s in sides] != ["uint8", "int8"]:
        return None
    data, weight = (next(a for a in info.loads if a.buffer is s.buffer and a.indices == s.indices) for s in sides)
    params, reduce = sch.func.buffer_params, next(k for k, i in enumerate(axes) if i is info.reduce[0])
    if weight.buffer not in params or params.index(weight.buffer) not in sch.func.attrs.get("constant_params", ()) or len(weight.indices) != 2:
        return None
    column = next((k for k, i in enumerate(axes) if weight.indices[1] is i.var), None)
    fits = weight.indices[0] is axes[reduce].var and column is not None and extent_of(axes[column]) is not None
    if not fits or not data.steps(axes[reduce].var, 1) or not data.steps(axes[column].var, 0):
        return None
    return _Product(info, data, weight, column, reduce)


def _schedule(sch: Any, p: _Product, rows: list[int], tile: Any, epilogue: Any) -> None:
    block = sch.get_block(p.info.name)
    loops = sch.get_loops(block)
    column, vectors, lanes = sch.split(loops[p.column], [None, tile.vectors, tile.lanes])
    step, group = sch.split(loops[p.reduce], [None, GROUP])
    outside = [loops[k] for k in rows]
    inner = []
    if rows:
        outside[-1], row = sch.split(outside[-1], [None, tile.rows])
        inner.append(row)
    inner.append(vectors)
    outside = [column, *outside]
    sch.reorder(*outside, step, *inner, lanes, group)
    sch.reverse_compute_at(epilogue, outside[-1])
    init = sch.decompose_reduction(block, step)
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
    work = tile.rows * tile.vectors * (extent_of(p.info.block.iter_vars[p.reduce]) or 256) / GROUP / 2
    for loop in outside[1:]:
        extent = sch.get(loop).extent
        work *= extent.value if isinstance(extent, tir.IntImm) else -(-ASSUMED_ROWS // tile.rows)
    if is_little(sch, outside[:1], work):
        return
    parallelize(sch, outside[0], work)
