# SPDX-License-Identifier: Apache-2.0
"""Elementwise ATen operators, with PyTorch's type promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import graph, tir
from ..dtypes import dtype_of
from ..importer import NodeContext
from ..registry import converter

UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "ceil": "ceil", "cos": "cos",
    "cosh": "cosh", "erf": "erf", "exp": "exp", "expm1": "expm1", "floor": "floor", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10",
    "neg": "negative", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "tan": "tan", "tanh": "tanh", "trunc": "trunc", "relu": "nn.relu", "exp2": "exp2", "erfc": "erfc", "lgamma": "lgamma",
}
PREDICATES = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "maximum": "maximum", "minimum": "minimum", "atan2": "atan2",
          "__lshift__": "left_shift", "__rshift__": "right_shift",
          "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
          "fmod": "mod", "remainder": "floor_mod", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}
COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
ON_TRUTH = {"add": "logical_or", "multiply": "logical_and", "maximum": "logical_or", "minimum": "logical_and"}
LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}


def scalar(value: Any, dtype: Any) -> graph.GraphExpr:
    """A Python number (or symbolic size, or number made of sizes) as a scalar tensor."""
    if isinstance(value, graph.GraphExpr):
        from ....ops import make

        return make("astype", value, dtype=dtype)
    if isinstance(value, tir.Expr):
        from ....ops import make

        return make("astype", make("reshape", make("shape_to_tensor", graph.ShapeExpr((value,))), graph.ShapeExpr(())), dtype=dtype)
    return graph.Constant.of(np.asarray(value).astype(dtype.numpy))


def tensor(node: NodeContext, value: Any, dtype: Any) -> graph.GraphExpr:
    """An operand (tensor or number) as a tensor of ``dtype``."""
    if not isinstance(value, graph.GraphExpr):
        return node.emit(scalar(value, dtype))
    return value if value.sinfo.dtype == dtype else node.make("astype", value, dtype=dtype)


def _meet(node: NodeContext, a: Any, b: Any) -> Any:
    """The type PyTorch computes in for these operands: the fake result's, or of comparisons the promoted operands'."""
    import torch

    def stand_in(v: Any) -> Any:
        return v if not isinstance(v, graph.GraphExpr) else torch.empty((1,) * v.sinfo.ndim, dtype=getattr(torch, str(v.sinfo.dtype)))

    def plain(v: Any) -> Any:
        return 1 if isinstance(v, tir.Expr) else v

    return dtype_of(torch.result_type(plain(stand_in(a)), plain(stand_in(b))))


for _name, _op in UNARY.items():
    def _unary(node: NodeContext, x: Any, op: str = _op, **_: Any) -> Any:
        return node.make(op, tensor(node, x, node.out_dtype()))

    converter(_name)(_unary)
for _name, _op in PREDICATES.items():
    converter(_name)(lambda node, x, op=_op: node.make(op, x) if x.sinfo.dtype.is_float else node.make(
        "full", graph.ShapeExpr(x.sinfo.shape), graph.Constant.of(np.asarray(op == "isfinite")), dtype="bool"))


def _binary(op: str, common: Callable[[NodeContext, Any, Any], Any]) -> Callable[..., Any]:
    def convert(node: NodeContext, a: Any, b: Any, *, alpha: Any = 1) -> Any:
        dtype = common(node, a, b)
        if dtype == "bool" and op in ON_TRUTH:
            return node.make(ON_TRUTH[op], tensor(node, a, dtype), tensor(node, b, dtype))
        y = tensor(node, b, dtype)
        if alpha != 1:
            y = node.make("multiply", y, tensor(node, alpha, dtype))
        out = node.make(op, tensor(node, a, dtype), y)
        return out

    return convert


for _name, _op in BINARY.items():
    converter(_name)(_binary(_op, lambda node, a, b: node.out_dtype()))
for _name, _op in COMPARE.items():
    converter(_name)(_binary(_op, _meet))
for _name, _op in LOGICAL.items():
    converter(_name)(lambda node, a, b, op=_op: node.make(op, _truth(node, a), _truth(node, b)))


def _truth(node: NodeContext, x: Any) -> Any:
    return x if x.sinfo.dtype == "bool" else node.make("astype", x, dtype="bool")


@converter("logical_not")
def _logical_not(node: NodeContext, x: Any) -> Any:
    return node.make("logical_not", _truth(node, x))


@converter("bitwise_not")
def _bitwise_not(node: NodeContext, x: Any) -> Any:
    return node.make("logical_not" if x.sinfo.dtype == "bool" else "bitwise_not", x)


@converter("rsub.Scalar", "rsub.Tensor")
def _rsub(node: NodeContext, a: Any, b: Any, alpha: Any = 1) -> Any:
    return _binary("subtract", lambda n, x, y: n.out_dtype())(node, b, a, alpha=alpha)


@converter("div", "true_divide")
def _div(node: NodeContext, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    dtype = node.out_dtype()
    x, y = tensor(node, a, dtype), tensor(node, b, dtype)
    if rounding_mode is None:
        return node.make("divide", x, y)
    if rounding_mode == "floor":
        return node.make("floor_divide", x, y)
    return node.make("trunc_divide", x, y) if dtype.is_int else node.make("trunc", node.make("divide", x, y))


@converter("floor_divide")
def _floor_divide(node: NodeContext, a: Any, b: Any) -> Any:
    return _div(node, a, b, rounding_mode="floor")


@converter("pow")
def _pow(node: NodeContext, a: Any, b: Any) -> Any:
    dtype = node.out_dtype()
    return node.make("power", tensor(node, a, dtype), tensor(node, b, dtype))


@converter("reciprocal")
def _reciprocal(node: NodeContext, x: Any) -> Any:
    dtype = node.out_dtype()
    return node.make("divide", scalar(1, dtype), tensor(node, x, dtype))


@converter("round", "round.decimals")
def _round(node: NodeContext, x: Any, *, decimals: int = 0) -> Any:
    if decimals == 0:
        return node.make("round", x)
    factor = scalar(10.0 ** abs(decimals), x.sinfo.dtype)
    there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return node.make(back, node.make("round", node.make(there, x, factor)), factor)


@converter("fmax", "fmin")
def _ignoring_nan(node: NodeContext, a: Any, b: Any) -> Any:
    dtype = node.out_dtype()
    x, y = tensor(node, a, dtype), tensor(node, b, dtype)
    out = node.make("maximum" if "fmax" in str(node.node.target) else "minimum", x, y)
    if not dtype.is_float:
        return out
    return node.make("where", node.make("isnan", x), y, node.make("where", node.make("isnan", y), x, out))


@converter("square")
def _square(node: NodeContext, x: Any) -> Any:
    return node.make("multiply", x, x)


@converter("where.self")
def _where(node: NodeContext, c: Any, a: Any, b: Any) -> Any:
    dtype = node.out_dtype()
    return node.make("where", c, tensor(node, a, dtype), tensor(node, b, dtype))


@converter("clamp", "clamp.Tensor", "hardtanh")
def _clamp(node: NodeContext, x: Any, min: Any = None, max: Any = None, min_val: Any = None, max_val: Any = None) -> Any:  # noqa: A002
    dtype = node.out_dtype()
    if "hardtanh" in str(node.node.target):
        min, max = -1.0 if min is None else min, 1.0 if max is None else max  # noqa: A001
    low, high = min if min is not None else min_val, max if max is not None else max_val
    out = tensor(node, x, dtype)
    out = out if low is None else node.make("maximum", out, tensor(node, low, dtype))
    return out if high is None else node.make("minimum", out, tensor(node, high, dtype))


@converter("relu6")
def _relu6(node: NodeContext, x: Any) -> Any:
    return _clamp(node, x, 0, 6)


@converter("_to_copy", "to.dtype", "prims.convert_element_type", "prims.device_put")
def _to_copy(node: NodeContext, x: Any, *_: Any, **__: Any) -> Any:
    return tensor(node, x, node.out_dtype())


@converter("clone", "alias", "detach", "contiguous", "lift_fresh_copy", "dropout", "copy")
def _identity(node: NodeContext, x: Any, *rest: Any, **_: Any) -> Any:
    if "copy" in str(node.node.target) and rest and isinstance(rest[0], graph.GraphExpr):
        return node.make("broadcast_to", tensor(node, rest[0], x.sinfo.dtype), node.out_shape())
    return x


@converter("gelu")
def _gelu(node: NodeContext, x: Any, *, approximate: str = "none") -> Any:
    return node.make("nn.gelu_tanh" if approximate == "tanh" else "nn.gelu", x)


@converter("silu")
def _silu(node: NodeContext, x: Any) -> Any:
    return node.make("nn.silu", x)


@converter("leaky_relu")
def _leaky_relu(node: NodeContext, x: Any, slope: float = 0.01) -> Any:
    return node.make("nn.leakyrelu", x, alpha=float(slope))


@converter("elu")
def _elu(node: NodeContext, x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    dtype = x.sinfo.dtype
    inner = x if input_scale == 1 else node.make("multiply", x, scalar(input_scale, dtype))
    negative = node.make("multiply", node.make("expm1", inner), scalar(alpha * scale, dtype))
    positive = x if scale == 1 else node.make("multiply", x, scalar(scale, dtype))
    return node.make("where", node.make("greater", x, scalar(0, dtype)), positive, negative)


@converter("hardsigmoid")
def _hardsigmoid(node: NodeContext, x: Any) -> Any:
    dtype = x.sinfo.dtype
    shifted = node.make("add", x, scalar(3, dtype))
    inside = node.make("minimum", node.make("maximum", shifted, scalar(0, dtype)), scalar(6, dtype))
    return node.make("divide", inside, scalar(6, dtype))


@converter("hardswish")
def _hardswish(node: NodeContext, x: Any) -> Any:
    return node.make("multiply", x, _hardsigmoid(node, x))
