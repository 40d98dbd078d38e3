# SPDX-License-Identifier: Apache-2.0
"""Random layers: the decision that the target's model chooses against the best of many that are measured.

A decision is forced by the attribute ``decisions`` of a tensor program, which the schedule rule obeys. Layers whose rule has no
free choice yet (Winograd, windows, rows) are counted and left out.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from roundel import driver
from roundel.frontend.onnx import from_onnx
from roundel.ir.module import IRModule
from roundel.select.explain import explain_module
from roundel.select.schedule_module import schedule_module
from roundel.target import Target

from .layers import Layer, convolution, matmul
from .results import machine, merge

CALLS, BLOCKS = 6, 12  # a candidate's time is the fastest of that many blocks of calls


def run_random(seed: int, count: int, most: int) -> list[dict[str, Any]]:
    """``count`` layers drawn by ``seed``, up to ``most`` candidates of each; merged into the results."""
    drawn = layers(random.Random(seed))
    out: list[dict[str, Any]] = []
    for number, layer in zip(range(count), drawn):
        entry = run_layer(layer, most, seed)
        if entry is None:
            print(f"{layer.name:40s} has no free decision", flush=True)
            continue
        entry |= {"seed": seed, "number": number, "machine": machine()}
        merge("random", [entry], ("seed", "number"))
        out.append(entry)
        print(f"{layer.name:40s} chosen {entry['chosen']:28s} {entry['chosen_us']:9.1f} us   best {entry['best']:28s} {entry['best_us']:9.1f} us", flush=True)
    return out


def layers(rng: random.Random) -> Iterator[Layer]:
    """Matrix products and convolutions of all kinds, without end; at most some 200 MFLOP each."""
    size = lambda low, high: max(1, round(np.exp(rng.uniform(np.log(low), np.log(high)))))
    while True:
        kind = rng.choice(("matmul", "vector", "pointwise", "square", "strided", "dilated", "grouped"))
        if kind == "matmul":
            layer = matmul(size(2, 800), size(16, 2048), size(16, 2048))
        elif kind == "vector":
            layer = matmul(1, size(64, 8000), size(64, 2000), "gemv")
        else:
            blocks = lambda: 16 * size(1, 24)
            side, groups = size(7, 112), rng.choice((2, 4)) if kind == "grouped" else 1
            channels, results = blocks() * groups, blocks() * groups
            kernel = 1 if kind == "pointwise" else rng.choice((3, 5)) if kind == "strided" else 3
            layer = convolution(channels, results, side, rng.choice((side, size(7, 112))), (kernel, kernel), 2 if kind == "strided" else 1, groups,
                                2 if kind == "dilated" else 1)
        if layer.flops < 2e8:
            yield layer


def run_layer(layer: Layer, most: int, seed: int) -> dict[str, Any] | None:
    """Measure the choice and the candidates; None where there is nothing to choose."""
    target = Target.host()
    before = driver.DEFAULT[: (at := driver.DEFAULT.index(schedule_module))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.onnx"
        layer.save(path)
        mod = driver.prepare(from_onnx(str(path)), target=target, pipeline=before)
    found = max(explain_module(mod, target), key=lambda e: e.cost.flops)
    if not found.decisions:
        return None
    candidates = [dict(found.decisions), *_sample(found.decisions, target, most, seed)]
    x = layer.arrays()[0]
    runs = {i: _built(mod, found.name, c, x, driver.DEFAULT[at:]) for i, c in enumerate(candidates)}
    times = _race({i: r for i, r in runs.items() if r is not None}, found.name)
    best = min(times, key=times.__getitem__)
    return {"name": f"{layer.node} {layer.name}", "candidates": len(times), "chosen": _text(candidates[0]), "chosen_us": times[0] * 1e6,
            "best": _text(candidates[best]), "best_us": times[best] * 1e6}


def _sample(chosen: Mapping[str, Any], target: Target, most: int, seed: int) -> list[dict[str, Any]]:
    """Other register tiles that fit the registers."""
    all_ = [{**chosen, "rows": r, "vectors": v} for v in range(1, 5) for r in range(1, target.vector_registers) if r * v + v + 1 <= target.vector_registers]
    others = [c for c in all_ if c != dict(chosen)]
    return others if len(others) <= most else random.Random(seed).sample(others, most)


def _built(mod: IRModule, name: str, decisions: Mapping[str, Any], x: np.ndarray, rest: list[Any]) -> Any:
    """A call of the module under these decisions that returns what its kernels took; None where the program cannot be scheduled so."""
    forced = mod.with_functions({name: mod[name].with_attr("decisions", decisions)})
    try:
        function = driver.build_objects(driver.prepare(forced, target=Target.host(), pipeline=rest), profile=True).load(threads=1, profile=True)["main"]
    except driver.OptionError:
        raise
    except Exception as impossible:
        print(f"    {_text(decisions)}: {str(impossible).splitlines()[0][:120]}")
        return None

    def run() -> dict[str, tuple[int, float]]:
        for _ in range(CALLS):
            function(x)
        return function.profile()

    return run


def _race(runs: Mapping[int, Any], name: str) -> dict[int, float]:
    """Seconds of the kernel under each candidate: the fastest block, candidates in turns."""
    best: dict[int, float] = {}
    for block in range(BLOCKS + 1):
        for i, run in runs.items():
            calls, seconds = max(run().values(), key=lambda found: found[1])
            if block:
                best[i] = min(best.get(i, float("inf")), seconds / calls)
    return best


def _text(decisions: Mapping[str, Any]) -> str:
    return " ".join(f"{k}={v}" for k, v in decisions.items())
