# SPDX-License-Identifier: Apache-2.0
"""The decisions of a product by dot products (lanes of a vector, rows and vectors of the register tile), and the cycles expected of each.

The loops over columns are outside of those over rows, and the reduction is inside of both, so every tile of rows reads the panel of weights of
its columns once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...intrinsics.registry import Cost
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..cost import cycles
from ..match.accesses import product
from ..match.dot_product import Product
from ..statements import ASSUMED, LANES, UNROLLED, Loop, Operation, Statement, Touch, in_registers, statement_of
from .contraction_candidates import ASSUMED_ROWS

MOST_VECTORS = 5


def candidates(p: Product, target: Target) -> Candidates | None:
    """Every tile that fits the registers, of vectors that the columns fill; None where they fill none."""
    columns, row = p.extent(p.column) or 1, _rows(p)
    lanes = [n for n in p.intrins if columns % n == 0]
    if not lanes:
        return None
    taken = _cost(p, target).registers

    def legal(t: Columns) -> np.ndarray:
        fits = target.holds_tile(t["rows"], t["vectors"], taken) | (t["rows"] * t["vectors"] == 1)
        return fits & (t["vectors"] <= np.maximum(_vectors(p, t), 1))

    table = combinations({"rows": range(1, max(min(row, target.vector_registers), 1) + 1), "vectors": range(1, MOST_VECTORS + 1), "lanes": lanes}, legal)
    return Candidates(table, np.maximum(_cycles(p, target, table), 1.0))  # nothing at all where an extent is 0


def _rows(p: Product) -> int:
    """Of the axis that tiles cut."""
    extent = p.extent(p.rows[-1]) if p.rows else 1
    return ASSUMED_ROWS if extent is None else extent


def results(p: Product) -> int:
    """How many sums the product has, sizes that are no numbers taken as its candidates take them."""
    return max(product([p.extent(k) for k in (*p.batch, *p.columns, p.column)], ASSUMED) * product([p.extent(k) for k in p.rows], ASSUMED_ROWS), 1)


def _vectors(p: Product, t: Columns) -> np.ndarray:
    """How many vectors a tile may take its own from: along the columns, or along the axis around them where one fills these."""
    outer = (p.extent(p.columns[-1]) or 1) if p.columns else 1
    return np.where(p.is_split(t["lanes"]), (p.extent(p.column) or 1) // t["lanes"], outer)


def _cycles(p: Product, target: Target, t: Columns) -> Any:
    """Of the nest that each candidate becomes (``dot_products._schedule``)."""
    row, rest = _rows(p), _rows(p) % t["rows"]
    step = _statement(p, target)
    tiles = [(-(-row // t["rows"]), t["rows"]), (row // t["rows"], t["rows"]), (1 * (rest > 0), np.maximum(rest, 1))]
    whole, *pieces = (replace(step, loops=_loops(p, t, *n)) for n in tiles)
    return cycles(target, whole, pieces=pieces)


def _statement(p: Product, target: Target) -> Statement:
    """One instruction, which adds the products of groups of the sum: of weights that lie in the order in which they are read."""
    found = in_registers(statement_of(p.info.block, p.column, target))
    touches, cost = tuple(_grouped(p, t) for t in found.touches), _cost(p, target)
    used = Operation(cost.slots_on(target.features) - cost.shared, frozenset(range(len(p.info.block.iter_vars))), 32)
    made = tuple(Operation(cost.shared, t.moves, 32) for t in touches if cost.shared and not (t.is_store or t.register))
    return replace(found, touches=touches, operations=(used, *made))


def _cost(p: Product, target: Target) -> Cost:
    """Of the instruction that takes the most multiply-adds' places."""
    return max((i.cost for i in p.intrins.values() if i.cost is not None), key=lambda cost: cost.slots_on(target.features))


def _grouped(p: Product, t: Touch) -> Touch:
    """An operand by groups of the sum, which are a lane's: weights lie as they are read."""
    if t.is_store:
        return t
    is_weight = t.buffer is p.weight.buffer
    by_group = lambda steps: steps and {axis: n * (p.group if axis == p.axis else 1) for axis, n in steps.items()}
    sides = tuple((n, by_group(steps)) for n, steps in t.operand.sides)
    laid_out = replace(t.operand, sides=sides, is_packed=is_weight, constant=is_weight)
    return replace(t, operand=laid_out, bits=32, lane=1 if is_weight else t.lane, steps=by_group(t.steps))


def _loops(p: Product, t: Columns, tiles: Any, height: Any) -> tuple[Loop, ...]:
    """Columns outside of rows, the reduction inside of both: with ``tiles`` of ``height`` rows."""
    extent = lambda k: ASSUMED if p.extent(k) is None else p.extent(k)
    split = p.is_split(t["lanes"])
    columns = [Loop(k, extent(k)) for k in p.columns]
    inside = [Loop(p.column, np.where(split, t["vectors"], 1), UNROLLED)]
    if columns:
        last = columns.pop()
        part = np.where(split, 1, t["vectors"])
        columns.append(Loop(last.axis, -(-last.extent // part)))
        inside.append(Loop(last.axis, part, UNROLLED))
    columns.append(Loop(p.column, -(-extent(p.column) // (inside[0].extent * t["lanes"]))))
    rows = [Loop(k, p.extent(k) or ASSUMED_ROWS) for k in p.rows[:-1]] + [Loop(k, tiles) for k in p.rows[-1:]]
    reduce = [*(Loop(k, extent(k)) for k in p.reduce), Loop(p.axis, extent(p.axis) // p.group)]
    batch = [Loop(k, extent(k)) for k in p.batch]
    around = tuple(x for x in (*batch, *columns, *rows, *reduce) if np.any(x.extent != 1))
    return (*around, *(Loop(k, height, UNROLLED) for k in p.rows[-1:]), *inside, Loop(p.column, t["lanes"], LANES))
