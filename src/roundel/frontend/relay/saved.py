# SPDX-License-Identifier: Apache-2.0
"""Relay's JSON (``tvm.ir.save_json``) to its expressions.

The file is a list of nodes that refer to each other by number. All fields are texts; whether ``"3"`` is a number or the third node is a
matter of the field's type, which the file does not say: the tables below do.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir.errors import ModelError
from . import expr as relay
from .arrays import tensor_of_base64

_NUMBERS = frozenset({
    "block_size", "convolution_algorithm", "coord_start", "cubic_exclude", "deformable_groups", "depth", "device_id", "device_type",
    "feature_stride", "groups", "hop_length", "id_index", "ignore_index", "k1", "k2", "lhs_axis", "lhs_begin", "max_detections",
    "max_detections_per_class", "max_displacement", "multiplier", "n_fft", "num_classes", "num_groups", "num_newaxis", "rhs_axis", "rhs_begin",
    "rpn_min_size", "rpn_post_nms_top_n", "rpn_pre_nms_top_n", "sample_ratio", "score_index", "shift", "stride1", "stride2", "tile_cols",
    "tile_rows", "tile_size", "top_k", "win_length",
    "a_max", "a_min", "alpha", "beta", "bias", "cubic_alpha", "dilation_value", "eps", "epsilon", "extrapolation_value", "iou_threshold",
    "mask_value", "pad_value", "rate", "scale_d", "scale_h", "scale_w", "spatial_scale", "threshold"})
"""Fields that hold numbers themselves."""
_FLAGS = frozenset({
    "align_corners", "allowzero", "ceil_mode", "center", "clip", "count_include_pad", "exclude", "force_suppress", "invalid_to_bottom", "iou_loss",
    "is_ascend", "is_fixed", "is_lshift_required", "is_multiply", "is_rshift_required", "keep_background", "keepdims", "normalized", "onesided",
    "return_counts", "return_indices", "right", "scale", "select_last_index", "sorted", "sparse_lhs", "sub_diag_right_align",
    "super_diag_right_align", "transpose_a", "transpose_b", "unbiased", "upper"})
"""Fields that hold 0 or 1 themselves."""
_NODES = {
    "axis": frozenset({"L2Normalize", "Scatter", "ScatterAdd", "ScatterElements", "Gather", "Take", "Stack", "Repeat", "Reverse", "Squeeze", "Scanop",
                       "Reduce", "ArgReduce", "Variance"}),
    "size": frozenset({"Resize1D", "Resize2D", "Resize3D"}),
}
"""Fields that are nodes in the attributes of these operators and numbers in those of others."""
_OWN_NUMBERS = {("RegularNonMaximumSuppression", "score_threshold"), ("Correlation", "kernel_size")}

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "IRModule": ("functions",), "DictAttrs": ("__dict__",),
    "relay.Function": ("params", "body", "attrs"), "relay.Call": ("op", "args", "attrs"), "relay.Tuple": ("fields",),
    "relay.TupleGetItem": ("tuple_value",), "relay.Let": ("var", "value", "body"), "relay.If": ("cond", "true_branch", "false_branch"),
    "relay.Var": ("vid", "type_annotation"), "relay.TensorType": ("shape",), "TupleType": ("fields",), "relay.TupleType": ("fields",),
}
"""The fields of a node that are nodes and that matter."""
_NAMES = {"relay.Id": "name_hint", "GlobalVar": "name_hint", "relay.GlobalVar": "name_hint"}
"""Names: nodes since TVM 0.7, texts before."""
_OLD_LAYOUTS = frozenset({"OIW", "OIHW", "OIDHW"})
"""Up to TVM 0.11 weights of transposed convolutions, (in, out, ...), are said to have the layout of those of convolutions."""


def load(text: str) -> relay.Module:
    """The module of a JSON file; raises ModelError."""
    found = _read(text)
    if isinstance(found, relay.Function):
        found = relay.Module({"main": found})
    elif isinstance(found, relay.Expr):
        found = relay.Module({"main": relay.Function((), found)})
    if not isinstance(found, relay.Module):
        raise ModelError("the JSON file holds neither a Relay module nor a function", hint="write it by tvm.ir.save_json(mod)")
    return found


def load_metadata(text: str) -> dict[str, list[Any]]:
    """The section ``#[metadata]`` of a text: lists of nodes by their type."""
    found = _read(text)
    if not isinstance(found, dict) or not all(isinstance(v, list) for v in found.values()):
        raise ModelError("the metadata of the text are damaged")
    return found


def _read(text: str) -> Any:
    try:
        document = json.loads(text)
        if not isinstance(document, dict) or not {"nodes", "root"} <= document.keys():
            raise TypeError("it has no 'nodes' and 'root'")
        nodes, root = document["nodes"], int(document["root"])
        arrays = document.get("b64ndarrays", [])
        if not (isinstance(nodes, list) and isinstance(arrays, list) and all(isinstance(n, dict) for n in nodes)):
            raise TypeError("'nodes' and 'b64ndarrays' have to be lists")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError("this is no JSON file of TVM's", why=str(error)) from error
    if "tvm.relay" not in text and "relay." not in text:
        raise ModelError("the JSON file has no Relay in it", hint="modules of TVM 0.8 to 0.14 are read; later ones are written as TVMScript")
    version = document.get("attrs", {}).get("tvm_version", "") if isinstance(document.get("attrs"), dict) else ""
    return _Reader(nodes, arrays, [int(v) for v in str(version).split(".")[:2] if v.isdigit()] < [0, 12]).node(root)


class _Reader:
    """Makes nodes from their descriptions, each once, those that it refers to before it."""

    def __init__(self, nodes: list[dict[str, Any]], arrays: list[str], old: bool) -> None:
        self.nodes, self.arrays, self.old = nodes, arrays, old
        self.made: dict[int, Any] = {}

    def node(self, root: int) -> Any:
        """The value of a node: expressions, types, and Python values for the rest. Nodes are not followed by recursion, which a long model exceeds."""
        waiting, open_ = [root], set[int]()
        while waiting:
            index = waiting[-1]
            if index in self.made:
                waiting.pop()
                continue
            if not 0 <= index < len(self.nodes):
                raise ModelError(f"the JSON file refers to node {index} of {len(self.nodes)}")
            missing = [i for i in self.references(index) if i not in self.made]
            if not missing:
                self.made[index] = self.make(index)
                open_.discard(index)
                waiting.pop()
            elif index in open_:
                raise ModelError(f"node {index} of the JSON file refers to itself")
            else:
                open_.add(index)
                waiting.extend(reversed(missing))
        return self.made[root]

    def references(self, index: int) -> list[int]:
        """The nodes that a node is made of."""
        node = self.nodes[index]
        try:
            kind, attrs = node.get("type_key", ""), node.get("attrs") or {}
            if kind in ("Array", "List", "Map", "StrMap"):
                return [int(i) for i in node.get("data", ())]
            if kind.startswith("relay.attrs."):
                return [int(v) for k, v in attrs.items() if _is_node(kind, k, v)]
            named = [attrs[_NAMES[kind]]] if kind in _NAMES and str(attrs[_NAMES[kind]]).isdigit() else []
            return [int(v) for v in (*named, *(attrs[k] for k in _FIELDS.get(kind, ()) if k in attrs))]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelError(f"node {index} of the JSON file is damaged", why=str(error)) from error

    def make(self, index: int) -> Any:
        """A node whose references are made."""
        node = self.nodes[index]
        kind, attrs = node.get("type_key", ""), node.get("attrs") or {}
        try:
            if kind in ("Array", "List", "Map", "StrMap"):
                values = [self.made[int(i)] for i in node.get("data", ())]
                return dict(zip(node["keys"], values, strict=True)) if "keys" in node else values if kind in ("Array", "List") else _pairs(values)
            if kind.startswith("relay.attrs."):
                return self.attributes(kind, attrs)
            if kind in _NAMES:
                name = str(attrs[_NAMES[kind]])
                name = self.made[int(name)] if name.isdigit() else name
                return name if kind == "relay.Id" else relay.GlobalVar(name)
            if kind == "relay.Constant":
                return relay.Constant(self.array(int(attrs["data"])))
            fields = {k: self.made[int(attrs[k])] for k in _FIELDS.get(kind, ()) if k in attrs}
            return _MAKE[kind](node, attrs, fields) if kind in _MAKE else relay.Refused(kind) if kind else None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelError(f"node {index} of the JSON file is damaged", why=f"{kind}: {type(error).__name__} {error}") from error

    def attributes(self, kind: str, attrs: Mapping[str, str]) -> dict[str, Any]:
        """The attributes of an operator."""
        found = {k: self.made[int(v)] if _is_node(kind, k, v) else _value(k, v) for k, v in attrs.items()}
        if self.old and "TransposeAttrs" in kind and found.get("kernel_layout") in _OLD_LAYOUTS:
            del found["kernel_layout"]
        return found

    def array(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self.arrays):
            raise ModelError(f"the JSON file refers to tensor {index} of {len(self.arrays)}")
        return tensor_of_base64(self.arrays[index])


def _pairs(values: list[Any]) -> dict[Any, Any]:
    """A map whose keys are nodes: texts or functions' names."""
    keys = [k.name if isinstance(k, relay.GlobalVar) else k for k in values[::2]]
    return dict(zip(keys, values[1::2], strict=True))


def _is_node(kind: str, name: str, value: Any) -> bool:
    """Whether a field of an operator's attributes is a node. Texts are nodes or stand there themselves: no layout is a number."""
    owner = kind.removeprefix("relay.attrs.").removesuffix("Attrs")
    if name in _NODES:
        return owner in _NODES[name]
    if name in _NUMBERS or name in _FLAGS or (owner, name) in _OWN_NUMBERS:
        return False
    return str(value).isdigit()


def _value(name: str, text: str) -> Any:
    """A field that stands there itself."""
    if name in _FLAGS:
        return text not in ("0", "false", "False")
    if name in _NUMBERS or name in _NODES:
        return float(text) if any(c in text for c in ".einf") else int(text)
    return text


def _module(_: Any, __: Any, fields: Mapping[str, Any]) -> relay.Module:
    return relay.Module({name: f for name, f in fields["functions"].items() if isinstance(f, relay.Function)})


def _call(_: Any, __: Any, fields: Mapping[str, Any]) -> relay.Call:
    op = fields["op"]
    return relay.Call(op, tuple(fields["args"]), fields["attrs"] if isinstance(fields.get("attrs"), dict) else {})


def _operator(node: Any, attrs: Any, _: Any) -> str:
    return str(node.get("repr_str") or node.get("global_key") or attrs["name"])


_MAKE: Mapping[str, Callable[[Any, Mapping[str, str], Mapping[str, Any]], Any]] = {
    "IRModule": _module, "relay.Module": _module,
    "DictAttrs": lambda _, __, f: f.get("__dict__") or {},
    "relay.Function": lambda _, __, f: relay.Function(tuple(f["params"]), f["body"], f["attrs"] if isinstance(f.get("attrs"), dict) else {}),
    "relay.Call": _call,
    "relay.Tuple": lambda _, __, f: relay.Tuple(tuple(f["fields"])),
    "relay.TupleGetItem": lambda _, a, f: relay.Item(f["tuple_value"], int(a["index"])),
    "relay.Let": lambda _, __, f: relay.Let(f["var"], f["value"], f["body"]),
    "relay.If": lambda _, __, f: relay.If(f["cond"], f["true_branch"], f["false_branch"]),
    "relay.Var": lambda _, __, f: relay.Var(str(f["vid"]), f.get("type_annotation")),
    "relay.TensorType": lambda _, a, f: relay.TensorType(tuple(f["shape"]), a["dtype"]),
    **dict.fromkeys(("TupleType", "relay.TupleType"), lambda _, __, f: relay.TupleType(tuple(f["fields"]))),
    **dict.fromkeys(("FuncType", "relay.FuncType"), lambda _, __, ___: relay.OtherType("fn")),
    **dict.fromkeys(("IncompleteType", "relay.IncompleteType"), lambda _, __, ___: None),
    "Op": _operator, "relay.Op": _operator,
    "runtime.String": lambda n, _, __: n["repr_str"] if "repr_str" in n else str(base64.b64decode(n.get("repr_b64", "")), "utf-8", "replace"),
    "IntImm": lambda _, a, __: bool(int(a["value"])) if a.get("dtype") == "bool" else int(a["value"]),
    "FloatImm": lambda _, a, __: float(a["value"]),
    "tir.StringImm": lambda _, a, __: a["value"], "StringImm": lambda _, a, __: a["value"],
    **dict.fromkeys(("tir.Any", "Any", "relay.Any", "tir.Var", "tir.SizeVar", "Variable"), lambda _, __, ___: relay.ANY),
}
