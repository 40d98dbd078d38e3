# SPDX-License-Identifier: Apache-2.0
"""Warnings name the user's line, however deep in Roundel they are asked for."""

import warnings
from contextlib import contextmanager

import onnx
import pytest
from onnx import TensorProto, helper

import roundel as rd
from roundel.ir.warning import warn
from roundel.script import tir as T


def of_newer_opset():
    y = helper.make_node("Relu", ["x"], ["y"])
    x, r = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy")
    model = helper.make_model(helper.make_graph([y], "g", [x], [r]), opset_imports=[helper.make_opsetid("", 99)])
    return onnx.ModelProto.FromString(model.SerializeToString())


def of_another_shape():
    y = helper.make_node("Relu", ["x"], ["y"])
    x, r = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [k]) for n, k in (("x", 3), ("y", 4)))
    return helper.make_model(helper.make_graph([y], "g", [x], [r]), opset_imports=[helper.make_opsetid("", 20)])


@T.prim_func
def plain(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), C: T.Buffer((512, 512), "float32")):
    for i, j, k in T.grid(512, 512, 512):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@pytest.mark.parametrize("call", [lambda: rd.compile(of_newer_opset()), lambda: rd.compile(of_another_shape()), lambda: rd.build(plain)])
def test_the_line_is_the_users(call):
    with pytest.warns(UserWarning) as found:
        call()
    assert {w.filename for w in found} == {__file__}


def test_decorated_functions_in_between_are_passed_through():
    @contextmanager
    def inside():
        warn("here")
        yield

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with inside():
            pass
    assert found[0].filename == __file__
