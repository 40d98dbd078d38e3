# SPDX-License-Identifier: Apache-2.0
"""Programs on which primitives were once accepted and changed results, or left programs that are not well-formed."""

from __future__ import annotations

import pytest

from roundel.intrinsics import TensorIntrin
from roundel.ir import IRModule
from roundel.ir.errors import ScheduleError
from roundel.passes.well_formed import well_formed
from roundel.schedule import Schedule
from roundel.script import tir as T

from .programs import check


def whole(sch: Schedule) -> bool:
    """Whether the scheduled program is well-formed."""
    return well_formed(IRModule({"main": sch.func})) == []


@T.prim_func
def starts_at_one(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def stored_by_the_reduction(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi, vk] = T.float32(0)
            B[vi, vk] = B[vi, vk] + A[vi, vk]


@T.prim_func
def starts_twice(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k * k // 2)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def a_condition_at_the_start(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(A[i, k] > T.float32(0.5))
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@pytest.mark.parametrize(
    ("func", "why"),
    [
        (starts_at_one, "not neutral"),
        (stored_by_the_reduction, "depends on what it reduces over"),
        (starts_twice, "init may run twice"),
        (a_condition_at_the_start, "start of the reduction"),
    ],
)
def test_reductions_that_have_no_parts(func, why):
    sch = Schedule(func)
    with pytest.raises(ScheduleError, match=why):
        sch.rfactor(sch.get_loops("B")[1], 0)


def test_an_init_that_a_condition_may_leave_out_stays():
    sch = Schedule(a_condition_at_the_start)
    with pytest.raises(ScheduleError, match="start of the reduction"):
        sch.decompose_reduction("B", sch.get_loops("B")[0])
    with pytest.raises(ScheduleError, match="may leave out elements"):
        sch.cache_write("B", 0, "local")


@T.prim_func
def asked_in_a_condition(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            T.where(B[i] < T.float32(1))
            C[vi] = B[vi] + T.float32(1)


@T.prim_func
def read_through_a_view(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            V = T.match_buffer(B[vi], (1,))
            C[vi] = V[0] + T.float32(1)


@T.prim_func
def overwritten_input(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            A[vi] = B[7 - vi]


def test_inlining_reaches_conditions():
    sch = Schedule(asked_in_a_condition)
    sch.compute_inline("B")
    assert whole(sch)
    check(sch, asked_in_a_condition)


@pytest.mark.parametrize(("func", "why"), [(read_through_a_view, "a view or a pointer"), (overwritten_input, "overwrite")])
def test_values_that_cannot_be_inlined(func, why):
    with pytest.raises(ScheduleError, match=why):
        Schedule(func).compute_inline("B")


def test_copies_stand_where_the_buffer_is_declared():
    @T.prim_func
    def constant(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        K = T.allocate_const([0.0, 0.5, 1.0, 1.5], "float32", [4])
        V = T.decl_buffer((4,), "float32", data=K)
        for i in range(4):
            with T.sblock("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + V[vi]

    sch = Schedule(constant)
    sch.cache_read("C", 1, "global")
    assert whole(sch)
    check(sch, constant)


@T.prim_func
def double_description(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (4,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.sblock("u"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] * T.float32(2)


@T.prim_func
def double_implementation(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (4,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        T.sblock_attr({"by_hand": True})
        T.evaluate(T.call_extern("int32", "double4", A.access_ptr("r"), C.access_ptr("w"), A.elem_offset))


def test_pointers_of_an_instruction_are_those_of_the_tile():
    @T.prim_func
    def tiles(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("u"):
                vi = T.axis.spatial(16, i * 4 + j)
                C[vi] = A[vi] * T.float32(2)

    TensorIntrin.register("test.double4", double_description, double_implementation)
    sch = Schedule(tiles)
    sch.tensorize(sch.get_loops("u")[1], "test.double4")
    assert whole(sch)
    assert "by_hand" in sch.get(sch.get_block("u_o")).annotations
    assert sch.mod.script().count("elem_offset=") == 2


def test_splits_do_not_ask_memory_beyond_the_loop():
    @T.prim_func
    def asks(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            with T.sblock("B"):
                vi = T.axis.spatial(7, i)
                T.where(A[i] > T.float32(0.5))
                B[vi] = A[vi]

    sch = Schedule(asks)
    with pytest.raises(ScheduleError, match="would be read where the loop has no iteration"):
        sch.split(sch.get_loops("B")[0], [None, 4])


def test_copies_do_not_pass_statements_outside_of_blocks():
    @T.prim_func
    def bare(Z: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32")):
        for i in range(8):
            Z[i] = Z[i] + T.float32(1)
        for i in range(8):
            with T.sblock("W"):
                vi = T.axis.spatial(8, i)
                W[vi] = Z[vi]

    for copy in (lambda s: s.cache_read("W", 0, "local"), lambda s: s.reindex("W", ("read", 0))):
        with pytest.raises(ScheduleError, match="outside of blocks"):
            copy(Schedule(bare))


def test_copies_take_the_pointers_with_them():
    @T.prim_func
    def opaque(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 4 : vi * 4 + 4])
                T.writes(B[vi * 4 : vi * 4 + 4])
                T.evaluate(T.call_extern("int32", "double4", A.data, B.data, vi))

    sch = Schedule(opaque)
    sch.cache_read("B", 0, "global")
    sch.cache_write("B", 0, "global")
    call = sch.get(sch.get_block("B")).body.value
    assert [a.name for a in call.args[1:3]] == ["A_global_data", "B_global_data"]
    with pytest.raises(ScheduleError, match="pointer"):
        Schedule(opaque).transform_layout("B", ("read", 0), lambda i: (i // 4, i % 4))


def test_padding_does_not_win_over_the_last_element():
    @T.prim_func
    def last(V: T.Buffer((6,), "int32"), W: T.Buffer((6,), "int32")):
        for i, j in T.grid(6, 6):
            with T.sblock("W"):
                vi, vj = T.axis.remap("SS", [i, j])
                W[vi] = V[vj]

    with pytest.raises(ScheduleError, match="order matters"):
        Schedule(last).pad_einsum("W", [1, 4])


@T.prim_func
def updated_twice(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    C = T.sblock_alloc_buffer((4,), "float32")
    for i, k, _t in T.grid(4, 8, 2):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = C[vi]


def test_a_reduction_whose_updates_are_repeated_stays():
    sch = Schedule(updated_twice)
    for change in (lambda: sch.rfactor(sch.get_loops("C")[1], 0), lambda: sch.compute_at("C", sch.get_loops("B")[0])):
        with pytest.raises(ScheduleError, match="computed again in each iteration of _t"):
            change()


@T.prim_func
def stored_over(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    for j, i in T.grid(6, 3):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[(vi + vj) % 3] = A[vi]


def test_stores_that_overwrite_one_another_are_not_reindexed():
    with pytest.raises(ScheduleError, match="their order matters"):
        Schedule(stored_over).reindex("B", ("write", 0))


@T.prim_func
def asked_outside(A: T.Buffer((6, 2), "int32"), Y: T.Buffer((6, 2), "int32"), W: T.Buffer((2,), "int32")):
    B = T.sblock_alloc_buffer((2,), "int32")
    for i in range(6):
        for j in range(2):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj] = A[vi, vj]
        for j in range(2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = B[vj]
    for i in range(2):
        with T.sblock("W"):
            vi = T.axis.spatial(2, i)
            T.where(B[i] > 0)
            W[vi] = 1


@T.prim_func
def asked_and_stored(A: T.Buffer((6,), "int32"), W: T.Buffer((6,), "int32")):
    for _t, i in T.grid(2, 6):
        with T.sblock("W"):
            vi = T.axis.spatial(6, i)
            T.where(W[5] > 0)
            W[vi] = A[vi]


@pytest.mark.parametrize(("func", "block"), [(asked_outside, "B"), (asked_and_stored, "W")])
def test_what_a_condition_reads_counts(func, block):
    for k in (0, -1):
        sch = Schedule(func)
        if func is asked_outside or k == -1:
            with pytest.raises(ScheduleError, match="cannot parallel"):
                sch.parallel(sch.get_loops(block)[0 if func is asked_outside else k])


@T.prim_func
def by_pointer(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[0:8])
            T.writes(C[0:8])
            T.evaluate(B.access_ptr("r", extent=8))
            C[vi] = B[vi] + T.float32(1)


def test_a_value_that_a_pointer_reads_stays():
    with pytest.raises(ScheduleError, match="pointer of B"):
        Schedule(by_pointer).compute_inline("B")


@T.prim_func
def asked_after(A: T.Buffer((3, 4), "int32"), Z: T.Buffer((3,), "int32"), Y: T.Buffer((3,), "int32")):
    for i, k in T.grid(3, 4):
        with T.sblock("Z"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Z[vi] = 0
            Z[vi] = Z[vi] + A[vi, vk]
    for i in range(3):
        with T.sblock("Y"):
            vi = T.axis.spatial(3, i)
            T.where(Z[i] > 0)
            Y[vi] = 1


def test_a_copy_is_back_before_a_condition_asks():
    sch = Schedule(asked_after)
    sch.cache_write("Z", 0, "local")
    names = [sch.get(b).name for b in sch.get_child_blocks(sch.get_block("root"))]
    assert names == ["Z", "Z_local", "Y"]
    check(sch, asked_after)


@T.prim_func
def asks_for_itself(A: T.Buffer((4, 3), "int32"), Z: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 3):
        with T.sblock("Z"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(Z[i] > 0)
            with T.init():
                Z[vi] = -100
            Z[vi] = T.max(Z[vi], A[vi, vk])


def test_a_condition_on_its_own_result_keeps_a_block_whole():
    sch = Schedule(asks_for_itself)
    _, k = sch.get_loops("Z")
    for change in (lambda: sch.decompose_reduction("Z", k), lambda: sch.rfactor(k, 0), lambda: sch.cache_write("Z", 0, "local")):
        with pytest.raises(ScheduleError, match="which it stores"):
            change()


@T.prim_func
def two_in_turns(A: T.Buffer((2, 4), "int32"), Z: T.Buffer((2,), "int32"), Y: T.Buffer((2,), "int32")):
    for i in range(2):
        for k in range(4):
            with T.sblock("first"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Z[vi] = 1
                Z[vi] = Z[vi] * 2 + A[vi, vk]
        with T.sblock("Y"):
            vi = T.axis.spatial(2, i)
            Y[vi] = Z[vi]
        for k in range(4):
            with T.sblock("second"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Z[vi] = 0
                Z[vi] = Z[vi] + A[vi, vk]


def test_an_init_does_not_pass_others_that_touch_the_result():
    sch = Schedule(two_in_turns)
    with pytest.raises(ScheduleError, match="also touches Z"):
        sch.decompose_reduction("second", sch.get_loops("second")[0])
    sch.decompose_reduction("second", sch.get_loops("second")[1])
    check(sch, two_in_turns)


# --- a value that is computed where it is used reads its inputs there


@T.prim_func
def computed_again(Z: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32")):
    B = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = Z[vi] + 1
    for _t, i in T.grid(2, 4):
        with T.sblock("Z"):
            vi = T.axis.spatial(4, i)
            Z[vi] = A[vi] + B[vi]


@T.prim_func
def stored_before_it_is_read(Z: T.Buffer((4,), "int32"), Y: T.Buffer((4,), "int32")):
    B = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = Z[vi] + 1
    for i in range(4):
        with T.sblock("Z"):
            vi = T.axis.spatial(4, i)
            Z[vi] = B[vi] * 2
            Y[vi] = B[vi] * 3


@T.prim_func
def asked_while_it_changes(Z: T.Buffer((4,), "int32"), V: T.Buffer((4,), "int32")):
    B = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = Z[vi] + 1
    for i in range(4):
        with T.sblock("Z"):
            vi = T.axis.spatial(4, i)
            T.where(B[0] < 3)
            Z[vi] = Z[vi] + V[vi]


@pytest.mark.parametrize(
    ("func", "why"),
    [
        (computed_again, "runs again in each iteration of _t"),
        (stored_before_it_is_read, "more than one store"),
        (asked_while_it_changes, "depends on Z"),
    ],
)
def test_a_value_whose_inputs_its_user_overwrites_stays(func, why):
    with pytest.raises(ScheduleError, match=why):
        Schedule(func).compute_inline("B")


@T.prim_func
def of_another_iteration(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    t = T.sblock_alloc_buffer((1,), "int32")
    B = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        with T.sblock("t"):
            vi = T.axis.spatial(4, i)
            t[0] = A[vi]
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = t[0] + 1
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[T.max(vi - 1, 0)] * 2


@T.prim_func
def of_the_same_iteration(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    t = T.sblock_alloc_buffer((1,), "int32")
    B = T.sblock_alloc_buffer((4,), "int32")
    for i in range(4):
        with T.sblock("t"):
            vi = T.axis.spatial(4, i)
            t[0] = A[vi]
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = t[0] + 1
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi] * 2


def test_a_value_is_not_computed_from_the_inputs_of_a_later_iteration():
    with pytest.raises(ScheduleError, match="may come from another iteration of i, in which its inputs were others"):
        Schedule(of_another_iteration).compute_inline("B")
    sch = Schedule(of_the_same_iteration)
    sch.compute_inline("B")
    check(sch, of_the_same_iteration)


@T.prim_func
def made_again(A: T.Buffer((4,), "int32")):
    B = T.sblock_alloc_buffer((4,), "int32")
    for _t, i in T.grid(2, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + 1
    for i in range(4):
        with T.sblock("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = B[vi] * 2


def test_a_producer_that_runs_again_does_not_read_what_its_user_overwrites():
    with pytest.raises(ScheduleError, match="runs again in each iteration of _t"):
        Schedule(made_again).reverse_compute_inline("A")


@T.prim_func
def asks_for_each(V: T.Buffer((6,), "int32"), W: T.Buffer((6,), "int32")):
    for i, j in T.grid(2, 3):
        with T.sblock("W"):
            v = T.axis.spatial(6, i * 3 + j)
            T.where(1 <= W[0])
            W[v] = V[v]


def test_a_tile_is_not_asked_once_for_what_its_blocks_store():
    sch = Schedule(asks_for_each)
    with pytest.raises(ScheduleError, match="depends on W, which it stores"):
        sch.blockize(sch.get_loops("W")[1])
    sch.blockize("W")  # (one instance each)
    check(sch, asks_for_each)


# --- who touches A[index[i]] reads index


@T.prim_func
def looked_up(A: T.Buffer((6,), "int32"), Y: T.Buffer((6,), "int32")):
    index = T.sblock_alloc_buffer((6,), "int64")
    for i in range(6):
        with T.sblock("index"):
            vi = T.axis.spatial(6, i)
            index[vi] = (vi + 2) % 6
    for i in range(6):
        with T.sblock("Y"):
            vi = T.axis.spatial(6, i)
            T.reads(A[index[vi]])
            T.writes(Y[vi])
            Y[vi] = A[index[vi]]


STEPS_WITH_AN_INDEX = {
    "reindex": lambda sch: sch.reindex("index", ("write", 0)),
    "cache_write": lambda sch: sch.cache_write("index", 0, "local"),
    "cache_read": lambda sch: sch.cache_read("Y", 0, "local"),
    "compute_at": lambda sch: sch.compute_at("index", sch.get_loops("Y")[0]),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at("Y", sch.get_loops("index")[0]),
    "compute_inline": lambda sch: sch.compute_inline("index"),
    "blockize": lambda sch: (sch.blockize("Y"), sch.cache_write("index", 0, "local")),
    "inlined below": lambda sch: (sch.blockize("Y"), sch.blockize("Y_o"), sch.compute_inline("index")),
}


@pytest.mark.parametrize("step", STEPS_WITH_AN_INDEX)
def test_an_index_in_memory_is_read(step):
    sch = Schedule(looked_up)
    try:
        STEPS_WITH_AN_INDEX[step](sch)
    except ScheduleError:
        assert step in ("compute_at", "reverse_compute_at")  # what an iteration reads is not known
        return
    assert whole(sch)
    check(sch, looked_up)
