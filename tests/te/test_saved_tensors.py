# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions are saved as JSON text, with the stages that make them, and read again."""

import numpy as np
import pytest

import roundel as rd
from roundel import ir, te
from roundel.ir.errors import RoundelError

A = te.placeholder((5, 4), name="A")
K = te.reduce_axis((0, 4), "k")
TOTAL = te.compute((5,), lambda i: te.sum(A[i, K], axis=K), name="total", tag="sums")


def again(value):
    return ir.load_json(ir.save_json(value))


def test_the_stages_come_back():
    twice = te.compute((5,), lambda i: TOTAL[i] * 2, name="twice")
    read = again(twice)
    assert (read.op.name, read.op.input_tensors[0].op.tag) == ("twice", "sums")
    source = read.op.input_tensors[0].op.input_tensors[0]
    a, out = np.arange(20, dtype="float32").reshape(5, 4), np.zeros(5, "float32")
    rd.build(te.create_prim_func([source, read]))(a, out)
    np.testing.assert_allclose(out, 2 * a.sum(1))


def test_what_is_shared_stays_shared():
    """Two outputs of one stage are still two outputs of one stage."""
    both = te.compute((5,), lambda i: (A[i, 0], A[i, 1]), name="both")
    first, second = again(tuple(both))
    assert first.definition is second.definition
    assert first.op.input_tensors[0] is second.op.input_tensors[0]


def test_operations_come_back():
    x, s = te.placeholder((6, 3)), te.placeholder((6, 3))
    rows = te.scan(te.compute((1, 3), lambda _, i: x[0, i]), te.compute((6, 3), lambda t, i: s[t - 1, i] + x[t, i]), s)
    assert type(again(rows.op)) is type(rows.op)


@pytest.mark.parametrize("tensor", [
    te.compute((5,), lambda i: te.comm_reducer(lambda x, y: x + y, lambda t: 0, "mine")(A[i, K], axis=K)),
    te.extern((5,), [A], lambda ins, outs: rd.tir.call_packed("f", ins[0], outs[0])),
])  # fmt: skip
def test_what_python_functions_define_cannot_be_saved(tensor):
    with pytest.raises(RoundelError, match="cannot be saved"):
        ir.save_json(tensor)
