# SPDX-License-Identifier: Apache-2.0
"""Common operators, one at a time, on every engine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .engines import Variants, Workload, eager, pin_threads
from .latency import compare
from .results import machine, merge
from .samples import Sample, samples

BLOCK = 0.02  # seconds of a block of calls


def run_operators(engines: Sequence[str], threads: int, budget: float, only: str = "") -> list[dict[str, Any]]:
    """Measure the samples whose name contains ``only``; merged into the results as they come."""
    pin_threads(threads)
    out = []
    for sample in samples():
        if only in sample.name:
            entry = run_sample(sample, engines, threads, budget)
            merge("operators", [entry], ("name", "threads"))
            out.append(entry)
            print(line(entry), flush=True)
    return out


def run_sample(sample: Sample, engines: Sequence[str], threads: int, budget: float) -> dict[str, Any]:
    """One operator on the engines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.onnx"
        sample.save(path)
        work = Workload(path, sample.inputs, threads, sample.module() if sample.peer else None)
        found = compare(work, None, engines, budget, block=BLOCK, more={"eager": _eager})
    return {"name": sample.name, "elements": sample.elements, "threads": threads, "machine": machine(), "engines": found,
            "when": time.strftime("%Y-%m-%d %H:%M")}


def _eager(work: Workload) -> Variants:
    """PyTorch on the data as they lie: other layouts are other operators here."""
    return {"": eager(work)[""]}


def ratio(entry: dict[str, Any]) -> float:
    """The best peer's time by ours; NaN where one is missing."""
    times = {k: e["ms"] for k, e in entry["engines"].items() if "ms" in e}
    ours = times.pop("roundel", None)
    return min(times.values()) / ours if ours and times else float("nan")


def line(entry: dict[str, Any]) -> str:
    """One result in one line: the ratio, microseconds by engine."""
    found = entry["engines"]
    parts = [f"{k} {e['ms'] * 1e3:.0f}" if "ms" in e else f"{k} FAILED {e['error'][:90]}" for k, e in found.items() if "skipped" not in e]
    return f"{ratio(entry):6.2f}  {entry['name']:48s} t{entry['threads']}  " + "  ".join(parts)


def worst(entries: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Those furthest behind the best peer."""
    return sorted((e for e in entries if not np.isnan(ratio(e))), key=ratio)[:count]
