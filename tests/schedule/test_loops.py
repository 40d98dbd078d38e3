# SPDX-License-Identifier: Apache-2.0
"""Loop structure, kinds, annotations, and what is refused."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule
from roundel.schedule.loops import balanced_heights

from .programs import check, elementwise, matmul, softmax_like


def symbolic_matmul():
    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n, 6), "float32", "A"), te.placeholder((6, m), "float32", "B")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "C")
    return te.create_prim_func([a, b, c])


def test_split_of_a_symbolic_loop():
    func = symbolic_matmul()
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.parallel(sch.fuse(i0, j0))
    sch.vectorize(j1)
    for n, m in ((4, 8), (5, 3), (1, 17)):
        check(sch, func, {"n": n, "m": m})


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 9, 19, 20, 23, 24, 25, 40])
def test_balanced_split_of_a_symbolic_loop(n):
    func = symbolic_matmul()
    sch = Schedule(func)
    i, _j, _k = sch.get_loops(sch.get_block("C"))
    made = sch.split(i, [None, 6], mode="balanced")
    assert len(made) == 6 and [sch.get(x).extent.value for x in made[1::2]] == [6, 5, 1]
    check(sch, func, {"n": n, "m": 3})


def test_balanced_heights():
    assert balanced_heights(128, 6) == [(18, 6), (4, 5)]
    assert balanced_heights(12, 6) == [(2, 6)] and balanced_heights(5, 6) == [(1, 5)] and balanced_heights(0, 6) == []
    for n in range(1, 100):
        found = balanced_heights(n, 6)
        assert sum(c * h for c, h in found) == n and max(h for _, h in found) <= 6
        assert len(found) == 1 or found[0][1] - found[1][1] == 1


def test_split_infers_and_checks_factors():
    sch = Schedule(matmul(12, 8, 4))
    i, j, _k = sch.get_loops(sch.get_block("C"))
    parts = sch.split(i, [2, None, 3])
    assert [sch.get(x).extent.value for x in parts] == [2, 2, 3]
    for factors, why in (([None, None], "one factor"), ([2, 3], "less than"), ([None, 0], "not positive")):
        with pytest.raises(ScheduleError, match=why):
            sch.split(j, factors)
    sch.split(j, [None, 1, 8], preserve_unit_iters=False)
    check(sch, matmul(12, 8, 4))


def test_fuse_then_split_cancels():
    sch = Schedule(matmul(12, 8, 4))
    block = sch.get_block("C")
    i, *_ = sch.get_loops(block)
    i0, i1 = sch.split(i, [3, 4])
    sch.fuse(i0, i1)
    assert 'T.axis.remap("SSR"' in sch.mod.script()
    with pytest.raises(ScheduleError, match="no longer there"):
        sch.unroll(i0)
    i, _j, k = sch.get_loops(block)
    with pytest.raises(ScheduleError, match="only statement directly inside"):
        sch.fuse(i, k)
    check(sch, matmul(12, 8, 4))


def test_reorder_checks_the_chain():
    sch = Schedule(softmax_like())
    i, k = sch.get_loops(sch.get_block("S"))
    other, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError, match="not on one chain"):
        sch.reorder(i, other)
    with pytest.raises(ScheduleError, match="different loops"):
        sch.reorder(i, i)
    sch.reorder(k, i)
    check(sch, softmax_like())


def test_loops_with_values_handed_on_keep_their_order():
    func = softmax_like()
    sch = Schedule(func)
    i, _k = sch.get_loops(sch.get_block("S"))
    _other, _ = sch.get_loops(sch.get_block("C"))
    sch.reverse_compute_at(sch.get_block("C"), i)
    sch.parallel(i)
    check(sch, func)


def test_merge_of_neighbours():
    func = elementwise()
    sch = Schedule(func)
    first, _ = sch.get_loops(sch.get_block("B"))
    second, _ = sch.get_loops(sch.get_block("C"))
    sch.merge(first, second)
    check(sch, func)
    sch = Schedule(softmax_like(6, 6))
    _, k = sch.get_loops(sch.get_block("S"))
    other, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError, match="neighbours"):
        sch.merge(k, other)


def test_partition_add_unit_loop_bind_annotate():
    func = matmul()
    sch = Schedule(func)
    block = sch.get_block("C")
    i, _j, _k = sch.get_loops(block)
    a, b, c = sch.loop_partition(i, [4, None, 2])
    assert [sch.get(x).extent.value for x in (a, b, c)] == [4, 7, 2]
    assert [sch.get(x).name for x in sch.get_child_blocks(sch.get_block("root"))] == ["C", "C_1", "C_2"]
    sch.add_unit_loop(block)
    sch.bind(a, "threadIdx.x")
    with pytest.raises(ScheduleError, match="no thread axis"):
        sch.bind(b, "warp")
    with pytest.raises(ScheduleError, match=r"bound to threadIdx\.x"):
        sch.split(a, [2, 2])
    sch.annotate(b, "pragma", 1)
    with pytest.raises(ScheduleError, match="annotations"):
        sch.split(b, [None, 2])
    sch.unannotate(b, "pragma")
    with pytest.raises(ScheduleError, match="no annotation"):
        sch.unannotate(b, "pragma")
    with pytest.raises(ScheduleError, match="parameter"):
        sch.storage_align(block, 0, -1, 16, 1)
    check(sch, func)


def test_looking_around():
    sch = Schedule(softmax_like())
    root = sch.get_block("root")
    names = lambda found: [sch.get(b).name for b in found]
    assert names(sch.get_child_blocks(root)) == ["S", "C"]
    assert names(sch.get_producers("C")) == ["S"] and names(sch.get_consumers("S")) == ["C"]
    assert names(sch.get_output_blocks(root)) == ["C"]
    with pytest.raises(ScheduleError, match="did you mean S"):
        sch.get_block("SS")
    sch.storage_align("S", 0, -1, 16, 1)
    assert sch.get(sch.get_block("S")).annotations["buffer_dim_align"] == ((0, 0, 16, 1),)
    with pytest.raises(ScheduleError, match="storage scope"):
        sch.set_scope("S", 0, "locale")
    sch.set_scope("S", 0, "local")
    assert sch.get(sch.get_block("S")).writes[0].buffer.scope == "local"
    with pytest.raises(ScheduleError, match="parameter"):
        sch.set_scope("C", 0, "local")


def test_merge_of_init_and_update():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, _, _ = sch.get_loops(block)
    init = sch.decompose_reduction(block, i)
    sch.merge(sch.get_loops(init)[0], i)
    check(sch, matmul())
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    fused = sch.fuse(i, j, k)
    init = sch.decompose_reduction(block, fused)
    with pytest.raises(ScheduleError, match="order would change"):
        sch.merge(sch.get_loops(init)[0], fused)
