# SPDX-License-Identifier: Apache-2.0
"""The pretrained model of the tuner: measurements of many programs, training, and validation by task: on programs that it has not seen.

Candidates are drawn so that the best and the hopeless are known: each place in the order of what is expected is as likely on a scale of logarithms.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import roundel as rd
from roundel.strategy.program import Program
from roundel.target import Target
from roundel.tune import Search, Task
from roundel.tune.api import tune
from roundel.tune.attempt import Attempt
from roundel.tune.pretrained import FILE, OF_PROGRAMS, features, largest, lightgbm
from roundel.tune.space import Candidate

from .layers import Layer
from .models import Case, onnx_file
from .more_programs import PROGRAMS
from .random_layers import draw

TREES = {"objective": "l1", "num_leaves": 15, "learning_rate": 0.06, "min_data_in_leaf": 15, "lambda_l2": 2.0, "feature_fraction": 0.8, "verbosity": -1,
         "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 0}
ROUNDS, FOLDS = 100, 8
LEAST_ROWS = 8                # of a task to learn from
LEAST_US, MOST_MS = 8.0, 3.0  # of a kernel
FAR = np.log(4.0)             # residuals farther from the middle of their task count as this far


class Spread(Search):
    """Draws places in the order of what is expected, each as likely on a scale of logarithms, in each sketch as likely as in any other."""

    def propose(self, count: int) -> Sequence[Candidate]:
        """As `Search`."""
        found: list[Candidate] = []
        for _ in range(40 * count):
            way = int(self.rng.integers(len(self.space.ways)))
            rows = self._ranked(way)
            candidate = Candidate(way, tuple(rows[int(len(rows) ** self.rng.random()) - 1].tolist()))
            if candidate not in self.seen:
                self.seen.add(candidate)
                found.append(candidate)
                if len(found) == count:
                    break
        return found

    def _ranked(self, way: int) -> np.ndarray:
        known = self.__dict__.setdefault("_orders", {})
        if way not in known:
            known[way] = self.space.ways[way].ranked(20_000)
        return known[way]


def run_pretrain(folder: Path, models: Sequence[str], layers: int, candidates: int, seconds: float, output: Path | None) -> None:
    """Measure for so many seconds, going on from what is in the folder; then train with all that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    for name, task in _tasks(models, layers):
        path = folder / f"{task.key(1).program[:24]}.json"
        if time.monotonic() > end:
            break
        if not path.exists():
            path.write_text(json.dumps(_measured(name, task, candidates)))
            print(f"{name[:40]:40s} {len(json.loads(path.read_text())['rows']):4d} candidates", flush=True)
    train([json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))], output)


def _tasks(models: Sequence[str], layers: int) -> Iterator[tuple[str, Task]]:
    """Kernels of models, of random layers, and of programs without a rule, by turns."""
    rng = random.Random(20)
    drawn = draw(rng)
    programs = list(PROGRAMS)
    groups = [[(m, t) for t in rd.tune.tasks(onnx_file(Case(m)), sizes={"batch": 1, "seq": 128})] for m in models]
    for group in groups:
        random.Random(1).shuffle(group)
    for k in range(max(layers, *map(len, groups), len(programs)) if groups else layers):
        of_layers = _of_layer(next(drawn)) if k < layers else []
        of_programs = [(programs[k], Task(Program(PROGRAMS[programs[k]].func(), Target.host()), names=(programs[k],)))] if k < len(programs) else []
        for name, task in [*(g[k] for g in groups if k < len(g)), *of_layers, *of_programs]:
            if LEAST_US * 1e-6 <= Attempt(task, 1).expected_seconds <= MOST_MS * 1e-3:
                yield f"{name} {task.name}", task


def _of_layer(layer: Layer) -> list[tuple[str, Task]]:
    with tempfile.TemporaryDirectory() as folder:
        layer.save(path := Path(folder) / "layer.onnx")
        return [(layer.name, t) for t in rd.tune.tasks(str(path), sizes={"n": 17} if layer.is_symbolic else None)]


def _measured(name: str, task: Task, candidates: int) -> dict[str, Any]:
    """What was measured of a task: for each candidate the sketch, its features, and the residual."""
    with tempfile.TemporaryDirectory() as folder:
        attempt = tune([task], threads=1, trials=candidates, search=Spread, db=Path(folder) / "db").attempts[0]
    rows = []
    for c, seconds in attempt.search.times.items() if attempt.is_open else ():
        if seconds is not None:
            choice = {n: float(v) for n, v in attempt.space.choice(c).items()}
            facts = features(attempt.space, c.way, np.asarray([c.rows], dtype=np.int64).reshape(1, -1), [], [])[0][1:]
            rows.append({"sketch": attempt.space.sketch(c).name, "facts": facts.tolist(), "decisions": choice,
                         "residual": float(np.log(seconds / max(attempt.space.cycles(c), 1.0)))})
    return {"name": name, "rows": rows}


def train(tasks: Sequence[dict[str, Any]], output: Path | None) -> None:
    """Print how well the order within tasks is predicted that were left out, and write the model of all of them."""
    tasks = [{**t, "rows": [{**r, "decisions": largest(r["decisions"])} for r in t["rows"]]} for t in tasks if len(t["rows"]) >= LEAST_ROWS]
    sketches = sorted({r["sketch"] for t in tasks for r in t["rows"]})
    decisions = sorted({n for t in tasks for r in t["rows"] for n in r["decisions"]})
    tables = [_table(t["rows"], sketches, decisions) for t in tasks]
    order = np.random.default_rng(0).permutation(len(tasks))
    scores = []
    for fold in range(FOLDS):
        held = set(order[fold::FOLDS].tolist())
        model = _grown([t for k, t in enumerate(tables) if k not in held])
        scores += [(tasks[k]["name"], *_score(tables[k], model)) for k in sorted(held)]
    for name, *own in scores:
        print(f"{name[:44]:44s} pairs in order {own[0]:.2f} -> {own[1]:.2f}; first of the order to the best {own[2]:.2f} -> {own[3]:.2f}")
    before, after, first, then = (mean(s[k] for s in scores) for k in range(1, 5))
    print(f"{len(tables)} tasks, {sum(len(t[1]) for t in tables)} candidates, each task predicted from others: pairs in the right order {before:.3f} by the "
          f"machine's model, {after:.3f} with the trees; time of the first to that of the best {first:.3f}, {then:.3f}")
    if output is not None:
        text = _grown(tables).model_to_string()
        output.write_text(json.dumps({"sketches": sketches, "decisions": decisions, "facts": OF_PROGRAMS, "trees": text}))
        print(f"{output}: {output.stat().st_size / 1e3:.0f} KB")


def _table(rows: Sequence[dict[str, Any]], sketches: Sequence[str], decisions: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, residuals relative to the middle of the task, and the logarithms of what was expected."""
    made = [[sketches.index(r["sketch"]), *r["facts"], *(r["decisions"].get(n, np.nan) for n in decisions)] for r in rows]
    residuals = np.asarray([r["residual"] for r in rows])
    return np.asarray(made, dtype=float), np.clip(residuals - np.median(residuals), -FAR, FAR), np.asarray([r["facts"][0] for r in rows])


def _grown(tables: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Any:
    library = lightgbm()
    assert library is not None, "pip install lightgbm"
    weights = np.concatenate([np.full(len(y), 1 / len(y)) for _, y, _ in tables])
    data = library.Dataset(np.concatenate([x for x, _, _ in tables]), np.concatenate([y for _, y, _ in tables]), weight=weights / weights.mean(),
                           categorical_feature=[0], params={"verbosity": -1})
    return library.train(TREES, data, ROUNDS)


def _score(table: tuple[np.ndarray, np.ndarray, np.ndarray], model: Any) -> tuple[float, float, float, float]:
    """The share of pairs in the right order without and with the trees, and the time of the candidate that each puts first relative to the best."""
    x, y, prior = table
    times, found = prior + y, []
    for judged in (prior, prior + model.predict(x)):
        apart = times[:, None] - times[None, :]
        right = np.sign(judged[:, None] - judged[None, :]) == np.sign(apart)
        found.append((float(right[np.abs(apart) > 0.02].mean()), float(np.exp(times[np.argmin(judged)] - times.min()))))
    (a, c), (b, d) = found
    return a, b, c, d


def default_output() -> Path:
    """Where the model ships from."""
    return Path(rd.__file__).parent / "tune" / FILE
