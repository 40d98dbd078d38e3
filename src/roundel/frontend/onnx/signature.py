# SPDX-License-Identifier: Apache-2.0
"""What the standard says of how an operator is called, and whether a node keeps to it.

Converters read what they need. What they would pass over in silence is found here: attributes that the operator does not have or that are
of another type, more inputs or outputs than it has, inputs of another kind of type. Where a later version of the operator allows what the
model's version does not, it is allowed: there is one thing that it can mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir.dataclass import dataclass
from ...ir.errors import ModelError
from ...ir.warning import warn
from .functions import schema_of
from .registry import NEWEST
from .values import MapValue, Value

if TYPE_CHECKING:
    from .importer import NodeContext

_TYPES = {1: "a float", 2: "an integer", 3: "a string", 4: "a tensor", 5: "a graph", 6: "floats", 7: "integers", 8: "strings", 9: "tensors",
          10: "graphs", 11: "a sparse tensor", 12: "sparse tensors", 13: "a type", 14: "types"}
_STRING = 3
_READ_AS = {2: 1, 7: 6}  # whole numbers where floats are wanted are floats
_KINDS = {"string": "strings", "bool": "bools", "complex": "complex numbers", "int": "integers", "uint": "integers"}  # all others are floats
_WORDS = {
    "aggregate_function": ("AVERAGE", "SUM", "MIN", "MAX"),
    "approximate": ("none", "tanh"),
    "auto_pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""),
    "case_change_action": ("LOWER", "UPPER", "NONE"),
    "cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"),
    "direction of BitShift": ("LEFT", "RIGHT"),
    "direction": ("forward", "reverse", "bidirectional"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"),
    "map_form": ("DENSE", "SPARSE"),
    "mode of DepthToSpace": ("DCR", "CRD"),
    "mode of GridSample": ("linear", "bilinear", "cubic", "bicubic", "nearest"),
    "mode of Pad": ("constant", "reflect", "edge", "wrap"),
    "mode of Resize": ("nearest", "linear", "cubic"),
    "mode of RoiAlign": ("avg", "max"),
    "mode of SpaceToDepth": ("DCR", "CRD"),
    "mode of TensorScatter": ("linear", "circular"),
    "mode of TfIdfVectorizer": ("TF", "IDF", "TFIDF"),
    "mode of Upsample": ("nearest", "linear", "bilinear"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "norm": ("MAX", "L1", "L2"),
    "padding_mode": ("zeros", "border", "reflection"),
    "coordinate_transformation_mode of Resize": ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                                                 "tf_half_pixel_for_nn", "tf_crop_and_resize"),
    "coordinate_transformation_mode of RoiAlign": ("half_pixel", "output_half_pixel"),
    "pixel_format": ("RGB", "BGR", "Grayscale"),
    "post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
    "reduction of ScatterElements": ("none", "add", "mul", "max", "min"),
    "reduction of ScatterND": ("none", "add", "mul", "max", "min"),
    "reduction": ("none", "sum", "mean"),
    "round_mode": ("up", "down", "nearest"),
}
"""The words that attributes may be, which the standard's schemas do not hold: by the attribute's name, or by this and the operator's."""


@dataclass(frozen=True)
class Signature:
    """``attributes``: their types, as AttributeProto numbers them. ``inputs``: for each its name, the kinds of types it may have (none: any,
    or no tensor) and whether it may be left out. ``most_inputs``, ``most_outputs``: None for any number; further inputs are like the last.
    ``removed``: the version of the standard that took the operator away, None while it has it."""

    attributes: dict[str, int]
    inputs: tuple[tuple[str, frozenset[str], bool], ...]
    most_inputs: int | None
    most_outputs: int | None
    removed: int | None = None


@cache
def signature_of(domain: str, name: str, opset: int) -> Signature | None:
    """The signature of an operator of the standard at a version; None for any other operator."""
    schema, newest = schema_of(domain, name, opset), schema_of(domain, name, NEWEST.get(domain, opset))
    if schema is None or newest is None:
        return None
    later = {k: _kinds(newest, k) for k in range(len(newest.inputs))}
    inputs = tuple((f.name, kinds | later.get(k, kinds) if (kinds := _kinds(schema, k)) else kinds, f.option.name != "Single")
                   for k, f in enumerate(schema.inputs))
    return Signature({a.name: a.type.value for a in schema.attributes.values()}, inputs,
                     _most(schema.inputs, max(schema.max_input, newest.max_input)), _most(schema.outputs, max(schema.max_output, newest.max_output)),
                     schema.since_version if schema.deprecated else None)


def _most(formal: Sequence[Any], count: int) -> int | None:
    return None if any(f.option.name == "Variadic" for f in formal) else count


def _kinds(schema: Any, k: int) -> frozenset[str]:
    """The kinds of types of the tensors that an input may be."""
    kind = schema.inputs[k].type_str
    allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == kind), [kind])
    return frozenset(_KINDS.get(found[1], "floats") for t in allowed if (found := re.match(r"tensor\(([a-z]+)", t)))


def _kind(value: Any) -> str | None:
    """Of which kind a value is; None for what is no tensor."""
    if not isinstance(value, Value) or isinstance(value, MapValue):
        return None
    dtype = value.dtype if value.content is not None else value.expr.sinfo.dtype
    return "strings" if value.is_text else "bools" if dtype.is_bool else _KINDS.get(dtype.kind, "floats")


def _held(value: Value) -> str:
    """What a tensor holds, in words: its kind, of complex numbers the type."""
    kind = _kind(value)
    return f"{value.expr.sinfo.dtype} numbers" if kind == "complex numbers" and value.content is None else str(kind)


def words_of(operator: str, attribute: str) -> tuple[str, ...] | None:
    """The words that an attribute of the standard's operator may be; None where it may be any string."""
    return _WORDS.get(f"{attribute} of {operator}", _WORDS.get(attribute))


def check_call(node: NodeContext, inputs: Sequence[Any]) -> None:
    """Raises ModelError where a node's attributes, inputs or outputs are not such as the standard's operator has them. Attributes that it
    does not have are left to ``check_read``."""
    given, attributes = node.node, node.node.attribute
    seen: set[str] = set()
    for a in attributes:
        if a.name in seen:
            raise node.error(f"the attribute {a.name!r} is given twice")
        seen.add(a.name)
    signature = signature_of(node.domain, node.kind, node.opset)
    if signature is None:
        return
    if signature.removed is not None:
        warn(f"{node.where}: opset {signature.removed} removed the operator {node.kind}, and the model declares opset {node.opset}; it is read "
             "as the last version that had it")
    for a in attributes:
        wanted = signature.attributes.get(a.name)
        if wanted is not None and wanted not in (a.type, _READ_AS.get(a.type)):
            raise node.error(f"the attribute {a.name!r} is {_TYPES.get(a.type, f'of an unknown type {a.type}')} where the operator takes {_TYPES[wanted]}")
        words = words_of(node.kind, a.name) if wanted == a.type == _STRING else None
        if words is not None and a.s.decode("utf-8", "replace") not in words:
            raise node.error(f"the attribute {a.name!r} is {a.s.decode('utf-8', 'replace')!r}, not {' or '.join(filter(None, words))}")
    _check_count(node, given.input, signature.most_inputs, "input", "takes")
    if signature.most_outputs is not None:
        _check_count(node, given.output, signature.most_outputs, "output", "gives")
    for k, (name, kinds, optional) in enumerate(signature.inputs[:len(inputs)]):
        kind = _kind(inputs[k])
        if inputs[k] is None and not optional and not given.input[k]:
            raise node.error(f"its input {name!r} is missing, which the operator needs")
        if kind is not None and kinds and kind not in kinds:
            raise node.error(f"its input {name!r} holds {_held(inputs[k])} where the operator takes {' or '.join(sorted(kinds))}")


def _check_count(node: NodeContext, names: Sequence[str], most: int | None, what: str, verb: str) -> None:
    count = max((k + 1 for k, name in enumerate(names) if name), default=0)
    if most is not None and count > most:
        raise node.error(f"it has {count} {what}s, and {node.kind} {verb} {f'at most {most}' if most else 'none'}")


def check_read(node: NodeContext) -> None:
    """Raises ModelError for an attribute that the operator does not have in the model's version, and that its converter did not read."""
    signature = signature_of(node.domain, node.kind, node.opset)
    for a in node.node.attribute if signature is not None else ():
        if a.name not in signature.attributes and a.name not in node.read:
            raise ModelError(f"the operator has no attribute {a.name!r} in opset {node.opset}", where=node.where,
                             why=f"its attributes are {', '.join(signature.attributes) or 'none'}",
                             hint="other versions may have it: look which opset_import the model was made for")


def check_results(node: NodeContext, outputs: Sequence[Any]) -> None:
    """Raises ModelError for a node of an operator with any number of outputs (an If, a loop) that names more than it gives."""
    signature = signature_of(node.domain, node.kind, node.opset)
    if signature is not None and signature.most_outputs is None:
        _check_count(node, node.node.output, len(outputs), "output", "gives")


def check_function(node: NodeContext, function: Any) -> None:
    """Raises ModelError where a call of a model's own function has attributes, inputs or outputs that the function does not have."""
    _check_count(node, node.node.input, len(function.input), "input", "takes")
    _check_count(node, node.node.output, len(function.output), "output", "gives")
    known = {*function.attribute, *(a.name for a in function.attribute_proto)}
    for a in node.node.attribute:
        if a.name not in known:
            raise ModelError(f"the function has no attribute {a.name!r}", where=node.where, why=f"its attributes are {', '.join(known) or 'none'}")


def failed(node: NodeContext, inputs: Sequence[Any]) -> ModelError:
    """What to say of a node that made its converter fail: too few inputs, or which ones it has."""
    schema = schema_of(node.domain, node.kind, node.opset)
    if schema is not None and len(node.node.input) < schema.min_input:
        return node.error(f"{len(node.node.input)} input{'s' if len(node.node.input) != 1 else ''} where the operator takes at least {schema.min_input}")
    kinds = ["none" if v is None else f"{v.expr.sinfo.dtype} of {v.expr.sinfo.ndim} dimensions" if isinstance(v, Value) else "a sequence" for v in inputs]
    return ModelError("its operands or attributes are not what the operator takes", where=node.where,
                      why=f"its inputs are {', '.join(kinds) or 'none'}, opset {node.opset}")
