# SPDX-License-Identifier: Apache-2.0
"""A step of decoding, attention alone, with caches that grow in place and with caches that are concatenated.

python -m benchmarks.caches [lengths]; the layers, heads and width of SmolLM2-135M.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np

from roundel.builder import BlockBuilder
from roundel.driver import build_module
from roundel.ir import Var, graph, options
from roundel.ir.dtype import INT64
from roundel.ops import make

LAYERS, HEADS, WIDTH, STEPS = 30, 3, 64, 14


def build(grow: bool) -> Any:
    """``main(token, keys and values of each layer)``: the result of the last layer, and all caches."""
    info = lambda length: graph.TensorInfo((1, HEADS, length, WIDTH), "float32")
    past, bb = Var("past", INT64, True), BlockBuilder()
    params = [graph.Var("x", info(1)), *(graph.Var(f"past_{k}", info(past)) for k in range(2 * LAYERS))]
    with bb.function("main", params):
        with bb.dataflow():
            x, *results = params[:1]
            for layer in range(LAYERS):
                keys, values = (bb.emit(make("concat", graph.Tuple((p, x)), axis=2)) for p in params[1 + 2 * layer : 3 + 2 * layer])
                scores = bb.emit(make("matmul", x, make("permute_dims", keys, axes=(0, 1, 3, 2))))
                x = bb.emit(make("matmul", bb.emit(make("nn.softmax", scores, axis=-1)), values))
                results += [keys, values]
            out = bb.emit_output(graph.Tuple((x, *results)))
        bb.emit_func_output(out)
    with options.override(grow=grow):
        return build_module(bb.get())["main"]


def main() -> None:
    """Print milliseconds a step, the two ways one after the other."""
    random, ways = np.random.default_rng(0), {name: build(name == "grow") for name in ("grow", "concatenate")}
    token = lambda: random.standard_normal((1, HEADS, 1, WIDTH), np.float32)
    for length in map(int, sys.argv[1:] or ("1000", "4000", "8000")):
        rows = random.standard_normal((1, HEADS, length, WIDTH), np.float32)
        past = {name: [rows] * (2 * LAYERS) for name in ways}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(STEPS):
            for name, run in ways.items():
                x, start = token(), time.perf_counter()
                past[name] = run(x, *past[name])[1:]
                times[name].append(time.perf_counter() - start)
        print(f"{length:6}", *(f"{name} {1e3 * statistics.median(t[3:]):.1f} ms" for name, t in times.items()), sep="  ")


if __name__ == "__main__":
    main()
