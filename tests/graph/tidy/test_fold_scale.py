# SPDX-License-Identifier: Apache-2.0
"""Scales and batch normalisation go into constant weights, where they run along output channels alone."""

import numpy as np
import pytest

from roundel.driver import OPTIMIZE
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.fold_scale import fold_scale, scale_sums
from roundel.ir import graph, tir
from roundel.ops import make
from roundel.passes import run

from ..functions import calls, function, same_results

RNG = np.random.default_rng(7)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _const(*shape):
    return graph.Constant.of(_x(*shape))


def _folded(mod):
    return eliminate_dead_code(fold_scale(mod))


@pytest.mark.parametrize(("scale", "folds"), [((1, 5, 1, 1), True), ((5, 1, 1), True), ((1,), True), ((), True), ((6, 6), False), ((1, 1, 6, 1), False)])
def test_convolution(scale, folds):
    def body(bb, x):
        return make("multiply", bb.emit(make("nn.conv2d", x, _const(5, 3, 3, 3), padding=1)), _const(*scale))

    mod = function([graph.TensorInfo((2, 3, 6, 6), "float32")], body)
    out = _folded(mod)
    assert (calls(out) == ["nn.conv2d"]) is folds
    same_results(mod, out, _x(2, 3, 6, 6), rtol=1e-4, atol=1e-4)


def test_through_a_bias_and_groups():
    def body(bb, x):
        conv = bb.emit(make("nn.conv2d", x, _const(4, 1, 3, 3), groups=4))
        return make("multiply", _const(1, 4, 1, 1), bb.emit(make("add", conv, _const(4, 1, 1))))

    mod = function([graph.TensorInfo((1, 4, 5, 5), "float32")], body)
    out = _folded(mod)
    assert calls(out) == ["nn.conv2d", "add"]
    same_results(mod, out, _x(1, 4, 5, 5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("scale", "folds"), [((7,), True), ((1, 7), True), ((3, 1), False), ((1,), True)])
def test_matrix_product(scale, folds):
    mod = function([graph.TensorInfo((3, 4), "float32")], lambda bb, x: make("multiply", bb.emit(make("matmul", x, _const(4, 7))), _const(*scale)))
    out = _folded(mod)
    assert (calls(out) == ["matmul"]) is folds
    same_results(mod, out, _x(3, 4), rtol=1e-4)


def test_a_scale_that_widens_the_result_stays():
    mod = function([graph.TensorInfo((3, 4), "float32")], lambda bb, x: make("multiply", bb.emit(make("matmul", x, _const(4, 1))), _const(5)))
    same_results(mod, _folded(mod), _x(3, 4), rtol=1e-4)
    assert calls(_folded(mod)) == ["matmul", "multiply"]


@pytest.mark.parametrize("biased", [False, True])
def test_a_product_used_twice_keeps_its_weights(biased):
    """As before PReLU and x * sigmoid(1.7 x): with other weights beside its own it would be computed twice."""

    def body(bb, x):
        y = bb.emit(make("matmul", x, _const(4, 4)))
        if biased:
            y = bb.emit(make("add", y, _const(4)))
        return make("add", bb.emit(make("multiply", y, _const(4))), y)

    mod = function([graph.TensorInfo((3, 4), "float32")], body)
    assert calls(_folded(mod)) == ["matmul", *["add"] * biased, "multiply", "add"]


def test_batch_normalisation_disappears():
    def body(bb, x):
        conv = bb.emit(make("nn.conv2d", x, _const(6, 3, 1, 1)))
        variance = graph.Constant.of(np.abs(_x(6)) + 0.5)
        norm = bb.emit(make("nn.batch_norm", conv, _const(6), _const(6), _const(6), variance, axis=1, epsilon=1e-3))
        return make("nn.relu", bb.emit(graph.TupleGetItem(norm, 0)))

    mod = function([graph.TensorInfo((1, 3, 4, 4), "float32")], body)
    out = run(mod, OPTIMIZE)
    assert calls(out) == ["nn.conv2d", "add", "nn.relu"]
    same_results(mod, out, _x(1, 3, 4, 4), rtol=1e-4, atol=1e-5)


def _dims(*sizes):
    return graph.ShapeExpr(tuple(tir.index_const(n) for n in sizes))


def _optimized(mod):
    return run(mod, OPTIMIZE)


def test_scales_of_both_operands_reach_constant_weights():
    """q and k, each a reshaped and transposed product, both scaled, as exporters write attention."""
    def body(bb, x):
        def heads(axes):
            y = bb.emit(make("matmul", x, _const(6, 8)))
            y = bb.emit(make("permute_dims", bb.emit(make("reshape", y, _dims(1, 5, 2, 4))), axes=axes))
            return bb.emit(make("multiply", y, graph.Constant.of(np.float32(0.5))))

        return make("matmul", heads((0, 2, 1, 3)), heads((0, 2, 3, 1)))

    mod = function([graph.TensorInfo((1, 5, 6), "float32")], body)
    out = _optimized(mod)
    assert "multiply" not in calls(out)
    same_results(mod, out, _x(1, 5, 6), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_one_row_reads_a_transposed_operand_as_it_lies(rows):
    def body(bb, q, k):
        turned = bb.emit(make("permute_dims", bb.emit(make("reshape", k, _dims(2, 7, 4))), axes=(0, 2, 1)))
        turned = bb.emit(make("multiply", bb.emit(make("reshape", turned, _dims(1, 2, 4, 7))), graph.Constant.of(np.float32(3))))
        return make("matmul", q, turned)

    mod = function([graph.TensorInfo((1, 2, rows, 4), "float32"), graph.TensorInfo((1, 2, 7, 4), "float32")], body)
    out = _optimized(mod)
    assert ("permute_dims" in calls(out)) is (rows > 1) and calls(out).count("multiply") == 1
    same_results(mod, out, _x(1, 2, rows, 4), _x(1, 2, 7, 4), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("scale", "folds"), [((), True), ((1, 1), True), ((4,), False)])
def test_a_number_that_the_operand_is_scaled_by(scale, folds):
    mod = function([graph.TensorInfo((3, 4), "float32")], lambda bb, x: make("matmul", bb.emit(make("multiply", x, _const(*scale))), _const(4, 5)))
    out = _folded(mod)
    assert (calls(out) == ["matmul"]) is folds
    same_results(mod, out, _x(3, 4), rtol=1e-4)


@pytest.mark.parametrize(("dtype", "scale", "folds"), [("int32", (), True), ("int32", (1, 1), True), ("int32", (5,), False), ("float32", (), False)])
def test_sums_of_integers_are_scaled_once(dtype, scale, folds):
    def body(bb, x):
        sums = bb.emit(make("multiply", bb.emit(make("astype", x, dtype="float32")), _const(5)))
        return make("multiply", bb.emit(make("add", sums, _const(5))), _const(*scale))

    mod = function([graph.TensorInfo((4, 5), dtype)], body)
    out = eliminate_dead_code(scale_sums(mod))
    assert (calls(out).count("multiply") == 1) is folds
    same_results(mod, out, RNG.integers(-9999, 9999, (4, 5)).astype(dtype), rtol=1e-5, atol=1e-3)
