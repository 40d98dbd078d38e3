# SPDX-License-Identifier: Apache-2.0
"""Models saved as C source: operators of ONNX's own test cases compile as strict C99 without a warning and compute what LLVM's code computes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import roundel as rd
from roundel.ir.errors import BuildError, RoundelError

from .attempts import attempts

STRICT = ("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-DCASE_MEMORY_BYTES=1000000", "-c", "case.c", "-o", "case.o")


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` cases in a random order; what is refused by name is no finding."""
    from onnx.backend.test.loader import load_model_tests

    cases = load_model_tests(kind="node")
    order = np.random.default_rng(seed).permutation(len(cases))
    for k in attempts(order[:count]):
        case = cases[int(k)]
        yield from (f"{case.name}: {problem}" for problem in problems(case.model.SerializeToString(), case.data_sets[0][0]))


def problems(model: bytes, inputs: Any) -> Iterator[str]:
    """What is wrong with a model as C source."""
    try:
        want = _listed(rd.compile(model)(*inputs))
    except RoundelError:
        return
    try:
        compiled = rd.compile(model, target="c")
        got = _listed(compiled(*inputs))
    except Exception as error:  # anything that is not refused for LLVM is a finding
        yield f"{type(error).__name__}: {error}"
        return
    yield from (f"output {k} differs" for k, (g, w) in enumerate(zip(got, want, strict=True)) if not _close(g, w))
    with tempfile.TemporaryDirectory() as folder:
        try:
            compiled.save(Path(folder, "case.c"))
        except BuildError:
            return
        done = subprocess.run(STRICT, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            yield next((line for line in done.stderr.splitlines() if "error" in line), "the compiler failed")


def _listed(result: Any) -> list[Any]:
    return [np.asarray(r) for r in (result if isinstance(result, list | tuple) else [result])]


def _close(got: np.ndarray, want: np.ndarray) -> bool:
    if "float" not in str(want.dtype):
        return np.array_equal(got, want)
    coarse = 1e-4 if want.dtype.itemsize >= 4 else 1e-2 if want.dtype.itemsize == 2 else 0.2
    return np.allclose(got.astype("f8"), want.astype("f8"), rtol=coarse, atol=1e-5, equal_nan=True)
