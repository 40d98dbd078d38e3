# SPDX-License-Identifier: Apache-2.0
"""Nodes that are not called as the standard has it: each is refused with an error that names the node, and none is read in some other way.

The standard's own models of one node are changed in one place: an attribute of another type, unknown, given twice or with a word that it does
not have; an input too many, missing or of another kind; an output too many; a result that is declared to be of another type.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto

import roundel as rd
from roundel.frontend.onnx.signature import Signature, signature_of, words_of
from roundel.ir.errors import UnsupportedError

from .attributes import standard_nodes

_NUMBERS = {AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.FLOATS, AttributeProto.INTS}


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` models, the damages in turn."""
    source, damages = random.Random(seed), list(_DAMAGES.items())
    for k in range(count):
        name, damage = damages[k % len(damages)]
        model = onnx.ModelProto()
        model.CopyFrom(source.choice(standard_nodes()))
        (node,) = model.graph.node
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = next((o.version for o in model.opset_import if o.domain in (node.domain, domain)), 1)
        signature = signature_of(domain, node.op_type, opset)
        if signature is None or not damage(model, node, signature, source):
            continue
        if wrong := _refused(model, node):
            yield f"{name} of {node.op_type} (opset {opset}): {wrong}: {str(node)[:300]}"


def _refused(model: Any, node: Any) -> str:
    """What is wrong with how the import of a model ended; nothing where it was refused by an error that names the node."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rd.import_model(model)
    except UnsupportedError:  # of something else, before the node is looked at
        return ""
    except rd.RoundelError as error:
        return "" if any(name in str(error) for name in (node.op_type, "output")) else f"the error does not tell the node: {error}"
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {error}"
    return "it was imported"


def _another_type(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    attributes = [a for a in node.attribute if a.name in signature.attributes]
    if attributes:
        a = source.choice(attributes)
        a.type = source.choice([AttributeProto.STRING, AttributeProto.STRINGS] if a.type in _NUMBERS else [AttributeProto.INT, AttributeProto.FLOATS])
    return bool(attributes)


def _unknown(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    node.attribute.append(onnx.helper.make_attribute(source.choice(["axes_", "Alpha", "foo"]), 1))
    return True


def _twice(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    if node.attribute:
        node.attribute.append(source.choice(list(node.attribute)))
    return bool(node.attribute)


def _nonsense(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    names = [n for n, t in signature.attributes.items() if t == AttributeProto.STRING and words_of(node.op_type, n) is not None]
    if names:
        name = source.choice(names)
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, source.choice(["nonsense", "LINEAR ", "\u00e9"]))])
    return bool(names)


def _further_input(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    if signature.most_inputs is not None and node.input:
        given = next(n for n in node.input if n)
        node.input.extend([""] * (signature.most_inputs - len(node.input)) + [given])
    return signature.most_inputs is not None and bool(node.input)


def _missing_input(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    needed = [k for k, (_, _, optional) in enumerate(signature.inputs[:len(node.input)]) if not optional]
    if needed:
        node.input[source.choice(needed)] = ""
    return bool(needed)


def _another_kind(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    strings = {i.name: i for i in model.graph.input if i.type.HasField("tensor_type")}
    takes_none = [n for n, (_, kinds, _) in zip(node.input, signature.inputs, strict=False) if n in strings and kinds and "strings" not in kinds]
    if takes_none:
        strings[source.choice(takes_none)].type.tensor_type.elem_type = TensorProto.STRING
    return bool(takes_none)


def _further_output(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    if signature.most_outputs is not None:
        node.output.extend([f"further_{k}" for k in range(signature.most_outputs - len(node.output) + 1)])
    return signature.most_outputs is not None


def _declared(model: Any, node: Any, signature: Signature, source: random.Random) -> bool:
    tensors = [o.type.tensor_type for o in model.graph.output if o.type.HasField("tensor_type") and o.type.tensor_type.elem_type != TensorProto.STRING]
    if tensors:
        tensor = source.choice(tensors)
        tensor.elem_type = TensorProto.INT16 if tensor.elem_type != TensorProto.INT16 else TensorProto.FLOAT
    return bool(tensors)


_DAMAGES: dict[str, Callable[[Any, Any, Signature, random.Random], bool]] = {
    "another type of an attribute": _another_type,
    "an unknown attribute": _unknown,
    "an attribute twice": _twice,
    "a word that is none": _nonsense,
    "a further input": _further_input,
    "a missing input": _missing_input,
    "another kind of input": _another_kind,
    "a further output": _further_output,
    "another declared type": _declared,
}
"""Each changes the model, its node or neither where it cannot, and says whether it did."""
