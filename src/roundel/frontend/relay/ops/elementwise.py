# SPDX-License-Identifier: Apache-2.0
"""Relay's elementwise operators: arithmetic, comparison, logic, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import graph
from ..importer import NodeContext
from ..registry import converter

UNARY = {
    **{name: name for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan",
        "log", "log10", "log2", "logical_not", "negative", "nn.relu", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
        "zeros_like", "ones_like")},
    "fast_exp": "exp", "fast_tanh": "tanh", "fast_erf": "erf",
}
BINARY = ("add", "subtract", "multiply", "power", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
          "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "floor_divide",
          "floor_mod", "mod", "atan2")


def _unary(op: str) -> Callable[..., Any]:
    return lambda node, x: node.make(op, x)


def _binary(op: str) -> Callable[..., Any]:
    return lambda node, a, b: node.make(op, a, b)


for _name, _op in UNARY.items():
    converter(_name)(_unary(_op))
for _name in BINARY:
    converter(_name)(_binary(_name))


@converter("divide", "trunc_divide")
def _divide(node: NodeContext, a: Any, b: Any) -> Any:
    """Integers are divided towards zero."""
    return node.make("divide" if a.sinfo.dtype.is_float else "trunc_divide", a, b)


@converter("trunc_mod")
def _trunc_mod(node: NodeContext, a: Any, b: Any) -> Any:
    return node.make("mod", a, b)


@converter("copy", "device_copy", "on_device", "annotation.stop_fusion", "stop_fusion", "annotation.cast_hint", "annotation.checkpoint")
def _same(node: NodeContext, x: Any) -> Any:
    """What says where or how to compute, and changes no value."""
    return x


@converter("round")
def round_half_away(node: NodeContext, x: Any) -> Any:
    """To the nearest integer, halves away from zero, as TVM's ``round`` does."""
    whole = node.make("trunc", x)
    away = node.make("greater_equal", node.make("abs", node.make("subtract", x, whole)), node.like(0.5, x))
    return node.make("where", away, node.make("add", whole, node.make("sign", x)), whole)


@converter("clip")
def _clip(node: NodeContext, x: Any) -> Any:
    dtype = x.sinfo.dtype
    low, high = node.attr("a_min"), node.attr("a_max")
    if dtype.is_int:
        kind = np.iinfo(dtype.numpy)
        low, high = (int(min(max(v, kind.min), kind.max)) for v in (low, high))
    return node.make("minimum", node.make("maximum", x, node.like(low, x)), node.like(high, x))


@converter("cast")
def _cast(node: NodeContext, x: Any) -> Any:
    return node.make("astype", x, dtype=node.dtype())


@converter("cast_like")
def _cast_like(node: NodeContext, x: Any, like: Any) -> Any:
    return node.make("astype", x, dtype=like.sinfo.dtype)


@converter("where")
def _where(node: NodeContext, condition: Any, x: Any, y: Any) -> Any:
    flag = condition if condition.sinfo.dtype == "bool" else node.make("astype", condition, dtype="bool")
    return node.make("where", flag, x, y)


@converter("nn.leaky_relu")
def _leaky_relu(node: NodeContext, x: Any) -> Any:
    return node.make("nn.leakyrelu", x, alpha=node.attr("alpha", 0.25))


@converter("nn.prelu")
def _prelu(node: NodeContext, x: Any, alpha: Any) -> Any:
    return node.make("nn.prelu", x, alpha, axis=node.attr("axis", 1))


@converter("nn.bias_add")
def bias_add(node: NodeContext, x: Any, bias: Any) -> Any:
    """A bias along one axis."""
    axis = node.attr("axis", 1) % x.sinfo.ndim
    return node.make("add", x, along(node, bias, axis, x.sinfo.ndim))


def along(node: NodeContext, values: Any, axis: int, ndim: int) -> Any:
    """A vector shaped to broadcast along one axis of a tensor of ``ndim`` dimensions."""
    node.same_size(values.sinfo.ndim, 1, "a list of numbers, one for each element along an axis, is expected")
    return node.reshape(values, [1] * axis + [values.sinfo.shape[0]] + [1] * (ndim - axis - 1)) if ndim > 1 else values


@converter("nn.dropout")
def _dropout(node: NodeContext, x: Any) -> Any:
    """Nothing is dropped where a model is only run; the second result is the mask."""
    return x, node.make("ones_like", x)


@converter("full")
def _full(node: NodeContext, value: Any) -> Any:
    dtype = node.dtype(value.sinfo.dtype)
    return node.make("broadcast_to", node.reshape(node.make("astype", value, dtype=dtype), ()), graph.ShapeExpr(node.ints("shape")))


@converter("full_like")
def _full_like(node: NodeContext, like: Any, value: Any) -> Any:
    return node.make("broadcast_to", node.reshape(node.make("astype", value, dtype=like.sinfo.dtype), ()), graph.ShapeExpr(like.sinfo.shape))


@converter("zeros", "ones")
def _filled(node: NodeContext) -> Any:
    return node.make(node.kind, graph.ShapeExpr(node.ints("shape", ())), dtype=node.dtype("float32"))
