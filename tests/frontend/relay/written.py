# SPDX-License-Identifier: Apache-2.0
"""Relay modules written as TVM writes them: text, JSON, and the file of parameters, by the descriptions of the formats.

JSON holds all attributes of an operator, with their defaults; text holds those that differ. Whether a number of an attribute is written
itself or as a node of its own is told by the values here: ``Node(3)`` is a node, ``3`` is written itself, lists are nodes of nodes.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from roundel.frontend.relay import expr as relay

_CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


@dataclass(frozen=True)
class Node:
    """A number or a text of an attribute that is a node of its own in JSON."""

    value: Any


def _conv(n: int) -> dict[str, Any]:
    space = {1: "W", 2: "HW", 3: "DHW"}[n]
    return dict(strides=[1] * n, padding=[0] * n, dilation=[1] * n, groups=1, channels=None, kernel_size=None, data_layout="NC" + space,
                kernel_layout="OI" + space, out_layout="", out_dtype="")


def _pool(**more: Any) -> dict[str, Any]:
    return dict(pool_size=None, strides=[1, 1], dilation=[1, 1], padding=[0, 0], layout="NCHW", out_layout="", ceil_mode=False, **more)


ATTRIBUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "nn.conv1d": ("Conv1D", _conv(1)), "nn.conv2d": ("Conv2D", _conv(2)), "qnn.conv2d": ("Conv2D", _conv(2) | {"out_dtype": "int32"}),
    "nn.conv2d_transpose": ("Conv2DTranspose", _conv(2) | {"kernel_layout": "IOHW", "output_padding": [0, 0]}),
    "nn.dense": ("Dense", dict(units=None, out_dtype="")), "qnn.dense": ("Dense", dict(units=None, out_dtype="int32")),
    "nn.batch_matmul": ("BatchMatmul", dict(out_dtype="", transpose_a=False, transpose_b=False)),
    "nn.batch_norm": ("BatchNorm", dict(axis=1, epsilon=1e-5, center=True, scale=True)),
    "nn.layer_norm": ("LayerNorm", dict(axis=-1, epsilon=1e-5, center=True, scale=True)),
    "nn.group_norm": ("GroupNorm", dict(num_groups=0, axis=1, epsilon=1e-5, center=True, scale=True)),
    "nn.instance_norm": ("InstanceNorm", dict(axis=1, epsilon=1e-5, center=True, scale=True)),
    "nn.bias_add": ("BiasAdd", dict(axis=1)), "nn.softmax": ("Softmax", dict(axis=-1)), "nn.log_softmax": ("Softmax", dict(axis=-1)),
    "nn.max_pool2d": ("MaxPool2D", _pool()), "nn.avg_pool2d": ("AvgPool2D", _pool(count_include_pad=False)),
    "nn.global_avg_pool2d": ("GlobalPool2D", dict(layout="NCHW", out_layout="")),
    "nn.adaptive_avg_pool2d": ("AdaptivePool2D", dict(output_size=[], layout="NCHW", out_layout="")),
    "nn.lrn": ("LRN", dict(size=5, axis=1, bias=2.0, alpha=1e-4, beta=0.75)), "nn.dropout": ("Dropout", dict(rate=0.5)),
    "nn.leaky_relu": ("LeakyRelu", dict(alpha=0.25)), "nn.prelu": ("PRelu", dict(axis=1)), "nn.pad": ("Pad", dict(pad_width=None, pad_mode="constant")),
    "nn.upsampling": ("UpSampling", dict(scale_h=1.0, scale_w=1.0, layout=Node("NCHW"), method=Node("nearest_neighbor"), align_corners=False)),
    "image.resize2d": ("Resize2D", dict(size=None, roi=None, layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel",
                                        rounding_method="round", cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype="")),
    "clip": ("Clip", dict(a_min=0.0, a_max=1.0)), "cast": ("Cast", dict(dtype="float32")), "concatenate": ("Concatenate", dict(axis=0)),
    "split": ("Split", dict(indices_or_sections=None, axis=0)), "transpose": ("Transpose", dict(axes=None)),
    "reshape": ("Reshape", dict(newshape=None, allowzero=False)), "expand_dims": ("ExpandDims", dict(axis=0, num_newaxis=1)),
    "squeeze": ("Squeeze", dict(axis=None)), "take": ("Take", dict(batch_dims=Node(0), axis=None, mode=Node("clip"))), "stack": ("Stack", dict(axis=Node(0))),
    "strided_slice": ("StridedSlice", dict(begin=None, end=None, strides=None, slice_mode=Node("end"), axes=None)),
    "sum": ("Reduce", dict(axis=None, keepdims=False, exclude=False)), "mean": ("Reduce", dict(axis=None, keepdims=False, exclude=False)),
    "max": ("Reduce", dict(axis=None, keepdims=False, exclude=False)), "variance": ("Variance", dict(axis=None, keepdims=False, exclude=False, unbiased=False)),
    "argmax": ("ArgReduce", dict(axis=None, keepdims=False, select_last_index=False, exclude=False)),
    "one_hot": ("OneHot", dict(depth=1, axis=-1, dtype="float32")), "topk": ("Topk", dict(k=None, axis=-1, ret_type="both", is_ascend=False, dtype="int32")),
    "layout_transform": ("LayoutTransform", dict(src_layout="", dst_layout="")),
    "qnn.quantize": ("Quantize", dict(out_dtype="int8", axis=-1)), "qnn.dequantize": ("Dequantize", dict(out_dtype="float32", axis=-1)),
    "qnn.requantize": ("Requantize", dict(axis=-1, rounding="UPWARD", compute_dtype="None", out_dtype="int8")),
    "qnn.add": ("Broadcast", dict(lhs_axis=-1, rhs_axis=-1)),
}


# -- text
def as_text(module: relay.Module, metadata: bool = True) -> str:
    """``mod.astext()``; tensors that are no scalars stand in the metadata."""
    writer = _Text()
    body = "\n".join(writer.function(f, f"def @{name}", _Names(), 0) for name, f in module.functions.items())
    text = '#[version = "0.0.5"]\n' + body + "\n"
    if not (writer.constants and metadata):
        return text
    nodes = _Json()
    entries = nodes.add({"type_key": "Array", "data": [nodes.constant(c) for c in writer.constants]})
    root = nodes.add({"type_key": "Map", "keys": ["relay.Constant"], "data": [entries]})
    return text + "\n#[metadata]\n" + nodes.text(root)


class _Names(dict):
    """Names of nodes in a scope, with those outside."""


class _Text:
    def __init__(self) -> None:
        self.count = 0
        self.constants: list[relay.Constant] = []

    def function(self, f: relay.Function, head: str, outer: _Names, indent: int) -> str:
        names = _Names(outer)
        names.update({p: f"%{p.name}" for p in f.params})
        params = [f"%{p.name}" + (f": {_type(p.type)}" if p.type is not None else "") for p in f.params]
        attrs = [f"{k}={_value(v)}" for k, v in f.attrs.items()]
        return f"{head}({', '.join(params + attrs)}) {{\n{self.body(f.body, names, indent + 2)}\n{' ' * indent}}}"

    def body(self, root: relay.Expr, names: _Names, indent: int) -> str:
        lines: list[str] = []
        pad = " " * indent
        while isinstance(root, relay.Let):
            names[root.var] = f"%{root.var.name}"  # a function may call itself
            value = self.function(root.value, "fn ", names, indent) if isinstance(root.value, relay.Function) else self.value(root.value, names, lines, indent)
            lines.append(f"{pad}let %{root.var.name} = {value};")
            root = root.body
        lines.append(pad + self.value(root, names, lines, indent))
        return "\n".join(lines)

    def value(self, node: relay.Expr, names: _Names, lines: list[str], indent: int) -> str:
        """A node by its name or, of a constant, itself; what it needs is bound in ``lines``, without recursion along chains of calls."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in names or isinstance(top, relay.Constant | relay.GlobalVar):
                stack.pop()
                continue
            needed = [n for n in relay.parts(top) if n not in names and not isinstance(n, relay.Constant | relay.GlobalVar)] if not isinstance(
                top, relay.If | relay.Function) else []
            if isinstance(top, relay.If) and top.condition not in names:
                needed = [top.condition]
            if needed:
                stack.extend(reversed(needed))
                continue
            text = self.written(top, names, indent)
            if isinstance(top, relay.Tuple):
                names[top] = text
            else:
                names[top] = f"%{self.count}"
                lines.append(f"{' ' * indent}%{self.count} = {text} /* ty=Tensor[...] */;")
                self.count += 1
            stack.pop()
        return self.name(node, names)

    def name(self, node: relay.Expr, names: _Names) -> str:
        if node in names:
            return names[node]
        if isinstance(node, relay.GlobalVar):
            return f"@{node.name}"
        assert isinstance(node, relay.Constant)
        if node.data.ndim == 0 and node.data.dtype.name in ("float32", "int32", "bool", "int64"):
            return f"{node.data.item()!r}" + {"float32": "f", "int64": "i64"}.get(node.data.dtype.name, "")
        if node not in self.constants:
            self.constants.append(node)
        return f"meta[relay.Constant][{self.constants.index(node)}] /* ty=Tensor[...] */"

    def written(self, node: relay.Expr, names: _Names, indent: int) -> str:
        if isinstance(node, relay.Call):
            op = node.op if isinstance(node.op, str) else self.name(node.op, names)
            attrs = [f"{k}={_value(v)}" for k, v in node.attrs.items()]
            return f"{op}({', '.join([self.name(a, names) for a in node.args] + attrs)})"
        if isinstance(node, relay.Tuple):
            inner = ", ".join(self.name(f, names) for f in node.fields)
            return f"({inner}{',' if len(node.fields) == 1 else ''})"
        if isinstance(node, relay.Item):
            return f"{self.name(node.value, names)}.{node.index}"
        if isinstance(node, relay.If):
            sides = [self.body(b, _Names(names), indent + 2) for b in (node.then, node.otherwise)]
            pad = " " * indent
            return f"if ({self.name(node.condition, names)}) {{\n{sides[0]}\n{pad}}} else {{\n{sides[1]}\n{pad}}}"
        assert isinstance(node, relay.Function), node
        return self.function(node, "fn ", names, indent)


def _type(t: Any) -> str:
    if isinstance(t, relay.TupleType):
        return f"({', '.join(map(_type, t.fields))})"
    return f"Tensor[({', '.join(map(str, t.shape))}), {t.dtype}]" if t.shape else t.dtype


def _value(v: Any) -> str:
    if isinstance(v, Node):
        return _value(v.value)
    if isinstance(v, list | tuple):
        return "[" + ", ".join(map(_value, v)) + "]"
    return f'"{v}"' if isinstance(v, str) else f"{v!r}f" if isinstance(v, float) else str(v)


# -- JSON
def as_json(module: relay.Module, version: str = "0.14.0") -> str:
    """``tvm.ir.save_json(mod)``."""
    nodes = _Json()
    names = {name: nodes.variable(name) for name in module.functions}
    functions = [nodes.function(f) for f in module.functions.values()]
    table = nodes.add({"type_key": "Map", "data": [i for pair in zip(names.values(), functions, strict=True) for i in pair]})
    globals_ = nodes.add({"type_key": "Map", "keys": list(names), "data": list(names.values())})
    empty = nodes.add({"type_key": "Map"})
    root = nodes.add({"type_key": "IRModule", "attrs": {"functions": str(table), "global_var_map_": str(globals_), "global_type_var_map_": str(empty),
                                                        "source_map": "0", "type_definitions": str(empty)}})
    return nodes.text(root, version)


class _Json:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.arrays: list[str] = []
        self.made: dict[Any, int] = {}

    def text(self, root: int, version: str = "0.14.0") -> str:
        return json.dumps({"root": root, "nodes": self.nodes, "b64ndarrays": self.arrays, "attrs": {"tvm_version": version}}, indent=2)

    def add(self, node: dict[str, Any]) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def of(self, kind: str, **fields: int | str) -> int:
        return self.add({"type_key": kind, "attrs": {k: str(v) for k, v in fields.items()}})

    def plain(self, v: Any) -> int:
        """A Python value as a node."""
        if v is None:
            return 0
        if isinstance(v, Node):
            return self.plain(v.value)
        if isinstance(v, list | tuple):
            data = [self.plain(i) for i in v]
            return self.add({"type_key": "Array", "data": data} if data else {"type_key": "Array"})
        if isinstance(v, str):
            return self.add({"type_key": "runtime.String", "repr_str": v} if v else {"type_key": "runtime.String"})
        if v is relay.ANY:
            return self.of("tir.Any", dtype="int32", span=0)
        return self.of("FloatImm", dtype="float64", span=0, value=v) if isinstance(v, float) else self.of("IntImm", dtype="int32", span=0, value=int(v))

    def type(self, t: Any) -> int:
        if t is None:
            return 0
        if isinstance(t, relay.TupleType):
            return self.of("TupleType", fields=self.add({"type_key": "Array", "data": [self.type(f) for f in t.fields]}), span=0)
        return self.of("relay.TensorType", dtype=t.dtype, shape=self.plain(list(t.shape)), span=0)

    def variable(self, name: str) -> int:
        if name not in self.made:
            self.made[name] = self.of("GlobalVar", _checked_type_=0, name_hint=self.plain(name), span=0, virtual_device_=0)
        return self.made[name]

    def constant(self, c: relay.Constant) -> int:
        self.arrays.append(base64.b64encode(tensor_bytes(c.data)).decode())
        return self.of("relay.Constant", _checked_type_=0, data=len(self.arrays) - 1, span=0, virtual_device_=0)

    def function(self, f: relay.Function) -> int:
        params = self.add({"type_key": "Array", "data": [self.expr(p) for p in f.params]})
        entries = {"keys": list(f.attrs), "data": [self.plain(v) for v in f.attrs.values()]} if f.attrs else {}
        attrs = self.of("DictAttrs", __dict__=self.add({"type_key": "Map", **entries}))
        return self.of("relay.Function", _checked_type_=0, attrs=attrs, body=self.expr(f.body), params=params, ret_type=0, span=0, type_params=0,
                       virtual_device_=0)

    def attributes(self, op: str, given: dict[str, Any]) -> int:
        if op not in ATTRIBUTES:
            assert not given, f"{op} has no attributes here"
            return 0
        name, defaults = ATTRIBUTES[op]
        assert set(given) <= set(defaults), (op, given)
        fields = {}
        for key, value in (defaults | given).items():
            own = defaults[key] if isinstance(defaults[key], Node) else value
            always = key in ("channels", "units", "k", "indices_or_sections") or (key == "axis" and defaults[key] is None)
            as_node = always or value is None or isinstance(value, list | tuple | Node) or isinstance(own, Node)
            fields[key] = self.plain(value) if as_node else f"{value:.17g}" if isinstance(value, float) else int(value) if isinstance(value, bool) else value
        return self.of(f"relay.attrs.{name}Attrs", **fields)

    def expr(self, root: relay.Expr) -> int:
        stack = [root]
        while stack:
            top = stack[-1]
            if top in self.made:
                stack.pop()
                continue
            inner = [] if isinstance(top, relay.Function) else [n for n in relay.parts(top) if n not in self.made]
            if inner:
                stack.extend(reversed(inner))
                continue
            self.made[top] = self.node(top)
            stack.pop()
        return self.made[root]

    def node(self, e: relay.Expr) -> int:
        common = {"_checked_type_": 0, "span": 0, "virtual_device_": 0}
        if isinstance(e, relay.Constant):
            return self.constant(e)
        if isinstance(e, relay.Var):
            return self.of("relay.Var", vid=self.of("relay.Id", name_hint=self.plain(e.name)), type_annotation=self.type(e.type), **common)
        if isinstance(e, relay.GlobalVar):
            return self.variable(e.name)
        if isinstance(e, relay.Function):
            return self.function(e)
        if isinstance(e, relay.Call):
            op = self.operator(e.op) if isinstance(e.op, str) else self.made[e.op]
            attrs = self.attributes(e.op, dict(e.attrs)) if isinstance(e.op, str) else 0
            return self.of("relay.Call", op=op, args=self.list(e.args), attrs=attrs, type_args=0, **common)
        if isinstance(e, relay.Tuple):
            return self.of("relay.Tuple", fields=self.list(e.fields), **common)
        if isinstance(e, relay.Item):
            return self.of("relay.TupleGetItem", tuple_value=self.made[e.value], index=e.index, **common)
        if isinstance(e, relay.Let):
            return self.of("relay.Let", var=self.made.get(e.var) or self.expr(e.var), value=self.made[e.value], body=self.made[e.body], **common)
        assert isinstance(e, relay.If), e
        return self.of("relay.If", cond=self.made[e.condition], true_branch=self.made[e.then], false_branch=self.made[e.otherwise], **common)

    def list(self, parts: tuple[relay.Expr, ...]) -> int:
        return self.add({"type_key": "Array", "data": [self.made[p] for p in parts]} if parts else {"type_key": "Array"})

    def operator(self, name: str) -> int:
        if ("op", name) not in self.made:
            self.made["op", name] = self.add({"type_key": "Op", "repr_str": name})
        return self.made["op", name]


# -- tensors and parameters
def tensor_bytes(array: np.ndarray) -> bytes:
    """A tensor after its header."""
    a = np.ascontiguousarray(array)
    bits = 1 if a.dtype == bool else a.dtype.itemsize * 8
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim, _CODES[a.dtype.kind], bits, 1)
    return head + struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<q", a.nbytes) + a.tobytes()


def as_params(params: dict[str, np.ndarray]) -> bytes:
    """``relay.save_param_dict(params)``."""
    names = b"".join(struct.pack("<Q", len(n.encode())) + n.encode() for n in params)
    count = struct.pack("<Q", len(params))
    return struct.pack("<QQ", 0xF7E58D4F05049CB7, 0) + count + names + count + b"".join(map(tensor_bytes, params.values()))
