# SPDX-License-Identifier: Apache-2.0
"""read_at and write_at: copies in each iteration of a loop."""

import numpy as np
import pytest

from roundel.interp import run_prim_func
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from roundel.script import parse


def rows(n: int, m: int, source: str = "A[vi, vj]", extra: str = "") -> str:
    """B[i, j] from A, with a reduction over k, and something more in the loop over i."""
    return f"""
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer(({n}, {m}), "int32"), B: T.Buffer(({n}, {m}), "int32"), D: T.Buffer(({n}, {m}), "int32")):
    for i in range({n}):
        for j, k in T.grid({m}, 3):
            with T.sblock("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = 0
                B[vi, vj] = B[vi, vj] + {source} * (vk + 1)
{extra}
"""


def same(sch: Schedule, func) -> None:
    assert not well_formed(sch.mod)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(s) for s in b.shape]).astype("int32") for b in func.buffer_params]
    want, got = ([a.copy() for a in arrays] for _ in range(2))
    run_prim_func(func, want)
    run_prim_func(sch.func, got)
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n, m", [(4, 8), (5, 7), (1, 3)])
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("tile", [1, 2, 3])
def test_copies_hold_what_an_iteration_touches(n, m, depth, tile):
    func = parse(rows(n, m))
    for reading in (True, False):
        sch = Schedule(func)
        loops = sch.get_loops("B")
        outer = sch.split(loops[depth], [None, tile])
        try:
            made = sch.read_at(outer[0], "B", 0, "shared") if reading else sch.write_at(outer[0], "B", 0, "local")
        except ScheduleError as e:
            assert not reading and (n, m)[depth] % tile, e  # the last tile leaves elements out
            continue
        assert sch.get(made).annotations["auto_copy"]
        assert sch.get(made).name == ("A_shared" if reading else "B_local")
        same(sch, func)
        again = Schedule(func)
        sch.trace.apply_to(again)
        assert again.func.script() == sch.func.script()


def test_threads_copy_together():
    func = parse(rows(4, 8))
    sch = Schedule(func)
    i = sch.get_loops("B")[0]
    sch.bind(i, "threadIdx.x")
    made = sch.read_at(i, "B", 0, "shared")
    assert "A[0:4, 0:8]" in sch.get(made).script()  # what all threads read
    same(sch, func)
    local = Schedule(func)
    i = local.get_loops("B")[0]
    local.bind(i, "threadIdx.x")
    assert "A[v0, 0:8]" in local.get(local.read_at(i, "B", 0, "local")).script()  # what one reads
    same(local, func)


@pytest.mark.parametrize("scope", ["local", "shared", "global"])
@pytest.mark.parametrize("thread", ["threadIdx.x", "vthread.x", "blockIdx.x"])
@pytest.mark.parametrize("other", ["D[vi, vj] = B[vi, vj]", "B[vi, vj] = D[vi, vj]", "D[vi, vj] = A[vi, vj]"])
def test_a_copy_of_what_all_threads_write_does_not_meet_what_one_does_later(scope, thread, other):
    """Threads run one after another where nothing makes them wait: the first ones copy what the later ones have not made yet."""
    func = parse(rows(5, 7, extra=READ_AFTER.replace("D[vi, vj] = B[vi, vj]", other)))
    sch = Schedule(func)
    i, j, _ = sch.get_loops("B")
    sch.bind(i, thread)
    try:
        sch.write_at(j, "B", 0, scope)
    except ScheduleError as e:
        together = scope == "global" or (scope == "shared" and thread != "blockIdx.x")
        assert together and "B[vi, vj]" in other and "threads would overwrite" in str(e)
        return
    same(sch, func)


WRITTEN_AFTER = """        for j in range(7):
            with T.sblock("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = vj"""
READ_AFTER = """        for j in range(7):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = B[vi, vj]"""


def test_a_buffer_that_changes_between_copy_and_reading_is_refused():
    sch = Schedule(parse(rows(5, 7, extra=WRITTEN_AFTER)))
    with pytest.raises(ScheduleError, match="block A writes it where it would be read in the copy"):
        sch.read_at(sch.get_loops("B")[0], "B", 0, "local")


def test_what_is_read_later_in_the_iteration_reads_the_buffer():
    func = parse(rows(5, 7, extra=READ_AFTER))
    sch = Schedule(func)
    sch.write_at(sch.get_loops("B")[0], "B", 0, "local")
    assert "D[vi, vj] = B[vi, vj]" in sch.func.script()
    same(sch, func)


def test_a_part_of_a_sum_is_no_result_to_copy():
    sch = Schedule(parse(rows(5, 7)))
    with pytest.raises(ScheduleError, match="not all stored there before"):
        sch.write_at(sch.get_loops("B")[2], "B", 0, "local")


def test_a_loop_elsewhere_is_refused():
    sch = Schedule(parse(rows(5, 7, extra=READ_AFTER)))
    with pytest.raises(ScheduleError, match="is not around block B"):
        sch.read_at(sch.get_loops("D")[1], "B", 0, "local")


# --- blockize of several blocks


TWO = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((6, 8), "int32"), B: T.Buffer((6, 8), "int32"), C: T.Buffer((6, 8), "int32")):
    for i in range(6):
        for j in range(4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
        for j in range(8):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + vj
        for j in range(4):
            with T.sblock("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 4] = C[vi, vj]
"""


def test_blocks_that_stand_side_by_side_become_one():
    func = parse(TWO)
    sch = Schedule(func)
    made = sch.blockize(["B", "C"])
    block = sch.get(made)
    assert block.name == "outer_B_C_"
    assert [iv.var.name for iv in block.iter_vars] == ["vi_o", "vj_o"]
    assert [sch.get(b).name for b in sch.get_child_blocks(made)] == ["B", "C"]
    same(sch, func)
    assert "blockize(target=[b" in str(sch.trace)


def test_what_stands_among_the_blocks_is_named():
    sch = Schedule(parse(TWO))
    with pytest.raises(ScheduleError, match="C stands among them"):
        sch.blockize(["B", "E"])


def test_a_tile_of_a_loop_of_unknown_length_is_what_is_left_and_ones():
    sch = Schedule(parse("""
from roundel.script import tir as T

@T.prim_func
def f(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 12), "int32")
    for i, j in T.grid(n, 12):
        with T.sblock("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 1
"""))
    (i, _), before = sch.get_loops("A"), sch.func
    factors = sch.sample_perfect_tile(i, 3)
    assert factors[0] is None and [int(sch.get(f)) for f in factors[1:]] == [1, 1]
    sch.split(i, factors)
    again = Schedule(before)
    sch.trace.apply_to(again)
    assert again.func.script() == sch.func.script()
    assert "_, v" in str(sch.trace)


# --- cache_inplace, and copies of buffers that change


IN_PLACE = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32"), C: T.Buffer((12,), "int32")):
    for i in range(3):
        for j in range(4):
            with T.sblock("A"):
                v = T.axis.spatial(12, i * 4 + j)
                A[v] = A[v] * 2 + B[v]
    for i in range(12):
        with T.sblock("C"):
            v = T.axis.spatial(12, i)
            C[v] = A[v]
"""


@pytest.mark.parametrize("scope", ["local", "global"])
def test_a_block_works_in_place_on_a_copy(scope):
    func = parse(IN_PLACE)
    sch = Schedule(func)
    into, back = sch.cache_inplace("A", "A", scope)
    assert [sch.get(b).name for b in (into, back)] == [f"A_{scope}", f"A_{scope}_back"]
    assert f"A_{scope}[v] = A_{scope}[v] * 2 + B[v]" in sch.func.script()
    same(sch, func)
    again = Schedule(func)
    sch.trace.apply_to(again)
    assert again.func.script() == sch.func.script()


def test_threads_that_work_in_place_do_not_share_the_copy():
    func = parse(IN_PLACE)
    sch = Schedule(func)
    sch.bind(sch.get_loops("A")[0], "threadIdx.x")
    sch.cache_inplace("A", 0, "local")
    same(sch, func)


def test_only_what_a_block_also_writes_is_cached_in_place():
    sch = Schedule(parse(IN_PLACE))
    with pytest.raises(ScheduleError, match="it does not write it"):
        sch.cache_inplace("A", "B", "local")


TURNS = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.sblock("B"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + 1
    for i in range(6):
        with T.sblock("A"):
            v = T.axis.spatial(6, i)
            A[v] = v
    for i in range(6):
        with T.sblock("C"):
            v = T.axis.spatial(6, i)
            C[v] = A[v] * 3
"""


def test_who_reads_after_the_buffer_has_changed_does_not_read_the_copy():
    func = parse(TURNS)
    sch = Schedule(func)
    sch.cache_read("B", 0, "local")
    assert "A_local[v] + 1" in sch.func.script() and "A[v] * 3" in sch.func.script()
    same(sch, func)
    with pytest.raises(ScheduleError, match="block C reads what block A writes after the copy"):
        Schedule(func).cache_read("B", 0, "local", ["B", "C"])


def test_a_block_that_reads_its_own_results_is_cached():
    func = parse(rows(4, 6, extra=READ_AFTER.replace("7", "6")))
    sch = Schedule(func)
    made = sch.blockize(["B", "D"])
    sch.cache_write(made, 0, "local")
    assert "B_local" in sch.func.script() and "D[vi_o, vj_i] = B_local" in sch.func.script()
    same(sch, func)


# --- cache_index


RESIZE = """
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((5, 7), "int32"), B: T.Buffer((10, 14), "int32")):
    for i, j in T.grid(10, 14):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 2, vj // 2] + A[T.min(vi // 2 + 1, 4), (vi + vj) % 7] * (vj // 2)
"""


@pytest.mark.parametrize("least, blocks", [(0, 4), (2, 2), (3, 0)])
def test_what_is_computed_from_variables_alone_is_looked_up(least, blocks):
    func = parse(RESIZE)
    sch = Schedule(func)
    made = sch.cache_index("B", "global", least)
    assert len(made) == blocks
    assert [sch.get(b).name for b in made] == [f"index_{k}" for k in range(blocks)]
    same(sch, func)
    again = Schedule(func)
    sch.trace.apply_to(again)
    assert again.func.script() == sch.func.script()
    assert not made or sch.get(made[0]).name in [sch.get(b).name for b in sch.get_producers("B")]


def test_blocks_inside_read_the_table():
    """So that what stands around them, and asks what they read, knows it."""
    func = parse(RESIZE)
    sch = Schedule(func)
    outer = sch.blockize("B")
    made = sch.cache_index(outer, "global")
    inner = sch.get(sch.get_child_blocks(outer)[0])
    assert {r.buffer.name for r in inner.reads} == {"A", *(f"index_var_{k}" for k in range(len(made)))}
    sch.blockize(outer)
    for k in range(len(made)):
        sch.reindex(f"index_{k}", ("write", 0))
    same(sch, func)


def test_indices_of_a_variable_whose_range_the_loops_around_tell_are_not_cached():
    """A table stands in front of all loops, where nothing tells how long it is."""
    triangle = parse("""
from roundel.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    for i in range(8):
        for j in range(i + 1):
            with T.sblock("B"):
                vi, vj = T.axis.spatial(8, i), T.axis.spatial(i + 1, j)
                B[vi, vj // 2 + 1] = A[vi, vj // 2 + 1]
""")
    with pytest.raises(ScheduleError, match="told by the loops around"):
        Schedule(triangle).cache_index("B", "global", 1)
