# SPDX-License-Identifier: Apache-2.0
"""Typical index expressions simplify in tens of microseconds; ``python tests/arith/test_speed.py`` prints the times."""

import time

import pytest

from roundel.arith import Analyzer
from roundel.ir import tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Range, Var

A, B, C, D = (Var(name, INT64) for name in "abcd")
N = Var("n", INT64, True)
DOMAIN = {A: Range.of(8), B: Range.of(16), C: Range.of(4), D: Range.of(32)}
CASES = {
    "row major": (A * 16 + B) * 128 + (C * 32 + D),
    "convolution": A * 2 + B - 1,
    "blocked layout": ((A * 16 + B) // 16 * 56 + C) * 56 + D,
    "split": (A * 64 + B * 16 + C) // 64,
    "fused": ((A * 56 + C) * 32 + D) // 32 % 56,
    "predicate": A * 16 + B < 100,
    "symbolic predicate": A * 16 + B < N,
    "tail": tir.min_(N - A * 16, 16),
}


def seconds(e, repeat: int = 50) -> float:
    """The best time of one simplification by a fresh analyzer."""
    best = 1.0
    for _ in range(repeat):
        an = Analyzer(DOMAIN)
        start = time.perf_counter()
        an.simplify(e)
        best = min(best, time.perf_counter() - start)
    return best


@pytest.mark.parametrize("name", CASES)
def test_fast_enough(name):
    assert seconds(CASES[name]) < 300e-6  # ten times what it takes: the machine may be busy


if __name__ == "__main__":
    for name, e in CASES.items():
        print(f"{name:20} {seconds(e) * 1e6:6.1f} us")
