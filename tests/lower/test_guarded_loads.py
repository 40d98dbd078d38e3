# SPDX-License-Identifier: Apache-2.0
"""Conditions on data that another part of the condition keeps within bounds: nothing is read outside, on vectors as on single elements."""

from __future__ import annotations

import numpy as np
import pytest
from tests.hostile.guarded import Pool

import roundel as rd
from roundel.ir import tir
from roundel.ir.visit import walk
from roundel.lower import guarded_loads
from roundel.script import tir as T


@T.prim_func
def statement(k: T.handle, f: T.handle, c: T.handle):
    m, n = T.int64(), T.int64()
    K, F, C = T.match_buffer(k, (m,), "int64"), T.match_buffer(f, (n,), "float32"), T.match_buffer(c, (m,), "float32")
    for i in range(m):
        if K[i] < n and F[K[i]] > T.float32(0):
            C[i] = F[K[i]]


@T.prim_func
def lanes(k: T.handle, f: T.handle, c: T.handle):
    m, n = T.int64(), T.int64()
    K, F, C = T.match_buffer(k, (m,), "int64"), T.match_buffer(f, (n,), "float32"), T.match_buffer(c, (m,), "float32")
    for io in range((m + 7) // 8):
        for j in T.vectorized(8):
            if io * 8 + j < m and K[io * 8 + j] < n and F[K[io * 8 + j]] > T.float32(0):
                C[io * 8 + j] = F[K[io * 8 + j]]


@T.prim_func
def otherwise(k: T.handle, f: T.handle, c: T.handle):
    m, n = T.int64(), T.int64()
    K, F, C = T.match_buffer(k, (m,), "int64"), T.match_buffer(f, (n,), "float32"), T.match_buffer(c, (m,), "float32")
    for i in range(m):
        if K[i] >= n or F[K[i]] <= T.float32(0):
            C[i] = T.float32(0)
        else:
            C[i] = F[K[i]]


@T.prim_func
def choice(k: T.handle, f: T.handle, c: T.handle):
    m, n = T.int64(), T.int64()
    K, F, C = T.match_buffer(k, (m,), "int64"), T.match_buffer(f, (n,), "float32"), T.match_buffer(c, (m,), "float32")
    for i in range(m):
        C[i] = T.if_then_else(not (K[i] >= n or F[K[i]] <= T.float32(0)), F[K[i]], T.float32(0))


@pytest.mark.parametrize("program", [statement, lanes, otherwise, choice])
def test_nothing_is_read_outside(program):
    """In front of a page that may not be touched; some positions lie behind it."""
    pool, rng = Pool(1), np.random.default_rng(0)
    for m, n in ((1, 1), (13, 5), (40, 9)):
        k, f = rng.integers(0, n + 2048, m), rng.standard_normal(n).astype(np.float32)
        k[::2] %= n
        pool.reset(at_end=True)
        c = pool.copy(np.zeros(m, np.float32))
        rd.build(program)(pool.copy(k), pool.copy(f), c)
        np.testing.assert_array_equal(c, np.where(k < n, np.maximum(f[np.minimum(k, n - 1)], 0), 0))


@T.prim_func
def two_conditions(F: T.Buffer((8,), "float32"), n: T.int64, C: T.Buffer((8,), "float32")):
    for i in range(8):
        if n > 3 and F[i] > T.float32(0):
            C[i] = F[i]


def test_what_does_not_guard_a_load_stays_beside_it():
    """Neither a condition on other variables, nor one of a load that the loops keep within bounds."""
    assert guarded_loads.on_func(two_conditions) is two_conditions
    assert sum(type(n) is tir.If for n in walk(guarded_loads.on_func(lanes).body)) == 3
