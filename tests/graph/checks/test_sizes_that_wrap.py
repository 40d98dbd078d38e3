# SPDX-License-Identifier: Apache-2.0
"""Memory of a size that only the run can tell: products of sizes that wrap around are an error, never memory that is too small."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.ir.errors import RunError


def filled(dims):
    """The largest running sum over a tensor of a shape that is an input."""
    nodes = [helper.make_node("ConstantOfShape", ["k"], ["c"]), helper.make_node("Sin", ["c"], ["d"]), helper.make_node("CumSum", ["d", "zero"], ["e"]),
             helper.make_node("ReduceMax", ["e"], ["y"], keepdims=0)]
    given, result = helper.make_tensor_value_info("k", TensorProto.INT64, (dims,)), helper.make_tensor_value_info("y", TensorProto.FLOAT, ())
    g = helper.make_graph(nodes, "g", [given], [result], [numpy_helper.from_array(np.int64(0), "zero")])
    return rd.compile(helper.make_model(g, opset_imports=[helper.make_opsetid("", 18)], ir_version=9))


@pytest.mark.parametrize("shape", [(2**62, 1), (2**32, 2**32), (2**62,), (2**61 + 1,), (2**31, 2**31, 4), (2**63 - 1,)])
def test_bytes_that_wrap(shape):
    model = filled(len(shape))
    assert model(np.full(len(shape), 3)) == 0
    with pytest.raises(RunError, match="memory|too large|more than [0-9]+ elements"):
        model(np.asarray(shape))
