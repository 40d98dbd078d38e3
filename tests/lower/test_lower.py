# SPDX-License-Identifier: Apache-2.0
"""Every pass of the pipeline keeps what a program computes; the end is in flat form."""

from __future__ import annotations

import numpy as np
import pytest
from lower_helpers import ALL, DYNAMIC, SIZED, arguments

from roundel import te
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.ir.visit import walk
from roundel.lower import PIPELINE, check_flat, shape_params
from roundel.schedule import Schedule
from roundel.script import tir as T


def same_after_every_pass(func, dims=None):
    dims = dims or {}
    mod = IRModule({"main": func})
    given = arguments(func, dims)
    want = [a.copy() for a in given]
    interpret(mod)["main"](*want)
    scalars = [dims[v.name] for v in shape_params(func)]
    last = mod
    for step in PIPELINE:
        mod = step(mod)
        if mod is last:
            continue
        last = mod
        got = [a.copy() for a in given]
        extra = scalars if len(mod["main"].params) > len(got) else []
        interpret(mod)["main"](*got, *extra)
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5, err_msg=f"after {step.name}")
    for f in mod.functions.values():
        check_flat(f)
    return mod


@pytest.mark.parametrize("name", [n for n in ALL if n not in DYNAMIC])
def test_every_pass_keeps_results(name):
    same_after_every_pass(ALL[name])


@pytest.mark.parametrize(("name", "dims"), SIZED, ids=str)
def test_dynamic(name, dims):
    same_after_every_pass(ALL[name], dims)


def test_edges_along_two_axes_have_code_of_their_own():
    """No condition is left in a reduction where tiles of a parallel loop reach over the rows, the columns, or both."""
    a, b = te.placeholder((13, 6), "float32", "A"), te.placeholder((6, 21), "float32", "B")
    r = te.reduce_axis((0, 6), "r")
    sch = Schedule(te.create_prim_func([a, b, te.compute((13, 21), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")]))
    block = sch.get_block("C")
    store = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    rows, row = sch.split(i, [None, 4])
    columns, column = sch.split(j, [None, 8])
    sch.reorder(columns, rows, k, row, column)
    sch.reverse_compute_at(store, rows)
    init = sch.decompose_reduction(block, k)
    for part in (block, init, store):
        *_, row, column = sch.get_loops(part)
        sch.unroll(row)
        sch.vectorize(column)
    sch.parallel(sch.fuse(columns, rows))
    mod = same_after_every_pass(sch.func)
    inner = [n for f in mod.functions.values() for n in walk(f.body) if type(n) is tir.For and n.kind is tir.ForKind.SERIAL and type(n.extent) is tir.IntImm]
    assert len(inner) == 4 and not any(type(n) is tir.If for x in inner for n in walk(x.body))


def test_what_asks_nothing_stands_once():
    """Padding in a parallel loop is tested for itself; the loops beside it that use what was padded are not doubled."""
    x = te.placeholder((3, 12, 3, 16), "float32", "X")
    padded = te.compute((3, 14, 3, 16), lambda c, i, j, k: tir.if_then_else(tir.logical_and(i >= 1, i < 13), x[c, i - 1, j, k], 0.0), "P")
    sch = Schedule(te.create_prim_func([x, te.compute((3, 12, 3, 16), lambda c, i, j, k: padded[c, i, j, k] - padded[c, i + 2, j, k], "D")]))
    c, i, j, k = sch.get_loops(sch.get_block("D"))
    rows, row = sch.split(i, [None, 4])
    sch.reorder(rows, c, row, j, k)
    sch.vectorize(k)
    sch.parallel(rows)
    sch.compute_at(sch.get_block("P"), c)
    sch.vectorize(sch.get_loops(sch.get_block("P"))[-1])
    mod = same_after_every_pass(sch.func)
    stores = [n.buffer.name for f in mod.functions.values() for n in walk(f.body) if type(n) is tir.BufferStore]
    assert stores.count("D") == 1 and len(stores) > 2


@T.prim_func
def stride_as_data(A: T.Buffer((8, 12), "float32"), B: T.Buffer((2, 3), "int32")):
    for i, j in T.grid(2, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            T.writes(B[vi, vj])
            stride = T.int32()
            view = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", strides=[stride, 1], offset_factor=4)
            B[vi, vj] = T.Select(vi < 2, stride + vi * 100, T.cast(view[0, 0], "int32"))


def test_a_stride_of_a_view_is_data_too():
    """Implementations of instructions hand strides over as numbers: they are declared by the view, which stands behind the body in a block's fields."""
    mod = same_after_every_pass(stride_as_data)
    a, b = np.ones((8, 12), np.float32), np.zeros((2, 3), np.int32)
    interpret(mod)["main"](a, b)
    np.testing.assert_array_equal(b, [[12] * 3, [112] * 3])
