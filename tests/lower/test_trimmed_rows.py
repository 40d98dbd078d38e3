# SPDX-License-Identifier: Apache-2.0
"""The last tile has the rows that are there, and guards of windows that hold for these leave its loops."""

from __future__ import annotations

from roundel.ir import IRModule, tir
from roundel.ir.visit import walk
from roundel.lower.partition_loops import partition_loops
from roundel.lower.simplify import simplify
from roundel.script import tir as T


@T.prim_func
def rows(A: T.Buffer((109, 8), "float32"), B: T.Buffer((109, 8), "float32")):
    for i in range(8):
        for r in T.unroll(14):
            for c in T.vectorized(8):
                if i * 14 + r < 109:
                    B[i * 14 + r, c] = A[i * 14 + r, c] + T.float32(1)


@T.prim_func
def window(A: T.Buffer((217, 8), "float32"), S: T.Buffer((109, 8), "float32")):
    for i in range(8):
        for k in range(5):
            for r in T.unroll(14):
                for c in T.vectorized(8):
                    if i * 14 + r < 109 and i * 28 + r * 2 + k < 219 and i * 28 + r * 2 + k >= 2:
                        S[i * 14 + r, c] = S[i * 14 + r, c] + A[i * 28 + r * 2 + k - 2, c]


def _parts(func):
    """Of each run of unrolled rows how many there are, and whether a guard is left among them."""
    body = simplify(partition_loops(IRModule({"main": func})))["main"].body
    unrolled = [n for n in walk(body) if type(n) is tir.For and n.kind is tir.ForKind.UNROLLED]
    return [(n.extent.value, any(type(x) is tir.If for x in walk(n))) for n in unrolled]


def test_rows_that_are_not_there_are_left_out():
    assert _parts(rows) == [(14, False), (11, False)]


def test_windows_are_split_for_the_rows_that_are_there():
    found = _parts(window)
    assert (14, False) in found and (11, False) in found
