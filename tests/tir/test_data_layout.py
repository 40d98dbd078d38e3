# SPDX-License-Identifier: Apache-2.0
"""Layouts by letters: what a text says, and that the maps between two are inverse to one another."""

from __future__ import annotations

import itertools

import pytest

from roundel import tir


def numbers(exprs):
    return tuple(e.value for e in exprs)


def test_the_parts_of_a_layout():
    blocked = tir.layout("NCHW8c")
    assert [*blocked] == ["N", "C", "H", "W", "c"] and blocked[-1] == "c" and len(blocked) == 5
    assert blocked.factor_of("C") == blocked.factor_of("c") == 8 and blocked.factor_of("H") == -1
    assert blocked.index_of("W") == 3 and blocked.index_of("K") == -1 and "c" in blocked and "k" not in blocked
    assert {axis.var.dtype for axis in tir.layout("NC", "int64").axes} == {"int64"}


@pytest.mark.parametrize("text", ["NCHWc", "NC8H", "NCC", "NHW8c", "N-C"])
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(ValueError, match="layout"):
        tir.layout(text)


@pytest.mark.parametrize("dtype", ["float32", None])
def test_indices_are_integers(dtype):
    with pytest.raises(TypeError, match="integers"):
        tir.layout("NC", dtype)


@pytest.mark.parametrize("source, target, shape", [("NCHW", "NCHW4c", (1, 8, 2, 3)), ("NCHW8c", "NHWC", (1, 2, 2, 2, 8)), ("NC4c", "C2cN", (2, 3, 4))])
def test_there_and_back(source, target, shape):
    both = tir.bijective_layout(source, target)
    moved = numbers(both.forward_shape(shape))
    assert numbers(both.backward_shape(moved)) == shape
    seen = set()
    for index in itertools.product(*map(range, shape)):
        there = numbers(both.forward_index(index))
        assert all(0 <= i < n for i, n in zip(there, moved)) and numbers(both.backward_index(there)) == index
        seen.add(there)
    assert len(seen) == len([*itertools.product(*map(range, shape))])


def test_a_block_that_is_partly_filled_is_counted():
    assert numbers(tir.bijective_layout("NC", "NC8c").forward_shape((1, 20))) == (1, 3, 8)


@pytest.mark.parametrize("pair", [("NCHW", "ABCD"), ("", "NC"), ("NC", "__undef__")])
def test_other_axes_have_no_map(pair):
    assert tir.bijective_layout(*pair) is None
