# SPDX-License-Identifier: Apache-2.0
"""Bodies of operators that the standard itself defines by simpler ones: what has no converter of its own is expanded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir import graph, tir
from .load import code_of

if TYPE_CHECKING:
    import onnx

_NEWEST = (1 << 31) - 1  # of the versions that onnx takes
_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")


@cache
def schema_of(domain: str, name: str, opset: int) -> Any | None:
    """The operator's schema at an opset version, or None when the standard has no such operator."""
    import onnx

    if domain not in _DOMAINS or not onnx.defs.has(name, domain):
        return None
    try:
        return onnx.defs.get_schema(name, min(opset, _NEWEST), domain)
    except onnx.defs.SchemaError:
        return None


def has_body(domain: str, name: str, opset: int) -> bool:
    """Whether the standard defines this operator by a function."""
    schema = schema_of(domain, name, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(node: onnx.NodeProto, opset: int, inputs: Sequence[Any]) -> onnx.FunctionProto | None:
    """The function that stands for this node given what is known of its inputs (Values, None for absent ones)."""
    import onnx

    domain = "" if node.domain == "ai.onnx" else node.domain
    schema = schema_of(domain, node.op_type, opset)
    if schema is None:
        return None
    function = onnx.FunctionProto()
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if versions:
            function.ParseFromString(schema.get_function_with_opset_version(max(versions)))
            return function
    if schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        types = [_type(v).SerializeToString() for v in inputs]
        if versions:
            text = schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), types)
            if text:
                function.ParseFromString(text)
                return function
    return None


def defaults_of(node: onnx.NodeProto, opsets: Mapping[str, int]) -> list[onnx.AttributeProto]:
    """Default values of the operator's attributes, where the standard has some."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    schema = schema_of(domain, node.op_type, opsets.get(domain, 1))
    return [a.default_value for a in schema.attributes.values() if a.default_value.name] if schema is not None else []


def _type(value: Any) -> onnx.TypeProto:
    """The ONNX type of a value; unknown dimensions stay open."""
    import onnx

    out = onnx.TypeProto()
    if value is None or not hasattr(value, "expr"):
        return out
    info = value.expr.sinfo
    if isinstance(info, graph.TensorInfo) and info.dtype is not None:
        out.tensor_type.elem_type = code_of(info.dtype)
        for d in info.shape or ():
            dim = out.tensor_type.shape.dim.add()
            if isinstance(d, tir.IntImm):
                dim.dim_value = d.value
        if info.shape == ():
            out.tensor_type.shape.SetInParent()
    return out
