# SPDX-License-Identifier: Apache-2.0
"""The decisions of a product of 8-bit integers (lanes of a vector, rows and vectors of the register tile), and the cycles expected of each.

The loops over columns are outside of those over rows, and the reduction is inside of both, so every tile of rows reads the panel of weights of
its columns once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..match.accesses import extent_of, product
from ..match.dot_product import GROUP, Product
from ..nest import Nest, operand
from ..times import capacities, exposed, step_cycles, streamed_cycles, together, traffic_cycles
from .register_tile import ASSUMED, ASSUMED_ROWS, EDGE, ENTRY_CYCLES, PER_LOAD, STORED_CYCLES, STREAMED, TILE_CYCLES

WIDTHS = (16, 8, 4)
MOST_VECTORS = 4


def candidates(p: Product, target: Target) -> Candidates | None:
    """Every tile that fits the registers, of vectors that the columns fill; None where the target has no instruction for any."""
    columns, row = p.extent(p.column) or 1, _rows(p)
    lanes = [n for n in WIDTHS if n <= target.lanes("int32") and columns % n == 0 and target.has_dot_product(n)]
    if not lanes:
        return None

    def legal(t: Columns) -> np.ndarray:
        fits = t["rows"] * t["vectors"] + t["vectors"] + 1 <= target.vector_registers
        return fits & (t["vectors"] <= np.maximum(_vectors(p, t), 1))

    table = combinations({"rows": range(1, max(min(row, target.vector_registers), 1) + 1), "vectors": range(1, MOST_VECTORS + 1), "lanes": lanes}, legal)
    arithmetic = np.maximum(_arithmetic(p, target, table), 1.0)  # nothing at all where an extent is 0
    return Candidates(table, together(arithmetic, *_traffic(p, target, table)))


def _rows(p: Product) -> int:
    """Of the axis that tiles cut."""
    extent = p.extent(p.rows[-1]) if p.rows else 1
    return ASSUMED_ROWS if extent is None else extent


def _vectors(p: Product, t: Columns) -> np.ndarray:
    """How many vectors a tile may take its own from: along the columns, or along the axis around them where one fills these."""
    outer = (p.extent(p.columns[-1]) or 1) if p.columns else 1
    return np.where(p.is_split(t["lanes"]), (p.extent(p.column) or 1) // t["lanes"], outer)


def _arithmetic(p: Product, target: Target, t: Columns) -> np.ndarray:
    """Cycles of all tiles, those at the edges included."""
    around = product([p.extent(k) for k in p.reduce], ASSUMED)
    steps = around * (p.extent(p.group) or ASSUMED) // GROUP

    def tile(height: Any) -> Any:
        waiting = exposed(target, steps * (height + 1.0) * (t["vectors"] + 1.0))
        start_and_end = ENTRY_CYCLES * around + (TILE_CYCLES + STORED_CYCLES * height * t["vectors"]) * waiting
        loads = PER_LOAD * height + streamed_cycles(target, STREAMED) * t["vectors"]
        return steps * (step_cycles(target, height, t["vectors"], 1, steps) + loads) + start_and_end

    full, rest = _rows(p) // t["rows"], _rows(p) % t["rows"]
    others = product([p.extent(k) for k in p.rows[:-1]], ASSUMED_ROWS) * product([p.extent(k) for k in p.columns], ASSUMED)
    along = others * ((p.extent(p.column) or 1) // t["lanes"])  # vectors of all columns
    within = np.maximum(_vectors(p, t), 1)
    across = along // within * -(-within // t["vectors"]) * np.where(within % t["vectors"], EDGE, 1.0)
    return across * (full * tile(t["rows"]) + np.where(rest > 0, tile(np.maximum(rest, 1)), 0.0))


def _traffic(p: Product, target: Target, t: Columns) -> list[Any]:
    """Cycles to bring the operands into each cache."""
    axes = {it.var: k for k, it in enumerate(p.info.block.iter_vars)}
    operands = [operand(a, axes, ASSUMED, target) for a in (p.data, p.weight, p.info.stores[0])]
    extent = lambda k: extent_of(p.info.block.iter_vars[k]) or ASSUMED
    split = p.is_split(t["lanes"])
    inner: dict[Any, Any] = {p.group: GROUP, p.column: np.where(split, t["vectors"], 1) * t["lanes"]}
    columns: list[tuple[Any, Any]] = [(k, extent(k)) for k in p.columns]
    if columns:
        last = p.columns[-1]
        inner[last] = np.where(split, 1, t["vectors"])
        columns[-1] = last, -(-extent(last) // inner[last])
    columns.append((p.column, -(-extent(p.column) // inner[p.column])))
    rows: list[tuple[Any, Any]] = [(k, extent_of(p.info.block.iter_vars[k]) or ASSUMED_ROWS) for k in p.rows]
    if rows:
        rows[-1], inner[p.rows[-1]] = (p.rows[-1], -(-_rows(p) // t["rows"])), t["rows"]
    reduce = [*((k, extent(k)) for k in p.reduce), (p.group, extent(p.group) // GROUP)]
    loops = [x for x in (*columns, *rows, *reduce) if np.any(x[1] != 1)]
    return traffic_cycles(target, Nest(loops, operands, inner).traffic(capacities(target)))
