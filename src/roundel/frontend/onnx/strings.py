# SPDX-License-Identifier: Apache-2.0
"""Which values of a model are strings: compiled code has numbers in their place (see runtime/text)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir import graph
from .functions import schema_of
from .load import STRING
from .values import ListValue, Value

if TYPE_CHECKING:
    import onnx


def is_text(kind: Any) -> bool:
    """Whether an ONNX type is of strings, or of sequences or optional values of them."""
    while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
        kind = getattr(kind, kind.WhichOneof("value")).elem_type
    return kind.WhichOneof("value") == "tensor_type" and kind.tensor_type.elem_type == STRING


def map_texts(kind: Any) -> tuple[bool, bool]:
    """Whether the keys and the values of an ONNX map type are strings."""
    return kind.map_type.key_type == STRING, is_text(kind.map_type.value_type)


def text_leaves(kind: Any, info: graph.StructInfo) -> tuple[bool, ...]:
    """For each tensor of an input or output whether it is of strings."""
    return map_texts(kind) if kind.WhichOneof("value") == "map_type" else (is_text(kind),) * leaves(info)


def holds_text(value: Any) -> bool:
    """Whether a value, or an item of a sequence, is strings."""
    return any(map(holds_text, value.items)) if isinstance(value, ListValue) else value.is_text


def leaves(info: graph.StructInfo) -> int:
    """How many tensors an input or output is."""
    return sum(map(leaves, info.fields)) if isinstance(info, graph.TupleInfo) else 1


def mark_text(node: onnx.NodeProto, opset: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Strings stay strings: a result is one where the standard gives it the type of an input that is, or a subgraph's result is."""
    bodies = [a.g for a in node.attribute if a.HasField("g")]
    if bodies:
        for value, info in zip(outputs[::-1], list(bodies[0].output)[::-1], strict=False):  # a loop's condition comes first
            if isinstance(value, Value) and info.type.tensor_type.elem_type == STRING:
                value.is_text = True
    elif any(isinstance(v, Value) and v.is_text for v in inputs):
        schema = schema_of("" if node.domain == "ai.onnx" else node.domain, node.op_type, opset)
        if schema is None:
            return
        formal = [schema.inputs[min(k, len(schema.inputs) - 1)].type_str for k in range(len(inputs))]
        kinds = {kind for kind, v in zip(formal, inputs, strict=True) if isinstance(v, Value) and v.is_text}
        for k, value in enumerate(outputs):
            if isinstance(value, Value) and schema.outputs[min(k, len(schema.outputs) - 1)].type_str in kinds | {"tensor(string)"}:
                value.is_text = True
