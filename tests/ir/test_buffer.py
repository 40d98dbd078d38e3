# SPDX-License-Identifier: Apache-2.0
"""What a buffer says of places in it: offsets, pointers, and itself in one dimension."""

from __future__ import annotations

import pytest

from roundel.ir import tir
from roundel.ir.dtype import INT64

N = tir.Var("n", INT64, True)


@pytest.mark.parametrize("options, place", [
    ({}, 2 * 8 + 3),
    ({"strides": (16, 2)}, 2 * 16 + 3 * 2),
    ({"elem_offset": tir.index_const(100)}, 2 * 8 + 3 + 100),
])
def test_an_element_lies_at_its_offset(options, place):
    assert tir.decl_buffer((4, 8), **options).offset_of((2, 3)).value == place


def test_indices_are_as_many_as_dimensions():
    with pytest.raises(ValueError):
        tir.decl_buffer((4, 8)).offset_of((1,))


def test_an_access_pointer_reaches_from_its_offset_to_the_end():
    buffer = tir.decl_buffer((4, 8), "float16")
    whole, part, given = buffer.access_ptr("rw"), buffer.access_ptr("w", offset=5), buffer.access_ptr("r", offset=5, extent=7)
    assert [a.value for a in whole.args[2:]] == [0, 32, 3] and whole.args[0].value == "float16"
    assert [a.value for a in part.args[2:]] == [5, 27, 2] and [a.value for a in given.args[2:]] == [5, 7, 1]
    assert buffer.access_ptr(buffer.READ | buffer.WRITE) is whole
    assert tir.decl_buffer((4, 8), strides=(10, 1)).access_ptr("r").args[3].value == 40
    assert tir.decl_buffer((4, N), elem_offset=N).access_ptr("r", content_lanes=4).args[0].value == "float32x4"


def test_a_flat_buffer_is_the_same_memory():
    buffer = tir.decl_buffer((4, 8), scope="shared")
    flat = buffer.get_flattened_buffer()
    assert flat.data is buffer.data and flat.scope == "shared" and [s.value for s in flat.shape] == [32]
    assert flat.get_flattened_buffer() is flat
    assert tir.decl_buffer((4, 8), strides=(10, 1)).get_flattened_buffer().shape[0].value == 40


def test_lists_are_taken_for_tuples():
    load = tir.BufferLoad(tir.decl_buffer((4,)), [tir.index_const(1)])
    assert isinstance(load.indices, tuple)
    assert isinstance(tir.Seq([tir.Evaluate(load)]).stmts, tuple) and isinstance(tir.Call("f", [load], load.dtype).args, tuple)
