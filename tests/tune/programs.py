# SPDX-License-Identifier: Apache-2.0
"""Small tensor programs to tune, and spaces and runners that need no machine."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from roundel import te
from roundel.ir.digest import structural_digest
from roundel.ir.errors import ScheduleError
from roundel.strategy.candidates import Candidates, combinations
from roundel.strategy.cost import expected_cycles
from roundel.strategy.sketch import Sketch
from roundel.target import Target
from roundel.tune.measure import Artifact, Failure, Timed
from roundel.tune.space import Candidate, Space, Way


def product(m=24, n=32, k=40, name="main"):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, c]).with_attr("global_symbol", name)


def doubled(n=64):
    x = te.placeholder((n,), "float32", "X")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 2, "Y")]).with_attr("global_symbol", "main")


def table(cycles, **domains):
    columns = combinations(domains)
    return Candidates(columns, np.asarray(cycles(columns), dtype=float) if cycles else None)


def space(*tables):
    """One of sketches that cannot be scheduled: for what is decided without measuring."""
    ways = tuple(Way(Sketch(f"s{k}", None, None, t), (t,), 0.0 if t.cycles is not None else 1000.0) for k, t in enumerate(tables))
    return Space(None, ways, Candidate(0, (0,)))


def completed(result):
    """A future that is over."""
    future = Future()
    future.set_result(result)
    return future


class FakeBuilder:
    """Code of a program is its digest. ``broken``: says which programs cannot be built."""

    def __init__(self, broken=lambda func: False):
        self.broken, self.built = broken, 0

    def build(self, sources, target):
        return [self._one(s) for s in sources]

    def _one(self, source):
        self.built += 1
        try:
            func = source.func
        except ScheduleError as error:
            return completed(Failure("schedule", error.what))
        code = Artifact(structural_digest(func, without_attrs=("scheduled",)), (func,), source.layouts)
        return completed(Failure("build", "broken") if self.broken(func) else code)

    def close(self):
        pass


class FakeRunner:
    """A program takes what ``seconds(func)`` says, by default what is expected of it."""

    def __init__(self, seconds=lambda func: expected_cycles(func, Target.host(), cores=1) * 1e-9, noise=0.0):
        self.seconds, self.rng, self.noise, self.raced = seconds, np.random.default_rng(0), noise, 0

    def race(self, job, reference, champion, challengers, effort=None, seconds=0.0):
        base = self.seconds(champion.built[0])
        self.raced += len(challengers)
        return self._timed(base, base), [self._outcome(c, base) for c in challengers]

    def _outcome(self, artifact, base):
        found = self.seconds(artifact.built[0])
        return found if isinstance(found, Failure) else self._timed(found, base)

    def _timed(self, found, base):
        history = tuple(float(r) for r in found / base * (1 + self.noise * self.rng.standard_normal(20)))
        middle = float(np.median(history))
        return Timed((middle,), (base * middle,), 0.0, 20, 20, (history,))

    def close(self):
        pass
