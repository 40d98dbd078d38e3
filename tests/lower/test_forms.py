# SPDX-License-Identifier: Apache-2.0
"""What lowered programs look like: what speed depends on is there, and errors say what is wrong."""

from __future__ import annotations

import lower_programs as programs
import pytest

from roundel.ir import IRModule, tir, walk
from roundel.ir.errors import LowerError
from roundel.lower import check_flat, lower
from roundel.script import tir as T


def nodes(func, kind):
    return [n for n in walk(func.body) if type(n) is kind]


def lowered(func, name="main"):
    return lower(IRModule({"main": func}))[name]


def test_register_tile_is_compact_and_constant():
    f = lowered(programs.register_tile)
    shapes = {a.buffer.name: tuple(s.value for s in a.buffer.shape) for a in nodes(f, tir.Allocate)}
    assert shapes == {"CL": (6, 16), "BL": (1, 16)}
    assert all(a.buffer.scope == "local" for a in nodes(f, tir.Allocate))
    inner = [loop for loop in nodes(f, tir.For) if loop.loop_var.name == "k"]
    assert len(inner) == 1
    assert len([s for s in walk(inner[0]) if type(s) is tir.BufferStore]) == 7  # one load of B, six multiply-adds


def test_main_loop_is_not_masked():
    f = lowered(programs.exp_dynamic)
    masked = [s.predicate is not None for s in nodes(f, tir.BufferStore)]
    assert masked == [False, True]


def test_init_leaves_the_reduction():
    f = lowered(programs.matmul)
    (reduction,) = [loop for loop in nodes(f, tir.For) if loop.loop_var.name == "k"]
    assert len([s for s in walk(reduction) if type(s) is tir.BufferStore]) == 1
    assert not nodes(f, tir.If)


def test_padding_leaves_the_main_loop():
    mod = lower(IRModule({"main": programs.conv_padded}))
    body = mod["main_task"].body
    stores = [s for s in walk(body) if type(s) is tir.BufferStore]
    clean = [s for s in stores if not any(type(n) in (tir.IfThenElse, tir.Select) for n in walk(s))]
    assert len(clean) >= 2  # the init and the main loop's update at least


def test_value_from_an_earlier_iteration_keeps_memory_outside():
    for f in (programs.rolling, programs.running_sum):
        body = lowered(f).body
        assert isinstance(body, tir.Allocate)


def test_overlapping_windows_move_into_the_loop():
    (alloc,) = nodes(lowered(programs.halo_stage), tir.Allocate)
    assert [s.value for s in alloc.buffer.shape] == [7]


def test_tasks_take_what_they_use():
    mod = lower(IRModule({"main": programs.row_bias_dynamic}))
    task = mod["main_task"]
    assert [p.name for p in task.params][:2] == ["begin", "end"]
    assert task.attrs["kind"] == "task" and mod["main"].attrs["kind"] == "kernel"
    (call,) = [n for n in nodes(mod["main"], tir.Call) if n.op == "parallel_for"]
    assert call.args[0].value == "main_task"
    assert len(call.args) == 3 + len(task.params) - 2


def test_lowering_twice_changes_nothing():
    mod = lower(IRModule({"main": programs.softmax}))
    assert lower(mod)["main_task"] is mod["main_task"]


@T.prim_func
def dynamic_tile(A: T.Buffer((40, 16), "float32"), B: T.Buffer((40, 16), "float32")):
    T.func_attr({"register_tiles": True})
    P = T.alloc_buffer((40, 16), "float32", scope="local")
    for i in range(40):
        with T.block("P"):
            vi = T.axis.opaque(40, i)
            for j in range(300):
                P[vi, (j * vi) % 16] = A[vi, j % 16]
            for j in range(16):
                B[vi, j] = P[vi, j]


def test_offending_index_is_named():
    with pytest.raises(LowerError, match="index 1 of P"):
        lowered(dynamic_tile)


def test_private_memory_says_why_it_is_not_in_registers():
    f = lowered(dynamic_tile.without_attr("register_tiles"))
    (alloc,) = nodes(f, tir.Allocate)
    assert alloc.buffer.scope == "global" and "not constant" in alloc.annotations["not_registers"]


def test_checker_names_what_is_not_flat():
    with pytest.raises(LowerError, match="block"):
        check_flat(programs.matmul)


@T.prim_func
def with_barrier(A: T.Buffer((32,), "float32")):
    for i in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("A"):
            vi = T.axis.spatial(32, i)
            A[vi] = T.float32(0)
            T.evaluate(T.storage_sync("shared"))


def test_barriers_are_refused():
    with pytest.raises(LowerError, match="barrier"):
        lowered(with_barrier)


@T.prim_func
def padded_rows(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32, 8), "float32")):
    P = T.alloc_buffer((8, 32), "float32")
    for i, j in T.grid(8, 32):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
            P[vi, vj] = A[vi, vj]
    for i, j in T.grid(32, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = P[vj, vi]


def test_storage_align_makes_strides():
    (alloc,) = nodes(lowered(padded_rows), tir.Allocate)
    assert [s.value for s in alloc.buffer.strides] == [33, 1]
