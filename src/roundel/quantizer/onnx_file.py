# SPDX-License-Identifier: Apache-2.0
"""A quantised ONNX model as an ONNX file: the given file, in which some nodes read integers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import escape
from ..ir.errors import ModelError
from .layers import Layer
from .numbers import Integers, Range

if TYPE_CHECKING:
    import onnx

    from .quantize import Quantized

MICROSOFT = "com.microsoft"
AXES = 13       # the first operator set whose DequantizeLinear has scales along an axis
LARGEST = 1 << 31  # bytes of a protobuf message


def write(quantized: Quantized, path: Path) -> Path:
    """The file; see `Quantized.save`."""
    import onnx

    source = quantized.source
    proto = onnx.ModelProto()
    if isinstance(source, str | Path):
        proto = onnx.load(str(source))
    elif isinstance(source, bytes | bytearray):
        proto.ParseFromString(bytes(source))
    else:
        proto.CopyFrom(source)
    edit = _Edit(proto, quantized)
    for k, layer in enumerate(quantized.products):
        edit.layer(layer, quantized.weights[k], quantized.ranges[k] if quantized.ranges else None)
    edit.finish()
    onnx.save(proto, str(path), save_as_external_data=proto.ByteSize() >= LARGEST)
    return path


class _Edit:
    """The file while it is changed."""

    def __init__(self, proto: onnx.ModelProto, quantized: Quantized) -> None:
        from onnx import numpy_helper

        self.proto, self.graph, self.mode = proto, proto.graph, quantized.settings.mode
        self.opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.nodes = {n.name or f"{n.op_type} -> {', '.join(n.output)}": n for n in proto.graph.node}
        self.arrays: dict[str, Any] = {t.name: t for t in proto.graph.initializer}
        self.arrays |= {n.output[0]: a.t for n in proto.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
        self.read = numpy_helper.to_array
        self.before: dict[int, list[Any]] = {}  # nodes to put before one, by its id
        self.instead: dict[int, list[Any]] = {}
        self.known: dict[tuple[str, str], str] = {}
        self.taken = {n for node in proto.graph.node for n in (*node.input, *node.output)} | set(self.arrays)

    def layer(self, layer: Layer, weight: Integers, found: Range | None) -> None:
        """One product."""
        node = self.nodes.get(layer.name)
        held = None if node is None or len(node.input) < 2 else self.arrays.get(node.input[1])
        given = None if held is None else np.asarray(self.read(held))
        if node is None or given is None:
            raise self._error(layer, "its weight is no initializer")
        if given.shape == layer.weight.shape and np.array_equal(given, layer.weight):
            turned = False
        elif given.ndim == 2 and given.shape == layer.weight.shape[::-1] and np.array_equal(given.T, layer.weight):
            turned = True
        else:
            raise self._error(layer, "its weight is computed of the file's before it is used")
        if weight.group is not None:
            self._in_blocks(layer, node, weight)
        elif self.mode == "dynamic" and node.op_type == "MatMul":
            self._integer_product(node, weight)
        else:
            self._pairs(node, weight, found, turned)

    def finish(self) -> None:
        """Put nodes where they belong, and drop weights that nothing reads any more."""
        order = [x for n in self.graph.node for x in (*self.before.get(id(n), ()), *self.instead.get(id(n), (n,)))]
        kept = [type(n).FromString(n.SerializeToString()) for n in order]
        del self.graph.node[:]
        self.graph.node.extend(kept)
        used = {i for n in _all_nodes(self.graph) for i in n.input} | {o.name for o in self.graph.output}
        left = [t for t in self.graph.initializer if t.name in used]
        fields = [type(t).FromString(t.SerializeToString()) for t in left]
        del self.graph.initializer[:]
        self.graph.initializer.extend(fields)
        inputs = [i for i in self.graph.input if i.name in used or i.name not in self.arrays]
        kept_inputs = [type(i).FromString(i.SerializeToString()) for i in inputs]
        del self.graph.input[:]
        self.graph.input.extend(kept_inputs)

    def _pairs(self, node: Any, weight: Integers, found: Range | None, turned: bool) -> None:
        """Data and weight are integers that become numbers again right before the product."""
        data = node.input[0]
        if self.mode != "weights":
            key = (data, "" if found is None else repr(found))
            if key not in self.known:
                self.known[key] = self._data(node, data, found)
            node.input[0] = self.known[key]
        levels, axis = (weight.levels.T, 1 - weight.axis) if turned else (weight.levels, weight.axis)
        if weight.scale.ndim and self.opset < AXES:
            raise ModelError(f"operator set {self.opset} has no scale for each channel",
                             hint=f"convert the model to {AXES} or later, or say per_channel=False")
        name = node.input[1]
        held = [self._held(f"{name}_quantized", levels), self._held(f"{name}_scale", weight.scale),
                self._held(f"{name}_zero_point", np.zeros(weight.scale.shape, np.int8))]
        node.input[1] = self._made(node, "DequantizeLinear", held, f"{name}_dequantized", **({"axis": axis} if weight.scale.ndim else {}))

    def _data(self, node: Any, data: str, found: Range | None) -> str:
        if found is None:
            made = [self._fresh(f"{data}_{what}") for what in ("quantized", "scale", "zero_point")]
            self._add(node, "DynamicQuantizeLinear", [data], made)
        else:
            held = [self._held(f"{data}_scale", found.scale), self._held(f"{data}_zero_point", found.zero_point)]
            made = [self._made(node, "QuantizeLinear", [data, *held], f"{data}_quantized"), *held]
        return self._made(node, "DequantizeLinear", made, f"{data}_dequantized")

    def _integer_product(self, node: Any, weight: Integers) -> None:
        """As ONNX Runtime's dynamic quantisation writes it: a sum of integers, scaled afterwards."""
        data, name, out = node.input[0], node.input[1], node.output[0]
        key = (data, "integers")
        if key not in self.known:
            made = [self._fresh(f"{data}_{what}") for what in ("quantized", "scale", "zero_point")]
            self._add(node, "DynamicQuantizeLinear", [data], made)
            self.known[key] = "\n".join(made)
        q, scale, zero = self.known[key].split("\n")
        held = self._held(f"{name}_quantized", weight.levels)
        total = self._made(node, "MatMulInteger", [q, held, zero], f"{out}_integers")
        real = self._made(node, "Cast", [total], f"{out}_sums", to=1)
        by = self._made(node, "Mul", [scale, self._held(f"{name}_scale", weight.scale)], f"{out}_scale")
        self._add(node, "Mul", [real, by], [out])
        self.instead[id(node)] = []

    def _in_blocks(self, layer: Layer, node: Any, weight: Integers) -> None:
        """Weights in groups, as ONNX Runtime's MatMulNBits reads them."""
        plain = {"transA": 0, "alpha": 1.0, "beta": 1.0}
        is_plain = all(a.name not in plain or (a.f if a.type == 1 else a.i) == plain[a.name] for a in node.attribute)
        if node.op_type not in ("MatMul", "Gemm") or not is_plain or weight.axis != 0 or weight.zero is None or weight.group is None:
            raise self._error(layer, "only a product of data as it is with a matrix has a form with groups of weights")
        depth, columns = weight.levels.shape
        groups, bits = weight.scale.shape[0], weight.bits
        levels = np.zeros((columns, groups * weight.group), np.uint8)
        levels[:, :depth] = weight.levels.T
        name = node.input[1]
        held = [self._held(f"{name}_blocks", _in_bytes(levels, bits).reshape(columns, groups, -1)), self._held(f"{name}_scales", weight.scale.T.reshape(-1)),
                self._held(f"{name}_zero_points", _in_bytes(weight.zero.T, bits).reshape(-1))]
        attributes = {"domain": MICROSOFT, "K": depth, "N": columns, "bits": bits, "block_size": weight.group}
        if len(node.input) < 3 or not node.input[2]:
            self._add(node, "MatMulNBits", [node.input[0], *held], [node.output[0]], **attributes)
        else:
            self._add(node, "Add", [self._made(node, "MatMulNBits", [node.input[0], *held], f"{node.output[0]}_product", **attributes), node.input[2]],
                      [node.output[0]])
        self.instead[id(node)] = []
        if all(o.domain != MICROSOFT for o in self.proto.opset_import):
            self.proto.opset_import.add(domain=MICROSOFT, version=1)

    def _add(self, node: Any, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        from onnx import helper

        name = self._fresh(f"{node.name or node.output[0]}_{kind}")
        self.before.setdefault(id(node), []).append(helper.make_node(kind, inputs, outputs, name=name, **attributes))

    def _made(self, node: Any, kind: str, inputs: list[str], out: str, **attributes: Any) -> str:
        made = self._fresh(out)
        self._add(node, kind, inputs, [made], **attributes)
        return made

    def _held(self, name: str, array: Any) -> str:
        from onnx import numpy_helper

        fresh = self._fresh(name)
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array), fresh))
        return fresh

    def _fresh(self, name: str) -> str:
        out, k = name, 0
        while out in self.taken:
            out, k = f"{name}_{k}", k + 1
        self.taken.add(out)
        return out

    def _error(self, layer: Layer, why: str) -> ModelError:
        return ModelError(f"node {escape.value(layer.name)} cannot be written as integers", why=why, hint="exclude it")


def _in_bytes(levels: np.ndarray, bits: int) -> np.ndarray:
    """Numbers along the last axis packed into bytes, the first in the lowest bits."""
    per = 8 // bits
    filled = np.pad(levels, ((0, 0), (0, -levels.shape[1] % per))).reshape(levels.shape[0], -1, per)
    return np.bitwise_or.reduce(filled << (np.arange(per, dtype=np.uint8) * np.uint8(bits)), axis=-1).astype(np.uint8)


def _all_nodes(graph: Any) -> list[Any]:
    """Nodes of a graph and of the graphs inside of them."""
    out = []
    for n in graph.node:
        out.append(n)
        for a in n.attribute:
            for inner in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                out += _all_nodes(inner)
    return out
