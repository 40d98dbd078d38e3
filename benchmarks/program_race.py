# SPDX-License-Identifier: Apache-2.0
"""Programs that no rule was written for: what the compiler makes of them, untuned, against random schedules of the generic space.

Everything is compiled for one thread, compared with NumPy, and timed by turns: CPU time, which other work on the machine lengthens least. The best
candidates of a program stay in a folder as scripts, so a command goes on where it was stopped, and searching, which a busy machine only makes slower,
is apart from the last look.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import roundel as rd
from roundel.ir import IRModule, tir
from roundel.ir.digest import structural_digest
from roundel.ir.errors import ScheduleError
from roundel.script import from_source
from roundel.strategy.cost import expected_time
from roundel.strategy.generic.candidates import sample
from roundel.strategy.generic.generic import named, schedule
from roundel.strategy.generic.stage import Stage
from roundel.strategy.match.accesses import blocks_of
from roundel.strategy.program import Program as ToSchedule
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .more_programs import PROGRAMS
from .programs import Program, arrays
from .results import machine, merge

FIRST = 24          # programs of the race; the others are for a look beyond it
BATCH = 25          # candidates that are compiled together
FIRST_LOOK = 0.004  # seconds of each candidate
HOPELESS = 3.0      # times the best: a candidate whose first call takes longer is not called again
LAST_LOOK = 0.15    # ... of the compiler's choice and of the best few, by turns
FINALISTS = 4
MOST = 5.0          # seconds for the best few
ERROR = 1e-3        # of the largest result
DIGITS = 16         # of a program's digest, by which equal ones are told


def run_programs(count: int, seed: int, only: str, folder: Path, search_for: float = 1e9, time_for: float = 1e9, more: bool = False) -> list[dict[str, Any]]:
    """Search until each program has ``count`` candidates or ``search_for`` seconds are over, then race the best of each against the compiler's choice
    for ``time_for`` seconds; print a line about each and keep it in the results."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [PROGRAMS[name] for name in list(PROGRAMS)[: None if more else FIRST] if any(part in name for part in only.split(","))]
    end = time.monotonic() + search_for
    for p in wanted:
        search(p, count, seed, folder, end)
    end, entries = time.monotonic() + time_for, []
    for p in wanted:
        if time.monotonic() < end and (path := _kept(p, seed, folder)).exists():
            entries.append(race(p, json.loads(path.read_text())))
            print(describe(entries[-1]), flush=True)
            merge("programs", [{**entries[-1], "seed": seed, "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}], ["name", "seed"])
    if entries:
        behind = [e["chosen_ms"] / e["best_ms"] for e in entries]
        print(f"{len(entries)} programs: median {median(behind):.2f} times the best found, at most {max(behind):.2f}")
    return entries


def describe(e: dict[str, Any]) -> str:
    """One line."""
    times = f"{e['chosen_ms']:8.3f} ms  two threads {e['two_threads_ms']:8.3f}  best of {e['candidates']:4d} {e['best_ms']:8.3f}"
    return (f"{e['name']:22s} {e['sketch']:12s} {times}  times {e['chosen_ms'] / e['best_ms']:5.2f}  expected {e['expected_ms']:8.3f}  "
            f"error {e['error']:.0e}  schedule {e['schedule_ms']:.0f} ms")


def _kept(p: Program, seed: int, folder: Path) -> Path:
    return folder / f"{p.name}-{seed}.json"


def search(p: Program, count: int, seed: int, folder: Path, end: float) -> None:
    """Draw, check and time random candidates until there are ``count`` or it is ``end``; the scripts of the fastest stay in the folder. What became the
    same program as an earlier one counts, and is not built again."""
    path, target, func = _kept(p, seed, folder), Target.host(), p.func()
    found = {"drawn": 0, "candidates": 0, "best": [], "known": []} | (json.loads(path.read_text()) if path.exists() else {})
    data, known = arrays(func), set(found["known"])
    wanted = p.reference(*data[:-1])
    while found["candidates"] < count and found["drawn"] < 4 * count and time.monotonic() < end:
        drawn = range(found["drawn"], found["drawn"] + BATCH)
        tried = [f for k in drawn if (f := random_schedule(func, target, random.Random(f"{seed} {k}"), "main")) is not None]
        new = {digest: f for f in tried if (digest := structural_digest(f)[:DIGITS]) not in known}
        library = rd.build(IRModule({f"c{digest}": f.with_attr("global_symbol", f"c{digest}") for digest, f in new.items()}), threads=1) if new else {}
        for digest, candidate in new.items():
            least = found["best"][0][0] if found["best"] else float("inf")
            begun = time.thread_time()
            error = _error(wanted, library[f"c{digest}"], data)
            if error > ERROR:
                raise AssertionError(f"{p.name}: a candidate computes something else\n{candidate.script()}")
            if time.thread_time() - begun < HOPELESS * least + 1e-3:
                found["best"].append((_spent(library[f"c{digest}"], data, FIRST_LOOK), candidate.script()))
        known |= new.keys()
        found["best"] = sorted(found["best"], key=lambda x: x[0])[: 2 * FINALISTS]
        found |= {"drawn": found["drawn"] + BATCH, "candidates": found["candidates"] + len(tried), "known": sorted(known)}
        path.with_suffix(".partial").write_text(json.dumps(found))
        path.with_suffix(".partial").rename(path)
    print(f"{p.name}: {found['candidates']} candidates, best {found['best'][0][0] * 1e3:.3f} ms" if found["best"] else f"{p.name}: none", flush=True)


def race(p: Program, found: dict[str, Any]) -> dict[str, Any]:
    """The choice of the compiler against the best of the candidates that were found."""
    target, func = Target.host(), p.func()
    begun = time.process_time()
    chosen, _ = schedule_program(func, target)
    spent = time.process_time() - begun
    data = arrays(func)
    others = {f"other{k}": from_source(text) for k, (_, text) in enumerate(found["best"][:FINALISTS])}
    built = rd.build(IRModule({"main": chosen, **{name: f.with_attr("global_symbol", name) for name, f in others.items()}}), threads=1)
    error = _error(p.reference(*data[:-1]), built["main"], data)
    times = _by_turns([built["main"], *(built[name] for name in others)], data)
    two = rd.build(IRModule({"main": chosen}), threads=2)["main"]
    return {"name": p.name, "sketch": chosen.attrs["scheduled"], "chosen_ms": times[0] * 1e3, "best_ms": min(times) * 1e3,
            "candidates": found["candidates"], "error": error, "expected_ms": expected_time(chosen, target, cores=1) * 1e3,
            "two_threads_ms": _wall(two, data) * 1e3, "schedule_ms": spent * 1e3}


def random_schedule(func: tir.PrimFunc, target: Any, rng: random.Random, name: str) -> tir.PrimFunc | None:
    """A random candidate; None where its steps are not legal."""
    program = ToSchedule(func, target)
    sch = (program.with_cheap_inlined if program.reductions and program.is_plain else program.schedule).fork(seed=0)
    try:
        if program.reductions:
            stages = {i.name: i for i in blocks_of(sch.func) if i.reduce}
            choice = {named(b, n, stages): v for b, i in stages.items() for n, v in sample(Stage(i), target, rng).items()}
            schedule(sch, choice, target)
        else:
            _spatial(sch, target, rng)
    except ScheduleError:
        return None
    return sch.func.replace(attrs=sch.func.attrs | {"scheduled": "random", "global_symbol": name})


def _spatial(sch: Any, target: Any, rng: random.Random) -> None:
    """Blocks without reduction: any of their loops in vectors of any length, the others in any order."""
    infos = blocks_of(sch.func)
    for info in infos[:-1]:
        if info.is_plain and rng.random() < 0.5:
            sch.compute_inline(sch.get_block(info.name))
    for info in blocks_of(sch.func):
        loops = sch.get_loops(sch.get_block(info.name))
        rng.shuffle(loops)
        if len(loops) > 1 and info.is_plain:
            sch.reorder(*loops)
        lanes = target.lanes("float32") * rng.choice((0, 1, 1, 2, 4, 8, 16))
        if lanes:
            outer, vector = sch.split(loops[-1], [None, lanes])
            sch.vectorize(vector)
            if info.is_plain and rng.random() < 0.5:
                sch.unroll(sch.split(outer, [None, rng.choice((2, 4))])[1])


def _error(wanted: np.ndarray, run: Any, data: Sequence[np.ndarray]) -> float:
    """Of a run, in the largest result."""
    out = data[-1]
    out[...] = np.nan
    run(*data)
    return float(np.abs(out - wanted).max() / max(float(np.abs(wanted).max()), 1e-9))


def _spent(run: Any, data: Sequence[np.ndarray], budget: float) -> float:
    """Seconds of CPU time of a call: the median of several, or the only one where it takes long."""
    run(*data)
    times: list[float] = []
    while not times or (sum(times) < budget and len(times) < 1000):
        begun = time.thread_time()
        run(*data)
        times.append(time.thread_time() - begun)
    return median(times)


def _by_turns(runs: Sequence[Any], data: Sequence[np.ndarray]) -> list[float]:
    """Of each, the median of short rounds."""
    rounds: list[list[float]] = [[] for _ in runs]
    for _ in range(9):
        if sum(map(sum, rounds)) > MOST:
            break
        for times, run in zip(rounds, runs, strict=True):
            times.append(_spent(run, data, LAST_LOOK / 9))
    return [median(times) for times in rounds]


def _wall(run: Any, data: Sequence[np.ndarray]) -> float:
    """Seconds of a call by the clock, the least of several: other work on the machine makes it longer and never shorter."""
    run(*data)
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        run(*data)
        times.append(time.perf_counter() - begun)
    return min(times)
