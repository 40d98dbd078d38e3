# SPDX-License-Identifier: Apache-2.0
"""Large weights stay in the file; what is no ONNX message is left to the parser's errors."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.frontend.onnx import from_onnx, load
from roundel.frontend.onnx.mapped import without_weights


def model(weight, bias):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])]
    sides = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, k]) for n, k in (("x", 600), ("y", 512))]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:], [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_large_weights_are_mapped(tmp_path):
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((600, 512), np.float32), rng.standard_normal(512, np.float32)
    made = model(weight, bias)
    for tensor in made.graph.initializer:
        tensor.data_location = onnx.TensorProto.DEFAULT  # said in so many words, as ONNX Runtime's tools do
    path = tmp_path / "odd name ü.onnx"
    onnx.save(made, path)
    data = path.read_bytes()
    small = onnx.ModelProto.FromString(without_weights(memoryview(data), path.name))
    w, b = small.graph.initializer
    facts = {e.key: e.value for e in w.external_data}
    at, count = int(facts["offset"]), int(facts["length"])
    assert data[at : at + count] == weight.tobytes() and not w.HasField("raw_data") and b.HasField("raw_data")
    assert small.graph.node == made.graph.node and list(w.dims) == [600, 512]
    x = rng.standard_normal((3, 600), np.float32)
    np.testing.assert_allclose(rd.compile(path)(x), x @ weight + bias, rtol=1e-4, atol=1e-4)


def test_importing_reads_no_large_weights(tmp_path, monkeypatch):
    weight, bias = np.ones((600, 512), np.float32), np.ones(512, np.float32)
    onnx.save(model(weight, bias), tmp_path / "m.onnx")
    read = []
    monkeypatch.setattr(load, "_read_part", lambda path, offset, length, where: read.append(length))
    from_onnx(tmp_path / "m.onnx")
    assert read == []


def test_other_content_is_left_alone():
    assert without_weights(memoryview(b"\xff" * 40), "f") is None
    assert without_weights(memoryview(model(np.ones((600, 512), "f"), np.ones(512, "f")).SerializeToString()[:-9]), "f") is None
    assert without_weights(memoryview(b""), "f") == b""
