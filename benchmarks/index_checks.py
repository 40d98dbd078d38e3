# SPDX-License-Identifier: Apache-2.0
"""What checking indices costs: gathers and scatters with the check and without it (``bounds_checks=False``), in turns.

Sizes go from indices that lie in the first cache to those that come from memory, for each kind of access. The figure is the median
of ratios of neighbouring blocks of calls, so that what disturbs one block disturbs one ratio.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .engines import pin_threads
from .results import machine, merge
from .samples import Sample

BLOCK = 0.002  # seconds of a block of calls
ROUNDS = 61
COUNTS = (1024, 8192, 65536, 262144, 1_000_000)  # of indices: 8 KiB to 8 MB of 64-bit numbers


@dataclass(frozen=True)
class Case:
    """One line of the table: a kind of access, how many indices, and the call."""

    kind: str
    count: int
    sample: Sample


def run_index_checks(threads: int, only: str = "") -> list[dict[str, Any]]:
    """Measure the cases whose kind contains ``only``; merged into the results as they come."""
    pin_threads(threads)
    out = []
    for kind, counts, of in KINDS:
        if only not in kind:
            continue
        for count in counts:
            entry = run_case(Case(kind, count, of(count, np.random.default_rng(count))), threads)
            merge("index_checks", [entry], ("name", "count", "threads"))
            out.append(entry)
            print(line(entry), flush=True)
    return out


Rng = np.random.Generator


def _floats(rng: Rng, *shape: int) -> np.ndarray:
    return rng.random(shape, np.float32)


def _rows(width: int) -> Callable[[int, Rng], Sample]:
    """Rows of a table of 20 MB, such as an embedding's."""
    n = 5_000_000 // width
    return lambda count, rng: Sample("rows", "Gather", {"x": _floats(rng, n, width), "i": rng.integers(0, n, count)})


def _take(dtype: str) -> Callable[[int, Rng], Sample]:
    return lambda count, rng: Sample("take", "Gather", {"x": _floats(rng, count), "i": rng.integers(0, count, count).astype(dtype)})


def _elements(node: str, width: int, axis: int, **attributes: Any) -> Callable[[int, Rng], Sample]:
    """Elements along an axis of a matrix of so many columns."""

    def of(count: int, rng: Rng) -> Sample:
        shape = (count // width, width)
        inputs = {"x": _floats(rng, *shape), "i": rng.integers(0, shape[axis], shape)}
        return Sample("elements", node, inputs | ({"u": _floats(rng, *shape)} if node == "ScatterElements" else {}), attributes={"axis": axis} | attributes)

    return of


def _tuples(node: str, rank: int, width: int = 0, **attributes: Any) -> Callable[[int, Rng], Sample]:
    """Tuples of positions in a cube with as many elements (or rows of ``width``) as tuples, about."""

    def of(count: int, rng: Rng) -> Sample:
        sides = [max(2, round(count ** (1 / rank)) + k) for k in range(rank)]
        row = (width,) if width else ()
        i = np.stack([rng.integers(0, n, count) for n in sides], 1)
        inputs = {"x": _floats(rng, *sides, *row), "i": i}
        return Sample("tuples", node, inputs | ({"u": _floats(rng, count, *row)} if node == "ScatterND" else {}), attributes=attributes)

    return of


_ROWS = (16, 128, 1024, 4096, 16384)
KINDS: tuple[tuple[str, tuple[int, ...], Callable[[int, Rng], Sample]], ...] = (
    ("Gather of rows of 768", _ROWS, _rows(768)),
    ("Gather of rows of 64", (128, 1024, 8192, 65536, 262144), _rows(64)),
    ("ScatterND of rows of 64", (128, 1024, 8192, 65536, 131072), _tuples("ScatterND", 1, 64)),
    ("Gather", COUNTS, _take("int64")),
    ("Gather, int32", COUNTS, _take("int32")),
    ("GatherElements, 1024 columns", COUNTS, _elements("GatherElements", 1024, 1)),
    ("GatherElements, 4 columns", COUNTS, _elements("GatherElements", 4, 1)),
    ("GatherElements, along rows", COUNTS, _elements("GatherElements", 64, 0)),
    ("GatherND of pairs", COUNTS, _tuples("GatherND", 2)),
    ("GatherND of triples", COUNTS, _tuples("GatherND", 3)),
    ("ScatterElements, 1024 columns", COUNTS, _elements("ScatterElements", 1024, 1)),
    ("ScatterElements, 4 columns", COUNTS, _elements("ScatterElements", 4, 1)),
    ("ScatterElements, along rows, add", COUNTS, _elements("ScatterElements", 64, 0, reduction="add")),
    ("ScatterND", COUNTS, _tuples("ScatterND", 1)),
    ("ScatterND of pairs", COUNTS, _tuples("ScatterND", 2)),
    ("ScatterND of pairs, add", COUNTS, _tuples("ScatterND", 2, reduction="add")),
)


def run_case(case: Case, threads: int) -> dict[str, Any]:
    """One operator, checked and unchecked: processor time of all threads of this process, which other programs disturb least."""
    import roundel as rd

    inputs, clock = list(case.sample.inputs.values()), time.process_time
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.onnx"
        case.sample.save(path)
        models = [rd.compile(path, threads=threads, bounds_checks=checked) for checked in (True, False)]

    def block(model: Any, repeats: int) -> float:
        start = clock()
        for _ in range(repeats):
            model(*inputs)
        return (clock() - start) / repeats

    for model in models:
        model(*inputs)
    repeats = max(1, round(BLOCK / block(models[1], 3)))
    times = np.array([[block(models[(k + turn) % 2], repeats) for k in (0, 1)][:: 1 - 2 * turn] for turn in (0, 1) * (ROUNDS // 2)])
    more = float(np.median(times[:, 0] / times[:, 1])) - 1
    checked, unchecked = (float(t) for t in np.median(times, 0))
    return {"name": case.kind, "count": case.count, "threads": threads, "machine": machine(), "more": more, "checked_ms": checked * 1e3,
            "unchecked_ms": unchecked * 1e3, "when": time.strftime("%Y-%m-%d %H:%M")}


def line(entry: dict[str, Any]) -> str:
    """One result in one line: what the check adds, microseconds with and without it."""
    return (f"{entry['more']:+7.1%}  {entry['name']:34s} {entry['count']:9,d}  t{entry['threads']}"
            f"  {entry['checked_ms'] * 1e3:9.1f}  {entry['unchecked_ms'] * 1e3:9.1f} us")
