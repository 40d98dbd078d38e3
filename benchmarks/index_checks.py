# SPDX-License-Identifier: Apache-2.0
"""What checking indices costs: gathers and scatters with the check and without it (``bounds_checks=False``), in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .engines import pin_threads
from .results import machine, merge
from .samples import Sample

BLOCK = 0.005  # seconds of a block of calls
ROUNDS = 40


def run_index_checks(threads: int, only: str = "") -> list[dict[str, Any]]:
    """Measure the samples whose name contains ``only``; merged into the results as they come."""
    pin_threads(threads)
    out = []
    for sample in index_samples():
        if only in sample.name:
            entry = run_sample(sample, threads)
            merge("index_checks", [entry], ("name", "threads"))
            out.append(entry)
            print(line(entry), flush=True)
    return out


def index_samples() -> Iterator[Sample]:
    """Rows and elements, few and many."""
    rng = np.random.default_rng(0)
    floats, below = lambda *shape: rng.random(shape, np.float32), lambda n, *shape: rng.integers(0, n, shape)
    words = floats(30522, 768)
    for count in (1, 16, 128, 4096):
        yield Sample(f"Gather {count} rows of 30522x768", "Gather", {"x": words, "i": below(30522, count)})
    for n, width in ((1000, 64), (100_000, 64)):
        yield Sample(f"Gather {n} rows of {n}x{width}", "Gather", {"x": floats(n, width), "i": below(n, n)})
    for n, count in ((1000, 1000), (1000, 1_000_000), (1_000_000, 1_000_000)):
        yield Sample(f"Gather {count} of {n}", "Gather", {"x": floats(n), "i": below(n, count)})
        yield Sample(f"Gather {count} of {n}, int32", "Gather", {"x": floats(n), "i": below(n, count).astype(np.int32)})
    for n in (64, 1024):
        x, i = floats(n, n), below(n, n, n)
        for axis in (0, 1):
            yield Sample(f"GatherElements {n}x{n} axis {axis}", "GatherElements", {"x": x, "i": i}, attributes={"axis": axis})
            yield Sample(f"ScatterElements {n}x{n} axis {axis}", "ScatterElements", {"x": x, "i": i, "u": x}, attributes={"axis": axis})
        yield Sample(f"GatherND {n * n} of {n}x{n}", "GatherND", {"x": x, "i": below(n, n * n, 2)})
        yield Sample(f"ScatterND {n * n} of {n}x{n}", "ScatterND", {"x": x, "i": below(n, n * n, 2), "u": floats(n * n)})
        yield Sample(f"ScatterND {n} rows of {n}x{n}", "ScatterND", {"x": x, "i": below(n, n, 1), "u": x})


def run_sample(sample: Sample, threads: int) -> dict[str, Any]:
    """One operator, checked and unchecked: the tenth part of the fastest blocks, which other programs disturb least."""
    import roundel as rd

    inputs = list(sample.inputs.values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.onnx"
        sample.save(path)
        models = [rd.compile(path, threads=threads, bounds_checks=checked) for checked in (True, False)]
    for model in models:
        model(*inputs)
    start = time.perf_counter()
    models[1](*inputs)
    repeats = max(1, round(BLOCK / (time.perf_counter() - start)))
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for model, found in zip(models, times, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                model(*inputs)
            found.append((time.perf_counter() - start) / repeats)
    checked, unchecked = (float(np.percentile(t, 10)) for t in times)
    return {"name": sample.name, "threads": threads, "machine": machine(), "checked_ms": checked * 1e3, "unchecked_ms": unchecked * 1e3,
            "when": time.strftime("%Y-%m-%d %H:%M")}


def line(entry: dict[str, Any]) -> str:
    """One result in one line: what the check adds, microseconds with and without it."""
    more = entry["checked_ms"] / entry["unchecked_ms"] - 1
    return f"{more:+7.1%}  {entry['name']:36s} t{entry['threads']}  {entry['checked_ms'] * 1e3:9.1f}  {entry['unchecked_ms'] * 1e3:9.1f} us"
