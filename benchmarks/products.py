# SPDX-License-Identifier: Apache-2.0
"""Products with constant matrices: one file for any number of rows against files for each number, and against other engines.

Layers follow each other as in a model, so that their matrices come from memory. What counts is CPU time, by turns, so that a busy machine
tells the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .engines import ENGINES, Workload, pin_threads
from .measure import interleave

MATRICES = 240 << 20  # bytes of all, more than most last caches
BLOCK = 0.03


def run_products(rows: Sequence[int], inner: int, columns: int, threads: int, engines: Sequence[str], budget: float) -> list[dict[str, float]]:
    """Milliseconds of a pair of products [rows, inner] x [inner, columns] and back, by numbers of rows; a line for each."""
    pin_threads(threads)
    count = max(1, MATRICES // (8 * inner * columns))
    print(f"{'rows':>5s} " + " ".join(f"{name:>10s}" for name in ("symbolic", "static", *engines)) + f"{'of static':>12s}{'of peers':>10s}", flush=True)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "symbolic.onnx"
        _save(path, None, inner, columns, count)
        compiled = _compiled(path, threads)
        for m in rows:
            x = np.random.default_rng(m).standard_normal((m, inner), np.float32)
            known = Path(folder) / f"{m}.onnx"
            _save(known, m, inner, columns, count)
            contenders = {"symbolic": partial(compiled, x), "static": partial(_compiled(known, threads), x)}
            for name in engines:
                contenders[name] = next(iter(ENGINES[name](Workload(path, {"x": x}, threads)).values()))().call
            times = {name: median(t.cpu) * 1e3 / count for name, t in interleave(contenders, budget=budget, block=BLOCK, rounds=(6, 60)).items()}
            out.append({"rows": m, **times})
            print(line(m, times, engines), flush=True)
            known.unlink()
    return out


def line(m: int, times: Mapping[str, float], engines: Sequence[str]) -> str:
    """One number of rows."""
    peers = min((times[e] for e in engines), default=float("nan"))
    return f"{m:5d} " + " ".join(f"{ms:10.3f}" for ms in times.values()) + f"{times['symbolic'] / times['static']:12.2f}{times['symbolic'] / peers:10.2f}"


def _compiled(path: Path, threads: int) -> Callable[[np.ndarray], Any]:
    import roundel as rd

    return rd.compile(str(path), threads=threads)


def _save(path: Path, rows: int | None, inner: int, columns: int, count: int) -> None:
    """Pairs of products with rectifiers between them."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, constants, last = [], [], "x"
    for k in range(2 * count):
        shape = (inner, columns) if k % 2 == 0 else (columns, inner)
        constants.append(numpy_helper.from_array(rng.standard_normal(shape, np.float32) * np.float32(shape[0] ** -0.5), f"w{k}"))
        nodes += [helper.make_node("MatMul", [last, f"w{k}"], [f"p{k}"]), helper.make_node("Relu", [f"p{k}"], [f"r{k}"])]
        last = f"r{k}"
    dim = "m" if rows is None else rows
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, inner])
    graph = helper.make_graph(nodes, "products", [info("x")], [info(last)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
