# SPDX-License-Identifier: Apache-2.0
"""The inputs of a model: what their types say, and one variable for each dimension that has a name."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.dtype import INT64
from ...ir.errors import OptionError, UnsupportedError
from ...runtime import text
from .importer import require_possible
from .load import dtype_of
from .strings import is_text, map_texts
from .values import ListValue, MapInput, SequenceValue, StackedValue, Value


class Dimensions:
    """Named dimensions become one shape variable each."""

    def __init__(self, fixed: Mapping[str, int]) -> None:
        self.fixed = dict(fixed)
        self.variables: dict[str, Any] = {}
        self.used: set[str] = set()

    def get(self, name: str) -> Any:
        """The variable of a named dimension, or the number that it is fixed to."""
        self.used.add(name)
        if name in self.fixed:
            return self.fixed[name]
        if name not in self.variables:
            self.variables[name] = tir.Var(identifier(name), INT64, True)
        return self.variables[name]

    def check(self) -> None:
        """Raises OptionError for fixed dimensions that no input has."""
        if unknown := [n for n in self.fixed if n not in self.used]:
            hint = f"they are {', '.join(sorted(self.used))}" if self.used else "all its dimensions are numbers"
            raise OptionError(f"the model has no symbolic dimension {unknown[0]!r}", hint=hint)


def identifier(name: str) -> str:
    """A name of the model as one of a variable, which formulas of sizes may hold: letters of any script, digits, underscores."""
    plain = "".join(c if f"x{c}".isidentifier() else "_" for c in name)
    return plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"x_{plain}"


def input_info(name: str, type_: Any, scope: Dimensions, given: Sequence[Any] | None) -> graph.StructInfo:
    """Struct info of an input; ``given`` is its shape, of a sequence the list of its items' shapes."""
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        return input_info(name, type_.optional_type.elem_type, scope, given)
    if kind == "sequence_type":
        if given is None:
            return _rows(name, input_info(name, type_.sequence_type.elem_type, scope, None), scope)
        return graph.TupleInfo(tuple(input_info(name, type_.sequence_type.elem_type, scope, s) for s in given))
    if kind == "map_type":
        size = scope.get(f"{name}_size")
        keys = graph.TensorInfo((size,), dtype_of(type_.map_type.key_type, f"input {name!r}"))
        value = type_.map_type.value_type
        if value.WhichOneof("value") != "tensor_type" or (value.tensor_type.HasField("shape") and value.tensor_type.shape.dim):
            raise UnsupportedError(f"input {name!r} is a map to something else than numbers or strings", where="the model's inputs")
        return graph.TupleInfo((keys, graph.TensorInfo((size,), dtype_of(value.tensor_type.elem_type, f"input {name!r}"))))
    if kind != "tensor_type":
        raise UnsupportedError(f"input {name!r} is a {kind or 'value without type'}, not a tensor", where="the model's inputs")
    t = type_.tensor_type
    dtype = dtype_of(t.elem_type, f"input {name!r}")
    if given is not None:
        return graph.TensorInfo(tuple(scope.get(d) if isinstance(d, str) else d for d in given), dtype)
    if not t.HasField("shape"):
        raise UnsupportedError(f"input {name!r} has no shape", where="the model's inputs", hint=f"give one: shapes={{{name!r}: [...]}}")
    dims: list[Any] = []
    for k, d in enumerate(t.shape.dim):
        if d.HasField("dim_value") and d.dim_value >= 0:
            dims.append(d.dim_value)
        else:
            label = d.dim_param if any(c.isalnum() for c in d.dim_param) else ""  # some exporters write "?" for every unknown size
            dims.append(scope.get(label or f"{name}_dim{k}"))
    made = graph.TensorInfo(tuple(dims), dtype)
    require_possible(made, f"input {name!r}")
    return made


def _rows(name: str, item: graph.StructInfo, scope: Dimensions) -> graph.TensorInfo:
    """A sequence of any length as the rows of a tensor."""
    if not isinstance(item, graph.TensorInfo):
        raise UnsupportedError(f"input {name!r} is a sequence of something else than tensors", where="the model's inputs")
    return graph.TensorInfo((scope.get(f"{name}_length"), *item.shape), item.dtype)


def parameter(var: graph.GraphExpr, type_: Any) -> Value | SequenceValue | MapInput:
    """An input's variable as a value; ``type_`` is its ONNX type."""
    text = is_text(type_)
    if type_.WhichOneof("value") == "map_type":
        return MapInput(*(Value(graph.TupleGetItem(var, k), is_text=t) for k, t in enumerate(map_texts(type_))))
    if isinstance(var.sinfo, graph.TupleInfo):
        return ListValue([Value(graph.TupleGetItem(var, k), is_text=text) for k in range(len(var.sinfo.fields))])
    return StackedValue(var, is_text=text) if is_sequence(type_) else Value(var, is_text=text)


def is_sequence(type_: Any) -> bool:
    """Whether an ONNX type is a sequence, or an optional one."""
    while type_.WhichOneof("value") == "optional_type":
        type_ = type_.optional_type.elem_type
    return type_.WhichOneof("value") == "sequence_type"


def fixed_value(value: np.ndarray) -> Value:
    """An input whose value is given at compile time."""
    if np.asarray(value).dtype.kind in "OUS":
        return Value(graph.Constant.of(text.numbers_of(value)), is_text=True)
    return Value(graph.Constant.of(value))
