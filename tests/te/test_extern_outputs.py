# SPDX-License-Identifier: Apache-2.0
"""A statement that writes several tensors, of which a program takes some."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import IRModule, tir


@pytest.mark.parametrize("taken", [(0,), (1,), (2,), (0, 2), (2, 1), (0, 1, 2)])
def test_any_of_several_outputs_may_be_taken(taken):
    x = te.placeholder((4,), "float32", "x")

    def build(ins, outs, scratch, i):
        return tir.seq(*(tir.BufferStore(out, ins[0][i] * float(k + 1), (i,)) for k, out in enumerate(outs)))

    tensors = te.extern([((4,), "float32")] * 3, [x], build, over=[4])
    func = te.create_prim_func([x, *(tensors[k] for k in taken)])
    data = np.arange(4, dtype=np.float32)
    results = [np.zeros(4, np.float32) for _ in taken]
    rd.interpret(IRModule({"main": func}))["main"](data, *results)
    for k, result in zip(taken, results):
        np.testing.assert_array_equal(result, data * (k + 1))
