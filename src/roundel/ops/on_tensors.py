# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of tensor expressions: ``on_tensors("nn.softmax", x, axis=-1)`` is a tensor computed from ``x``."""

from __future__ import annotations

from typing import Any

from roundel.ir import graph
from roundel.ir.attrs import Attrs
from roundel.ir.errors import UnsupportedError
from roundel.ir.op import FuseKind, get_op
from roundel.ir.tir import Expr
from roundel.te import Tensor, literal


def on_tensors(name: str, *operands: Any, **attrs: Any) -> Any:
    """The result of the operator ``name`` for tensors, lists of tensors, shapes and numbers, by its own definition: a tensor or several.

    Raises TypeInferenceError for operands that do not fit, UnsupportedError for an operator that is no tensor expression.
    """
    tensors, op = _Tensors(), get_op(name)
    if op.kind is not None and op.kind <= FuseKind.BROADCAST:  # of numbers, whose type counts, too
        operands = tuple(literal(o) if isinstance(o, Expr) else o for o in operands)
    return tensors.of(graph.make_call(op, [tensors.value(o) for o in operands],
                                      {k: tensors.value(v) if isinstance(v, Tensor) else v for k, v in attrs.items()}))


class _Tensors:
    """The tensor that each variable of a graph stands for. It is the builder of operators that are composed of others."""

    def __init__(self) -> None:
        self.known: dict[graph.GraphExpr, Any] = {}

    def value(self, operand: Any) -> Any:
        """A tensor, or a list of tensors, as part of a graph."""
        if isinstance(operand, Tensor):
            return self._variable(operand.name, operand, graph.TensorInfo(tuple(operand.shape), operand.dtype))
        if isinstance(operand, list | tuple) and any(isinstance(o, Tensor) for o in operand):
            return graph.Tuple(tuple(map(self.value, operand)))
        return operand

    def _variable(self, name: str, tensor: Any, info: graph.StructInfo) -> graph.Var:
        variable = graph.Var(name, info)
        self.known[variable] = tensor
        return variable

    def emit(self, value: graph.GraphExpr, name: str = "lv") -> graph.Var:
        """A variable for what is computed."""
        return self._variable(name, self.of(value), value.sinfo)

    def of(self, value: Any) -> Any:
        """A value of the graph as ``compute`` takes it: calls and variables as tensors, shapes as tuples, numbers as expressions."""
        if isinstance(value, graph.Call):
            return self._call(value)
        if isinstance(value, graph.TupleGetItem):
            return self.of(value.tuple_value)[value.index]
        if isinstance(value, graph.Tuple):
            return tuple(map(self.of, value.fields))
        if isinstance(value, graph.ShapeExpr):
            return value.values
        if isinstance(value, graph.PrimValue):
            return value.value
        if isinstance(value, graph.Constant):  # a number
            return literal(value.data.numpy().reshape(()).item(), value.data.shape, value.data.dtype)
        return self.known.get(value)

    def _call(self, call: graph.Call) -> Any:
        op = call.op
        if op.has("compute"):
            return op.compute(tuple(map(self.of, call.args)), Attrs(call.attrs))
        if not op.has("decompose"):
            raise UnsupportedError(f"R.{op.name} is no tensor expression", why="it calls a function", hint="use it in a graph function: relax.BlockBuilder")
        return self.of(op.decompose(self, call.args, Attrs(call.attrs)))
