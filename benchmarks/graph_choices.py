# SPDX-License-Identifier: Apache-2.0
"""Choices of the graph: what a search that measures a quarter of the models finds, against measuring all, on random small graphs."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from roundel.builder import BlockBuilder
from roundel.ir import graph
from roundel.ir.module import IRModule
from roundel.ops import make
from roundel.target import Target
from roundel.tune import graphs
from roundel.tune.database import Database
from roundel.tune.graphs import Graphs, Way
from roundel.tune.whole import Whole

MOST, LEAST = 16, 6  # joint choices of a graph
CLOSE = 3            # of the fastest that are measured again, with the one that was found


def small_graph(rng: random.Random) -> tuple[str, IRModule]:
    """A convolution or product with what stands around it, of random sizes."""
    values, constant = np.random.default_rng(rng.randrange(1 << 30)), graph.Constant.of
    weights = lambda *shape: constant((values.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float32"))
    bb, act = BlockBuilder(), rng.choice(["nn.relu", "nn.silu", "tanh"])
    if rng.random() < 0.6:
        channels, out, size, k = rng.choice([8, 16, 32, 64]), rng.choice([16, 32, 48, 64]), rng.choice([7, 14, 20, 28, 40]), rng.choice([1, 3])
        shape, name = (1, channels, size, size), f"convolution {k}x{k} {channels}->{out}@{size}"
        layer = lambda x: make("nn.conv2d", x, weights(out, channels, k, k), padding=(k // 2,) * 2)
    else:
        rows, inner, out = rng.choice([1, 7, 32, 128]), rng.choice([64, 96, 256]), rng.choice([48, 128, 300])
        shape, name = (rows, inner), f"product {rows}x{inner}x{out}"
        layer = lambda x: make("matmul", x, weights(inner, out))
    x = graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(make(act, bb.emit(layer(x))))
        bb.emit_func_output(y)
    return f"{name} {act}", bb.get()


def run_graph_choices(count: int, seed: int, seconds: float) -> list[float]:
    """How much longer than with the best choices of all each graph takes with those that were found; graphs with other numbers of choices are passed over."""
    rng, found, end = random.Random(seed), [], time.monotonic() + seconds
    graphs.MOST_WAYS = MOST + 1
    while len(found) < count and time.monotonic() < end:
        name, mod = small_graph(rng)
        with tempfile.TemporaryDirectory() as folder:
            behind = _behind(mod, Path(folder))
        for told, one in behind:
            found.append(one)
            print(f"{name:40s} {told}", flush=True)
    if found:
        print(f"{len(found)} graphs: median {median(found):.1%} behind the best of all, worst {max(found):.1%}, {sum(b <= 0.02 for b in found)} within 2 %")
    return found


def _behind(mod: IRModule, folder: Path) -> Iterator[tuple[str, float]]:
    counting = Graphs(Whole(mod, Target.host(), 1, {}), [({}, 1.0)], Database(folder / "counted"), 1)
    counting.run()
    ways = len(counting.ways)
    if not LEAST <= ways <= MOST:
        return
    search = Graphs(Whole(mod, Target.host(), 1, {}), [({}, 1.0)], Database(folder / "db"), max(2, round(ways / 4)))
    chosen = search.run()
    taken = min((w for w in search.ways.values() if w.ratio is not None), key=lambda w: w.ratio or 1.0) if chosen.ratios else search.ways[frozenset()]
    models: dict[Way, Any] = {}
    for way in search.ways.values():
        if way.choices and (model := search._tried(way)) is not None:
            models[way] = model
    near = sorted(models, key=lambda w: w.ratio or 1.0)[:CLOSE]
    again = {w: median(search._ratios(models[w], graphs.LAST)) for w in dict.fromkeys([*near, *([taken] if taken in models else [])])}
    own, best = again.get(taken, 1.0), min([1.0, *again.values()])
    yield (f"{chosen.measured} of {ways} measured: {own:.3f} of the time of the compiler's own choices, best of all {best:.3f}"), own / best - 1
