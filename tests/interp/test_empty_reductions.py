# SPDX-License-Identifier: Apache-2.0
"""A reduction over nothing gives its init, interpreted and compiled, whatever the order of its loops."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.script import tir as T


@T.prim_func
def rows_outside(a: T.handle, B: T.Buffer((4,), "float32")):
    n = T.int64()
    A = T.match_buffer(a, (4, n), "float32")
    for i, k in T.grid(4, n):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(3)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def rows_inside(a: T.handle, B: T.Buffer((4,), "float32")):
    n = T.int64()
    A = T.match_buffer(a, (4, n), "float32")
    for k, i in T.grid(n, 4):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(3)
            B[vi] = B[vi] + A[vi, vk]


@pytest.mark.parametrize("run", [rd.interpret, rd.build])
@pytest.mark.parametrize("func", [rows_outside, rows_inside])
@pytest.mark.parametrize("n", [0, 2])
def test_a_sum_of_nothing_is_its_init(run, func, n):
    b = np.full(4, 7, "float32")
    run(func)[str(func.attrs["global_symbol"])](np.ones((4, n), "float32"), b)
    assert (b == 3 + n).all()


def test_rows_of_different_lengths():
    @T.prim_func
    def ragged(L: T.Buffer((3,), "int64"), A: T.Buffer((3, 4), "float32"), B: T.Buffer((3,), "float32")):
        for i in range(3):
            for k in range(L[i]):
                with T.sblock("B"):
                    vi = T.axis.spatial(3, i)
                    vk = T.axis.reduce(4, k)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    b = np.full(3, 7, "float32")
    rd.interpret(ragged)["ragged"](np.array([0, 2, 4]), np.ones((3, 4), "float32"), b)
    assert b.tolist() == [0, 2, 4]
