# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of tensor expressions: ``on_tensors("nn.softmax", x, axis=-1)`` is a tensor computed from ``x``."""

from __future__ import annotations

from typing import Any

from roundel.ir import graph
from roundel.ir.attrs import Attrs
from roundel.ir.errors import UnsupportedError
from roundel.ir.op import get_op
from roundel.te import Tensor, literal


def on_tensors(name: str, *operands: Any, **attrs: Any) -> Any:
    """The result of the operator ``name`` for tensors, lists of tensors, shapes and numbers, by its own definition: a tensor or several.

    Raises TypeInferenceError for operands that do not fit, UnsupportedError for an operator that is no tensor expression.
    """
    op = get_op(name)
    tensors: dict[graph.GraphExpr, Tensor] = {}
    call = graph.make_call(op, [_value(o, tensors) for o in operands], {k: _value(v, tensors) if isinstance(v, Tensor) else v for k, v in attrs.items()})
    if not op.has("compute"):
        raise UnsupportedError(f"R.{name} is no tensor expression", why="it is decomposed into other operators or calls a function",
                               hint="use it in a graph function: relax.BlockBuilder")
    return op.compute(tuple(_operand(a, tensors) for a in call.args), Attrs(call.attrs))


def _value(operand: Any, tensors: dict[graph.GraphExpr, Tensor]) -> Any:
    if isinstance(operand, Tensor):
        variable = graph.Var(operand.name, graph.TensorInfo(tuple(operand.shape), operand.dtype))
        tensors[variable] = operand
        return variable
    if isinstance(operand, list | tuple) and any(isinstance(o, Tensor) for o in operand):
        return graph.Tuple(tuple(_value(o, tensors) for o in operand))
    return operand


def _operand(value: Any, tensors: dict[graph.GraphExpr, Tensor]) -> Any:
    """An operand as ``compute`` takes it."""
    if isinstance(value, graph.Tuple):
        return tuple(_operand(f, tensors) for f in value.fields)
    if isinstance(value, graph.ShapeExpr):
        return value.values
    if isinstance(value, graph.PrimValue):
        return value.value
    if isinstance(value, graph.Constant):  # a number
        return literal(value.data.numpy().reshape(()).item(), value.data.shape, value.data.dtype)
    return tensors.get(value)
