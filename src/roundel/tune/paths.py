# SPDX-License-Identifier: Apache-2.0
"""Parts of a model by every path there is: generated code, libraries, kernels of the user's own. What is surely the fastest is remembered.

A part is an operator that a backend can compute, with what generated code may compute in the same kernel. Each path of it is compiled as a small
model of its own, compared with the results of generated code, and raced against it; equal parts are measured once. At the end the model as a whole
runs by the paths that won, by turns with generated code alone: what is not faster there is not kept.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from .. import driver
from ..backends import known
from ..backends.backend import GENERATED, Backend, Kernel
from ..backends.libraries import expected
from ..backends.offers import Part, parts_of, plain, users_in
from ..graph.expectations import Expectations
from ..ir import graph, options
from ..ir.choice import Choices, Choosing
from ..ir.dataclass import dataclass
from ..ir.digest import structural_digest
from ..ir.errors import RoundelError
from ..ir.module import IRModule
from ..ir.record import ChoiceRecord, Key
from ..relax.outline import outline, unknown_sizes
from ..strategy.sizes import Sizes
from ..target import Target
from .database import Database
from .measure import FINAL, Argument, Artifact, Failure, Job, Runner, Timed
from .measure.build import NAME, artifact_of
from .measure.race import race
from .measured import Measured
from .verdict import combined, faster_inside, is_faster
from .whole import Proposed, Whole

KIND = "library"  # of the choice
_BEFORE = driver.DEFAULT[: driver.DEFAULT.index(driver.libraries)]
_AFTER = driver.DEFAULT[len(_BEFORE) :]
_log = logging.getLogger("roundel.tune")


@dataclass(frozen=True)
class Compared:
    """A part of a model by its paths. ``sites``: the nodes that are computed so; ``seconds`` of a call by path, ``wrong`` and ``failed`` say of those
    without any why, ``crashed`` are those of the failed that ended their process or never came back; ``taken`` is what is compiled from now on,
    ``note`` why that is not the fastest."""

    subject: str
    sites: tuple[str, ...]
    seconds: Mapping[str, float] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    crashed: tuple[str, ...] = ()
    taken: str = GENERATED
    note: str = ""
    signature: str = ""

    @property
    def saved(self) -> float:
        """Seconds that a run of the model saves."""
        return len(self.sites) * (self.seconds.get(GENERATED, 0.0) - self.seconds.get(self.taken, 0.0))

    def __str__(self) -> str:
        where = f"{self.sites[0]} and {len(self.sites) - 1} more" if len(self.sites) > 1 else self.sites[0]
        times = [f"{name} {s * 1e3:.4f} ms" for name, s in sorted(self.seconds.items(), key=lambda item: item[1])]
        times += [f"{name} is wrong: {why}" for name, why in self.wrong.items()] + [f"{name} failed: {why}" for name, why in self.failed.items()]
        return f"{where}: {self.subject}: {self.taken} ({'; '.join([*times, *([self.note] if self.note else [])])})"


@dataclass
class Paths:
    """The comparison of the paths of a model: its module, the machine, the threads of a run, backends by name, values of symbolic sizes with their
    weights. ``end``: when to stop measuring (`time.monotonic`)."""

    mod: IRModule
    target: Target
    threads: int
    names: Sequence[str]
    cases: Sequence[tuple[Mapping[str, int], float]]
    database: Database
    runner: Runner
    end: float = float("inf")
    watch: Callable[[Compared], None] = lambda compared: None

    def run(self) -> list[Compared]:
        """Compare and remember. Raises RoundelError for a backend that there is not."""
        self.measured = Measured(self.database, self.target, self.threads)
        backends = [known.find(name) for name in self.names]
        with options.override(libraries="off", cache=False):
            found = [self._watched(self._compared(*part)) for part in self._parts(backends)]
            found = self._confirmed([c for c in found if c is not None], backends)
        self.database.append(*(self._record(c, backends) for c in found if c.seconds or c.wrong))
        return found

    def _watched(self, compared: Compared | None) -> Compared | None:
        if compared is not None:
            for name, why in compared.wrong.items():
                _log.warning("%s computes something else at %s (%s): %s; it is not used there", name, compared.sites[0], compared.subject, why)
            self.watch(compared)
        return compared

    # -- what there is to compare

    def _parts(self, backends: Sequence[Backend]) -> Iterator[tuple[graph.Function, Part, str, tuple[str, ...]]]:
        """The parts that differ, each in its function, with the signature of the choice and the nodes where it is met; those first in which a run is
        expected to spend most, since time may end before all are compared."""
        mod = driver.prepare(self.mod, target=self.target, pipeline=_BEFORE)
        choosing = Choosing(Choices(records=self.measured), KIND)
        found: dict[str, tuple[graph.Function, Part, list[str]]] = {}
        for _, func in mod.items():
            if isinstance(func, graph.Function):
                func = plain(func)
                for part in parts_of(func, backends, self.target):
                    if any(isinstance(o.kernel, Kernel) for o in part.offers.values()):
                        found.setdefault(choosing.signature(part.key()), (func, part, []))[2].append(part.site)
        expectations = Expectations.of(mod)
        spent = {signature: len(sites) * (expected(part.longest, expectations) or 0.0) for signature, (_, part, sites) in found.items()}
        for signature, (func, part, sites) in sorted(found.items(), key=lambda item: -spent[item[0]]):
            yield func, part, signature, tuple(sites)

    def _compared(self, func: graph.Function, part: Part, signature: str, sites: tuple[str, ...]) -> Compared | None:
        """A part by its paths; None where there was no time left, or it cannot stand alone."""
        small = alone(func, part)
        if small is None or time.monotonic() > self.end:
            return None
        job = Job(structural_digest(small[NAME]), tuple(arguments(small, sizes) for sizes, _ in self.cases), self.threads)
        compared = Compared(part.subject, sites, signature=signature)
        generated = self._built(small, {})
        if isinstance(generated, Failure):
            return replace(compared, note=f"generated code cannot be measured alone: {generated}")
        offered = {name: o.kernel for name, o in part.offers.items() if isinstance(o.kernel, Kernel)}
        built = {name: self._built(small, {part.site: name}) for name in offered}
        failed = {name: str(b) for name, b in built.items() if isinstance(b, Failure)}
        artifacts = {name: b for name, b in built.items() if isinstance(b, Artifact)}
        runs_here = any(offered[name].function is not None for name in artifacts)
        try:
            times, outcomes = (_race_here if runs_here else self.runner.race)(job, generated, generated, list(artifacts.values()), FINAL)
        except RuntimeError as error:
            return replace(compared, failed=failed, note=f"it cannot be measured alone: {error}")
        return self._judged(compared, times, dict(zip(artifacts, outcomes, strict=True)), failed)

    def _judged(self, compared: Compared, generated: Timed, outcomes: Mapping[str, Timed | Failure], failed: Mapping[str, str]) -> Compared:
        weights = [weight for _, weight in self.cases]
        total = sum(w * s for w, s in zip(weights, generated.seconds, strict=True))
        wrong = {name: f.why for name, f in outcomes.items() if isinstance(f, Failure) and f.kind == "wrong result"}
        failed = {**failed, **{name: str(f) for name, f in outcomes.items() if isinstance(f, Failure) and f.kind != "wrong result"}}
        crashed = tuple(name for name, f in outcomes.items() if isinstance(f, Failure) and f.kind in ("crash", "time limit"))
        seconds, sure = {GENERATED: total}, {GENERATED: total}
        for name, timed in outcomes.items():
            if isinstance(timed, Timed):
                seconds[name] = sum(w * s * r for w, s, r in zip(weights, generated.seconds, timed.ratios, strict=True))
                if timed.history and is_faster(combined(timed.history, weights, generated.seconds)):
                    sure[name] = seconds[name]
        return replace(compared, seconds=seconds, wrong=wrong, failed=failed, crashed=crashed, taken=min(sure, key=lambda n: sure[n]))

    def _built(self, small: IRModule, choices: Mapping[str, str]) -> Artifact | Failure:
        try:
            with options.override(libraries=",".join(choices.values()) or "off"):
                built = driver.compile_module(small, target=self.target, pipeline=_AFTER, choices=choices, records=Proposed(kept=self.measured))
            return artifact_of(built, built.functions[0].symbol)
        except (RoundelError, MemoryError) as error:
            return Failure("build", str(error))

    # -- what is kept

    def _confirmed(self, found: list[Compared], backends: Sequence[Backend]) -> list[Compared]:
        """Those that won keep their paths if the model as a whole is faster by them; else those of them that save most, half as many, and so on."""
        winners = sorted((c for c in found if c.taken != GENERATED), key=lambda c: -c.saved)
        whole = Whole(self.mod, self.target, self.threads, self.cases[0][0])

        def measured(some: Sequence[Compared]) -> Sequence[float]:
            return whole.total(Proposed(choices={c.signature: self._record(c, backends) for c in some}, kept=self.measured), Proposed(kept=self.measured))

        with options.override(libraries=None):
            kept = {c.signature for c in faster_inside(winners, measured)[0]}
        note = "inside of the model it is not faster"
        return [c if c.taken == GENERATED or c.signature in kept else replace(c, taken=GENERATED, note=note) for c in found]

    def _record(self, compared: Compared, backends: Sequence[Backend]) -> ChoiceRecord:
        measured = {GENERATED, *compared.seconds, *compared.wrong, *compared.failed}
        versions = {b.name: b.current_version for b in backends if b.name in measured}
        sizes = [dict(s) for s, _ in self.cases if s]
        crashed = {name: compared.failed[name] for name in compared.crashed}
        return ChoiceRecord(Key(compared.signature, self.target.fingerprint, self.threads, options.of_schedules()), compared.taken, dict(compared.seconds),
                            compared.subject, libraries=versions, wrong=dict(compared.wrong), crashed=crashed, sizes=sizes)


def alone(func: graph.Function, part: Part) -> IRModule | None:
    """A module that computes a part of a function and nothing else; None where a size could not be told."""
    wanted = {b.var for b in part.around} | {b.var for o in part.offers.values() for b in o.bindings}
    bindings = [b for b in func.body.bindings if b.var in wanted]
    users = users_in(func)
    results = [b.var for b in bindings if any(u is None or u.var not in wanted for u in users.get(b.var, ()))]
    made, _ = outline(bindings, results or [bindings[-1].var], {"global_symbol": NAME}, dataflow=False)  # type: ignore[arg-type]
    if unknown_sizes(made) or not all(isinstance(p.sinfo, graph.TensorInfo) and p.sinfo.shape is not None for p in made.params):
        return None
    return IRModule({NAME: made})


def arguments(small: IRModule, sizes: Mapping[str, int]) -> tuple[Argument, ...]:
    """Those of a module that computes a part, at these sizes."""
    values = Sizes(sizes)
    return tuple(Argument(tuple(values.number(n) or 0 for n in p.sinfo.shape), str(p.sinfo.dtype)) for p in small[NAME].params)


def _race_here(job: Job, reference: Artifact, champion: Artifact, challengers: Sequence[Artifact], effort: Any) -> tuple[Timed, list[Timed | Failure]]:
    """In this process, for functions of Python, which no other process has."""
    with _where_it_ran():
        return race(job, reference, champion, challengers, effort, 0, lambda at: None)


@contextmanager
def _where_it_ran() -> Iterator[None]:
    """Measuring binds a process to a core; afterwards it may run where it could before."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)
