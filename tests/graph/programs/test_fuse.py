# SPDX-License-Identifier: Apache-2.0
"""Fusion: which calls go together, and that results stay."""

import numpy as np

from roundel.graph.programs.fuse import fuse
from roundel.graph.programs.legalize import decompose, legalize
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.host.lower_host import lower_host
from roundel.ir import Var, graph
from roundel.ir.constants import ConstData
from roundel.ir.dtype import INT64
from roundel.ops import make

from ..functions import calls, function, same_results

N = Var("n", INT64, True)


def _lower(mod):
    return fuse(legalize(decompose(mod)))


def test_a_chain_with_a_diamond_is_one_program():
    def body(bb, x):
        a = bb.emit(make("nn.relu", x))
        b = bb.emit(make("exp", a))
        return make("add", bb.emit(make("multiply", a, b)), a)

    mod = function([graph.TensorInfo((N, 5), "float32")], body)
    fused = _lower(mod)
    assert len(calls(fused)) == 1
    x = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    same_results(mod, fused, x)
    same_results(mod, eliminate_dead_code(lower_host(fused)), x)


def test_a_value_used_outside_stays():
    def body(bb, x):
        a = bb.emit(make("nn.relu", x))
        return graph.Tuple((a, bb.emit(make("exp", a))))

    mod = function([graph.TensorInfo((7,), "float32")], body)
    fused = _lower(mod)
    assert len(calls(fused)) == 2
    same_results(mod, lower_host(fused), np.linspace(-1, 1, 7, dtype="float32"))


def test_prologue_and_epilogue_join_a_reduction():
    def body(bb, x):
        total = bb.emit(make("sum", bb.emit(make("multiply", x, x)), axis=(-1,), keepdims=True))
        return make("sqrt", total)

    mod = function([graph.TensorInfo((4, 11), "float32")], body)
    fused = _lower(mod)
    assert len(calls(fused)) == 1
    same_results(mod, lower_host(fused), np.random.default_rng(1).standard_normal((4, 11)).astype("float32"))


def test_a_small_operand_is_not_computed_again_for_every_element():
    def body(bb, x, y):
        return make("add", x, bb.emit(make("exp", y)))

    mod = function([graph.TensorInfo((100, 8), "float32"), graph.TensorInfo((8,), "float32")], body)
    assert len(calls(_lower(mod))) == 2


def test_every_parameter_has_a_name_of_its_own():
    def body(bb, x):
        once, twice = (graph.Constant(ConstData(np.full((8,), n, "float32")), graph.TensorInfo((8,), "float32")) for n in (1, 2))
        return make("add", bb.emit(make("multiply", x, once)), twice)

    fused = _lower(function([graph.TensorInfo((100, 8), "float32")], body))
    (call,) = calls(fused)
    names = [b.name for b in fused[call].buffer_params]
    assert len(names) == 4 and len(set(names)) == 4


def test_one_program_used_twice_in_a_group_is_copied():
    def body(bb, x, y):
        return make("add", bb.emit(make("add", x, y)), y)

    mod = function([graph.TensorInfo((6,), "float32")] * 2, body)
    fused = _lower(mod)
    assert len(calls(fused)) == 1
    same_results(mod, lower_host(fused), np.arange(6, dtype="float32"), np.ones(6, "float32"))


def test_empty_outputs_call_no_kernel():
    mod = function([graph.TensorInfo((N, 3), "float32")], lambda bb, x: make("nn.relu", x))
    same_results(mod, lower_host(_lower(mod)), np.zeros((0, 3), "float32"))


def test_a_view_in_the_end_stays_by_itself():
    """It costs nothing alone, and rules find the axes of what they know."""
    def body(bb, x):
        y = bb.emit(make("nn.relu", bb.emit(make("nn.conv2d", x, graph.Constant.of(np.ones((4, 3, 3, 3), "float32")), padding=1))))
        z = bb.emit(make("reshape", y, graph.ShapeExpr((1, 1, 4, 6, 5))))
        return make("mean", z, axis=(1, 3), keepdims=True)

    mod = function([graph.TensorInfo((1, 3, 6, 5), "float32")], body)
    fused = _lower(mod)
    assert calls(fused)[0] == "fused_conv2d_relu"
    same_results(mod, lower_host(fused), np.random.default_rng(1).standard_normal((1, 3, 6, 5)).astype("float32"))
