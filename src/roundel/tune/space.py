# SPDX-License-Identifier: Apache-2.0
"""What is searched: the sketches of a program, each with the tables of its decisions.

A candidate is a sketch and a row in each of its tables, so it is a few whole numbers: a hundred thousand of them are an array, and what is
expected of them is read from columns. Nothing is scheduled until a candidate is to be measured.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..ir.annotations import GRAIN
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError
from ..strategy.candidates import Candidates
from ..strategy.choose import choose
from ..strategy.cost import expected_cycles
from ..strategy.program import Program
from ..strategy.refine import Mutator, Postprocessor, refined_sketch
from ..strategy.rules import rules_in_order
from ..strategy.sketch import Applied, Rule, Sketch
from .measure.plan import Plan, packed, scheduled

GRAIN_POWERS = (0, -1, 1, -2, 2)
FARTHER = 0.01  # share of the time that is expected of each power away from the grain of the sketch's best: what is nearer is tried first

SPACES = ("all", "rules", "generic")
GENERIC = ("generic", "generic_padding", "spatial", "fallback", "as_written")
_log = logging.getLogger("roundel.tune")


class Candidate(NamedTuple):
    """A way to schedule a program: the position of the sketch in the space, and a row of each of its tables."""

    way: int
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Way:
    """A sketch in a space. ``tables`` are decided independently of each other, none if there is nothing to decide."""

    sketch: Sketch
    tables: tuple[Candidates, ...]
    beside: float  # cycles that its tables do not count

    @property
    def name(self) -> str:
        """The sketch's."""
        return self.sketch.name

    @cached_property
    def packed(self) -> bytes | None:
        """The sketch as another process gets it; None where it is for this one alone."""
        return packed(self.sketch)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return math.prod(len(t) for t in self.tables)

    def cycles(self, rows: np.ndarray) -> np.ndarray:
        """What is expected of candidates, given as an array with a column of row numbers for each table."""
        out = np.full(len(rows), float(self.beside))
        for k, table in enumerate(self.tables):
            if table.cycles is not None:
                out += table.cycles[rows[:, k]]
        return out

    def columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The decisions of candidates, by name."""
        return {name: column[rows[:, k]] for k, table in enumerate(self.tables) for name, column in table.columns.items()}

    def choice(self, rows: Sequence[int]) -> dict[str, int]:
        """The decisions of one candidate."""
        return {n: v for table, row in zip(self.tables, rows, strict=True) for n, v in table.decisions(row).items()}

    def all(self) -> np.ndarray:
        """Every candidate."""
        grids = np.meshgrid(*(np.arange(len(t)) for t in self.tables), indexing="ij")
        return np.stack([g.reshape(-1) for g in grids], axis=1) if self.tables else np.zeros((1, 0), dtype=np.int64)

    def ranked(self, most: int) -> np.ndarray:
        """The candidates that are expected to be fastest, the fastest first. Of several tables, some of the best of each are combined."""
        if len(self.tables) <= 1:
            rows = self.all()
        else:
            sizes = [len(t) for t in self.tables]
            while math.prod(sizes) > max(most, 1) and max(sizes) > 2:
                sizes[sizes.index(max(sizes))] = max(2, max(sizes) * 3 // 4)
            grids = np.meshgrid(*(t.ranking()[:n] for t, n in zip(self.tables, sizes, strict=True)), indexing="ij")
            rows = np.stack([g.reshape(-1) for g in grids], axis=1)
        return rows[np.argsort(self.cycles(rows), kind="stable")[:most]]

    def random(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Candidates at random, each as likely as any other."""
        columns = [rng.integers(0, len(t), count) for t in self.tables]
        return np.stack(columns, axis=1) if columns else np.zeros((1, 0), dtype=np.int64)

    def mutated(self, rows: Sequence[int], count: int, rng: np.random.Generator) -> np.ndarray:
        """Candidates that are like another but for one decision, or, where the tables have none, for as few as possible. Half of them are those of the
        sketch's own mutators, if it has some."""
        own = self._mutated_by(self.sketch.mutators, rows, count // 2, rng)
        count -= len(own)
        found = np.tile(np.asarray(rows, dtype=np.int64), (count, 1))
        parts = rng.integers(len(self.tables), size=count) if self.tables else ()
        for part in sorted(set(parts)):
            changed = np.flatnonzero(parts == part)
            if len(near := self._neighbours(part, rows[part])):
                found[changed, part] = rng.choice(near, len(changed))
        return np.concatenate([own, found]) if len(own) else found

    def _mutated_by(self, mutators: Sequence[Mutator], rows: Sequence[int], count: int, rng: np.random.Generator) -> np.ndarray:
        """What functions make of a candidate. One that fails costs its candidates."""
        choice, values = self.choice(rows), {n: sorted(set(c.tolist())) for t in self.tables for n, c in t.columns.items()}
        found = []
        for k in range(count if mutators else 0):
            try:
                made = mutators[k % len(mutators)](dict(choice), values, rng)
                found.append(None if made is None else _rows(self, choice | dict(made)))
            except Exception as error:  # somebody else's function
                _log.warning("a mutator of sketch %s failed and is passed over: %s: %s", self.name, type(error).__name__, error)
                break
        return np.asarray([r for r in found if r is not None], dtype=np.int64).reshape(-1, len(self.tables))

    def _neighbours(self, part: int, row: int) -> np.ndarray:
        matrix = self._matrices[part]
        differing = (matrix != matrix[row]).sum(axis=1)
        others = differing[differing > 0]
        return np.flatnonzero(differing == others.min()) if len(others) else others

    @cached_property
    def _matrices(self) -> list[np.ndarray]:
        return [np.stack(list(t.columns.values()), axis=1) if t.columns else np.zeros((1, 0)) for t in self.tables]


@dataclass(frozen=True, eq=False)
class Space:
    """All candidates of a program. ``default`` is the untuned compiler's choice."""

    program: Program
    ways: tuple[Way, ...]
    default: Candidate

    @staticmethod
    def of(program: Program, which: str | Sequence[str | Rule] = "all", threads: int = 1, postprocessors: Sequence[Postprocessor] = (),
           mutators: Sequence[Mutator] = ()) -> Space:
        """The space of a program to be run by so many threads: of ``all`` rules, of hand-written ``rules`` only, of the ``generic`` ones only, or of
        those that are listed, by name or as rules. The untuned compiler's choice is always in it, alone where its sketch is not. ``postprocessors`` and
        ``mutators`` are those of all sketches (`refined`), but the default's has no postprocessors. Raises OptionError."""
        found = next(a for a in choose(program.func, program.target, program.constants) if a.fits)
        assert found.sketch is not None  # it fits
        sketches: list[Sketch] = []
        for rule in _rules(which):
            try:
                sketches += program.once(rule, lambda rule=rule: rule(program))
            except Exception as error:  # as in choose: a mistake in a rule costs speed
                _log.warning("rule %s failed on program %r and is left out: %s: %s", rule.name, program.name, type(error).__name__, error)
        sketches = [refined_sketch(s, postprocessors, mutators) for s in sketches]
        at = -1 if postprocessors else next((k for k, s in enumerate(sketches) if s.name == found.sketch.name), -1)
        if at < 0:
            sketches.append(_alone(found.sketch, found.choice))
        ways = [_way(s, program, threads) for s in sketches]
        own = ways[at]
        assert found.applied is not None  # it fits
        rows = _rows(own, {**found.applied.decisions, **found.choice})
        assert rows is not None  # the choice is from these tables
        default = Candidate(ways.index(own), rows)
        kept = [w for w in ways if w is own or (w.size and np.isfinite(w.beside))]
        return Space(program, tuple(kept), default._replace(way=kept.index(own)))

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return sum(w.size for w in self.ways)

    def __iter__(self) -> Iterator[Candidate]:
        for k, way in enumerate(self.ways):
            for rows in way.all().tolist():
                yield Candidate(k, tuple(rows))

    def cycles(self, candidate: Candidate) -> float:
        """What is expected of one."""
        return float(self.ways[candidate.way].cycles(np.asarray([candidate.rows], dtype=np.int64).reshape(1, -1))[0])

    def choice(self, candidate: Candidate) -> dict[str, int]:
        """Its decisions."""
        return self.ways[candidate.way].choice(candidate.rows)

    def sketch(self, candidate: Candidate) -> Sketch:
        """Its sketch."""
        return self.ways[candidate.way].sketch

    def schedule(self, candidate: Candidate) -> Applied:
        """The program as it says. Raises ScheduleError where a step is not legal, also where the rule made a mistake."""
        return scheduled(self.sketch(candidate), self.choice(candidate))

    def plan(self, candidate: Candidate, known: frozenset[str] = frozenset()) -> Plan | None:
        """The same for another process; None where its sketch cannot be sent."""
        content = self.ways[candidate.way].packed
        return None if content is None else Plan(content, self.choice(candidate), known)

    def keep_here(self, candidate: Candidate) -> None:
        """Its sketch is not for other processes: what it needs is known in this one alone."""
        self.ways[candidate.way].__dict__["packed"] = None

    def find(self, sketch: str, decisions: Any) -> Candidate | None:
        """The candidate with these decisions, as a record has them; None where there is none any more."""
        for k, way in enumerate(self.ways):
            if way.name == sketch and (rows := _rows(way, decisions)) is not None:
                return Candidate(k, rows)
        return None


def _rules(which: str | Sequence[str | Rule]) -> list[Rule]:
    known = rules_in_order()
    if isinstance(which, str):
        if which not in SPACES:
            raise OptionError(f"there is no space {which!r}", hint=f"one of {', '.join(SPACES)}, or a list of rules")
        return [r for r in known if which == "all" or (r.name in GENERIC) == (which == "generic")]
    names = {r.name: r for r in known}
    if missing := [n for n in which if isinstance(n, str) and n not in names]:
        raise OptionError(f"there is no rule {missing[0]!r}", hint=f"there are {', '.join(names)}")
    return [names[r] if isinstance(r, str) else r for r in which]


def _alone(sketch: Sketch, choice: Mapping[str, Any]) -> Sketch:
    """A sketch with nothing left to decide: one choice is its only candidate."""
    if sketch.candidates is None:
        return sketch
    expected = sketch.candidates.expected(choice)
    only = Candidates({n: np.asarray([choice[n]]) for n in sketch.candidates.columns}, None if expected is None else np.asarray([expected]))
    return replace(sketch, candidates=only, parts=None)


def _way(sketch: Sketch, program: Program, threads: int) -> Way:
    """A sketch with its tables, for several threads with one for the grain. Where they expect nothing, the cost model judges what the best candidate
    becomes."""
    beside, best = sketch.unchanged, None
    is_rated = any(t.cycles is not None for t in sketch.tables)
    if not is_rated or threads > 1:
        try:
            best = sketch.schedule()
            expected = None if is_rated else sketch.expected(sketch.best())
            beside = beside if is_rated else expected_cycles(best.func, program.target, cores=1) if expected is None else expected
        except Exception as error:  # it is not legal here, or fails; either way it is not in the space
            _log.info("sketch %s is not in the space of %r: %s", sketch.name, program.name, error)
            beside = beside if is_rated else float("inf")
    own = None if best is None else best.decisions.get(GRAIN)
    if threads == 1 or own is None or any(GRAIN in t.columns for t in sketch.tables):
        return Way(sketch, sketch.tables, beside)
    least = beside + sum(float(t.cycles.min()) for t in sketch.tables if t.cycles is not None and len(t))
    grains = {max(1, int(own * 2.0**power)): abs(power) for power in sorted(GRAIN_POWERS, key=abs, reverse=True)}
    far = np.asarray(list(grains.values()))
    return Way(sketch, (*sketch.tables, Candidates({GRAIN: np.asarray(list(grains))}, FARTHER * least * far)), beside)


def _rows(way: Way, choice: Any) -> tuple[int, ...] | None:
    """The rows with these decisions."""
    rows = []
    for table in way.tables:
        if not set(table.columns) <= set(choice):
            return None
        same = np.logical_and.reduce([column == choice[n] for n, column in table.columns.items()]) if table.columns else np.ones(1, dtype=bool)
        if not same.any():
            return None
        rows.append(int(np.flatnonzero(same)[0]))
    return tuple(rows)
