# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 3 x 3: the algorithm that the target's model chooses against the one that is measured to be the fastest.

Every algorithm of a layer is compiled and all take turns in one process. Before each call the caches are swept, as the other layers of a model
sweep them, and the input is written; what counts is the time of the kernels that convolve (others change layouts, and are not there in a model), as
a median over calls that no other process interrupted, which the CPU time of a call tells. Done under four conditions: this machine with the rates
measured of it; the same beside a process that reads memory as fast as it can, the rates measured beside it; the target restricted to AVX2, and
to SSE.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from roundel import driver
from roundel.frontend.onnx import from_onnx
from roundel.graph.algorithms.winograd import convolution_algorithms, fastest
from roundel.graph.expectations import Expectations
from roundel.strategy.expected import Setting
from roundel.target import Target
from roundel.target.host import described
from roundel.target.profile import measure

from .decisions import restricted
from .layers import Layer, convolution

K3 = (3, 3)
RESNET = tuple(convolution(c, c, n, n, K3, family="resnet") for c, n in ((64, 56), (128, 28), (256, 14), (512, 7)))
VGG = tuple(convolution(i, o, n, n, K3, family="vgg") for i, o, n in ((64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56), (256, 256, 56),
                                                                     (256, 512, 28), (512, 512, 28), (512, 512, 14)))
CONDITIONS = ("own", "beside", "avx2", "sse")
READER = "import numpy as n; a = n.ones(1 << 24)\nwhile True: a.sum()"  # of 128 MiB
ROUNDS = (9, 40)
ENOUGH = 4


@dataclass(frozen=True)
class Result:
    """Milliseconds of each algorithm, measured and expected; ``chosen`` is the model's choice."""

    layer: str
    chosen: str
    measured: Mapping[str, float]
    expected: Mapping[str, float]

    @property
    def behind(self) -> float:
        """How much longer the chosen algorithm takes than the best."""
        return self.measured[self.chosen] / min(self.measured.values()) - 1


def drawn(seed: int, count: int) -> list[Layer]:
    """Other layers of channels that vectors divide."""
    draw = random.Random(seed)
    sizes = lambda: draw.choice((32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768))
    return [convolution(sizes(), sizes(), n := draw.choice((7, 8, 10, 13, 14, 16, 20, 28, 32, 40, 56)), n, K3, family="drawn") for _ in range(count)]


def run_algorithms(conditions: Sequence[str], layers: Sequence[Layer], seconds: float) -> list[Result]:
    """Print a line for each layer under each condition, and how far behind the choices are."""
    everything = []
    for condition in conditions:
        found = []
        with _condition(condition) as target:
            print(f"{condition}: {target}", flush=True)
            for layer in layers:
                if (result := compare(layer, target, seconds)) is not None:
                    found.append(result)
                    print(describe(result), flush=True)
        behind = [r.behind for r in found]
        print(f"{condition}: median {median(behind):.1%} behind, worst {max(behind):.1%}\n", flush=True)
        everything += found
    return everything


def describe(result: Result) -> str:
    """One line."""
    times = "  ".join(f"{name} {ms:7.3f} ({result.expected[name]:7.3f})" for name, ms in result.measured.items())
    return f"{result.layer:26s} {times}   chosen {result.chosen:10s} {result.behind:6.1%}"


@contextmanager
def _condition(name: str) -> Iterator[Target]:
    """The target under a condition, for as long as it holds."""
    if name == "beside":
        with subprocess.Popen([sys.executable, "-c", READER]) as other:
            try:
                time.sleep(1.0)
                yield measure(described()).of(described())
            finally:
                other.kill()
        return
    yield restricted(measure(described()).of(described()), name)


def compare(layer: Layer, target: Target, seconds: float) -> Result | None:
    """Every algorithm of a layer, measured; None where there is only one."""
    mod = _module(layer)
    call = next(b.value for block in mod["main"].body.blocks for b in block.bindings if getattr(getattr(b.value, "op", None), "name", "") == "nn.conv2d")
    algorithms = convolution_algorithms(call.args[0].sinfo, call.args[1].sinfo, call.attrs, Expectations(Setting(target)))
    cycles = {name: found for name, found in algorithms.items() if isinstance(found, float)}
    if len(cycles) < 2:
        return None
    runs = {name: _compiled(layer, name, target) for name in cycles}
    measured = _interleaved(runs, layer.arrays()[0], seconds, max(2 * target.l3_bytes, 32 << 20))
    return Result(layer.name, fastest(algorithms), measured, {name: c / target.frequency_ghz * 1e-6 for name, c in cycles.items()})


def _module(layer: Layer) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.onnx"
        layer.save(path)
        return from_onnx(path.read_bytes())


def _compiled(layer: Layer, algorithm: str, target: Target) -> Any:
    """The layer with one algorithm."""
    return driver.compile_module(_module(layer), target=target, choices={"*": algorithm}).load(threads=1, profile=True)["main"]


def _interleaved(runs: Mapping[str, Any], x: np.ndarray, seconds: float, swept: int) -> dict[str, float]:
    """Milliseconds of each, in turns."""
    other, given, source = np.ones(swept // 4, np.float32), np.empty_like(x), x
    times: dict[str, list[tuple[float, float, float]]] = {m: [] for m in runs}
    order, end, done = list(runs), time.perf_counter() + seconds, 0
    while done < ROUNDS[0] or (time.perf_counter() < end and done < ROUNDS[1]):
        random.Random(done).shuffle(order)
        for m in order:
            other.sum()
            np.copyto(given, source)
            runs[m].profile()
            begun = time.thread_time_ns()
            runs[m](given)
            used = (time.thread_time_ns() - begun) * 1e-6
            kernels = {name: seconds * 1e3 for name, (_, seconds) in runs[m].profile().items()}
            times[m].append((used, sum(kernels.values()), sum(ms for name, ms in kernels.items() if "conv2d" in name)))
        done += 1
    return {m: _typical(t[1:]) for m, t in times.items()}


def _typical(calls: Sequence[tuple[float, float, float]]) -> float:
    """Of calls, given by CPU time, time of all kernels and of those that count: the median of the last where nothing interrupted them, else by
    their share of the CPU time."""
    alone = [own for used, kernels, own in calls if kernels <= used]
    return median(alone if len(alone) >= ENOUGH else [used * own / kernels for used, kernels, own in calls])
