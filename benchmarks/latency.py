# SPDX-License-Identifier: Apache-2.0
"""Engines on one workload: set up, compared with the reference, timed in turns; and the same for many models, a process each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .engines import ENGINES, Session, Variants, Workload, pin_threads
from .measure import BLOCK, interleave
from .models import Case, data, load, onnx_file
from .results import machine, merge

TIME_LIMIT = 900  # seconds for one process


def compare(work: Workload, reference: np.ndarray | None, engines: Sequence[str], budget: float, *, block: float = BLOCK,
            more: Mapping[str, Callable[[Workload], Variants]] | None = None) -> dict[str, Any]:
    """By engine: ``ms`` and the other figures of its fastest variant, how far its output is from the reference, seconds until the
    first result; or ``error`` / ``skipped`` with the reason. ``more``: engines beside those of the table."""
    table = {**ENGINES, **(more or {})}
    sessions: dict[str, Session] = {}
    found: dict[str, dict[str, Any]] = {}
    for engine in engines:
        try:
            for variant, make in table[engine](work).items():
                label = engine + (f":{variant}" if variant else "")
                start = time.perf_counter()
                session = make()
                out = session.array(session.call())
                found[label] = {"first_result_s": round(time.perf_counter() - start, 3), **difference(out, reference)}
                sessions[label] = session
        except ModuleNotFoundError as missing:
            found[engine] = {"skipped": str(missing)}
        except Exception as failure:  # an engine that fails is a result of the benchmark
            found[engine] = {"error": f"{type(failure).__name__}: {str(failure)[:300]}"}
    if sessions:
        for label, timing in interleave({k: s.call for k, s in sessions.items()}, budget=budget, block=block).items():
            found[label].update(timing.summary())
    return fastest_variants(found)


def difference(out: np.ndarray, reference: np.ndarray | None) -> dict[str, float]:
    """Largest absolute difference, also relative to the largest value."""
    if reference is None:
        return {}
    if tuple(out.shape) != tuple(reference.shape):
        raise ValueError(f"the output's shape is {tuple(out.shape)}, not {tuple(reference.shape)}")
    most = float(np.abs(np.asarray(out, np.float64) - reference).max())
    return {"max_difference": most, "relative_difference": most / max(float(np.abs(reference).max()), 1e-30)}


def fastest_variants(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One entry per engine; it names its variant, and the times of the others stay in ``variants``."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for label, entry in found.items():
        engine, _, variant = label.partition(":")
        groups.setdefault(engine, {})[variant] = {**entry, "variant": variant} if variant else entry
    out = {}
    for engine, variants in groups.items():
        best = min(variants.values(), key=lambda e: e.get("ms", np.inf))
        times = {variant or "default": e["ms"] for variant, e in variants.items() if "ms" in e}
        out[engine] = {**best, "variants": times} if len(times) > 1 else best
    return out


def run_case(case: Case, threads: int, engines: Sequence[str], budget: float) -> dict[str, Any]:
    """One entry of the results, measured in this process."""
    pin_threads(threads)
    inputs, reference = data(case)
    work = Workload(onnx_file(case), inputs, threads, lambda: load(case)[0], dynamic=case.length is not None)
    return {
        "model": case.model, "case": case.name, "batch": case.batch, "length": case.length, "threads": threads, "when": time.strftime("%Y-%m-%d %H:%M"),
        "load": round(os.getloadavg()[0], 2), "machine": machine(), "engines": compare(work, reference, engines, budget),
    }


def run_all(todo: Sequence[Case], threads: Sequence[int], engines: Sequence[str], budget: float) -> list[dict[str, Any]]:
    """Every case at every number of threads, each in a process of its own; results are merged into the file as they come."""
    out = []
    for case in todo:
        for count in threads:
            command = [sys.executable, "-m", "benchmarks", "one", case.model, "--batch", str(case.batch), "--threads", str(count),
                       "--engines", ",".join(engines), "--budget", str(budget)]
            command += ["--length", str(case.length)] if case.length else []
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
                entry = json.loads(done.stdout.strip().splitlines()[-1])
            except (subprocess.TimeoutExpired, IndexError, ValueError) as failure:
                tail = done.stderr[-800:] if isinstance(failure, IndexError | ValueError) else f"over {TIME_LIMIT} s"
                print(f"{case.name} at {count} threads failed: {tail}", file=sys.stderr, flush=True)
                continue
            merge("models", [entry], ("case", "threads"))
            out.append(entry)
            print(line(entry), flush=True)
    return out


def line(entry: dict[str, Any]) -> str:
    """One result in one line; ``!`` marks a figure without enough quiet blocks."""
    parts = []
    for engine, e in sorted(entry["engines"].items(), key=lambda item: item[1].get("ms", np.inf)):
        shown = f"{e['ms']:.2f}{'' if e['quiet'] else '!'}" if "ms" in e else "skipped" if "skipped" in e else "FAILED " + e["error"][:100]
        parts.append(f"{engine} {shown}")
    return f"{entry['case']:18s} t{entry['threads']}  ratio {ratio(entry):5.2f}   " + "  ".join(parts)


def ratio(entry: dict[str, Any], figure: str = "ms") -> float:
    """The best peer's time by ours (or another figure), weights as they are; NaN where one is missing."""
    times = {k: e[figure] for k, e in entry["engines"].items() if e.get(figure) and not k.startswith("roundel-")}
    ours = times.pop("roundel", None)
    return min(times.values()) / ours if ours and times else float("nan")
