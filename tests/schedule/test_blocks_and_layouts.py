# SPDX-License-Identifier: Apache-2.0
"""rfactor, blockize, tensorize, layouts, reindex, padding."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.intrinsics import TensorIntrin
from roundel.ir import tir
from roundel.ir.errors import RoundelError, ScheduleError
from roundel.schedule import Schedule
from roundel.script import tir as T

from .programs import check, conv2d, matmul, matmul_relu


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("depth", [24, 3])
def test_rfactor_with_tail(axis, depth):
    func = matmul(5, 4, depth)
    sch = Schedule(func)
    block = sch.get_block("C")
    *_, k = sch.get_loops(block)
    _k0, k1 = sch.split(k, [None, 5])
    partial = sch.rfactor(k1, axis)
    check(sch, func)
    assert sch.get(partial).name == "C_rf" and sch.get(block).name == "C"
    _i, _j, k1 = sch.get_loops(block)
    sch.reverse_compute_at(block, sch.get_loops(partial)[1])
    check(sch, func)


def test_rfactor_of_argmax():
    a = te.placeholder((6, 20), "float32", "A")
    k = te.reduce_axis((0, 20), "k")
    argmax = te.comm_reducer(
        lambda x, y: (tir.select(x[1] >= y[1], x[0], y[0]), tir.select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.lowest(t1)),
    )
    index, value = te.compute((6,), lambda i: argmax((k.var, a[i, k]), axis=k), "V")
    func = te.create_prim_func([a, index, value])
    sch = Schedule(func)
    block = sch.get_child_blocks(sch.get_block("root"))[0]
    _, k = sch.get_loops(block)
    _, k1 = sch.split(k, [None, 4])
    sch.rfactor(k1, 0)
    check(sch, func)


def test_rfactor_of_a_spatial_loop_is_refused():
    sch = Schedule(matmul())
    i, *_ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError, match="does not reduce"):
        sch.rfactor(i, 0)


def test_blockize_then_the_outer_block_is_scheduled():
    func = matmul(8, 16, 6)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    tile = sch.blockize(i1)
    check(sch, func)
    i0, j0, k = sch.get_loops(tile)
    sch.decompose_reduction(tile, k)
    sch.reorder(j0, i0)
    check(sch, func)


def test_blockize_of_what_a_partition_leaves_begins_behind_it():
    func = matmul(20, 16, 6)
    sch = Schedule(func)
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    rest = sch.loop_partition(sch.get_loops("C_update")[0], [6, None])[1]
    (block,) = sch.get_child_blocks(rest)
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 7])
    sch.reorder(i0, j, k, i1)
    sch.blockize(i1)
    check(sch, func)


def test_tensorize_a_row_of_multiply_adds():
    func = matmul(8, 16, 6)
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i, j0, k, j1)
    other = sch.fork()
    sch.tensorize(j1, "fma_row_8")
    check(sch, func)
    with pytest.raises(ScheduleError, match="not what fma_row_4 does"):
        other.tensorize(j1, "fma_row_4")


@pytest.mark.parametrize("data", ["uint8", "int8"])
def test_tensorize_dot_products(data):
    a, b = te.placeholder((3, 12), data, "A"), te.placeholder((16, 12), "int8", "B")
    k = te.reduce_axis((0, 12), "k")
    c = te.compute((3, 16), lambda i, j: te.sum(tir.cast(a[i, k], "int32") * tir.cast(b[j, k], "int32"), axis=k), "C")
    func = te.create_prim_func([a, b, c])
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction(sch.get_block("C"), k0)
    sch.tensorize(j1, f"dot_8x4_{data[0]}8i8i32")
    check(sch, func)


def test_unknown_and_ill_fitting_intrinsics():
    with pytest.raises(RoundelError, match="did you mean fma_row_8"):
        TensorIntrin.get("fma_row_88")
    one, two = matmul(4, 4, 4), matmul(4, 4, 5)
    with pytest.raises(RoundelError, match="different parameters"):
        TensorIntrin.register("bad", one, two)


def test_packed_layout_with_padding():
    func = matmul(13, 20, 7)
    sch = Schedule(func)
    block = sch.get_block("C")
    pack = sch.cache_read(block, 1, "global")
    with pytest.raises(ScheduleError, match="pad_value"):
        sch.transform_layout(pack, ("write", 0), lambda k, n: (n // 8, k, n % 8))
    sch.transform_layout(pack, ("write", 0), lambda k, n: (n // 8, k, n % 8), pad_value=0.0)
    check(sch, func)
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(j0, i, k, j1)
    assert "B_global[v_j // 8, v_k, v_j % 8]" in sch.mod.script()
    check(sch, func)


def test_layout_of_a_parameter_changes_its_shape():
    func = matmul(4, 16, 8)
    sch = Schedule(func)
    sch.transform_layout(sch.get_block("C"), "B", lambda k, n: (n // 8, k, n % 8))
    assert [s.value for s in sch.func.buffer_params[1].shape] == [2, 8, 8]


def test_block_layout_and_reindex():
    func = conv2d()
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("P"))
    block = sch.get_block("Y")
    sch.transform_block_layout(block, lambda o, y, x, c, ky, kx: (o, y * 10 + x, c * 9 + ky * 3 + kx))
    check(sch, func)
    sch.reindex(block, ("read", 1))
    sch.reindex(block, ("write", 0))
    check(sch, func)
    with pytest.raises(ScheduleError, match="not exactly its variables"):
        sch.split(sch.get_loops(block)[0], [None, 2])
        sch.transform_block_layout(block, lambda o, m, k: (o, m, k))


def test_reorder_block_iter_var():
    func = matmul()
    sch = Schedule(func)
    sch.reorder_block_iter_var(sch.get_block("C"), [2, 0, 1])
    assert [iv.var.name for iv in sch.get(sch.get_block("C")).iter_vars] == ["v_k", "v_i", "v_j"]
    check(sch, func)


def test_pad_einsum():
    func = matmul_relu(13, 15, 7)
    sch = Schedule(func)
    sch.pad_einsum(sch.get_block("C"), [4, 8, 4])
    check(sch, func)
    assert [x.value for x in (iv.dom.extent for iv in sch.get(sch.get_block("C")).iter_vars)] == [16, 16, 8]


def test_a_buffer_is_padded_alike_wherever_it_is_touched():
    @T.prim_func
    def diagonal(A: T.Buffer((3, 3), "int32"), Y: T.Buffer((3, 3), "int32")):
        for i, j in T.grid(3, 3):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = A[vi, vi] + A[vi, vj]

    for padding in ([4, 1], [1, 4], [4, 5]):
        with pytest.raises(ScheduleError, match="A is touched at places of which one would be padded"):
            Schedule(diagonal).pad_einsum("Y", padding)
    sch = Schedule(diagonal)
    sch.pad_einsum("Y", [4, 4])
    check(sch, diagonal)


def test_decompose_padding():
    func = conv2d()
    sch = Schedule(func)
    block = sch.get_block("P")
    fill = sch.decompose_padding(block, sch.get_loops(block)[1])
    assert sch.get(fill).name == "P_pad_const"
    check(sch, func)
