# SPDX-License-Identifier: Apache-2.0
"""Work is linear in the length of a model: counted in calls of functions, which no busy machine changes."""

import cProfile
import pstats

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.driver import prepare
from roundel.frontend.onnx import from_onnx


def chain(length, operator):
    """Operators one after another; ``operator(k)`` gives the k-th and which of its operands are the input of the one before."""
    nodes = [helper.make_node(operator(k), [f"t{k}" if k else "x"], [f"t{k + 1}" if k < length - 1 else "y"]) for k in range(length)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4, 8)) for n in "xy"]
    return helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def calls(work):
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls


@pytest.mark.parametrize("operator", [lambda k: "Relu", lambda k: "Sin", lambda k: "Softmax" if k % 4 == 3 else "Tanh"], ids=["relu", "sin", "mixed"])
def test_twice_as_long_is_twice_the_work(operator):
    prepare(from_onnx(chain(20, operator)))  # imports and tables
    short, long = (calls(lambda n=n: prepare(from_onnx(chain(n, operator)))) for n in (256, 512))
    assert long < 2.3 * short
    assert long / 512 < 5200


def test_values_that_are_used_twice_by_each_are_not_written_out():
    """x + x, 40 times: one expression for all of it would have 2 ** 40 operands."""
    nodes = [helper.make_node("Add", [f"t{k}" if k else "x"] * 2, [f"t{k + 1}" if k < 39 else "y"]) for k in range(40)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4,)) for n in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(rd.compile(model)(x), x * np.float32(2.0**40))


def test_kernels_that_do_not_fuse():
    """Each declares its result in the scope of the one before, thousands deep, in a thread that has room for it."""
    names = ["x", *(f"t{k}" for k in range(1, 6000)), "y"]
    nodes = [helper.make_node("Softmax" if k % 2 else "MatMul", [names[k], "w"][: 2 - k % 2], [names[k + 1]]) for k in range(6000)]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (4, 8)) for n in "xy"]
    g = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")])
    model = rd.compile(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    np.testing.assert_allclose(model(np.ones((4, 8), np.float32)), np.full((4, 8), 1 / 8), rtol=1e-4)
