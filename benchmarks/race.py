# SPDX-License-Identifier: Apache-2.0
"""Random layers: the decisions that the target's model chooses against the best of many that are measured.

Candidates run by turns in one process. All get a short look, the better ones a longer one. The best of many noisy times looks better than it is,
so the last few run again, and the one that wins there meets the chosen one twice more, in fresh rounds. These two give the figures: a difference
counts only if the medians and the minima of both agree about it.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from roundel.ir import options
from roundel.target.host import usable_cores

from .decisions import Candidate, build, load
from .layers import Layer
from .random_layers import draw
from .results import machine, merge, read_here

BLOCK = 2e-4  # seconds of a block of calls
ROUNDS: tuple[tuple[int, float], ...] = ((40, 0.004), (12, 0.012), (6, 0.04))  # how many go on after a first look, and seconds for each of them
DUEL = 0.06   # seconds for each of two, twice
USUAL = {"condition": "own", "threads": 1}  # of results from before there were others


@dataclass
class Runner:
    """A candidate in the race: ``blocks`` are seconds of its kernels in each block of ``calls`` of the last round."""

    candidate: Candidate
    function: Any
    calls: int = 1
    blocks: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of the fastest block."""
        return min(self.blocks)

    def block(self, x: np.ndarray) -> None:
        """Run a block of calls, after one that brings what it reads into the caches again: others have run meanwhile."""
        self.function(x)
        self.function.profile()
        for _ in range(self.calls):
            self.function(x)
        times = self.function.profile()
        self.blocks.append(sum(s / n for name, (n, s) in times.items() if n and name in self.candidate.kernels))


def run_random(seed: int, count: int, most: int, only: str, folder: Path, compile_for: float, race_for: float, condition: str = "own",
               threads: int = 1, keep: bool = False, beside: Path | None = None) -> None:
    """``count`` layers drawn by ``seed``, up to ``most`` candidates of each, compiled into ``folder`` on all cores and then raced by ``threads`` threads.
    What is compiled, or in the results, is not done again. After so many seconds no further layer is begun. ``condition``: see
    ``decisions.machine``. ``keep``: what is compiled stays in the folder, for another number of threads. ``beside``: a folder
    of the same layers' candidates that another version of the compiler made; they run too, and may be the best."""
    folder.mkdir(parents=True, exist_ok=True)
    under = {"condition": condition, "threads": threads}
    done = {e["number"] for e in read_here("random") if e["seed"] == seed and all(e.get(k, USUAL[k]) == v for k, v in under.items())}
    layers = {n: x for n, x in zip(range(count), draw(random.Random(seed))) if _is_asked(x, only) and n not in done}
    paths = {n: folder / f"{seed}-{condition}-{n}.pickle" for n in layers}
    _compile({n: x for n, x in layers.items() if not paths[n].exists()}, paths, most, seed, compile_for, condition)
    end = time.perf_counter() + race_for
    for number, layer in layers.items():
        if time.perf_counter() < end and paths[number].exists():
            others = [path] if beside is not None and (path := beside / paths[number].name).exists() else []
            entry, runners = race(layer, [paths[number], *others], threads)
            merge("random", [entry | {"seed": seed, "number": number, **under, "machine": machine()}], ("seed", "number", "condition", "threads"))
            found = [(r.candidate.text, r.candidate.cycles, r.seconds) for r in runners]
            paths[number].with_suffix(f".{threads}.json").write_text(json.dumps(found, indent=0))
            if not keep:
                paths[number].unlink()
            print(describe(number, entry), flush=True)


def _is_asked(layer: Layer, only: str) -> bool:
    """Whether one of the words, separated by commas, is in the layer's family or name."""
    return any(word in f"{layer.family} {layer.name}" for word in only.split(","))


def _compile(layers: dict[int, Layer], paths: dict[int, Path], most: int, seed: int, seconds: float, condition: str) -> None:
    """Compile the candidates of layers, a process for each core."""
    end = time.perf_counter() + seconds
    with ProcessPoolExecutor(usable_cores(), multiprocessing.get_context("spawn")) as pool:
        waiting: dict[Future[int], int] = {}
        for number, layer in layers.items():
            if time.perf_counter() >= end:
                break
            waiting[pool.submit(_build_alone, layer, most, seed, paths[number], condition)] = number
            if len(waiting) >= usable_cores():
                _finished(waiting, layers)
        while waiting:
            _finished(waiting, layers)


def _finished(waiting: dict[Future[int], int], layers: dict[int, Layer]) -> None:
    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
        number = waiting.pop(future)
        print(f"{number:3d} {layers[number].node} {layers[number].name}: {future.result()} candidates compiled", flush=True)


def _build_alone(layer: Layer, most: int, seed: int, path: Path, condition: str) -> int:
    with options.override(workers=1):
        return build(layer, most, seed, path, condition)


def describe(number: int, entry: dict[str, Any]) -> str:
    """One line on a layer."""
    return (f"{number:3d} {entry['name']:44s} {entry['candidates']:4d}   chosen {entry['chosen_us']:8.1f} us   best {entry['best_us']:8.1f} us   "
            f"{entry['chosen_us'] / entry['best_us'] - 1:6.1%}   {entry['chosen']} | {entry['best']}")


def race(layer: Layer, paths: Sequence[Path], threads: int = 1) -> tuple[dict[str, Any], list[Runner]]:
    """Time the candidates of a layer that are in files: the entry for the results, and all of them with the times of their last round. The first of the
    first file is the chosen one."""
    loaded = [load(path, threads) for path in paths]
    rule, runners = loaded[0][0], [Runner(c, f) for _, found, functions in loaded for c, f in zip(found, functions, strict=True)]
    x = layer.arrays()[0]
    for r in runners:
        _first_look(r, x)
    left, chosen = list(runners), runners[0]
    for most, budget in ROUNDS:
        left = [chosen, *(r for r in sorted(left, key=lambda r: r.seconds)[:most] if r is not chosen)]
        _round(left, x, budget)
    best = min(left, key=lambda r: median(r.blocks))
    meetings = [_meeting(chosen, best, x) for _ in range(2)] if best is not chosen else []
    if meetings and all(of(ours) > of(theirs) for ours, theirs in meetings for of in (min, median)):
        ours, theirs = (median([t for m in meetings for t in m[k]]) for k in (0, 1))
    else:
        best, ours = chosen, median(chosen.blocks)
        theirs = ours
    entry = {"name": f"{layer.node} {layer.name}", "rule": rule, "candidates": len(runners), "chosen": chosen.candidate.text,
             "chosen_us": ours * 1e6, "best": best.candidate.text, "best_us": theirs * 1e6}
    return entry, runners


def _meeting(one: Runner, other: Runner, x: np.ndarray) -> tuple[list[float], list[float]]:
    """The blocks of two that run against each other."""
    _round([one, other], x, DUEL)
    return list(one.blocks), list(other.blocks)


def _first_look(r: Runner, x: np.ndarray) -> None:
    """Find out how many calls make a block, and run a few."""
    for _ in range(2):
        r.block(x)
    r.calls = max(1, min(30, round(BLOCK / max(r.seconds, 1e-7))))
    if r.calls > 1:
        for _ in range(2):
            r.block(x)


def _round(runners: Sequence[Runner], x: np.ndarray, budget: float) -> None:
    """Blocks by turns for ``budget`` seconds each, three at least; what was measured before is forgotten."""
    for r in runners:
        r.blocks = []
    end, done = time.perf_counter() + budget * len(runners), 0
    while done < 3 or time.perf_counter() < end:
        for r in runners:
            r.block(x)
        done += 1
