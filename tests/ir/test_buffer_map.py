# SPDX-License-Identifier: Apache-2.0
"""The buffers of a program: pairs in the order of its parameters, and a mapping."""

import pytest

from roundel.ir import tir
from roundel.script import tir as T


@T.prim_func
def scaled(a: T.handle, n: T.int64, B: T.Buffer((8,), "float32")):
    A = T.match_buffer(a, (8,), "float32")
    for i in range(8):
        B[i] = A[i] * T.Cast("float32", n)


def test_buffers_are_found_by_parameter():
    a, n, b = scaled.params
    assert scaled.buffer_map[a].name == "A"
    assert a in scaled.buffer_map and n not in scaled.buffer_map
    assert scaled.buffer_map.get(n) is None
    assert [buffer.name for buffer in scaled.buffer_map.values()] == ["A", "B"]
    assert scaled.buffer_map.keys() == (a, b)
    with pytest.raises(KeyError, match="n is no parameter with a buffer"):
        scaled.buffer_map[n]


def test_pairs_stand_in_the_order_of_the_parameters():
    assert [p for p, _ in scaled.buffer_map] == [p for p, _ in scaled.buffer_map.items()] == [scaled.params[0], scaled.params[2]]
    assert scaled.buffer_map[-1][1].name == "B"


def test_a_program_is_made_with_a_dictionary():
    again = tir.PrimFunc(scaled.params, scaled.body, dict(scaled.buffer_map), scaled.attrs)
    assert again.buffer_map == scaled.buffer_map
    assert scaled.replace(body=tir.Evaluate(tir.const(0, "int32"))).buffer_map is scaled.buffer_map
