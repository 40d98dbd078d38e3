# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 3 x 3: the algorithm that the target's model chooses against the one that is measured to be the fastest.

Done under four conditions: this machine with the rates measured of it; the same beside a process that reads memory as fast as it can, the
rates measured beside it; the target restricted to AVX2, and to SSE. There are three steps, and what each makes stays in a folder, so that only the
first and the last need the machine for themselves: the rates are measured; every algorithm of every layer is compiled; compiled algorithms are timed.
A time is kept with a digest of the code that it is of. When the model of costs has changed, the same times judge its new choices.

A layer is timed inside of a model: of a few like it with weights of their own, between which convolutions of 1 x 1 go back to its channels. Before each
call the caches are swept, so that weights come from memory, as they do where other layers read theirs; the memory of what is computed has been used by the
layers before, as everywhere but in the first one, which does not count. (Alone after a sweep, where it first writes and reads that memory from afar, F(4x4)
of 512 -> 32 channels took twice as long.) The algorithms take turns, round by round; what counts is the median over calls that no other process
interrupted, which the CPU time of a call tells.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from roundel import driver
from roundel.build import Built
from roundel.frontend.onnx import from_onnx
from roundel.graph.algorithms.winograd import convolution_algorithms, fastest
from roundel.graph.expectations import Expectations
from roundel.ir import ConstData
from roundel.strategy.expected import Setting
from roundel.target import Target
from roundel.target.host import described
from roundel.target.profile import LARGEST, measure

from .decisions import restricted
from .layers import Layer, convolution

K3 = (3, 3)
RESNET = tuple(convolution(c, c, n, n, K3, family="resnet") for c, n in ((64, 56), (128, 28), (256, 14), (512, 7)))
VGG = tuple(convolution(i, o, n, n, K3, family="vgg") for i, o, n in ((64, 64, 224), (64, 128, 112), (128, 128, 112), (128, 256, 56), (256, 256, 56),
                                                                     (256, 512, 28), (512, 512, 28), (512, 512, 14)))
CONDITIONS = ("own", "beside", "avx2", "sse")
STEPS = ("measure", "compile", "time")
READER = "import numpy as n; a = n.ones(1 << 24)\nwhile True: a.sum()"  # of 128 MiB
ROUNDS = (9, 40)
BLOCK = 32 << 20 # bytes of other constants
ENOUGH = 4
LIKE_IT = 3      # layers of a model that count
MOST_KEPT = 48 << 20 # bytes of constants of a file


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
    """Other layers of channels that vectors divide; pictures of all shapes, one or four of them."""
    draw = random.Random(seed)
    channels = lambda: draw.choice((32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768))
    side = lambda: draw.choice((7, 8, 10, 13, 14, 16, 20, 28, 32, 40, 56))
    return [_drawn(channels(), channels(), n := side(), draw.choice((n, n, side())), draw.choice((1, 1, 4))) for _ in range(count)]


def _drawn(channels: int, outer: int, height: int, width: int, images: int) -> Layer:
    made = convolution(channels, outer, height, width, K3, family="drawn")
    name = made.name if images == 1 else f"{images} of {made.name}"
    return replace(made, name=name, shape=(images, *made.shape[1:]), out=(images, *made.out[1:]), flops=images * made.flops)


def run_algorithms(conditions: Sequence[str], layers: Sequence[Layer], seconds: float, folder: Path, steps: Sequence[str], threads: int) -> list[Result]:
    """Do some of the steps, then print what is known: a line for each layer under each condition, and how far behind the choices are. ``seconds`` of
    timing for each layer at most, if there were ``ROUNDS`` at least."""
    everything = []
    for condition in conditions:
        runs = Runs(folder, condition, threads)
        if "measure" in steps:
            runs.measure()
        if "compile" in steps:
            for layer in layers:
                runs.compile(layer)
        if "time" in steps:
            with _beside(condition):
                for layer in layers:
                    runs.time(layer, seconds)
        found = [r for layer in layers if (r := runs.result(layer)) is not None]
        if found:
            print("\n".join([f"{condition}: {runs.target}", *map(describe, found)]))
            behind = [r.behind for r in found]
            print(f"{condition}: median {median(behind):.1%} behind, worst {max(behind):.1%} of {len(found)}\n", flush=True)
        everything += found
    return everything


def describe(result: Result) -> str:
    """One line."""
    times = "  ".join(f"{name} {ms:7.3f} ({result.expected[name]:7.3f})" for name, ms in result.measured.items())
    return f"{result.layer:26s} {times}   chosen {result.chosen:10s} {result.behind:6.1%}"


@contextmanager
def _beside(condition: str) -> Iterator[None]:
    """What else runs under a condition."""
    if condition != "beside":
        yield
        return
    with subprocess.Popen([sys.executable, "-c", READER]) as other:
        try:
            time.sleep(1.0)
            yield
        finally:
            other.kill()


@dataclass(frozen=True)
class Runs:
    """What a folder holds of one condition."""

    folder: Path
    condition: str
    threads: int = 1

    @cached_property
    def target(self) -> Target:
        """The machine under the condition, as it was measured."""
        return Target((self.folder / f"{self.condition}.json").read_text())

    def measure(self) -> None:
        """The rates of this machine under the condition, if they are not known yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (path := self.folder / f"{self.condition}.json").exists():
            table = restricted(described(), self.condition)
            with _beside(self.condition):
                path.write_text(measure(table).of(table).to_json())

    def compile(self, layer: Layer) -> None:
        """Every algorithm of a layer, if that is not done."""
        for name in self.expected(layer):
            path = self._file(layer, name)
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                _write(driver.compile_module(layers_like(layer), target=self.target, choices={"*": name}), path)

    def time(self, layer: Layer, seconds: float) -> None:
        """The algorithms of a layer in turns, if some code has no time yet."""
        files = {name: path for name in self.expected(layer) if (path := self._file(layer, name)).exists()}
        digests = {name: _digest(path) for name, path in files.items()}
        if len(files) < 2 or {*digests.values()} <= self.times.keys():
            return
        runs = {name: _read(path).load(threads=self.threads, profile=True)["main"] for name, path in files.items()}
        found = _interleaved(runs, layer.arrays()[0], seconds, min(max(2 * self.target.l3_bytes, 32 << 20), LARGEST), self.threads)
        self.times.update({digests[name]: ms for name, ms in found.items()})
        self._times_file.write_text(json.dumps(self.times))

    def result(self, layer: Layer) -> Result | None:
        """What the model chooses, with the times; None where they are not all known."""
        if not (self.folder / f"{self.condition}.json").exists():
            return None
        expected, algorithms = self.expected(layer), self._algorithms(layer)
        files = {name: self._file(layer, name) for name in expected}
        if len(files) < 2 or not all(path.exists() for path in files.values()):
            return None
        measured = {name: self.times.get(_digest(path)) for name, path in files.items()}
        known = {name: ms for name, ms in measured.items() if ms is not None}
        return Result(layer.name, fastest(algorithms), known, expected) if len(known) == len(files) else None

    @cached_property
    def times(self) -> dict[str, float]:
        """Milliseconds of every code that was timed."""
        return json.loads(self._times_file.read_text()) if self._times_file.exists() else {}

    def expected(self, layer: Layer) -> dict[str, float]:
        """Milliseconds that the model expects of each algorithm, those included that it works out only when it is asked."""
        cycles = {name: getattr(found, "cycles", found) for name, found in self._algorithms(layer).items()}
        return {name: c / self.target.frequency_ghz * 1e-6 for name, c in cycles.items() if isinstance(c, float)}

    def _algorithms(self, layer: Layer) -> Mapping[str, Any]:
        calls = (b.value for block in layers_like(layer)["main"].body.blocks for b in block.bindings)
        call: Any = next(c for c in calls if getattr(getattr(c, "op", None), "name", "") == "nn.conv2d")
        return convolution_algorithms(call.args[0].sinfo, call.args[1].sinfo, call.attrs, Expectations(Setting(self.target)))

    def _file(self, layer: Layer, algorithm: str) -> Path:
        return self.folder / self.condition / f"{layer.name} {algorithm}".replace(" ", "_").replace("/", "_")

    @property
    def _times_file(self) -> Path:
        return self.folder / f"{self.condition}-{self.threads}.times"


def layers_like(layer: Layer) -> Any:
    """Layers like this one, the first with a function after it by which its kernel is told from those that count, and between them convolutions of 1 x 1
    with the same function."""
    weights = [np.random.default_rng(k).permuted(w) for k in range(LIKE_IT + 1) for w in layer.arrays()[1]]
    outer, inner = weights[0].shape[:2]
    back = [np.random.default_rng(k).standard_normal((inner, outer, 1, 1)).astype(np.float32) / outer**0.5 for k in range(LIKE_IT)]
    nodes: list[Any] = []
    last = "x"
    for k in range(LIKE_IT + 1):
        if k:
            nodes += [helper.make_node("Conv", [last, f"back{k - 1}"], [f"b{k}"]), helper.make_node("Relu", [f"b{k}"], [f"x{k}"])]
            last = f"x{k}"
        nodes.append(helper.make_node("Conv", [last, f"w{2 * k}", f"w{2 * k + 1}"], [last := f"y{k}"], **dict(layer.attributes)))
        if not k:
            nodes.append(helper.make_node("Relu", [last], [last := "x0"]))
    named = {f"w{k}": w for k, w in enumerate(weights)} | {f"back{k}": w for k, w in enumerate(back)}
    given, made = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", layer.shape), (last, layer.out)))
    graph = helper.make_graph(nodes, "layers", [given], [made], [numpy_helper.from_array(w, name) for name, w in named.items()])
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString())


def _write(built: Built, path: Path) -> None:
    """Keep compiled code, and its constants where they are not too large. Of larger ones only the types: no time depends on their values, since of so many
    channels Winograd's algorithm computes no tile directly."""
    size = sum(math.prod(constant.shape) * 4 for constant in built.weights.values())
    constants = {key: constant.numpy() if size <= MOST_KEPT else (constant.shape, str(constant.dtype)) for key, constant in built.weights.items()}
    path.write_bytes(pickle.dumps((built.objects, built.functions, constants, built.offsets, built.nbytes, built.target, built.spec)))


def _read(path: Path) -> Built:
    """Compiled code with its constants, or some around 0. They are part of a block as large as that of a model, for which the system has huge pages."""
    objects, functions, kept, offsets, nbytes, target, spec = pickle.loads(path.read_bytes())
    some = np.random.default_rng(0).standard_normal(65537)
    arrays = {key: k if isinstance(k, np.ndarray) else np.resize(some.astype(k[1]), k[0]) for key, k in kept.items()}
    return Built(objects, functions, {key: ConstData(array) for key, array in arrays.items()}, offsets, nbytes + BLOCK, target, {}, spec)


def _digest(path: Path) -> str:
    """Of the code in a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _interleaved(runs: Mapping[str, Any], x: np.ndarray, seconds: float, swept: int, threads: int) -> dict[str, float]:
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
            own = sum(ms for name, ms in kernels.items() if "conv2d" in name and "relu" not in name)
            times[m].append((used, sum(kernels.values()), own / LIKE_IT))
        done += 1
    return {m: typical(t[1:], threads) for m, t in times.items()}


def typical(calls: Sequence[tuple[float, float, float]], threads: int = 1) -> float:
    """Of calls, given by the calling thread's CPU time, time of all kernels and of those that count: the median of the last where nothing interrupted
    them, else by their share of the CPU time. Where other threads work too, the caller may rest meanwhile, and the median is of all calls."""
    if threads > 1:
        return median(own for _, _, own in calls)
    alone = [own for used, kernels, own in calls if kernels <= used]
    return median(alone if len(alone) >= ENOUGH else [used * own / kernels for used, kernels, own in calls])
