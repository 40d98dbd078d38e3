# SPDX-License-Identifier: Apache-2.0
"""Programs that no rule was written for: every reduction becomes a loop nest of its own, chosen among all that the model of the target knows.

Elementwise blocks go into the reductions that read them where nothing is computed twice for it, or into the nest of the reduction whose
result they take; others are nests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.digest import structural_digest
from ...schedule.schedule import Schedule
from ...target import Target
from ..candidates import Candidates
from ..match.accesses import BlockInfo, blocks_of
from ..pointwise.elementwise import cycles_beside, schedule_spatial
from ..pointwise.inline import inline_moves
from ..program import Program, once_for_all
from ..sketch import Applied, Sketch, rule
from ..window.borders import pads
from .candidates import NAMES, candidates
from .nests import Decisions, schedule_nest
from .rare import is_open, rare_where_used
from .stage import Stage


@rule
def generic(program: Program) -> Iterator[Sketch]:
    """Fits programs of plain blocks, some of them reductions, each with an axis for vectors."""
    if program.reductions and program.is_plain:
        yield from _sketches("generic", rare_where_used(program.with_cheap_inlined, program.target), program.target)


@rule
def generic_padding(program: Program) -> Iterator[Sketch]:
    """Fits those among them in which a reduction alone reads what is padded: the padding is not stored, but becomes conditions on the loops over the
    window. It takes a program only from a rule whose schedule it is expected to beat clearly (`roundel.strategy.contest`)."""
    if program.reductions and program.is_plain and any(pads(i) for i in program.blocks):
        start = program.with_cheap_inlined.fork(seed=0)
        inline_moves(start, [i.name for i in blocks_of(start.func) if pads(i) and len(start.get_consumers(start.get_block(i.name))) == 1])
        if len(blocks_of(start.func)) < len(blocks_of(program.with_cheap_inlined.func)):
            yield from _sketches("generic_padding", start, program.target)


def _sketches(name: str, start: Schedule, target: Target) -> Iterator[Sketch]:
    tables = tables_of(start, target)
    if tables is not None:
        beside = partial(cycles_beside, start, target)
        yield Sketch(name, start, partial(_scheduled, target=target), joined(tables), beside, partial(_to_measure, start, target))


def _to_measure(start: Schedule, target: Target) -> tuple[Candidates, ...]:
    """Of each reduction what is worth a measurement."""
    tables = tables_of(start, target, to_measure=True) or {}
    return tuple(Candidates({named(block, n, tables): c for n, c in t.columns.items()}, t.cycles) for block, t in tables.items())


def _scheduled(sch: Schedule, choice: dict[str, int], target: Target) -> Applied:
    return Applied(sch, schedule(sch, choice, target), choice)


def tables_of(sch: Schedule, target: Target, to_measure: bool = False) -> dict[str, Candidates] | None:
    """The candidates of each reduction, by its name; None where one has none."""
    params = sch.func.buffer_params
    fixed = tuple(params[k] for k in sch.func.attrs.get("constant_params", ()))
    tables = {i.name: _table(Stage(i), target, fixed, to_measure) for i in blocks_of(sch.func) if i.reduce and is_open(sch, i)}
    return None if not tables or None in tables.values() else tables  # type: ignore[return-value]


def _table(stage: Stage, target: Target, constants: tuple[tir.Buffer, ...], to_measure: bool) -> Candidates | None:
    """The candidates of a reduction, which are those of every equal one, whatever its results go into."""
    fixed = tuple(a.buffer in constants for a in stage.loads)
    return once_for_all((structural_digest(stage.info.block), fixed, target, to_measure), lambda: candidates(stage, target, constants, to_measure))


def joined(tables: dict[str, Candidates]) -> Candidates:
    """One table for all reductions of a program: of each the best, of each the second, and so on. Of several reductions, decisions are named
    after these."""
    length = max(map(len, tables.values()))
    columns, cycles = {}, np.zeros(length)
    for name, table in tables.items():
        order = table.ranking()
        picked = order[np.minimum(np.arange(length), len(order) - 1)]
        cycles += table.cycles[picked]
        columns.update({named(name, n, tables): table.columns[n][picked] for n in NAMES})
    return Candidates(columns, cycles)


def named(block: str, decision: str, tables: dict[str, Candidates]) -> str:
    """A decision's name in the program."""
    return decision if len(tables) == 1 else f"{block}.{decision}"


def schedule(sch: Schedule, choice: dict[str, int], target: Target) -> dict[int, tir.IndexMap]:
    """All nests of a program; the layouts that are wanted for constants."""
    constants = tuple(sch.func.attrs.get("constant_params", ()))
    infos = blocks_of(sch.func)
    stages = {i.name: i for i in infos if i.reduce and is_open(sch, i)}
    spatial = [i.name for i in infos if not i.reduce]
    layouts: dict[int, tir.IndexMap] = {}
    for name in stages:
        chosen = Decisions(**{n: choice[own] for n in NAMES if (own := named(name, n, stages)) in choice})  # type: ignore[arg-type]
        layouts |= schedule_nest(sch, Stage(BlockInfo(sch.get(sch.get_block(name)))), chosen, target, constants)
    for name in spatial:
        block = sch.get_block(name)
        if all(sch.get(x).kind is tir.ForKind.SERIAL for x in sch.get_loops(block)) and len(sch.get_loops(block)) == len(sch.get(block).iter_vars):
            if sch.get_loops(block) and type(sch.get(sch.get_loops(block)[-1]).body) is tir.BlockRealize and _alone(sch, block):
                schedule_spatial(sch, BlockInfo(sch.get(block)), target)
    return layouts


def _alone(sch: Schedule, block: Any) -> bool:
    """Whether a block is in no other block's nest."""
    loops = sch.get_loops(block)
    return all(sch.get(outer).body is sch.get(inner) for outer, inner in pairwise(loops))
