# SPDX-License-Identifier: Apache-2.0
"""What searches find: without the hand-written rules, and with how few measurements. Candidates race against the untuned kernel in turns, so a busy
machine makes the figures less certain and not wrong.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import roundel as rd
from roundel.strategy.program import Program
from roundel.target import Target
from roundel.tune import Task
from roundel.tune.api import tune
from roundel.tune.attempt import Attempt
from roundel.tune.learned import Learned
from roundel.tune.search.evolutionary import Evolutionary
from roundel.tune.space import GENERIC, Space

from .models import Case, onnx_file
from .more_programs import PROGRAMS
from .results import machine, merge

NEAR = 1.01       # times the best of a random search that count as having reached it
LEAST_US = 20.0   # of a kernel: shorter ones are mostly the call


class _ByPrior(Learned):
    """Learns nothing: what the model of the machine expects decides."""

    def residual(self, way: int, rows: np.ndarray) -> np.ndarray:
        """None."""
        return np.zeros(len(rows))


SEARCHES: dict[str, Callable[[Space, int], Any]] = {
    "learned": Evolutionary,
    "factors": lambda space, seed: Evolutionary(space, seed, Learned(space, uses_decisions=False)),
    "prior": lambda space, seed: Evolutionary(space, seed, _ByPrior(space)),
}


def kernels(models: Sequence[str], count: int) -> Iterator[tuple[str, Task]]:
    """The different kernels of models that a hand-written rule takes: so many of each, evenly among those that take longest to those that take least."""
    seen: set[str] = set()
    for model in models:
        found = []
        for task in rd.tune.tasks(onnx_file(Case(model)), sizes={"batch": 1, "seq": 128}):
            key = task.key(1).program
            if key not in seen and Attempt(task, 1).expected_seconds >= LEAST_US * 1e-6:
                seen.add(key)
                space = Space.of(task.program, "generic")
                if space.sketch(space.default).name not in GENERIC:
                    found.append(task)
        found.sort(key=lambda t: -Attempt(t, 1).expected_seconds)
        for k in sorted({round(x) for x in np.linspace(0, len(found) - 1, min(count, len(found)))}):
            yield model, found[k]


def run_rules_off(models: Sequence[str], count: int, trials: int, seed: int) -> list[dict[str, Any]]:
    """The fastest generic schedule of each kernel that a rule takes, against the rule's own choice."""
    found = []
    for model, task in kernels(models, count):
        found.append({"model": model, **rules_off(task, trials, seed)})
        print(f"{model:12s} {describe_rules_off(found[-1])}", flush=True)
        merge("rules_off", [{**found[-1], "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}], ["model", "task", "trials", "seed"])
    if found:
        speeds = [e["speed"] for e in found]
        print(f"{len(found)} kernels: {geometric_mean(speeds):.0%} of the rules' speed (geometric mean), at worst {min(speeds):.0%}")
    return found


def rules_off(task: Task, trials: int, seed: int) -> dict[str, Any]:
    """One kernel."""
    with tempfile.TemporaryDirectory() as folder:
        result = tune([task], threads=1, trials=trials, space="generic", seed=seed, db=Path(folder) / "db")
    attempt = result.attempts[0]
    best = min((e for e in attempt.finalists if e.sketch in GENERIC), key=lambda e: e.total)
    return {"task": task.name, "trials": attempt.trials, "seed": seed, "rule": attempt.default.sketch, "rule_ms": attempt.default.total * 1e3,
            "speed": attempt.default.total / best.total, "sketch": best.sketch, "decisions": dict(best.decisions), "seconds": round(result.seconds, 1)}


def describe_rules_off(e: Mapping[str, Any]) -> str:
    """One line."""
    decided = " ".join(f"{n}={v}" for n, v in e["decisions"].items())
    return f"{e['task'][:44]:44s} {e['rule']:12s} {e['rule_ms']:8.3f} ms  {e['speed']:5.0%} of its speed by {e['sketch']} {decided}"


def run_efficiency(programs: Sequence[str], models: Sequence[str], count: int, random: int, trials: int, seeds: int) -> list[dict[str, Any]]:
    """What ``random`` candidates drawn without a model reach, and after how many each search has found as much."""
    tasks = [Task(Program(PROGRAMS[n].func(), Target.host()), names=(n,)) for n in programs]
    tasks += [task for _, task in kernels(models, count)] if models else []
    found = []
    for task in tasks:
        found.append(efficiency(task, random, trials, seeds))
        print(describe_efficiency(found[-1]), flush=True)
        merge("efficiency", [{**found[-1], "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}], ["task", "random", "trials", "seeds"])
    return found


def efficiency(task: Task, random: int, trials: int, seeds: int) -> dict[str, Any]:
    """One kernel, in the same space for all: times are relative to the untuned kernel, and each search is a session of its own."""
    drawn = min(_found(task, "random", random, 0).values())
    entry: dict[str, Any] = {"task": task.name, "random": random, "trials": trials, "seeds": seeds, "drawn": drawn, "best": {}, "reached": {}}
    for name, search in SEARCHES.items():
        runs = [_found(task, search, trials, seed) for seed in range(seeds)]
        entry["best"][name] = median(min(found.values()) for found in runs)
        entry["reached"][name] = [min((k for k, t in found.items() if t <= NEAR * drawn), default=None) for found in runs]
    return entry


def _found(task: Task, search: Any, trials: int, seed: int) -> dict[int, float]:
    """The fastest few that were found, by how many candidates had been measured then (0: the untuned kernel): their times relative to the untuned kernel when
    they were measured again, in two new processes. The least of many measurements is a lucky one, so those of the search itself tell little."""
    with tempfile.TemporaryDirectory() as folder:
        result = tune([task], threads=1, trials=trials, search=search, seed=seed, db=Path(folder) / "db")
    attempt = result.attempts[0]
    order = {c: k for k, c in enumerate(attempt.search.times)}
    return {0: 1.0, **{order[e.candidate]: e.total / attempt.default.total for e in attempt.finalists if e.candidate is not None}}


def describe_efficiency(e: Mapping[str, Any]) -> str:
    """One line."""
    parts = [f"{name} {e['best'][name]:.3f} (after {', '.join(str(n or '-') for n in e['reached'][name])})" for name in e["best"]]
    return f"{e['task'][:40]:40s} {e['random']} at random reach {e['drawn']:.3f} of the untuned time; in {e['trials']} trials: {'; '.join(parts)}"
