# SPDX-License-Identifier: Apache-2.0
"""Four models of the kinds of MLPerf Tiny, with random weights: as ONNX files, quantised by ONNX Runtime per channel, and as lists of the same layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Layer:
    """``kind``: conv, depthwise, dense, mean, softmax or add. Sizes of pictures are height, width, channels; ``pads``: above and left."""

    kind: str
    before: tuple[int, int, int]
    after: tuple[int, int, int]
    window: tuple[int, int] = (1, 1)
    stride: int = 1
    pads: tuple[int, int] = (0, 0)

    @property
    def products(self) -> int:
        """Multiply-adds."""
        h, w, c = self.after
        each = {"conv": self.window[0] * self.window[1] * self.before[2], "depthwise": self.window[0] * self.window[1], "dense": int(np.prod(self.before))}
        return h * w * c * each.get(self.kind, 0)


class Net:
    """A model that grows by a layer at a time."""

    def __init__(self, shape: tuple[int, ...], seed: int) -> None:
        self.rng, self.shape, self.top = np.random.default_rng(seed), shape, "x"
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.layers: list[Layer] = []
        self.size = (shape[2], shape[3], shape[1]) if len(shape) == 4 else (1, 1, shape[-1])

    def _name(self) -> str:
        return f"t{len(self.nodes)}"

    def _weight(self, array: np.ndarray) -> str:
        self.weights[name := f"w{len(self.weights)}"] = array.astype(np.float32)
        return name

    def _node(self, kind: str, *inputs: str, **attributes: object) -> None:
        self.top = self._name()
        self.nodes.append(helper.make_node(kind, list(inputs), [self.top], **attributes))

    def conv(self, out: int, window: tuple[int, int] = (3, 3), stride: int = 1, depthwise: bool = False, relu: bool = True) -> None:
        """A convolution whose result is as large as its input by the stride."""
        h, w, c = self.size
        group, inner = (c, 1) if depthwise else (1, c)
        weight = self._weight(self.rng.standard_normal((out, inner, *window)) * np.sqrt(2 / (inner * window[0] * window[1])))
        bias = self._weight(self.rng.standard_normal(out) * 0.1)
        self._node("Conv", self.top, weight, bias, kernel_shape=list(window), strides=[stride] * 2, group=group, auto_pad="SAME_UPPER")
        after = (-(-h // stride), -(-w // stride), out)
        pads = [max((after[k] - 1) * stride + window[k] - (h, w)[k], 0) // 2 for k in (0, 1)]
        self.layers.append(Layer("depthwise" if depthwise else "conv", self.size, after, window, stride, (pads[0], pads[1])))
        self.size = after
        if relu:
            self._node("Relu", self.top)

    def dense(self, out: int, relu: bool = False) -> None:
        """All inputs with all outputs."""
        inner = self.size[2]
        weight = self._weight(self.rng.standard_normal((inner, out)) * np.sqrt(2 / inner))
        self._node("Gemm", self.top, weight, self._weight(self.rng.standard_normal(out) * 0.1))
        self.layers.append(Layer("dense", self.size, (1, 1, out)))
        self.size = (1, 1, out)
        if relu:
            self._node("Relu", self.top)

    def classes(self, count: int) -> None:
        """A mean over the picture, a layer, softmax."""
        self._node("GlobalAveragePool", self.top)
        self._node("Flatten", self.top)
        self.layers.append(Layer("mean", self.size, (1, 1, self.size[2])))
        self.size = (1, 1, self.size[2])
        self.dense(count)
        self._node("Softmax", self.top)
        self.layers.append(Layer("softmax", self.size, self.size))

    def residual(self, out: int, stride: int) -> None:
        """Two convolutions, and their input beside them."""
        beside, size = self.top, self.size
        self.conv(out, stride=stride)
        self.conv(out, relu=False)
        after = self.top
        if stride > 1:
            self.top, self.size = beside, size
            self.conv(out, (1, 1), stride, relu=False)
            beside = self.top
        self._node("Add", after, beside)
        self._node("Relu", self.top)
        self.layers.append(Layer("add", self.size, self.size))

    def model(self) -> onnx.ModelProto:
        """In ONNX."""
        tensor = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "tiny", [tensor("x", list(self.shape))], [tensor(self.top, [1, self.size[2]])],
                                  [numpy_helper.from_array(a, n) for n, a in self.weights.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def keywords() -> Net:
    """Keyword spotting: a depthwise-separable network over 49 x 10 numbers of a second of sound."""
    n = Net((1, 1, 49, 10), 1)
    n.conv(64, (10, 4), 2)
    for _ in range(4):
        n.conv(64, depthwise=True)
        n.conv(64, (1, 1))
    n.classes(12)
    return n


def person() -> Net:
    """Person detection: MobileNet of a quarter of its width, 96 x 96."""
    n = Net((1, 3, 96, 96), 2)
    n.conv(8, stride=2)
    for channels, stride in [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]:
        n.conv(n.size[2], stride=stride, depthwise=True)
        n.conv(channels, (1, 1))
    n.classes(2)
    return n


def pictures() -> Net:
    """Picture classification: ResNet-8, 32 x 32."""
    n = Net((1, 3, 32, 32), 3)
    n.conv(16)
    for channels, stride in [(16, 1), (32, 2), (64, 2)]:
        n.residual(channels, stride)
    n.classes(10)
    return n


def anomalies() -> Net:
    """Anomaly detection: an autoencoder of 640 numbers."""
    n = Net((1, 640), 4)
    for channels in [128] * 4 + [8] + [128] * 4:
        n.dense(channels, relu=True)
    n.dense(640)
    return n


MODELS: dict[str, Callable[[], Net]] = {"keywords": keywords, "person": person, "pictures": pictures, "anomalies": anomalies}


def quantised(net: Net, folder: Path) -> bytes:
    """The model with 8-bit weights and activations, quantised in a folder for its files."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Data(CalibrationDataReader):
        """Random numbers."""

        def __init__(self) -> None:
            self.left = [{"x": np.random.default_rng(k).standard_normal(net.shape).astype(np.float32)} for k in range(4)]

        def get_next(self) -> dict | None:
            """The next input."""
            return self.left.pop() if self.left else None

    plain, made = folder / "plain.onnx", folder / "quantised.onnx"
    onnx.save(net.model(), plain)
    quantize_static(str(plain), str(made), Data(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8)
    return made.read_bytes()
