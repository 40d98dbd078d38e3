# SPDX-License-Identifier: Apache-2.0
"""Choices of the graph (algorithms, layouts, boundaries of kernels, packing) by measurement: a few whole models, those that are expected to be fastest.

What a model takes is expected to be the sum over its kernels, with what a call of one costs beside it: what a kernel took inside of a model that was
measured, else what a record says of it, else what is expected of it, times how far measurements were from that: those of kernels of the same operators,
else all. So each model that is measured tells something of others that have some of its kernels or similar ones, and preparing a model, which tells its
kernels, is all that is done for most.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from statistics import median
from typing import Any

from .. import driver
from ..graph.constant_bytes import constant_bytes
from ..ir import options
from ..ir.choice import Choice, Choices
from ..ir.dataclass import dataclass
from ..ir.errors import RoundelError
from ..ir.record import ChoiceRecord, Key
from ..strategy.expected import Setting, expected
from .database import Database
from .measure import Argument
from .measure.arrays import difference, outputs_of, random_arguments, to_write
from .measure.clock import turn
from .measured import Measured
from .task import BEFORE_SCHEDULING, Task, tasks_of
from .verdict import is_faster
from .whole import Proposed, Whole, profile_of

WIDE = ("algorithm", "layout")  # kinds of choices that change many kernels, which are tried first
KINDS = (*WIDE, "kernel", "packing")
MOST = 8           # models that are measured, the untuned one among them
MOST_WAYS = 96     # that are prepared
PREPARING = 0.4    # most share of the time for that
COMPILED = 4       # times as long as preparing a model takes compiling and measuring it, about
SECONDS = 120.0    # for everything, where nobody says how long
HOPELESS = 1.6     # times what is expected of a choice from which on another one is not prepared
FAR = 1.2          # times the fastest from which on a way is not worth measuring
ROUNDS, LAST = 12, 40  # of a way against the untuned model: first, and of the fastest at the end
TURN_SECONDS = 4e-3
_NUMBER = re.compile(r"_[0-9]+(?=_|$)")  # in the name of a kernel, that tells it from others of the same operators
_log = logging.getLogger("roundel.tune")


@dataclass(frozen=True)
class Place:
    """Nodes at which the same is to be chosen. ``taken``: what the compiler takes; ``alternatives``: what is expected of each relative to
    that (1 where nothing is); ``sites``: the names of the nodes."""

    signature: str
    kind: str
    subject: str
    taken: str
    alternatives: Mapping[str, float]
    sites: tuple[str, ...]


@dataclass(eq=False)
class Way:
    """A model with some choices of its own: at the signature of a place the alternative. ``tasks``: its kernels by their digests; ``ratio``: what a run took
    relative to the untuned model, None before it was measured."""

    choices: Mapping[str, str]
    places: Sequence[Place]
    tasks: Mapping[str, Task]
    ratio: float | None = None

    @property
    def kernels(self) -> frozenset[tuple[str, float]]:
        """With the calls of each in a run."""
        return frozenset((digest, t.weight) for digest, t in self.tasks.items())


@dataclass(frozen=True)
class Chosen:
    """What was found: ``records`` of places, ``changes`` in words, ``ratios`` of the fastest model to the untuned one by round (nothing where that stays),
    how many models were ``measured`` of how many that were ``prepared``."""

    records: tuple[ChoiceRecord, ...] = ()
    changes: tuple[str, ...] = ()
    ratios: Sequence[float] = ()
    measured: int = 0
    prepared: int = 0
    was_interrupted: bool = False

    @property
    def gain(self) -> float:
        """How many times as fast as with the compiler's own choices."""
        return 1 / median(self.ratios) if self.ratios else 1.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"prepared": self.prepared, "measured": self.measured, "gain": self.gain, "changes": list(self.changes)}

    def __str__(self) -> str:
        told = f"choices of the graph: {self.measured} of {self.prepared} models measured; "
        if not self.ratios:
            return told + "the compiler's own stay"
        return told + f"{self.gain:.2f} times as fast with {'; '.join(self.changes)}"


@dataclass(eq=False)
class Graphs:
    """The search among models with other choices. ``whole``: the model; ``cases``: values of its symbolic sizes with weights; ``most``: models that are
    measured; ``end``: when to stop (`time.monotonic`); ``tell`` hears how far it is. Ctrl-C ends the search; what it found is compared and kept."""

    whole: Whole
    cases: Sequence[tuple[Mapping[str, int], float]]
    database: Database
    most: int = MOST
    end: float = float("inf")
    tell: Callable[[str], None] = lambda text: None
    ways: dict[frozenset[tuple[str, str]], Way] = field(default_factory=dict)
    _seconds: dict[str, float] = field(default_factory=dict)  # of a call of a kernel, by digest,
    _cycles: dict[str, float] = field(default_factory=dict)   # ... and what is expected of it
    _alike: dict[str, str] = field(default_factory=dict)      # equal for kernels of the same operators
    _call: float = 0.0                                        # seconds that a call takes beside the kernel's own
    _compiling: float = 0.0                                   # seconds that it takes to compile and open a model

    def run(self) -> Chosen:
        """Prepare, measure, and decide. A model that cannot be run with random inputs keeps what the compiler chooses."""
        self.measured = Measured(self.database, self.whole.target, self.whole.threads)
        self.setting = Setting(self.whole.target, constant_bytes(self.whole.mod))
        begun = time.monotonic()
        self.end = min(self.end, begun + SECONDS) if self.end == float("inf") else self.end
        preparing = begun + PREPARING * (self.end - begun)
        try:
            base = self._prepared({})
            if not self._moves(base) or time.monotonic() + COMPILED * (time.monotonic() - begun) > self.end:
                return Chosen()
            self.base = self._opened(base)
        except (RoundelError, MemoryError, KeyError) as error:
            _log.warning("the choices of the graph are not measured, as the model does not run with random inputs: %s", error)
            return Chosen()
        self._best, self._opened_best, was_interrupted = base, self.base, False
        try:
            self._measure(base, self.base)
            self._expand(base, preparing)
            self._search()
        except KeyboardInterrupt:
            was_interrupted = True
        ratios = self._ratios(self._opened_best, LAST) if self._best is not base else []
        best = self._best if is_faster(ratios) else base
        tried = sum(w.ratio is not None for w in self.ways.values())
        return Chosen(tuple(self._records(base, best)), tuple(self._changes(best)), ratios if best is not base else [], tried, len(self.ways), was_interrupted)

    def _search(self) -> None:
        """Measure the ways that promise most, until that is enough."""
        for _ in range(self.most - 1):
            if time.monotonic() + self._compiling > self.end or (following := self._next(self._best)) is None:
                return
            function = self._tried(following)
            if function is not None and (following.ratio or 1.0) < (self._best.ratio or 1.0):
                self._best, self._opened_best = following, function
                self._expand(following, time.monotonic() + PREPARING / 2 * (self.end - time.monotonic()))
            self.tell(f"{len(self.ways)} graphs prepared, {sum(w.ratio is not None for w in self.ways.values())} measured; the fastest takes "
                      f"{self._best.ratio:.3f} of the time of the untuned one")

    # --- what there is

    def _prepared(self, choices: Mapping[str, str]) -> Way:
        """A model with these choices, as far as its tensor programs. Raises RoundelError."""
        mod = driver.prepare(self.whole.mod, target=self.whole.target, pipeline=BEFORE_SCHEDULING, records=self._proposed(choices))
        found = {t.key(self.whole.threads).program: t for t in tasks_of(mod, self.whole.target, self.cases, 0)}
        for digest, t in found.items():
            if digest not in self._cycles:
                self._cycles[digest] = expected(t.program.func, self.setting, t.program.constants)
                self._alike[digest] = _NUMBER.sub("", t.name)
        way = Way(choices, places_of(mod.choices), found)
        self.ways[frozenset(choices.items())] = way
        return way

    def _proposed(self, choices: Mapping[str, str]) -> Proposed:
        return Proposed(choices={s: self._record(s, taken) for s, taken in choices.items()}, kept=self.measured)

    def _record(self, signature: str, taken: str, seconds: Mapping[str, float] | None = None, subject: str = "") -> ChoiceRecord:
        key = Key(signature, self.whole.target.fingerprint, self.whole.threads, options.of_schedules())
        return ChoiceRecord(key, taken, dict(seconds or {}), subject, sizes=[dict(s) for s, _ in self.cases if s])

    def _moves(self, way: Way) -> list[dict[str, str]]:
        """The choices of a way with one more, the most promising first; what was measured in an earlier session is left as it is."""
        open_ = [p for p in way.places if p.signature not in way.choices and self.measured.choice(p.signature) is None]
        moves = [(p.kind not in WIDE, ratio, -len(p.sites), p.signature, name) for p in open_ for name, ratio in p.alternatives.items()
                 if name != p.taken and ratio <= HOPELESS]
        return [{**way.choices, signature: name} for *_, signature, name in sorted(moves)]

    def _expand(self, first: Way, until: float) -> None:
        """Prepare the ways that differ from one by a choice more, by two, and so on, until there are many or the time is over. Some choices come to the
        same: of those that lead to the same kernels one is gone on from."""
        queue, met = [first], {w.kernels for w in self.ways.values()}
        for way in queue:
            for choices in self._moves(way):
                if len(self.ways) >= MOST_WAYS or time.monotonic() > until:
                    return
                if frozenset(choices.items()) in self.ways:
                    continue
                try:
                    found = self._prepared(choices)
                except RoundelError as error:
                    _log.info("choices %s cannot be had: %s", choices, error)
                    continue
                if found.kernels in met:
                    del self.ways[frozenset(choices.items())]
                else:
                    met.add(found.kernels)
                    queue.append(found)

    def _next(self, best: Way) -> Way | None:
        """The way that is expected to be the fastest of those that were not measured."""
        found = min((w for w in self.ways.values() if w.ratio is None), key=self.expected, default=None)
        is_small = len(self.ways) <= 2 * self.most
        return found if found is not None and (is_small or self.expected(found) <= FAR * self.expected(best)) else None

    def expected(self, way: Way) -> float:
        """About the seconds of a run."""
        known = [s / self._cycles[d] for d, s in self._seconds.items() if self._cycles.get(d)]
        rate = median(known) if known else 1e-9
        return sum(t.weight * (self._call + self._of_kernel(d, rate * self._cycles[d])) for d, t in way.tasks.items())

    def _of_kernel(self, digest: str, otherwise: float) -> float:
        if digest in self._seconds:
            return self._seconds[digest]
        if (record := self.measured.best(digest)) is not None:
            return record.seconds / max(len(record.timings), 1)
        alike = [s / self._cycles[d] for d, s in self._seconds.items() if self._alike.get(d) == self._alike[digest] and self._cycles[d]]
        return self._cycles[digest] * median(alike) if alike else otherwise

    # --- measuring

    def _opened(self, way: Way) -> _Model:
        begun = time.monotonic()
        built = driver.compile_module(self.whole.mod, target=self.whole.target, records=self._proposed(way.choices))
        executable = built.load(threads=self.whole.threads, profile=True)
        self._compiling = time.monotonic() - begun
        return _Model(executable["main" if "main" in executable else next(iter(executable))], self.cases)

    def _tried(self, way: Way) -> _Model | None:
        """Measure a way; None where it cannot be built, or computes something else."""
        way.ratio = float("inf")
        try:
            model = self._opened(way)
            why = next((w for a, b in zip(model.results, self.base.results, strict=True) if (w := difference(a, b)) is not None), None)
            if why is not None:
                _log.warning("choices %s are not taken: %s", dict(way.choices), why)
                return None
            self._measure(way, model)
        except (RoundelError, MemoryError) as error:
            _log.info("choices %s cannot be measured: %s", dict(way.choices), error)
            return None
        return model

    def _measure(self, way: Way, model: _Model) -> None:
        way.ratio = median(self._ratios(model, ROUNDS)) if model is not self.base else 1.0
        names = {name: (digest, t.weight) for digest, t in way.tasks.items() for name in t.names}
        taken: dict[str, float] = {}
        for name, seconds in model.kernels().items():
            if name in names:
                digest, weight = names[name]
                taken[digest] = taken.get(digest, 0.0) + seconds / weight
        for digest, seconds in taken.items():
            self._seconds.setdefault(digest, seconds)
        if model is self.base and taken.keys() == way.tasks.keys():
            beside = model.seconds(self.whole.threads) - sum(t.weight * taken[d] for d, t in way.tasks.items())
            self._call = max(beside, 0.0) / sum(t.weight for t in way.tasks.values())

    def _ratios(self, model: _Model, rounds: int) -> list[float]:
        found = []
        for k in range(rounds):
            pair = {m: m.seconds(self.whole.threads) for m in ((model, self.base) if k % 2 else (self.base, model))}
            found.append(pair[model] / pair[self.base])
        return found

    # --- what is kept

    def _changes(self, best: Way) -> Iterator[str]:
        """Each choice of a way in words: what is taken where, in place of what."""
        places = {p.signature: p for w in self.ways.values() for p in w.places if p.signature not in w.choices}
        for signature, name in best.choices.items():
            place = places[signature]
            more = f" and {len(place.sites) - 1} more" if len(place.sites) > 1 else ""
            yield f"{name} instead of {place.taken} at {place.sites[0]}{more} ({place.subject})"

    def _records(self, base: Way, best: Way) -> Iterator[ChoiceRecord]:
        """Of each place at which something else was measured: what is taken from now on, with the fastest run that each alternative was in."""
        run = self.base.seconds(self.whole.threads)
        tried = [w for w in self.ways.values() if w.ratio is not None and w.ratio < float("inf")]
        for place in {p.signature: p for w in (best, base) for p in w.places}.values():
            seconds: dict[str, float] = {}
            for way in tried:
                if any(p.signature == place.signature for p in way.places):
                    name = way.choices.get(place.signature, place.taken)
                    seconds[name] = min(seconds.get(name, float("inf")), (way.ratio or 1.0) * run)
            if len(seconds) > 1 or place.signature in best.choices:
                default = next((p.taken for p in base.places if p.signature == place.signature), place.taken)
                yield self._record(place.signature, best.choices.get(place.signature, default), seconds, place.subject)


class _Model:
    """A compiled model with inputs and results by case. Raises KeyError for a size that has no value."""

    def __init__(self, function: Any, cases: Sequence[tuple[Mapping[str, int], float]]) -> None:
        self.function, whole = function, sum(weight for _, weight in cases)
        self.weights = [weight / whole for _, weight in cases]
        self.inputs = [random_arguments(_arguments(function, sizes), f"model {k}") for k, (sizes, _) in enumerate(cases)]
        self.results = [outputs_of(function, given) for given in self.inputs]
        self.sets = [to_write(function, given, found) for given, found in zip(self.inputs, self.results, strict=True)]
        self.calls = [max(1, round(TURN_SECONDS / max(function.seconds([s], 1), 1e-7))) for s in self.sets]

    def seconds(self, threads: int) -> float:
        """Of a run, all cases as they count."""
        return sum(w * turn(partial(self.function.seconds, [s], n), threads)[0] / n for w, s, n in zip(self.weights, self.sets, self.calls, strict=True))

    def kernels(self) -> dict[str, float]:
        """Seconds of each kernel in a run, all cases as they count."""
        found: dict[str, float] = {}
        for weight, given in zip(self.weights, self.inputs, strict=True):
            runs = [profile_of(self.function, given) for _ in range(3)]
            for name in runs[0]:
                found[name] = found.get(name, 0.0) + weight * median(r.get(name, 0.0) for r in runs)
        return found


def _arguments(function: Any, sizes: Mapping[str, int]) -> list[Argument]:
    return [Argument(tuple(d if isinstance(d, int) else sizes[d] for d in i.shape), i.dtype) for i in function.info.inputs]


def places_of(choices: Choices) -> list[Place]:
    """Where something is to be chosen that other compiles can find again: equal nodes are one place."""
    found: dict[str, list[Choice]] = {}
    for choice in choices.made:
        if choice.kind in KINDS and choice.signature and len(choice.names) > 1 and choice.taken in choice.names and choice.reason != "pinned":
            found.setdefault(choice.signature, []).append(choice)
    return [Place(s, c[0].kind, c[0].subject, c[0].taken, _relative(c[0]), tuple(one.site for one in c)) for s, c in found.items()]


def _relative(choice: Choice) -> dict[str, float]:
    """What is expected of the alternatives of a choice relative to the one that was taken, without working anything out for that."""
    base = choice.alternatives[choice.taken]
    times = {name: choice.alternatives[name] for name in choice.names}
    return {name: t / base if isinstance(t, int | float) and isinstance(base, int | float) and base else 1.0 for name, t in times.items()}
