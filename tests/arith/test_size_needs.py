# SPDX-License-Identifier: Apache-2.0
"""What has to hold of sizes so that an inequality holds in every iteration: it suffices, and where nothing is estimated it is no more than needed."""

import itertools

import pytest

from roundel.arith import Analyzer
from roundel.ir import substitute, tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Range

N, M, K = (tir.Var(name, INT64, True) for name in "nmk")
I, J = tir.Var("i", INT64), tir.Var("j", INT64)

CASES = {
    "a loop and a size": (I, N, [(I, M)], []),
    "clamped": (tir.max_(tir.min_(I - 2, N - 1), 0), N, [(I, M)], []),
    "two loops": (I + J, N, [(I, M), (J, K)], []),
    "a product of a loop and a size": (I * K + J, N, [(I, M), (J, K)], []),
    "divided": ((I + 3) // 4, N, [(I, M)], []),
    "the same divided": (I // 4, (M + 3) // 4, [(I, M)], []),
    "groups of a size times a size": (I // M * K + J, N, [(I, M * 2), (J, K)], []),
    "a remainder": (I % 4, N, [(I, M)], []),
    "backwards": (M - 1 - I, N, [(I, M)], []),
    "chosen": (tir.select(I < K, I, I - K), N, [(I, M + K)], []),
    "mirrored": (tir.select(I * 2 > M, M - I, I), M // 2 + 1, [(I, M)], []),
    "under a condition": (I - 1, N, [(I, M)], [I >= 1, I < N + 1]),
    "a condition that says less": (I - 1, N, [(I, M)], [I >= 1]),
}


def needed(less, more, loops, conditions):
    an = Analyzer()
    for var, extent in loops:
        an.bind(var, Range(tir.as_index(0), tir.as_index(extent)))
    for c in conditions:
        an.assume(c)
    return an.size_needs(an.sum(less - more + 1), lambda v: v.size)


def number(e, values):
    return Analyzer().simplify(substitute(e, {v: tir.as_index(n) for v, n in values.items()})).value


@pytest.mark.parametrize("case", CASES)
def test_what_is_needed_is_what_brute_force_finds(case):
    less, more, loops, conditions = CASES[case]
    condition = needed(less, more, loops, conditions)
    for sizes in itertools.product(range(1, 5), repeat=3):
        values = dict(zip((N, M, K), sizes, strict=True))
        ranges = [range(number(tir.as_index(extent), values)) for _, extent in loops]
        points = [{**values, **dict(zip((v for v, _ in loops), p, strict=True))} for p in itertools.product(*ranges)]
        reached = [p for p in points if all(number(c, p) for c in conditions)]
        assert not reached or bool(number(condition, values)) == all(number(less < more, p) for p in reached), sizes


def test_nothing_is_said_of_what_is_not_bounded():
    value = tir.Var("value", INT64)
    assert needed(value, N, [], []) is None
    assert number(needed(tir.min_(value, N - 1), N, [], []), {}) == 1
