# SPDX-License-Identifier: Apache-2.0
"""reverse_compute_at of a reduction under loops that each produce a part of what it reduces over."""

from random import Random

import numpy as np
import pytest

import roundel as rd
from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import parse


def factorized(n: int, m: int, length: int, after: str = "") -> str:
    """Sums R of A over its last axis, then B of R, and something with it."""
    return f"""
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer(({n}, {m}, {length}), "int32"), B: T.Buffer(({n},), "int32"), C: T.Buffer(({n},), "int32")):
    R = T.alloc_buffer(({m}, {n}), "int32")
    for j, i, k in T.grid({n}, {m}, {length}):
        with T.sblock("R"):
            vj, vi, vk = T.axis.remap("SSR", [j, i, k])
            with T.init():
                R[vi, vj] = 0
            R[vi, vj] = R[vi, vj] + A[vj, vi, vk]
    for i, k in T.grid({n}, {m}):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 1
            B[vi] = B[vi] + R[vk, vi] * (vk + 1)
    for i in range({n}):
        with T.sblock("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = B[vi] * 2
"""


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_sums_make_up_the_sums(seed):
    random = Random(seed)
    func = parse(factorized(random.randrange(1, 7), random.randrange(1, 9), random.randrange(1, 5)))
    sch = Schedule(func)
    parts = [x for outer in sch.get_loops("R")[:2] for x in sch.split(outer, [None, random.choice((1, 2, 3, 4))])]
    random.shuffle(parts)
    sch.reorder(*parts)
    try:
        sch.reverse_compute_at("B", random.choice(parts), random.choice((True, False)))
    except ScheduleError as e:
        assert "not known to make up the whole once" in str(e) or "whose order would change" in str(e)  # (a part finished by several iterations)
        return
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(s) for s in b.shape]).astype("int32") for b in func.buffer_params]
    want, got, built = ([a.copy() for a in arrays] for _ in range(3))
    run_prim_func(func, want)
    run_prim_func(sch.func, got)
    rd.build(sch.func, target="x86-64-v3")(*built)
    for a, b, c in zip(want, got, built):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_a_sum_in_parts_is_refused_in_loops_that_run_at_the_same_time():
    sch = Schedule(parse(factorized(4, 8, 3)))
    _, i, _ = sch.get_loops("R")
    outer, _ = sch.split(i, [None, 2])
    sch.parallel(outer)
    with pytest.raises(ScheduleError, match="whose iterations run at the same time"):
        sch.reverse_compute_at("B", outer)


def test_who_reads_the_sum_behind_the_loop_reads_all_of_it():
    func = parse(factorized(4, 8, 3))
    sch = Schedule(func)
    j, i, _ = sch.get_loops("R")
    sch.reverse_compute_at("B", j)
    sch.reverse_compute_at("C", j)
    sch.reverse_compute_at("B", i)
    rng = np.random.default_rng(0)
    want = [rng.integers(-9, 9, [int(s) for s in b.shape]).astype("int32") for b in func.buffer_params]
    got = [a.copy() for a in want]
    run_prim_func(func, want)
    run_prim_func(sch.func, got)
    np.testing.assert_array_equal(got[2], want[2])
