# SPDX-License-Identifier: Apache-2.0
"""Every way in which a reduction may become a loop nest, with the cycles that the model of the target expects.

What is not a number of the tile (which axis becomes lanes, which ones are tiled, whether operands are turned) is a *structure*; for each
the cost of all tiles is one evaluation over columns.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.errors import ScheduleError
from ...target import Target
from ..candidates import Candidates, Columns, combinations
from ..cost import cycles
from ..match.accesses import Access, conditional
from ..nest import Operand
from ..statements import LANES, PARTS, UNROLLED, Loop, Statement, Touch, in_parts, in_registers, statement_of
from .nests import Decisions
from .stage import ASSUMED, Stage

NAMES = tuple(f.name for f in fields(Decisions))
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
OTHERS = (2, 3, 4)
MOST_PARTS = 16
CHAINS = (1, 2, 4)
MOST_VECTORS = 6
UNROLLS = (1, 2, 4, 8)
FEW_STEPS = 8           # so many may all be written out
MOST_WRITTEN_OUT = 128  # accumulations in the body of the innermost loop
MOST_AXES = 2           # axes for lanes along which the result is not contiguous
MOST_ROWS = 3           # axes for rows, the longest
FAVOURITES = 3          # structures whose order of loops is looked into; NEAR times the best of a structure a tile's is
NEAR = 1.5
WIDE, FAR = 2.5, 2.0    # to be measured: times the best of all up to which a structure's is, and times its best up to which a tile's
MOST_STRAIGHT = 512     # accumulations that are written out where all of several axes are
TURNS = 8               # uses of each element from which on a turned copy may pay


@dataclass(frozen=True)
class Structure:
    """``vector``, ``row`` and ``beside`` are axes (-1: none), ``lanes`` of a vector; ``turned``: operands strided along the vector axis are copied."""

    vector: int
    lanes: int
    row: int
    beside: int
    turned: int


def candidates(stage: Stage, target: Target, constants: tuple[Any, ...] = (), to_measure: bool = False) -> Candidates | None:
    """The best tiles of all structures, each under every order of its loops; None where there is no axis for vectors.
    ``constants``: buffers that may be laid out ahead of time. ``to_measure``: also those that the model of the target expects less of."""
    model = _Model(stage, target, constants)
    first = [(s, t, model.cycles(s, t)) for s in structures(stage, target, constants, 3 if to_measure else 1)
             for t in [tiles(stage, s, target)] if len(t["vectors"])]
    if not first:
        return None
    first.sort(key=lambda x: float(x[2].min()))
    columns: dict[str, list[np.ndarray]] = {name: [] for name in NAMES}
    expected: list[np.ndarray] = []
    for rank, (s, t, known) in enumerate(first):
        more = [t | {n: np.full_like(t["rows"], v) for n, v in (("inner", stage.reduce[-1]), ("unroll", 1), ("sweep", 1), ("straight", 0))}]
        found = [known]
        if s.vector not in stage.reduce and (rank < FAVOURITES or (to_measure and known.min() <= WIDE * first[0][2].min())):
            near = known <= (FAR if to_measure else NEAR) * known.min()
            more, found = _orders(stage, s, {n: x[near] for n, x in t.items()}, model, to_measure)
        for table, cost in zip(more, found, strict=True):
            full = table | {n: np.full_like(table["rows"], getattr(s, n)) for n in ("vector", "lanes", "row", "beside", "turned")}
            for name in NAMES:
                columns[name].append(full[name])
            expected.append(cost)
    return Candidates({n: np.concatenate(c) for n, c in columns.items()}, np.concatenate(expected))


def _orders(stage: Stage, s: Structure, t: Columns, model: _Model, to_measure: bool) -> tuple[list[Any], list[Any]]:
    """Tiles under each order of the loops; those that differ in numbers only are judged at once."""
    tables, costs = [], []
    bodies = t["rows"] * t["vectors"] * t["others"]
    for inner, sweep in itertools.product(_inner(stage), (1, 0) if s.row >= 0 else (1,)):  # tiles without rows have one order
        for straight, written in _straight(stage, inner, s) if to_measure else [(0, 1)]:
            most = MOST_STRAIGHT if straight else MOST_WRITTEN_OUT
            fitting = {n: np.flatnonzero((bodies * n * written <= most) | (n * written == 1)) for n in _steps(stage, inner, model.target)}
            rows = np.concatenate(list(fitting.values()))
            unroll = np.repeat(list(fitting), [len(found) for found in fitting.values()])
            if not len(rows):
                continue
            table = {n: x[rows] for n, x in t.items()} | {"unroll": unroll}
            tables.append(table | {n: np.full_like(unroll, v) for n, v in (("inner", inner), ("sweep", sweep), ("straight", straight))})
            costs.append(model.cycles(s, table, inner, unroll, sweep, straight))
    return tables, costs


def _straight(stage: Stage, inner: int, s: Structure) -> list[tuple[int, int]]:
    """How many axes beside the innermost may be written out, and the steps that they have."""
    found, written = [(0, 1)], 1
    others = [k for k in stage.reduce if k != inner]
    for count, axis in enumerate(reversed(others), 1):
        written *= stage.extents[axis]
        if s.vector in stage.reduce or stage.extents[axis] > FEW_STEPS or not isinstance(stage.axes[axis].dom.extent, tir.IntImm):
            break
        if stage.extents[axis] > 1:
            found.append((count, written))
    return found


def _steps(stage: Stage, inner: int, target: Target) -> list[int]:
    """How many steps of an axis may be written out."""
    extent = stage.extents[inner]
    steps = {*UNROLLS, *([extent] if extent <= FEW_STEPS else [])}
    return sorted(n for n in steps if extent % n == 0 and n <= target.unrolled_steps)


def _inner(stage: Stage) -> list[int]:
    long = [k for k in stage.reduce if stage.extents[k] > 1]
    return long[-3:] or [stage.reduce[-1]]


def structures(stage: Stage, target: Target, constants: tuple[Any, ...] = (), in_panels: int = 1) -> Iterator[Structure]:
    """Axes for lanes: those along which the result is contiguous, and, if there are none, the others; any two others beside them. ``in_panels``: how many
    kinds of operands may be laid out in panels (`Stage.panelled`); what is not among ``constants`` pays if it is read often."""
    long = [k for k in stage.spatial if stage.extents[k] > 1]
    steps = math.prod(stage.extents[k] for k in stage.reduce)
    side_by_side = [k for k in long if stage.step(stage.store, k) == 1]
    others = sorted((k for k in long if k not in side_by_side and stage.step(stage.store, k)), key=lambda k: -stage.extents[k])
    for vector in [*side_by_side, *(others[:MOST_AXES] if steps >= TURNS or not side_by_side else ())]:
        for lanes in _lanes(stage, vector, target):
            rows = sorted((k for k in long if k != vector), key=lambda k: -stage.extents[k])[:MOST_ROWS]
            for row, beside in [(-1, -1), *((r, -1) for r in rows), *itertools.permutations(rows, 2)]:
                for turned in _panelled(stage, vector, constants, in_panels):
                    yield Structure(vector, lanes, row, beside, turned)
    last = stage.reduce[-1]
    lanes = _lanes(stage, last, target)[0]
    if last == len(stage.axes) - 1 and stage.spatial and 1 < lanes <= stage.extents[last] and stage.runs_along(last):
        yield Structure(last, lanes, -1, -1, 0)


def _panelled(stage: Stage, vector: int, constants: tuple[Any, ...], most: int) -> Iterator[int]:
    """The kinds of operands that may be laid out in panels, as far as there are more of them: of those that are copied for it, each element is used often."""
    before: tuple[Access, ...] = ()
    for turned in range(most + 1):
        found = stage.panelled(vector, turned, constants)
        new = [a for a in found if a not in before]
        if not turned or (new and (turned < 3 or all(_uses(stage, a) >= TURNS for a in new))):
            yield turned
            before = found


def _uses(stage: Stage, access: Access) -> int:
    return math.prod(n for k, n in enumerate(stage.extents) if not stage.depends(access, k))


def sample(stage: Stage, target: Target, rng: random.Random) -> dict[str, int]:
    """A random candidate: a structure, a tile that fits the registers, an order of the loops. Raises ScheduleError where there is none."""
    found = list(structures(stage, target))
    if not found:
        raise ScheduleError(f"block {stage.info.name} has no axis for vectors")
    s = rng.choice(found)
    t = tiles(stage, s, target)
    k = rng.randrange(len(t["vectors"]))
    inner = rng.choice(_inner(stage))
    unroll = rng.choice(_steps(stage, inner, target))
    tile = {n: int(column[k]) for n, column in t.items()}
    return {**{f.name: getattr(s, f.name) for f in fields(s)}, **tile, "inner": inner, "unroll": unroll, "sweep": rng.randrange(2), "straight": 0}


def _lanes(stage: Stage, axis: int, target: Target) -> list[int]:
    bits = max(max(a.buffer.dtype.storage_bits for a in (stage.store, *stage.loads) if a.buffer.dtype.is_float or a is stage.store), 8)
    full = max(1, target.vector_bytes * 8 // bits)
    extent = stage.extents[axis]
    if full == 1:
        return [1]
    if extent < full and isinstance(stage.axes[axis].dom.extent, tir.IntImm):
        return [1 << (extent - 1).bit_length()]
    return [full, full // 2] if extent % full and full > 4 else [full]


def alike(stage: Stage, access: Access, s: Structure) -> int:
    """How many lanes side by side load one element, as those of a group of channels do: 1 if those of one vector do not, 0 if all do."""
    count = access.alike(stage.axes[s.vector].var)
    return 1 if count % s.lanes else count


def tiles(stage: Stage, s: Structure, target: Target) -> Columns:
    """All tiles that fit the registers. None has lanes of two groups that load different elements."""
    extent = stage.extents[s.vector]
    most = min(MOST_VECTORS, -(-extent // s.lanes))
    rows = _parts(stage.extents[s.row], ROWS) if s.row >= 0 else [1]
    others = _parts(stage.extents[s.beside], OTHERS) if s.beside >= 0 else [1]
    wide = max(1, -(-s.lanes * stage.store.buffer.dtype.storage_bits // (8 * target.vector_bytes)))

    operands = [a for a in stage.loads if a.buffer is not stage.store.buffer]

    def fits(t: Columns) -> np.ndarray:
        kept = t["rows"] * t["others"] * t["vectors"]
        waiting = sum(np.where(_moves(stage, a, s.row, t["rows"]), 0, _values(stage, a, s, t)) for a in operands)
        return ((kept + np.maximum(waiting, t["vectors"]) + 1) * wide <= target.vector_registers) | (kept == 1)

    side_by_side = CHAINS if s.vector in stage.reduce else range(1, most + 1)
    groups = [n for n in (alike(stage, a, s) for a in stage.loads) if n > 1]
    vectors = [n for n in side_by_side if n <= most and not any(g % (n * s.lanes) for g in groups)]
    return combinations({"vectors": vectors, "rows": rows, "others": others}, fits)


def _parts(extent: int, usual: tuple[int, ...]) -> list[int]:
    """How many neighbours along an axis a tile may have: the usual numbers, and those up to twice the largest that leave no rest."""
    return sorted({n for n in usual if 1 < n <= extent} | {n for n in range(2, min(extent, MOST_PARTS, 2 * usual[-1]) + 1) if extent % n == 0})


def _values(stage: Stage, access: Access, s: Structure, t: Columns) -> Any:
    """Registers of what an operand gives in one step: where it is the same for all rows of a tile, it is kept from row to row."""
    beside = np.where(_moves(stage, access, s.beside, t["others"]), t["others"], 1)
    return beside * (t["vectors"] if stage.depends(access, s.vector) else 1)


def _moves(stage: Stage, access: Access, axis: int, size: np.ndarray) -> Any:
    """Whether an operand moves along an axis inside of a tile of that size: not where the tile is inside of a group that loads one element."""
    if axis < 0 or not stage.depends(access, axis):
        return False
    group = access.alike(stage.axes[axis].var)
    return (size > 1) & ((group <= 1) | (group % size > 0))


class _Model:
    """What the target is expected to take for tiles of a structure."""

    def __init__(self, stage: Stage, target: Target, constants: tuple[Any, ...]) -> None:
        self.stage, self.target, self.constants = stage, target, constants
        self.made: dict[tuple[int, int, int], Statement] = {}

    def cycles(self, s: Structure, t: Columns, inner: int = -1, unroll: np.ndarray | int = 1, sweep: int = 1, straight: int = 0) -> np.ndarray:
        """Of the whole reduction."""
        if s.vector in self.stage.reduce:
            return self._along(s, t)
        stage, extents = self.stage, self.stage.extents
        inner = inner if inner >= 0 else stage.reduce[-1]
        part = {s.vector: t["vectors"] * s.lanes, s.row: t["rows"], s.beside: t["others"]}
        part.pop(-1, None)
        count = {k: -(-extents[k] // part[k]) if k in part else extents[k] for k in stage.spatial}
        rows = [k for k in (s.row, s.beside) if k >= 0]
        columns = [s.vector]
        outside = [k for k in stage.spatial if k not in part] + ([*columns, *rows] if sweep else [*rows, *columns])
        others = [k for k in stage.reduce if k != inner]
        looping = others[: len(others) - straight]
        loops = [Loop(k, count[k]) for k in outside] + [Loop(k, extents[k]) for k in looping] + [Loop(inner, extents[inner] // unroll)]
        loops += [Loop(k, extents[k], UNROLLED) for k in others[len(looping) :]]
        loops += [Loop(inner, unroll, UNROLLED), *(Loop(k, part[k], UNROLLED) for k in rows)]
        loops += [Loop(s.vector, t["vectors"], UNROLLED), Loop(s.vector, s.lanes, LANES)]
        statement = replace(self._statement(s), loops=tuple(loops), edges=1 * (extents[s.vector] % part[s.vector] > 0))
        spent = cycles(self.target, statement)
        for axis in rows:  # tiles inside of one group load one element for all their rows
            groups = {a.buffer: n for a in stage.loads for n in [a.alike(stage.axes[axis].var)] if n > 1}
            if groups:
                shared = replace(statement, touches=tuple(replace(x, moves=x.moves - {axis}) if x.buffer in groups else x for x in statement.touches))
                inside = np.logical_and.reduce([n % part[axis] == 0 for n in groups.values()])
                spent = np.where(inside, cycles(self.target, shared), spent)
        return np.broadcast_to(spent + self._copied(s), t["rows"].shape).astype(float)

    def _along(self, s: Structure, t: Columns) -> np.ndarray:
        """Of a reduction in vectors of partial results."""
        extents, width = self.stage.extents, t["vectors"] * s.lanes
        loops = [Loop(k, extents[k]) for k in (*self.stage.spatial, *self.stage.reduce[:-1])] + [Loop(s.vector, -(-extents[s.vector] // width))]
        statement = in_parts(self._statement(s), s.vector, width)
        body = (Loop(PARTS, t["vectors"], UNROLLED), Loop(PARTS, s.lanes, LANES))
        return np.asarray(cycles(self.target, replace(statement, loops=(*loops, *body))), dtype=float)

    def _copied(self, s: Structure) -> float:
        """Cycles to turn operands."""
        if not s.turned:
            return 0.0
        moved = [a for a in self.stage.panelled(s.vector, s.turned, self.constants) if a.buffer not in self.constants]
        each = {a: self.target.result_cycles / s.lanes if self.stage.step(a, s.vector) == 1 else self.target.move_cycles for a in moved}
        return sum(each[a] * math.prod(n.value if isinstance(n, tir.IntImm) else ASSUMED for n in a.buffer.shape) for a in moved)

    def _statement(self, s: Structure) -> Statement:
        key = (s.vector, s.lanes, s.turned)
        if key not in self.made:
            has_guards = self.stage.axes[s.vector].var in conditional(self.stage.info)  # else loops are cut where they change
            found = in_registers(statement_of(self.stage.info.block, s.vector, self.target, has_guards))
            plain = replace(found, touches=tuple(self._broadcast(t, s) for t in found.touches))
            turned = self.stage.panelled(s.vector, s.turned, self.constants)
            self.made[key] = replace(plain, touches=tuple(self._touch(t, turned, s) for t in plain.touches))
        return self.made[key]

    def _broadcast(self, t: Touch, s: Structure) -> Touch:
        """What all lanes of a tile share is one element."""
        shared = {alike(self.stage, a, s) for a in self.stage.loads if a.buffer is t.buffer}
        return replace(t, moves=t.moves - {s.vector}, lane=0) if shared and 1 not in shared and s.vector in t.moves else t

    def _touch(self, t: Touch, turned: tuple[Access, ...], s: Structure) -> Touch:
        if t.is_store or all(t.buffer is not a.buffer for a in turned):
            return t
        at = next(k for k, (_, steps) in enumerate(t.operand.sides) if steps and s.vector in steps)
        width = 2 * s.lanes
        others = [side for k, side in enumerate(t.operand.sides) if k != at]
        panel = (-(-t.operand.sides[at][0] // width), {s.vector: 1 / width})
        turned_operand = Operand((panel, *others, (width, {s.vector: 1})), t.operand.element_bytes, t.operand.line_bytes, is_packed=True)
        return replace(t, lane=1, operand=turned_operand)
