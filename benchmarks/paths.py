# SPDX-License-Identifier: Apache-2.0
"""The best of all paths against generated code alone: what `rd.tune` finds when it compares libraries with generated code, part by part.

Each model runs in a process of its own and leaves one entry of ``results/paths.json``; a model that has one is skipped, so the command goes on where
it was stopped. The last case is a machine that is described badly on purpose: generated code may use SSE only, and libraries what there is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

from .apart import measured_apart
from .decisions import machine as described
from .engines import pin_threads
from .latency import difference
from .measure import Timing, interleave
from .models import Case, cases, data, onnx_file
from .results import machine, merge, read_here

BAD = ("mobilenetv2", "sse")  # the model and how the machine is described
SLOWER, FASTER = 1.02, 0.95  # at most, on the machine as it is; at least, on one that is described badly
WRONG = 1e-4  # of the largest output


def chosen(models: Sequence[str]) -> list[tuple[Case, str]]:
    """The cases of these models, each on the machine as it is; with ``all`` of them, or ``bad``, also the bad description."""
    bad = [(Case(BAD[0]), BAD[1])] if "all" in models or "bad" in models else []
    names = [m for m in models if m != "bad"]
    return [(c, "own") for c in (cases(names, [1]) if names else ()) if c.length in (None, 128)] + bad


def run_paths(wanted: Sequence[tuple[Case, str]], threads: int, libraries: str, compare_for: float, time_for: float, limit: float,
              again: bool = False) -> list[dict[str, Any]]:
    """The entries of these cases; those not measured yet are, each in a process that has ``limit`` seconds."""
    key = lambda e: (e["case"], e["condition"], e["threads"])
    done = {key(e): e for e in read_here("paths")}
    found = []
    for case, condition in wanted:
        entry: dict[str, Any] = {"case": case.name, "condition": condition, "threads": threads}
        if again or key(entry) not in done or "failed" in done[key(entry)]:
            command = ["paths-one", case.model, "--condition", condition, "--threads", str(threads), "--libraries", libraries,
                       "--compare-for", str(compare_for), "--time-for", str(time_for)]
            entry |= measured_apart([*command, "--length", str(case.length)] if case.length else command, limit)
            merge("paths", [entry], ["case", "condition", "threads"])
            done[key(entry)] = entry
            print(line(entry), flush=True)
        found.append(done[key(entry)])
    return found


def run_one(case: Case, condition: str, threads: int, libraries: str, compare_for: float, time_for: float) -> dict[str, Any]:
    """One case in this process: its paths are compared part by part, then the model by the winners runs in turns with generated code alone."""
    pin_threads(threads)
    import roundel as rd
    from roundel.ir import options

    inputs, reference = data(case)
    file, target = onnx_file(case), described(condition)
    with options.override(libraries="off"):
        generated = rd.compile(file, target=target, threads=threads)
    sizes = sizes_of(generated.executable["main"].info.inputs, inputs)
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "paths.jsonl")
        begun = time.monotonic()
        paths = rd.tune(file, target=target, threads=threads, libraries=libraries, trials=0, seconds=compare_for, sizes=sizes or None, db=db).paths
        compared_for = time.monotonic() - begun
        best = rd.compile(file, target=target, threads=threads, records=db)
    won = [p for p in paths if p.taken != "generated"]
    entry = {"when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine(), "libraries": libraries, "compared": sum(bool(p.seconds) for p in paths),
             "won": [str(p) for p in won], "wrong": [str(p) for p in paths if p.wrong], "seconds": round(compared_for, 1)}
    entry |= {"relative_difference": difference(_first(best(**inputs)), reference)["relative_difference"]}
    if not won:  # one model, twice
        return entry | {"ratio": 1.0, "quartiles": [1.0, 1.0]}
    timings = interleave({"best": lambda: best(**inputs), "generated": lambda: generated(**inputs)}, budget=time_for, rounds=(8, 1000))
    return entry | ratio(timings["best"], timings["generated"], threads)


def ratio(best: Timing, generated: Timing, threads: int) -> dict[str, Any]:
    """What the first takes relative to the second, by pairs of blocks that came one after the other: of CPU time at one thread, which other programs
    of the machine hardly change, and of what a call took at more."""
    if threads == 1:
        pairs = [a / b for a, b in zip(best.cpu, generated.cpu, strict=True)]
    else:
        blocks = len(best.cpu)
        pairs = [median(a) / median(b) for a, b in zip(_by_block(best, blocks), _by_block(generated, blocks), strict=True)]
    low, middle, high = quantiles(pairs, n=4)
    figures = {"ms": round(best.seconds * 1e3, 4), "generated_ms": round(generated.seconds * 1e3, 4)}
    return {"ratio": round(middle, 4), "quartiles": [round(low, 4), round(high, 4)], **figures}


def _by_block(timing: Timing, blocks: int) -> list[list[float]]:
    size = len(timing.everything) // blocks
    return [timing.everything[k * size : (k + 1) * size] for k in range(blocks)]


def sizes_of(infos: Sequence[Any], inputs: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The sizes that the inputs give the dimensions without a number."""
    return {d: n for i in infos for d, n in zip(i.shape, inputs[i.name].shape, strict=True) if isinstance(d, str)}


def _first(outputs: Any) -> np.ndarray:
    return np.asarray(next(iter(outputs.values())) if isinstance(outputs, Mapping) else outputs[0] if isinstance(outputs, list | tuple) else outputs)


def holds(entry: Mapping[str, Any]) -> bool:
    """Whether the case is what was promised: right, and not slower, or faster where the machine is described badly."""
    limit = SLOWER if entry["condition"] == "own" else FASTER
    return "failed" not in entry and entry["relative_difference"] <= WRONG and entry["ratio"] <= limit


def line(entry: Mapping[str, Any]) -> str:
    """One case, for people."""
    name = f"{entry['case']}, {entry['threads']} threads" + ("" if entry["condition"] == "own" else f", described as {entry['condition']}")
    if "failed" in entry:
        return f"{name}: failed: {entry['failed']}"
    low, high = entry["quartiles"]
    verdict = "" if holds(entry) else "  <- missed"
    return (f"{name}: {entry['ratio']:.3f} ({low:.3f} to {high:.3f}) times generated code; a library at {len(entry['won'])} of {entry['compared']} parts; "
            f"off by {entry['relative_difference']:.1e}; compared for {entry['seconds']:.0f} s{verdict}")
