# SPDX-License-Identifier: Apache-2.0
"""Single layers as models of their own: matrix products, convolutions (read off the models), softmax, layer norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .models import Case, onnx_file

Step = tuple[str, tuple[str, ...], Mapping[str, Any]]


@dataclass(frozen=True)
class Layer:
    """``node`` is an ONNX operator with attributes; ``shape`` that of its input ``x``, ``constants`` those of its weights.
    ``flops`` and ``bytes`` are what it must compute and move. ``steps``: several operators in place of the one, each with its inputs (``x``, the weights
    ``w0``, ``w1``, ... or the results ``t0``, ``t1``, ... of those before) and its attributes. ``is_symbolic``: compiled for any first dimension."""

    family: str
    name: str
    node: str
    shape: tuple[int, ...]
    out: tuple[int, ...]
    constants: tuple[tuple[int, ...], ...]
    attributes: tuple[tuple[str, Any], ...]
    flops: float
    steps: tuple[Step, ...] = ()
    is_symbolic: bool = False

    @property
    def bytes(self) -> float:
        return 4.0 * (np.prod(self.shape) + np.prod(self.out) + sum(np.prod(c) for c in self.constants))

    def arrays(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """The input and the weights, scaled so that results stay near 1."""
        random = np.random.default_rng(0)
        weights = []
        for k, c in enumerate(self.constants):
            fan_in = 1 if k or len(c) < 2 else c[0] if self.node == "MatMul" else int(np.prod(c[1:]))
            weights.append((random.standard_normal(c) / np.sqrt(fan_in)).astype(np.float32))
        return random.standard_normal(self.shape).astype(np.float32), weights

    def save(self, path: Path) -> None:
        """Write it as an ONNX model with input ``x`` and output ``y``."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        weights = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(self.arrays()[1])]
        steps = self.steps or ((self.node, ("x", *(w.name for w in weights)), dict(self.attributes)),)
        nodes = [_onnx_node(k, op, inputs, attributes) for k, (op, inputs, attributes) in enumerate(steps)]
        nodes[-1].output[0] = "y"
        shapes = [("n", *shape[1:]) if self.is_symbolic else shape for shape in (self.shape, self.out)]
        given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip("xy", shapes, strict=True))
        graph = helper.make_graph(nodes, "layer", [given], [made], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), str(path))

    def torch_module(self) -> Any:
        """The same for PyTorch."""
        import torch

        weights = [torch.from_numpy(w) for w in self.arrays()[1]]
        return _torch_class()(TORCH[self.node](self, weights), weights)


def _onnx_node(number: int, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> Any:
    """A node with the results ``t{number}``, ``t{number}_1`` and ``t{number}_2`` where its operator has several; arrays become tensors."""
    from onnx import helper, numpy_helper

    count = 3 if op == "DynamicQuantizeLinear" else 1
    values = {n: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for n, v in attributes.items()}
    return helper.make_node(op, list(inputs), [f"t{number}" + (f"_{k}" if k else "") for k in range(count)], **values)


def _torch_class() -> type:
    import torch

    class Single(torch.nn.Module):
        def __init__(self, function: Callable[[Any, list[Any]], Any], weights: Sequence[Any]) -> None:
            super().__init__()
            self.function = function
            self.weights = torch.nn.ParameterList([torch.nn.Parameter(w, requires_grad=False) for w in weights])

        def forward(self, x: Any) -> Any:
            return self.function(x, list(self.weights))

    return Single


def _torch_conv(layer: Layer, weights: Any) -> Callable[[Any, Any], Any]:
    import torch

    a = dict(layer.attributes)
    stride, padding, groups = a.get("strides", (1, 1)), a["pads"][:2], a.get("group", 1)
    return lambda x, w: torch.nn.functional.conv2d(x, w[0], w[1], stride, padding, a.get("dilations", (1, 1)), groups)


def _torch_norm(layer: Layer, weights: Any) -> Callable[[Any, Any], Any]:
    import torch

    return lambda x, w: torch.nn.functional.layer_norm(x, layer.shape[-1:], w[0], w[1])


TORCH: dict[str, Callable[[Layer, Any], Callable[[Any, Any], Any]]] = {
    "MatMul": lambda layer, _: lambda x, w: x @ w[0],
    "Conv": _torch_conv,
    "Softmax": lambda layer, _: lambda x, w: x.softmax(-1),
    "LayerNormalization": _torch_norm,
}


def matmul(m: int, n: int, k: int, family: str = "gemm") -> Layer:
    """(m, k) times a constant (k, n)."""
    return Layer(family, f"{m}x{n}x{k}", "MatMul", (m, k), (m, n), ((k, n),), (), 2.0 * m * n * k)


def convolution(cin: int, cout: int, height: int, width: int, kernel: tuple[int, int], stride: int = 1, groups: int = 1, dilation: int = 1,
                pads: Sequence[int] | None = None, family: str = "conv") -> Layer:
    """A 2-D convolution with bias; ``pads`` in ONNX's order (default: as many as keep the size at stride 1)."""
    span = [dilation * (k - 1) + 1 for k in kernel]
    pads = tuple([s // 2 for s in span] * 2 if pads is None else pads)
    out = tuple((n + pads[i] + pads[i + 2] - span[i]) // stride + 1 for i, n in enumerate((height, width)))
    depth = cin // groups * kernel[0] * kernel[1]
    kind = "dw " if groups == cin and groups > 1 else f"g{groups} " if groups > 1 else ""
    name = f"{kind}{cin}->{cout} {height}x{width} k{kernel[0]}" + (f"x{kernel[1]}" if kernel[0] != kernel[1] else "") + f" s{stride}"
    attributes = (("kernel_shape", tuple(kernel)), ("pads", pads), ("strides", (stride, stride)), ("group", groups), ("dilations", (dilation, dilation)))
    return Layer(family, name + (f" d{dilation}" if dilation > 1 else ""), "Conv", (1, cin, height, width), (1, cout, *out),
                 ((cout, cin // groups, *kernel), (cout,)), attributes, 2.0 * cout * out[0] * out[1] * depth)


def softmax(*shape: int) -> Layer:
    """Over the last axis."""
    return Layer("softmax", "x".join(map(str, shape)), "Softmax", shape, shape, (), (("axis", -1),), 5.0 * np.prod(shape))


def layer_norm(*shape: int) -> Layer:
    """Over the last axis, with scale and shift."""
    constants = ((shape[-1],), (shape[-1],))
    return Layer("layer norm", "x".join(map(str, shape)), "LayerNormalization", shape, shape, constants, (("axis", -1),), 8.0 * np.prod(shape))


def convolutions_of(model: str) -> list[Layer]:
    """Every different convolution of a model."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load(str(onnx_file(Case(model))))).graph
    shapes = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in [*graph.input, *graph.value_info, *graph.output]}
    shapes |= {w.name: tuple(w.dims) for w in graph.initializer}
    found: dict[Layer, None] = {}
    for node in graph.node:
        if node.op_type == "Conv":
            a = {k.name: onnx.helper.get_attribute_value(k) for k in node.attribute}
            _, cin, height, width = shapes[node.input[0]]
            weight = shapes[node.input[1]]
            found[convolution(cin, weight[0], height, width, weight[2:], a.get("strides", [1])[0], a.get("group", 1), a.get("dilations", [1])[0],
                              a.get("pads", [0] * 4), family=model)] = None
    return list(found)


def all_layers() -> list[Layer]:
    """What ``python -m benchmarks kernels`` measures; convolutions that several models share are measured once."""
    gemms = [matmul(n, n, n) for n in (256, 384, 512, 768, 1024, 1536, 2048)]
    bert = [matmul(128, 768, 768), matmul(128, 3072, 768), matmul(128, 768, 3072), matmul(197, 2304, 768)]
    vectors = [matmul(1, n, k, "gemv") for n, k in ((768, 768), (3072, 768), (768, 3072), (32000, 768), (8192, 8192))]
    convolutions: dict[tuple[str, Any], Layer] = {}
    for model in ("resnet18", "resnet50", "mobilenetv2"):
        for layer in convolutions_of(model):
            convolutions.setdefault((layer.name, layer.attributes), layer)
    rows = [f(*shape) for f in (softmax, layer_norm) for shape in ((128, 768), (12, 128, 128), (197, 768), (128, 32000), (16384, 1024))]
    return [*gemms, *bert, *vectors, *convolutions.values(), *rows]
