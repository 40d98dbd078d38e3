# SPDX-License-Identifier: Apache-2.0
"""The quantiser against ONNX Runtime's and against NumPy: the same scales, integers and results; what is saved is what is compiled."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.ir.errors import CallError, ModelError, OptionError
from roundel.quantizer.layers import Layer
from roundel.quantizer.numbers import Histogram, Range, in_groups
from roundel.quantizer.settings import Settings

RNG = np.random.default_rng(3)


def _weights(*shape):
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


@pytest.fixture(scope="module")
def network():
    held = {"w1": _weights(9, 3, 3, 3), "b1": _weights(9, 1)[:, 0], "w2": _weights(7, 9, 3, 3), "w3": _weights(63, 33), "w4": _weights(5, 33),
            "b4": _weights(5, 1)[:, 0]}
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="first", pads=[1] * 4), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w2"], ["c"], name="second", strides=[3, 3]), helper.make_node("Flatten", ["c"], ["d"]),
             helper.make_node("MatMul", ["d", "w3"], ["e"], name="/head/product"), helper.make_node("Relu", ["e"], ["f"]),
             helper.make_node("Gemm", ["f", "w4", "b4"], ["y"], name="/head/last", transB=1)]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", *s]) for n, s in (("x", (3, 9, 9)), ("y", (5,)))]
    graph = helper.make_graph(nodes, "network", infos[:1], infos[1:], [numpy_helper.from_array(v, k) for k, v in held.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


DATA = [{"x": RNG.standard_normal((2, 3, 9, 9)).astype(np.float32)} for _ in range(3)]
X = DATA[1]["x"]  # inside the ranges


@pytest.mark.parametrize(("given", "kinds", "error"), [
    ({"data": DATA}, {"QuantizeLinear": 4, "DequantizeLinear": 8}, 0.05),
    ({}, {"DynamicQuantizeLinear": 4, "MatMulInteger": 1, "DequantizeLinear": 6}, 0.05),
    ({"mode": "weights", "bits": 4, "group": 16, "symmetric": False}, {"MatMulNBits": 2, "DequantizeLinear": 0}, 0.2)])
def test_what_is_saved_is_what_is_compiled(network, tmp_path, given, kinds, error):
    import onnxruntime

    found = rd.quantize(network, **given)
    path = found.save(tmp_path / "small.onnx")
    nodes = [n.op_type for n in onnx.load(path).graph.node]
    assert {k: nodes.count(k) for k in kinds} == kinds
    run = lambda file: onnxruntime.InferenceSession(file).run(None, {"x": X})[0]
    exact, made = run(network.SerializeToString()), rd.compile(found)(X)
    span = np.abs(exact).max()
    np.testing.assert_allclose(rd.compile(path)(X), made, atol=1e-5 * span)
    assert 0 < np.abs(made - exact).max() < error * span
    np.testing.assert_allclose(made, run(path), atol=error * span)  # where a sum lies between two integers, one step apart
    assert all(x.weight_db > 15 and (x.result_db or 99) > 15 for x in found.layers) and "weight dB" in str(found)


def test_scales_are_those_of_onnx_runtime(network, tmp_path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        left = iter(DATA)

        def get_next(self):
            return next(self.left, None)

    onnx.save(network, tmp_path / "network.onnx")
    quantize_static(tmp_path / "network.onnx", tmp_path / "theirs.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    rd.quantize(network, DATA).save(tmp_path / "ours.onnx")
    theirs, ours = ({t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / f"{n}.onnx").graph.initializer} for n in ("theirs", "ours"))
    common = [n for n in ("x", "b", "d", "f") if f"{n}_scale" in theirs]  # it moves scales past operators that only move
    assert len(common) > 1
    for name in common:
        np.testing.assert_allclose(ours[f"{name}_scale"], theirs[f"{name}_scale"], rtol=1e-5)
        assert ours[f"{name}_zero_point"] == theirs[f"{name}_zero_point"]
    for name in ("w1", "w2", "w3"):
        np.testing.assert_allclose(ours[f"{name}_scale"], theirs[f"{name}_scale"], rtol=1e-6)
        assert np.abs(ours[f"{name}_quantized"].astype(int) - theirs[f"{name}_quantized"].astype(int)).max() <= 1


def test_a_torch_module_and_what_is_left_out():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(392, 6)).eval()
    found = rd.quantize(module, [d["x"] for d in DATA], (torch.zeros(2, 3, 9, 9),), exclude="conv")
    assert len(found.layers) == 1 and found.layers[0].op in ("matmul", "linear")
    for data in ([d["x"] for d in DATA], (torch.from_numpy(d["x"]) for d in DATA), [(d["x"],) for d in DATA]):  # the first is the example
        again = rd.quantize(module, data, exclude="conv", dynamic=({0: torch.export.Dim("batch")},))
        assert str(again) == str(found)
    with pytest.raises(ModelError, match="needs example inputs"):
        rd.quantize(module)
    with torch.no_grad():
        want = module(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(rd.compile(found)(X), want, atol=0.03 * np.abs(want).max())
    with pytest.raises(ModelError, match="only a quantised ONNX model"):
        found.save("small.onnx")


def test_a_percentile_leaves_out_what_is_rare():
    values = np.concatenate([RNG.standard_normal(100_000), [1000.0, -500.0]]).astype(np.float32)
    histogram = Histogram(Range(-500.0, 1000.0))
    histogram.add(values)
    found = histogram.range(99.9)
    step = 1500 / 4096
    assert abs(found.low - np.percentile(values, 0.05)) <= 2 * step and abs(found.high - np.percentile(values, 99.95)) <= 2 * step
    assert Range(0.0, 0.0).scale == 1 and Range(-1.0, 3.0).zero_point == 64


@pytest.mark.parametrize(("bits", "symmetric", "axis"), [(4, True, 0), (4, False, 1), (8, False, 0)])
def test_groups_lose_half_a_step_at_most(bits, symmetric, axis):
    weight = RNG.standard_normal((37, 70)).astype(np.float32)
    found = in_groups(weight, axis, bits, 16, symmetric)
    step = np.take(np.repeat(np.abs(found.scale), 16, axis), range(weight.shape[axis]), axis)
    error = np.abs(found.numbers() - weight) / step
    assert found.levels.max() < 1 << bits and (error <= (1.001 if symmetric else 1.01)).all() and np.median(error) < 0.3
    assert Layer(0, "n", "matmul", weight).integers(Settings("weights", 4)).group == 32


@pytest.mark.parametrize(("given", "error"), [
    ({"mode": "none"}, OptionError), ({"bits": 3}, OptionError), ({"bits": 4}, OptionError), ({"mode": "weights", "group": 5}, OptionError),
    ({"percentile": 3}, OptionError), ({"mode": "static"}, OptionError), ({"exclude": ["*"]}, OptionError), ({"data": []}, CallError),
    ({"data": [{"z": X}]}, CallError), ({"data": [[X, X]]}, CallError), ({"percentile": "99"}, OptionError), ({"exclude": [3]}, OptionError),
    ({"exclude": ["frist"]}, OptionError), ({"data": [X, np.where(X == X[0, 0, 0, 0], np.nan, X)]}, CallError),
    ({"data": [X * np.float32(np.inf)], "ranges": "percentile"}, CallError)])
def test_mistakes(network, given, error):
    with pytest.raises(error):
        rd.quantize(network, **given)


@pytest.mark.parametrize("mode", ["static", "dynamic", "weights"])
def test_weights_that_are_no_numbers(network, mode):
    broken = onnx.ModelProto()
    broken.CopyFrom(network)
    (held,) = (t for t in broken.graph.initializer if t.name == "w3")
    held.CopyFrom(numpy_helper.from_array(np.where(np.arange(33) == 4, np.float32(np.inf), numpy_helper.to_array(held)), "w3"))
    with pytest.raises(ModelError, match="/head/product: a weight with infinities or NaN"):
        rd.quantize(broken, DATA if mode == "static" else None, mode=mode)
