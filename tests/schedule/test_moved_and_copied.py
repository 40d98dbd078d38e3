# SPDX-License-Identifier: Apache-2.0
"""Blocks that move, and copies that are made, where conditions and other blocks say what is stored when: legal ones compute what they did."""

from __future__ import annotations

import re

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from roundel.script import parse

HEAD = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "int32"), X: T.Buffer((8,), "int32"), Y: T.Buffer((4, 8), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    P = T.alloc_buffer((8,), "int32")
"""


def nest(name: str, store: str, loops: str = "i", extents: str = "8", bind: str = "v = T.axis.spatial(8, i)", where: str = "", around: str = "") -> str:
    """A block in loops of its own, or in a loop ``around`` them."""
    text = f"for {loops} in T.grid({extents}):\n    with T.sblock({name!r}):\n        {bind}\n" + (f"        T.where({where})\n" if where else "")
    text += f"        {store}\n"
    return "".join(f"    {around and '    '}{line}\n" for line in text.splitlines())


def program(*parts: str):
    return parse(HEAD + "".join(parts))


def accepts(func, step) -> bool:
    """Whether a step is taken; then the program is well-formed and computes what it did, together and in order."""
    sch = Schedule(func)
    try:
        step(sch)
    except ScheduleError:
        return False
    assert not well_formed(sch.mod)
    rng = np.random.default_rng(0)
    want = [rng.integers(-9, 9, [int(s) for s in b.shape]).astype(b.dtype.numpy) for b in func.buffer_params]
    got = [a.copy() for a in want]
    run_prim_func(func, want)
    run_prim_func(sch.func, got)
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)
    return True


MAKE = nest("B", "B[v] = X[v]")
def together(*blocks: tuple[str, str]) -> str:
    """Blocks that store one element each, in one loop."""
    text = "".join(f"        with T.sblock({name!r}):\n            v = T.axis.spatial(8, i)\n            {store}\n" for name, store in blocks)
    return "    for i in range(8):\n" + text


@pytest.mark.parametrize("step", range(8))
def test_who_moves_into_a_loop_finds_its_inputs_unchanged(step):
    """Block X, behind the consumer in the loop, changes what the producer reads (in all iterations to come, but where the step is 0)."""
    func = program(MAKE, together(("C", "C[v] = B[v]"), ("X", f"X[(v + {step}) % 8] = A[v]")))
    assert not accepts(func, lambda sch: sch.compute_at("B", sch.get_loops("C")[0]))


def test_who_moves_into_a_loop_is_not_read_early_there():
    """Block E stands in front of the producer in the loop, and reads in each iteration what the moved block would have stored in the one before."""
    loop = together(("E", "Y[0, v] = C[(v + 7) % 8]"), ("B", "B[v] = A[v]"))
    func = program(loop, nest("C", "C[v] = B[v]"))
    assert not accepts(func, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))


@pytest.mark.parametrize("asked, taken", [("P[i] > 0", False), ("X[i] > 0", True)])
def test_a_condition_that_reads_memory_reads_it(asked, taken):
    """Block C runs where P says so, which is stored in the same loop as what C reads."""
    loop = together(("P", "P[(v + 1) % 8] = A[v]"), ("B", "B[v] = A[v]"))
    func = program(loop, nest("C", "C[v] = B[v]", where=asked))
    assert accepts(func, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])) == taken


CUT = dict(loops="i, j", extents="2, 4", where="i * 4 + j < 6")


def test_what_a_condition_leaves_out_is_not_copied_back():
    func = program(nest("C", "C[v] = A[v]", bind="v = T.axis.spatial(8, i * 4 + j)", **CUT))
    sch = Schedule(func)
    sch.cache_write("C", 0, "local")
    assert re.search(r"for ax0 in range\(6\)", sch.func.script())
    assert accepts(func, lambda sch: sch.cache_write("C", 0, "local"))


@pytest.mark.parametrize("index", ["v % 2, v // 2", "v // 2 % 4, v % 2 * 4"])
def test_what_a_condition_leaves_out_of_two_dimensions_is_not_copied_back(index):
    func = program(nest("Y", f"Y[{index}] = A[v]", bind="v = T.axis.spatial(8, i * 4 + j)", **CUT))
    accepts(func, lambda sch: sch.cache_write("Y", 0, "local"))


def test_who_asks_for_more_than_is_made_is_not_inlined():
    """The consumer pads what the producer makes: elements 6 and 7 come from no instance of the producer."""
    make = nest("B", "B[v] = A[v] + 1", bind="v = T.axis.spatial(6, i * 4 + j)", **CUT)
    func = program(make, nest("C", "C[v] = T.if_then_else(v < 6, B[v], 0)"))
    assert not accepts(func, lambda sch: sch.reverse_compute_inline("C"))


STAGED = "    for i in T.thread_binding(4, thread='threadIdx.x'):\n" + "".join(
    f"        for j in range(8):\n            with T.sblock({n!r}):\n                vi, vj = T.axis.remap('SS', [i, j])\n                {s}\n"
    for n, s in (("B", "B[vj] = A[vj] + vi"), ("Y", "Y[vi, vj] = B[vj] * 2"))
)


@pytest.mark.parametrize("scope, taken", [("local", True), ("global", False), ("shared", False)])
def test_threads_have_copies_of_their_own(scope, taken):
    func = parse((HEAD + STAGED).replace('B = T.alloc_buffer((8,), "int32")', 'B = T.alloc_buffer((8,), "int32", scope="local")'))
    assert accepts(func, lambda sch: sch.cache_write("B", 0, scope)) == taken
    assert accepts(func, lambda sch: sch.cache_read("Y", 0, scope)) == taken
    assert accepts(func, lambda sch: sch.set_scope("B", 0, scope)) == taken


def test_a_view_of_an_element_keeps_its_dimensions():
    func = program("""    for i in range(8):
        with T.sblock("C"):
            v = T.axis.spatial(8, i)
            one = T.match_buffer(C[v], (1,), "int32")
            one[0] = A[v]
""")
    assert accepts(func, lambda sch: sch.reindex_cache_write("C", 0, "local", lambda i: (7 - i,)))
    unit = program("""    for i in range(1):
        with T.sblock("C"):
            one = T.match_buffer(C[3], (1,), "int32")
            one[0] = A[3]
""")
    assert not accepts(unit, lambda sch: sch.reindex_cache_write("C", 0, "local", lambda: ()))


def test_a_block_that_uses_a_loop_without_a_variable_is_not_blockized():
    func = program("""    for i in range(4):
        for j in range(8):
            with T.sblock("Y"):
                v = T.axis.spatial(8, j)
                Y[i, v] = A[v] + i
""")
    assert not accepts(func, lambda sch: sch.blockize(sch.get_loops("Y")[1]))
    assert not accepts(func, lambda sch: sch.blockize(["Y"]))
