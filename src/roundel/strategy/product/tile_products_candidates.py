# SPDX-License-Identifier: Apache-2.0
"""The decisions of a product in tile registers (tiles of rows and of columns whose sums stay in registers, blocks of columns that share a copy of
rows, or whether all rows are copied once before, and whether windows slide over that copy), and the cycles expected of each."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from typing import Any

import numpy as np

from ...schedule.sliding_tiles import wide_rows
from ...target import Target
from ...target.target import L1, L3
from ..candidates import Candidates, Columns, combinations
from ..cost import beside_cold
from ..match.tile_product import TileProduct
from .contraction_candidates import ASSUMED_ROWS

REGISTERS = 8
MOST_ROWS, MOST_COLUMNS = 6, 6  # tiles of a block
TILE = 1024          # bytes of a tile
PLACED = 6           # instructions that find the place of a row of sums in the result
DIVIDED = 24         # the same where rows of sums are more than rows of the result, whose places are quotients and remainders


def candidates(p: TileProduct, target: Target) -> Candidates:
    """Every block whose tiles have registers, and how many blocks of columns go over one copy of rows."""
    tiles = -(-p.number(p.columns, 1) // p.instruction.columns)
    rows = -(-p.number(p.rows, ASSUMED_ROWS) // p.instruction.rows)
    panels = sorted({n for c in range(1, MOST_COLUMNS + 1) for n in _divisors(-(-tiles // c))})

    def legal(t: Columns) -> np.ndarray:
        blocks = -(-tiles // t["columns"])
        fits = t["rows"] * t["columns"] + np.where(t["rows"] == 1, 1, t["columns"]) + 1 <= REGISTERS  # others hold tiles one after another
        fits &= (t["once"] >= t.get("slide", 0)) & (t["panels"] * (t["once"] - t.get("slide", 0) + 1) <= blocks)
        return fits & (t["rows"] <= max(rows, 1)) & (t["columns"] <= max(tiles, 1)) & (blocks % t["panels"] == 0)

    decisions = {"rows": range(1, MOST_ROWS + 1), "columns": range(1, MOST_COLUMNS + 1), "panels": panels, "once": (0, 1)}
    if may_slide(p):
        decisions["slide"] = (0, 1)
    table = combinations(decisions, legal)
    return Candidates(table, np.maximum(_cycles(p, target, table), 1.0))


def of_one_row(p: TileProduct, choice: Mapping[str, int]) -> dict[str, int]:
    """What is decided differently where all rows fit one tile: they are copied once, and blocks of columns are all that there is to share out."""
    blocks = -(-p.number(p.columns, 1) // (p.instruction.columns * choice["columns"]))
    return {"rows": 1} if blocks == 1 else {"rows": 1, "panels": 1, "once": 1}


def _divisors(n: int) -> list[int]:
    return [k for k in range(1, max(n, 1) + 1) if max(n, 1) % k == 0]


def cycles_of_block(p: TileProduct, target: Target, choice: Mapping[str, int]) -> float:
    """Of all sums of one block of tiles, its share of the copy included."""
    columns = {name: np.asarray([value]) for name, value in choice.items()}
    return float((_block(p, target, columns) + _copy(p, target, columns) * (1 - columns["once"]) / columns["panels"])[0])


def cycles_of_copy(p: TileProduct, target: Target, choice: Mapping[str, int]) -> float:
    """Of one block of rows."""
    return float(_copy(p, target, {name: np.asarray([value]) for name, value in choice.items()})[0])


def held_operands(rows: int, columns: int) -> tuple[bool, bool]:
    """Whether all tiles of rows, and all of columns, of a step are in registers at once; else one after another."""
    both = _are_held(rows, columns)
    return both, both or rows > 1


def _are_held(rows: Any, columns: Any) -> Any:
    """Whether all tiles of a step have registers beside the sums."""
    return (rows + 1) * (columns + 1) - 1 <= REGISTERS


def may_slide(p: TileProduct) -> bool:
    """Whether windows can slide over one copy of the data, instead of a copy for each of their places: rows of tiles are then rows of that copy."""
    return bool(p.slides) and p.number(p.others, 1) % p.instruction.products == 0 and lanes_copied(p) == p.instruction.products


def wide_extents(p: TileProduct) -> dict[int, int]:
    """Of the axes of rows along which windows slide, by their positions, with the places that these reach beyond."""
    return {row: wide_rows(p.number((row,), 1), p.number((window,), 1), stride, dilation) for row, window, stride, dilation in p.slides or ()}


def _places(p: TileProduct) -> float:
    """How many places of the data windows reach, those between strides not counted."""
    wide, known = wide_extents(p), prod(p.number((row,), 1) for row, *_ in p.slides or ())
    return p.number(p.rows, ASSUMED_ROWS) / known * prod(wide.values())


def _cycles(p: TileProduct, target: Target, t: Columns) -> Any:
    """Of the whole product."""
    slides = t.get("slide", 0)
    number = np.where(slides, _places(p), p.number(p.rows, ASSUMED_ROWS))
    rows = -(-number // (p.instruction.rows * t["rows"]))
    blocks = -(-p.number(p.columns, 1) // (p.instruction.columns * t["columns"]))
    groups = blocks // t["panels"]
    copied = _copied(p, t)  # of rows, which the first block of columns finds where the copy of all of them is
    again = t["once"] * (t["panels"] > 1) * copied / _rate(target, rows * copied)
    copies = np.where(t["once"], 1, groups) * _copy(p, target, t)
    phases = prod(min(stride, p.number((window,), 1)) for _, window, stride, _ in p.slides or ())
    whole = rows * TILE * t["rows"] * _steps(p)  # bytes of all copies of rows
    share = np.where(slides, phases / p.number(p.windows, 1), 1.0)
    written = t["once"] * t["rows"] * TILE * _steps(p) / _stored(target, whole * share)
    copies = share * (copies + written)
    products = rows * blocks * _block(p, target, t, rows)
    late = _late(products, rows, blocks * bytes_of_panel(p, t), target) * (t["panels"] > 1)
    return products + late + _in_pieces(p, target, number) * (groups > 1) / t["panels"] ** 2 + rows * (copies + groups * again)


def _in_pieces(p: TileProduct, target: Target, rows: Any) -> Any:
    """Cycles that results take beyond the second-level cache, where each row of them is written a block of columns at a time."""
    nbytes = rows * p.number(p.columns, 1) * p.info.stores[0].buffer.dtype.storage_bits / 8
    levels = [target.level_of(float(n)) for n in np.atleast_1d(nbytes)]
    return nbytes * np.array([0.0 if level < L3 else 1 / (target.scattered_share * target.stored_per_cycle(level)) for level in levels])


def _late(products: Any, rows: Any, constant: Any, target: Target) -> Any:
    """Cycles more than where each panel of columns is fetched while all blocks of rows are multiplied by the one before: the first block waits for the
    constant then, which comes from beyond the second-level cache, and the others find it there."""
    waiting = constant / (target.cold_share * target.bytes_per_cycle(L3))
    first = products / rows
    return products - first + beside_cold(target, first, waiting) - np.maximum(products, waiting)


def _rate(target: Target, nbytes: Any) -> Any:
    """Bytes per cycle of what is read again after so many others."""
    return np.array([target.bytes_per_cycle(max(L1, target.level_of(float(n) / target.cache_room))) for n in np.atleast_1d(nbytes)])


def _stored(target: Target, nbytes: Any) -> Any:
    """Bytes per cycle at which so many are written, beside what it takes to store them in the first-level cache."""
    levels = [target.level_of(float(n) / target.cache_room) for n in np.atleast_1d(nbytes)]
    return np.array([np.inf if level <= L1 else target.stored_per_cycle(level) for level in levels])


def _copied(p: TileProduct, t: Columns) -> Any:
    """Bytes of the copy that a block of rows reads: where windows slide, neighbours along their last axis are mostly the same."""
    rows = prod(p.number((k,), 1) for k in p.windows[:-1])
    return TILE * t["rows"] * np.where(t.get("slide", 0), _steps(p) / p.number(p.windows, 1) * rows, _steps(p))


def _steps(p: TileProduct) -> int:
    return -(-p.number(p.reduce, 1) // p.instruction.products)


def bytes_of_panel(p: TileProduct, choice: Mapping[str, Any]) -> Any:
    """Of the constant: all that a block of columns is multiplied by."""
    return TILE * _steps(p) * choice["columns"]


def _block(p: TileProduct, target: Target, t: Columns, rows: Any = 1) -> Any:
    """Products of tiles overlap with loads of the next ones, unless these go into the one register that the product reads: rows come from the cache that
    holds a copy of them (of all ``rows`` blocks, where these take turns), columns from the one that holds all that share it; sums are stored and read again."""
    cost = p.instruction.intrin.cost
    assert cost is not None
    product = cost.slots_on(target.features) / target.fma_ports
    copied, packed = _copied(p, t), bytes_of_panel(p, t) * t["panels"]
    between = np.where(t["panels"] > 1, 2 * copied, rows * copied + packed)
    loads = TILE * (t["rows"] / _rate(target, between) + t["columns"] / _rate(target, copied + packed))
    sums = t["rows"] * t["columns"]
    in_turn = np.where(_are_held(t["rows"], t["columns"]), 0, np.maximum(t["rows"], t["columns"]) * TILE / target.bytes_per_cycle(L1))
    placed = t["rows"] * p.instruction.rows * np.where(t.get("slide", 0), DIVIDED, PLACED) / target.issue
    return _steps(p) * np.maximum(sums * product + in_turn, loads) + sums * 4 * p.instruction.rows / target.stores + placed + target.tiles_started_cycles


def streamed_operands(p: TileProduct, target: Target, choice: Mapping[str, int]) -> str:
    """Operands of which nothing is to stay in the first-level cache: a panel of columns passes once for each block of rows, and would displace the copy of
    these; nor is this to stay where the cache does not hold it anyway."""
    rows, columns = _copied(p, choice), bytes_of_panel(p, choice)
    room = target.l1_bytes * target.cache_room
    return "" if rows + columns <= room else "B" if rows <= room else "AB"


def _copy(p: TileProduct, target: Target, t: Columns) -> Any:
    """Of a block of rows: parts of a row of a tile take as long as they are long, but no less than a single element."""
    parts = p.instruction.products / lanes_copied(p)
    each = max(target.tiles_copied_cycles / parts, target.move_cycles)
    return each * parts * _steps(p) * t["rows"] * p.instruction.rows


def lanes_copied(p: TileProduct) -> int:
    """How many elements of a row of tiles are copied together: those that lie side by side in the data, whatever the row begins with."""
    if p.run == 1:
        return 1
    return p.instruction.products if len(p.reduce) == 1 else gcd(p.run, p.instruction.products)
