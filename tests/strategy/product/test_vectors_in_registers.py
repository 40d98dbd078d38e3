# SPDX-License-Identifier: Apache-2.0
"""Vectors that are kept in registers lie there as vectors: their lanes follow each other. (Otherwise the code generator keeps each lane by itself.)"""

import itertools
import math

import pytest

from roundel import te
from roundel.ir import IRModule, Var, tir
from roundel.ir.dtype import INT64
from roundel.ir.visit import walk
from roundel.lower import lower
from roundel.strategy import schedule_program
from roundel.target import Target

ROWS, COLUMNS, REDUCED = (1, 3, 64, Var("n", INT64, True)), (1, 5, 64), (7, 4096)


def linear(rows, columns, reduced, turned):
    """Products of rows with the columns of a matrix (or with the rows of a ``turned`` one) and a bias."""
    x, w = te.placeholder((rows, reduced), "float32", "X"), te.placeholder((columns, reduced) if turned else (reduced, columns), "float32", "W")
    bias, k = te.placeholder((columns,), "float32", "B"), te.reduce_axis((0, reduced), "k")
    product = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * (w[j, k] if turned else w[k, j]), axis=k), "product")
    out = te.compute((rows, columns), lambda i, j: product[i, j] + bias[j], "out")
    return te.create_prim_func([x, w, bias, out]).with_attr("global_symbol", "main")


def strides_in_registers(func):
    """Elements from lane to lane, for each access of a vector in a buffer of registers."""
    for node in walk(func.body):
        if type(node) in (tir.BufferLoad, tir.BufferStore) and node.buffer.scope == "local":
            for d, index in enumerate(node.indices):
                if type(index) is tir.Ramp:
                    yield node.buffer.name, index.stride.value * math.prod(n.value for n in node.buffer.shape[d + 1 :])


@pytest.mark.parametrize("target", ["znver4", "haswell", "neoverse-v1"])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_any_size(target, turned):
    target = Target(target)
    for rows, columns, reduced in itertools.product(ROWS, COLUMNS, REDUCED):
        scheduled, _ = schedule_program(linear(rows, columns, reduced, turned), target, (1, 2))
        for func in lower(IRModule({"main": scheduled}, {"target": target})).functions.values():
            for name, stride in strides_in_registers(func):
                assert stride == 1, f"{scheduled.attrs['scheduled']} for {rows} x {columns} x {reduced} reads every {stride}-th element of {name}"


@pytest.mark.parametrize("columns, vectors, lanes", [(77, 5, 16), (19, 2, 16), (11, 3, 4)])
def test_one_panel_of_constants_consists_of_whole_vectors(columns, vectors, lanes):
    """Few columns, of which the last vector is not full, are filled up as more of them are: no load is masked."""
    target = Target("znver4" if lanes == 16 else "neoverse-v1")
    func = linear(10, columns, 9, False).with_attr("decisions", {"rows": 5, "vectors": vectors, "lanes": lanes})
    scheduled, layouts = schedule_program(func, target, (1, 2))
    assert scheduled.attrs["scheduled"] == "contraction" and list(layouts) == [1]
    flat = lower(IRModule({"main": scheduled}, {"target": target}))
    weights = [n for f in flat.functions.values() for n in walk(f.body) if type(n) is tir.BufferLoad and n.buffer.name == "W"]
    assert weights and all(n.predicate is None and n.dtype.lanes == lanes for n in weights)
