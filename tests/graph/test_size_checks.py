# SPDX-License-Identifier: Apache-2.0
"""Which sizes programs need elements of: what is clamped or wrapped needs a dimension that is not empty, what is guarded needs nothing."""

import numpy as np
import pytest

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.graph.size_checks import size_checks
from roundel.graph.legalize import legalize
from roundel.graph.rewriter import is_call
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make


N, M = tir.Var("n", INT64, True), tir.Var("m", INT64, True)


def module(op, shape, *args, **attrs):
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo(shape, "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make(op, x, *args, **attrs)))
    return bb.get()


def asserted(mod):
    """The conditions that the pass adds, as text."""
    func = size_checks(legalize(mod))["main"]
    values = [b.value for block in func.body.blocks for b in block.bindings]
    return [v.args[0].value.script() for v in values if is_call(v, "assert_op")]


def shape(*values):
    return graph.ShapeExpr(tuple(map(tir.as_index, values)))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_padding_with_elements_needs_one(mode):
    assert len(asserted(module("nn.pad", (N, 3), shape(1, 0, 0, 0), pad_mode=mode))) == 1


def test_what_is_guarded_by_its_size_needs_nothing():
    assert not asserted(module("nn.pad", (N, M), shape(1, 2, 0, 1)))


def test_loops_over_a_dimension_need_nothing():
    assert not asserted(module("nn.softmax", (N, M), axis=-1))
    assert not asserted(module("sum", (N, M), axis=(0,)))


def test_known_sizes_need_nothing():
    assert not asserted(module("nn.pad", (2, 3), shape(1, 0, 0, 0), pad_mode="edge"))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_an_empty_dimension_is_an_error_that_names_it_unless_the_result_is_empty(mode):
    model = rd.compile(module("nn.pad", (N, M), shape(1, 0, 0, 0), pad_mode=mode))
    with pytest.raises(rd.RoundelError, match=r"dimension 0 of x \(n\) is empty"):
        model(np.ones((0, 3), np.float32))
    assert model(np.ones((2, 0), np.float32)).shape == (3, 0)
    assert model(np.ones((2, 3), np.float32)).shape == (3, 3)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_resizing_nothing_to_something_is_an_error(method):
    model = rd.compile(module("image.resize", (1, 1, N, M), shape(1, 1, 4, 5), method=method))
    for empty in ((1, 1, 0, 2), (1, 1, 2, 0)):
        with pytest.raises(rd.RoundelError, match="is empty"):
            model(np.ones(empty, np.float32))
    np.testing.assert_allclose(model(np.ones((1, 1, 2, 2), np.float32)), np.ones((1, 1, 4, 5)), rtol=1e-5)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_a_size_that_is_known_to_be_zero_is_told_at_compile_time(mode):
    with pytest.raises(rd.RoundelError, match="is empty"):
        rd.compile(module("nn.pad", (0, 8), shape(1, 0, 0, 0), pad_mode=mode))


def test_where_only_data_tells_whether_an_element_is_written_nothing_is_needed():
    model = rd.compile(module("nonzero", (N, M)))
    for x in (np.zeros((4, 3), np.float32), np.zeros((0, 3), np.float32), np.eye(3, dtype=np.float32)):
        np.testing.assert_array_equal(model(x), np.array(np.nonzero(x)))
