# SPDX-License-Identifier: Apache-2.0
"""Counts that become floats: what they are stays, the arithmetic has 32 bits where they fit."""

from __future__ import annotations

import numpy as np

import roundel as rd
from roundel.ir import IRModule, tir
from roundel.ir.visit import walk
from roundel.lower.narrow_counts import narrow_counts
from roundel.script import tir as T


@T.prim_func
def counts(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32"), C: T.Buffer((40,), "float32"), N: T.Buffer((40,), "int64")):
    for i in range(5):
        for j in T.vectorized(8):
            A[i * 8 + j] = T.Cast("float32", T.min(i * 8 + j, 30) * T.max(3 - i, 1))
            B[i * 8 + j] = T.Cast("float32", (i * 8 + j) * 1000000007)
            C[i * 8 + j] = T.Cast("float32", N[i * 8 + j] + j)


def test_only_counts_that_fit_have_32_bits():
    mod = narrow_counts(IRModule({"main": counts}))
    casts = [n.value.dtype.element.bits for n in walk(mod["main"].body) if type(n) is tir.Cast and n.dtype.element.is_float]
    assert sorted(casts) == [32, 64, 64]


def test_they_stay_what_they_are():
    k, i = np.arange(40), np.arange(40) // 8
    large = np.int64(1) << 40
    a, b, c = (np.zeros(40, "float32") for _ in range(3))
    rd.build(IRModule({"main": counts}), threads=1)["main"](a, b, c, np.full(40, large))
    np.testing.assert_array_equal(a, np.minimum(k, 30) * np.maximum(3 - i, 1))
    np.testing.assert_array_equal(b, (k * 1000000007).astype("float32"))
    np.testing.assert_array_equal(c, (large + k % 8).astype("float32"))
