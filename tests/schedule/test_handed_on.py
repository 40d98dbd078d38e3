# SPDX-License-Identifier: Apache-2.0
"""Iterations of a loop run at once only where everything that each of them reads of a buffer was stored in the same iteration."""

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.script import parse

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((8, 32), "float32"), S: T.Buffer((8, 32), "float32")):
    t = T.alloc_buffer((32,), "float32")
    for p in range(8):
        for o, i in T.grid(2, 8):
            with T.sblock("w"):
                vp = T.axis.spatial(8, p)
                v = T.axis.spatial(16, o * 8 + i)
                {where}
                {store}
        for o, i in T.grid(2, 8):
            with T.sblock("r"):
                vp = T.axis.spatial(8, p)
                v = T.axis.spatial(16, o * 8 + i)
                {limit}
                S[vp, v] = t[{read}]
"""
STORE = "t[v] = A[vp, v]"


def program(store=STORE, where="True", limit="True", read="v"):
    indented = store.replace("\n", "\n                ")
    return parse(PROGRAM.format(store=indented, where=f"T.where({where})", limit=f"T.where({limit})", read=read))


STALE = {
    "a limit that cuts the last step": {"where": "o * 8 + i < 13"},
    "a limit that differs from iteration to iteration": {"where": "o * 8 + i < 16 - p"},
    "a limit that the reader exceeds": {"where": "o * 8 + i < 12", "limit": "o * 8 + i < 13"},
    "a condition on the loop itself": {"where": "p < 4"},
    "gaps between what is stored": {"store": "t[v * 2] = A[vp, v]", "read": "v"},
    "a condition in the block": {"store": "if v < 16 - vp:\n    t[v] = A[vp, v]"},
    "a condition on data in the block": {"store": "if A[vp, v] > T.float32(0):\n    t[v] = A[vp, v]"},
    "gaps between what the block's own loop stores": {"store": "for k in range(2):\n    t[v + k * 2] = A[vp, v]", "read": "v + 3"},
}
STORED = {
    "everything": {},
    "the same limit": {"where": "o * 8 + i < 13", "limit": "o * 8 + i < 13"},
    "the same limit, which differs from iteration to iteration": {"where": "o * 8 + i < 16 - p", "limit": "o * 8 + i < 16 - p"},
    "a smaller limit": {"where": "o * 8 + i < 13", "limit": "o * 8 + i < 12"},
    "the same condition on the loop": {"where": "p < 4", "limit": "p < 4"},
}


def at_once(func) -> Schedule:
    sch = Schedule(func)
    sch.parallel(sch.get_loops(sch.get_block("w"))[0])
    return sch


@pytest.mark.parametrize("name", STALE)
def test_what_an_earlier_iteration_may_have_stored_keeps_the_order(name):
    with pytest.raises(ScheduleError, match="different iterations"):
        at_once(program(**STALE[name]))


@pytest.mark.parametrize("name", STORED)
def test_what_each_iteration_stores_itself_leaves_it_free(name):
    func = program(**STORED[name])
    data = np.random.default_rng(0).standard_normal((8, 32)).astype("float32")
    want, got = np.zeros((8, 32), "float32"), np.zeros((8, 32), "float32")
    run_prim_func(func, [data, want])
    run_prim_func(at_once(func).func, [data, got])
    assert np.array_equal(want, got)


def test_no_epilogue_reads_between_what_is_stored():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), S: T.Buffer((15,), "float32")):
    t = T.alloc_buffer((16,), "float32")
    for i in range(8):
        with T.sblock("w"):
            v = T.axis.spatial(8, i)
            t[v * 2] = A[v]
    for i in range(15):
        with T.sblock("r"):
            v = T.axis.spatial(15, i)
            S[v] = t[v] + T.float32(1)
""")
    sch = Schedule(func)
    with pytest.raises(ScheduleError):
        sch.reverse_compute_inline(sch.get_block("r"))
