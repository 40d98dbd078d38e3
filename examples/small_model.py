# SPDX-License-Identifier: Apache-2.0
"""Write ``model.onnx``, the small image classifier with random weights that the pages in docs/ compile: ``python examples/small_model.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write(path: Path) -> Path:
    """Convolution, pooling, a linear layer: ``x`` [batch, 3, 32, 32] to ``y`` [batch, 10]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((16, 3, 3, 3)), "v": rng.standard_normal((16, 10)), "b": rng.standard_normal(10)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "v", "b"], ["y"], name="classify"),
    ]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array((0.2 * v).astype(np.float32), k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


if __name__ == "__main__":
    print(write(Path("model.onnx")))
