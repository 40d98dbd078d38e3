# SPDX-License-Identifier: Apache-2.0
"""Programs that no rule was written for, tuned here and by TVM's MetaSchedule with as many trials, each for one thread of this machine.

Both get one script. The peer lives in an environment of its own (`metaschedule_peer`). What is tuned stays in a folder, so a command goes on where it
was stopped, and tuning, which a busy machine only makes slower, is apart from timing: winners run by turns, one process beside the other, and
results are compared with NumPy's first.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

import roundel as rd
from roundel.ir import tir
from roundel.strategy.replay import replay
from roundel.target import Target
from roundel.tune.database import Database

from .more_programs import PROGRAMS
from .programs import Program, arrays
from .results import machine, merge

FIRST = 24            # programs of the comparison; the others are for a look beyond it
TURN = 10e-3          # seconds that a turn lasts at least
ROUNDS = 15
ERROR = 1e-3          # of the largest result
LIMIT = 3600.0        # seconds in which the peer has to have tuned a program
PEER = Path(__file__).with_name("metaschedule_peer.py")


def run_metaschedule(peer: str, trials: int, seed: int, only: str, folder: Path, tune_for: float, time_for: float, more: bool = False) -> list[dict[str, Any]]:
    """Tune what is not tuned yet for ``tune_for`` seconds, then time what both have tuned for ``time_for``; ``peer`` is the Python of its environment."""
    names = list(PROGRAMS)[: None if more else FIRST]
    wanted = [PROGRAMS[n] for n in names if any(part in n for part in only.split(","))]
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + tune_for
    for program in wanted:
        if time.monotonic() < end:
            _tuned(program, peer, trials, seed, folder)
    end, found = time.monotonic() + time_for, []
    for program in wanted:
        both = _path(folder, "roundel", program.name, trials, seed, ".json"), _path(folder, "metaschedule", program.name, trials, seed, ".so")
        if time.monotonic() < end and all(p.exists() for p in both):
            found.append(timed(program, peer, trials, seed, folder))
            print(describe(found[-1]), flush=True)
            merge("metaschedule", [{**found[-1], "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}], ["program", "trials", "seed"])
    if found:
        print(summary(found))
    return found


def describe(e: dict[str, Any]) -> str:
    """One line."""
    wrong = "".join(f"  {who} is WRONG" for who in ("ours", "theirs") if not e[f"{who}_error"] <= ERROR)
    return (f"{e['program']:22s} {e['trials']:4d} trials  ours {e['ours_ms']:8.4f} ms ({e['ours_seconds']:4.0f} s)  "
            f"theirs {e['theirs_ms']:8.4f} ms ({e['theirs_seconds']:4.0f} s)  {e['ratio']:5.2f} times as fast  by {e['sketch']}{wrong}")


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Of several."""
    worst = min(found, key=lambda e: e["ratio"])
    return (f"{len(found)} programs: {geometric_mean(e['ratio'] for e in found):.2f} times as fast as MetaSchedule (geometric mean), "
            f"at worst {worst['ratio']:.2f} ({worst['program']})")


def _path(folder: Path, who: str, name: str, trials: int, seed: int, ending: str) -> Path:
    return folder / f"{who}-{name}-{trials}-{seed}{ending}"


def _tuned(program: Program, peer: str, trials: int, seed: int, folder: Path) -> None:
    """The winners, ours in a database, the peer's as a library, with what tuning took beside them."""
    func = program.func()
    told = _path(folder, "roundel", program.name, trials, seed, ".json")
    if not told.exists():
        begun = time.monotonic()
        result = rd.tune(func, trials=trials, threads=1, seed=seed, db=told.with_suffix(".jsonl"))
        row = result.rows[0]
        facts = {"seconds": round(time.monotonic() - begun, 1), "measured": result.attempts[0].trials, "sketch": row.sketch, "gain": round(row.gain, 3)}
        told.write_text(json.dumps(facts))
        print(f"{program.name}: tuned here in {facts['seconds']} s by {facts['sketch']}, gain {facts['gain']}", flush=True)
    library = _path(folder, "metaschedule", program.name, trials, seed, ".so")
    if not library.exists():
        script = folder / f"{program.name}.py"
        script.write_text(func.script())
        written = library.with_suffix(".partial.so")
        done = _peer(peer, "tune", script, written, trials, seed, Target.host().cpu)
        if done.returncode or not written.exists():
            print(f"{program.name}: the peer failed: {' '.join(done.stderr.split())[-400:]}", flush=True)
            return
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        library.with_suffix(".json").write_text(json.dumps(facts))
        written.rename(library)
        print(f"{program.name}: tuned by the peer in {facts['seconds']} s, {facts['measured']} measured", flush=True)


def _peer(peer: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([peer, str(PEER), *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, check=False, env=_environment())


def _environment() -> dict[str, str]:
    """Of the peer: one thread, and nothing of this one's packages."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def timed(program: Program, peer: str, trials: int, seed: int, folder: Path) -> dict[str, Any]:
    """Both winners by turns; the ratio is the median of those within rounds."""
    func = program.func()
    data = arrays(func)
    own, other = _path(folder, "roundel", program.name, trials, seed, ".jsonl"), _path(folder, "metaschedule", program.name, trials, seed, ".so")
    facts = [json.loads(p.with_suffix(".json").read_text()) for p in (own, other)]
    run = rd.build(_winner(func, own), threads=1)["main"]
    wanted = program.reference(*data[:-1])
    data[-1][...] = 0
    np.savez(inputs := folder / "arrays.npz", *data)
    run(*data)
    with _answering(peer, other, inputs, folder / "output.npy") as theirs:
        errors = _error(data[-1], wanted), _error(np.load(folder / "output.npy"), wanted)
        ours = lambda calls: run.seconds([data], calls) / calls
        calls = [max(1, round(TURN / max(min(run_(1), run_(1)), 1e-7))) for run_ in (ours, theirs)]
        rounds = [(ours(calls[0]), theirs(calls[1])) for _ in range(ROUNDS)]
    return {"program": program.name, "trials": trials, "seed": seed, "ratio": round(median(b / a for a, b in rounds), 3),
            "ours_ms": round(median(a for a, _ in rounds) * 1e3, 5), "theirs_ms": round(median(b for _, b in rounds) * 1e3, 5),
            "ours_error": errors[0], "theirs_error": errors[1], "ours_seconds": facts[0]["seconds"], "theirs_seconds": facts[1]["seconds"],
            "ours_measured": facts[0]["measured"], "theirs_measured": facts[1]["measured"], "sketch": facts[0]["sketch"], "gain": facts[0]["gain"]}


def _winner(func: tir.PrimFunc, database: Path) -> tir.PrimFunc:
    """The program as its record says."""
    task = rd.tune.tasks(func)[0]
    record = Database(database).best(task.key(1))
    return func if record is None else replay(task.program, record).func


def _error(out: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(out - wanted).max() / max(float(np.abs(wanted).max()), 1e-9))


@contextmanager
def _answering(peer: str, library: Path, inputs: Path, output: Path) -> Iterator[Any]:
    """What times the peer's winner: a function from a number of calls to the seconds of one."""
    command = [peer, str(PEER), "time", str(library), str(inputs), str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()) as child:
        assert child.stdin is not None and child.stdout is not None
        if child.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the winner of the peer cannot be run: {library}")

        def seconds(calls: int) -> float:
            child.stdin.write(f"{calls}\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            return float(child.stdout.readline())  # type: ignore[union-attr]

        try:
            yield seconds
        finally:
            child.stdin.close()
