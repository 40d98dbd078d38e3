# SPDX-License-Identifier: Apache-2.0
"""Products of narrow numbers with operands in any order (NN, NT, TN, TT), constant and not, of sizes that fill no tiles (K = 62, N = 60) and any number of
rows: sums of integers are exact, those of floats of small whole numbers too, and nothing is read or written outside of a tensor.

Every tensor lies in pages of its own, at their end or at their beginning, between pages that nobody may touch: an access outside ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.ir import Var, graph
from roundel.ops import make
from roundel.runtime import tensors
from roundel.target import Target

from .guarded import Pool

K, N, MOST = 62, 60, 70
TYPES = [("uint8", "int8", "int32"), ("int8", "int8", "int32"), ("int8", "uint8", "int32"), ("int16", "int16", "int32"), ("bfloat16", "bfloat16", "float32"),
         ("float16", "float16", "float32"), ("float32", "float32", "float32")]
ORDERS = ["NN", "NT", "TN", "TT"]
CASES = [(types, order, is_constant) for types in TYPES for order in ORDERS for is_constant in (True, False)]


def attack(count: int, seed: int) -> Iterator[str]:
    """Each attempt is one of the cases, in turn, with every number of rows from 1 to 70; then the same for older processors, whose code this one runs."""
    rng, pool = np.random.default_rng(seed), Pool(16)
    machines = [None, *(t for t in map(Target, ("x86-64-v3", "cascadelake")) if t.arch == Target.host().arch and {*t.features} <= {*Target.host().features})]
    for k in range(count):
        yield from tried(*CASES[k % len(CASES)], rng, pool, machines[k // len(CASES) % len(machines)])


def tried(types: tuple[str, str, str], order: str, is_constant: bool, rng: np.random.Generator, pool: Pool, target: Target | None = None,
          rows: range = range(1, MOST + 1)) -> Iterator[str]:
    """What is wrong with one case."""
    weight = numbers(types[1], (N, K) if order[1] == "T" else (K, N), rng)
    model = rd.compile(product(types, order, weight if is_constant else None), target=target, threads=1)
    for m in rows:
        pool.reset(bool(m % 2))
        x = pool.copy(numbers(types[0], (K, m) if order[0] == "T" else (m, K), rng))
        given = [x] if is_constant else [x, pool.copy(weight)]
        with patch.object(tensors, "empty", pool.empty):
            out = np.asarray(model(*given))
        a, b = (v.astype(np.float64).T if turned == "T" else v.astype(np.float64) for v, turned in zip((x, weight), order, strict=True))
        if not np.array_equal(out.astype(np.float64), a @ b):
            yield f"{types} {order}, {'constant' if is_constant else 'data'}, {m} rows: {int((out != a @ b).sum())} of {out.size} sums are wrong"
            return


def numbers(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Ends of a type of integers; of floats whole numbers whose sums of products are exact."""
    if "float" in dtype:
        return rng.integers(-8, 9, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    info = np.iinfo(dtype)
    ends = [x for x in (info.min, -128, -127, -1, 0, 1, 127, 128, 255, info.max) if info.min <= x <= info.max and abs(x) < 2**12]
    return rng.choice(np.array(ends), shape).astype(dtype)


def product(types: tuple[str, str, str], order: str, weight: np.ndarray | None) -> Any:
    """A module that multiplies a symbolic number of rows."""
    builder, m = BlockBuilder(), Var("m", "int64", True)
    infos = [graph.TensorInfo((K, m) if order[0] == "T" else (m, K), types[0]), graph.TensorInfo((N, K) if order[1] == "T" else (K, N), types[1])]
    params = [graph.Var(n, i) for n, i in zip("xw", infos, strict=True)]
    with builder.function("main", params[: 1 if weight is not None else 2]):
        with builder.dataflow():
            given = [params[0], params[1] if weight is None else graph.Constant.of(weight)]
            turned = [builder.emit(make("permute_dims", v, axes=(1, 0))) if t == "T" else v for v, t in zip(given, order, strict=True)]
            made = builder.emit_output(make("matmul", *turned, out_dtype=types[2]))
        builder.emit_func_output(made)
    return builder.get()
