# SPDX-License-Identifier: Apache-2.0
"""Results beyond the last cache: stored past it where they are aligned, and right wherever they lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.build import inspect
from roundel.ir import tir
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

SMALL = replace(Target.host(), l2_bytes=256, l3_bytes=2048)  # caches that hold nothing


def _softmax(rows: int, length: int) -> tir.PrimFunc:
    x, k, j = te.placeholder((rows, length), "float32", "x"), te.reduce_axis((0, length), "k"), te.reduce_axis((0, length), "j")
    top = te.compute((rows,), lambda i: te.max(x[i, j.var], axis=j), "top")
    e = te.compute((rows, length), lambda i, c: te.exp(x[i, c] - top[i]), "e")
    total = te.compute((rows,), lambda i: te.sum(e[i, k.var], axis=k), "total")
    return te.create_prim_func([x, te.compute((rows, length), lambda i, c: e[i, c] / total[i], "y")])


def _doubled(rows: int, length: int) -> tir.PrimFunc:
    x = te.placeholder((rows, length), "float32", "x")
    return te.create_prim_func([x, te.compute((rows, length), lambda i, c: x[i, c] * 2.0, "y")])


@pytest.mark.parametrize("make, length", [(_softmax, 64), (_softmax, 300), (_doubled, 64), (_doubled, 37)])
def test_streamed_results(make, length) -> None:
    rows = 40
    func = schedule_program(make(rows, length), SMALL)[0]
    assert "streamed" in func.script()
    assert ("prefetch" in func.script()) == (make is _softmax)
    if SMALL.vector_bytes == 64:
        assert "nontemporal" in inspect(func).llvm
    run = rd.build(func)
    x = np.random.default_rng(0).standard_normal((rows, length)).astype("f")
    e = np.exp(x - x.max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True) if make is _softmax else x * 2
    memory = np.zeros(rows * length + 32, np.float32)
    for start in (-memory.ctypes.data // 4 % 16, 1):  # at a line of the cache, and beside one
        y = memory[start : start + rows * length].reshape(rows, length)
        run(x, y)
        np.testing.assert_allclose(y, want, rtol=1e-5)


def test_what_a_cache_holds_is_kept_there() -> None:
    assert "streamed" not in schedule_program(_doubled(40, 64), Target.host())[0].script()
