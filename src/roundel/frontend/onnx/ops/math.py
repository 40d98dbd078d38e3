# SPDX-License-Identifier: Apache-2.0
"""Elementwise ONNX operators: arithmetic, comparison, logic, activations, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ....ir import graph, tir
from ....ir.dtype import INT32
from ...common.recurrent import const_like
from ..importer import NodeContext, Value
from ..load import STRING, dtype_of
from ..registry import converter

UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos",
    "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "IsNaN": "isnan", "Log": "log", "Neg": "negative", "Not": "logical_not",
    "Relu": "nn.relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
    "Softplus": "nn.softplus", "Softsign": "nn.softsign", "HardSwish": "nn.hardswish", "Mish": "nn.mish", "BitwiseNot": "bitwise_not",
}
BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "PRelu": "nn.prelu_broadcast", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal",
    "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}
VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _unary(op: str) -> Callable[..., Any]:
    return lambda node, x: node.make(op, x.expr)


def _aligned(node: NodeContext, a: Value, b: Value) -> tuple[graph.GraphExpr, graph.GraphExpr]:
    """Two operands that broadcast. Before opset 7 an attribute says to which dimension of the first the first of the second belongs."""
    x, y = a.expr, b.expr
    axis = node.attr("axis", None) if node.opset < 7 else None
    if axis is None:
        return x, y
    behind = x.sinfo.ndim - node.axis(axis, x.sinfo.ndim) - y.sinfo.ndim
    return x, y if behind <= 0 else node.make("expand_dims", y, axis=tuple(range(y.sinfo.ndim, y.sinfo.ndim + behind)))


def _binary(op: str) -> Callable[..., Any]:
    return lambda node, a, b: node.make(op, *_aligned(node, a, b))


def _variadic(op: str) -> Callable[..., Any]:
    def convert(node: NodeContext, first: Value, *more: Value) -> Any:
        out = first.expr
        for v in more:
            out = node.make(op, out, v.expr)
        return out

    return convert


for _name, _op in UNARY.items():
    converter(_name)(_unary(_op))
for _name, _op in BINARY.items():
    if _name != "PRelu":
        converter(_name)(_binary(_op))
for _name, _op in VARIADIC.items():
    converter(_name)(_variadic(_op))


@converter("Div")
def _div(node: NodeContext, a: Value, b: Value) -> Any:
    return node.make("divide" if a.expr.sinfo.dtype.is_float else "trunc_divide", *_aligned(node, a, b))


@converter("Mod")
def _mod(node: NodeContext, a: Value, b: Value) -> Any:
    return node.make("mod" if node.attr("fmod", 0) else "floor_mod", a.expr, b.expr)


@converter("Pow")
def _pow(node: NodeContext, a: Value, b: Value) -> Any:
    x, y = _aligned(node, a, b)
    if x.sinfo.dtype == y.sinfo.dtype:
        return node.make("power", x, y)
    if x.sinfo.dtype.is_float:  # the result has the type of the base
        return node.make("power", x, node.make("astype", y, dtype=x.sinfo.dtype))
    out = node.make("power", node.make("astype", x, dtype="float64"), node.make("astype", y, dtype="float64"))
    return node.make("astype", out, dtype=x.sinfo.dtype)


@converter("Mean")
def _mean(node: NodeContext, first: Value, *more: Value) -> Any:
    out = _variadic("add")(node, first, *more)
    return node.make("divide", out, const_like(1 + len(more), out))


@converter("Reciprocal")
def _reciprocal(node: NodeContext, x: Value) -> Any:
    return node.make("divide", const_like(1, x.expr), x.expr)


@converter("IsInf")
def _isinf(node: NodeContext, x: Value) -> Any:
    positive, negative = node.attr("detect_positive", 1), node.attr("detect_negative", 1)
    inf = const_like(np.inf, x.expr)
    if positive and negative:
        return node.make("isinf", x.expr)
    if not positive and not negative:
        return node.make("astype", node.make("multiply", x.expr, const_like(0, x.expr)), dtype="bool")
    return node.make("equal", x.expr, inf if positive else const_like(-np.inf, x.expr))


@converter("BitShift")
def _bitshift(node: NodeContext, a: Value, b: Value) -> Any:
    return node.make("left_shift" if node.attr("direction") == "LEFT" else "right_shift", a.expr, b.expr)


@converter("Cast")
def _cast(node: NodeContext, x: Value) -> Any:
    return _cast_to(node, x, dtype_of(node.attr("to"), node.name), node.attr("to") == STRING)


@converter("CastLike")
def _cast_like(node: NodeContext, x: Value, like: Value) -> Any:
    return _cast_to(node, x, like.expr.sinfo.dtype, like.is_text)


def _cast_to(node: NodeContext, x: Value, dtype: Any, to_text: bool) -> Any:
    from . import strings

    if x.is_text or to_text:
        return x if x.is_text and to_text else strings.to_text(node, x) if to_text else strings.from_text(node, x, dtype)
    return converted(node, x.expr, dtype)


def converted(node: NodeContext, v: Any, dtype: Any) -> Any:
    """ONNX converts numbers to 8-bit floats with saturation unless told otherwise, and floats to integers below 8 bits by wrapping."""
    if dtype == "float8_e8m0fnu" and v.sinfo.dtype.is_float and v.sinfo.dtype != dtype:
        return _to_scale(node, v, dtype)
    if v.sinfo.dtype.is_float and dtype.is_int and dtype.bits < 8:
        v = node.make("astype", v, dtype="int32")
    if dtype.is_float and dtype.bits == 8 and v.sinfo.dtype.is_int:
        v = node.make("astype", v, dtype="float32")
    if v.sinfo.dtype.is_float and dtype.is_float and dtype.bits == 8 and node.attr("saturate", 1):
        top = float(ml_dtypes.finfo(dtype.numpy).max)
        v = node.make("clip", v, -top, top)
    if v.sinfo.dtype.is_float and dtype == "float4_e2m1fn":  # it has no NaN, which becomes negative zero
        v = node.make("where", node.make("isnan", v), const_like(-0.0, v), v)
    return node.make("astype", v, dtype=dtype)


def _to_scale(node: NodeContext, v: Any, dtype: Any) -> Any:
    """To powers of two, which are bare exponents: the sign is lost, rounding goes ``up``, ``down`` or to the ``nearest``."""
    if v.sinfo.dtype != "float32":
        v = node.make("astype", v, dtype="float32")
    mode, saturate = node.attr("round_mode", "up"), bool(node.attr("saturate", 1))

    def body(x: Any) -> tir.Expr:
        bits = tir.Call("reinterpret", (x,), INT32)
        exponent, rest = (bits >> 23) & 255, bits & 0x7FFFFF
        above = {"up": tir.gt(rest, 0), "down": tir.const(False, "bool"),
                 "nearest": tir.logical_or(tir.gt(rest, 0x400000), tir.logical_and(tir.eq(rest, 0x400000), tir.ne(exponent & 1, 0)))}[mode]
        if mode == "nearest":
            above = tir.ge(rest, 0x400000)
        grown = exponent + tir.cast(tir.logical_and(above, exponent < (254 if saturate else 255)), "int32")
        code = tir.select(tir.logical_and(tir.eq(exponent, 255), tir.const(saturate, "bool"), tir.eq(rest, 0)), tir.const(254, "int32"), grown)
        code = tir.select(tir.logical_and(tir.eq(exponent, 255), tir.ne(rest, 0)), tir.const(255, "int32"), code)
        return tir.Call("reinterpret", (tir.cast(code, "uint8"),), dtype)

    return node.elementwise(body, v, "to_scale")


@converter("Identity")
def _identity(node: NodeContext, x: Value) -> Any:
    return x


@converter("Clip")
def _clip_attributes(node: NodeContext, x: Value) -> Any:
    return _clip(node, x.expr, node.attr("min", None), node.attr("max", None))


@converter("Clip", since=11)
def _clip_inputs(node: NodeContext, x: Value, low: Value | None = None, high: Value | None = None) -> Any:
    bounds = []
    for v, op in ((low, "maximum"), (high, "minimum")):
        known = None if v is None else v.constant()
        if v is not None and known is None:
            bounds.append((op, v.expr))
        elif known is not None:
            bounds.append((op, const_like(known.item(), x.expr)))
    out = x.expr
    for op, bound in bounds:
        out = node.make(op, out, bound)
    return out


def _clip(node: NodeContext, x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = node.make("maximum", x, const_like(low, x))
    return x if high is None else node.make("minimum", x, const_like(high, x))


@converter("LeakyRelu")
def _leaky_relu(node: NodeContext, x: Value) -> Any:
    return node.make("nn.leakyrelu", x.expr, alpha=node.attr("alpha", 0.01))


@converter("PRelu")
def _prelu(node: NodeContext, x: Value, slope: Value) -> Any:
    zero, by, rank = const_like(0, x.expr), slope.expr, x.expr.sinfo.ndim
    if node.opset < 7 and by.sinfo.ndim == 1 and rank > 1:  # a slope for each channel
        by = node.make("reshape", by, graph.ShapeExpr((*by.sinfo.shape, *(tir.index_const(1),) * (rank - 2))))
    return node.make("where", node.make("less", x.expr, zero), node.make("multiply", x.expr, by), x.expr)


@converter("ThresholdedRelu")
def _thresholded_relu(node: NodeContext, x: Value) -> Any:
    return node.make("where", node.make("greater", x.expr, const_like(node.attr("alpha", 1.0), x.expr)), x.expr, const_like(0, x.expr))


@converter("Elu")
def _elu(node: NodeContext, x: Value) -> Any:
    return node.make("nn.elu", x.expr, alpha=node.attr("alpha", 1.0))


@converter("Celu")
def _celu(node: NodeContext, x: Value) -> Any:
    return node.make("nn.celu", x.expr, alpha=node.attr("alpha", 1.0))


@converter("Selu")
def _selu(node: NodeContext, x: Value) -> Any:
    return node.make("nn.selu", x.expr, alpha=node.attr("alpha", 1.67326319217681884765625), gamma=node.attr("gamma", 1.05070102214813232421875))


@converter("HardSigmoid")
def _hard_sigmoid(node: NodeContext, x: Value) -> Any:
    out = node.make("add", node.make("multiply", x.expr, const_like(node.attr("alpha", 0.2), x.expr)), const_like(node.attr("beta", 0.5), x.expr))
    return _clip(node, out, 0.0, 1.0)


@converter("Swish")
def _swish(node: NodeContext, x: Value) -> Any:
    alpha = node.attr("alpha", 1.0)
    inner = x.expr if alpha == 1 else node.make("multiply", x.expr, const_like(alpha, x.expr))
    return node.make("multiply", x.expr, node.make("sigmoid", inner))


@converter("Gelu")
@converter("Gelu", domain="com.microsoft")
def _gelu(node: NodeContext, x: Value) -> Any:
    kinds, kind = {"none": "nn.gelu", "tanh": "nn.gelu_tanh"}, node.attr("approximate", "none")
    if kind not in kinds:
        raise node.error(f"the attribute 'approximate' is {kind!r}: it must be 'none' or 'tanh'")
    return node.make(kinds[kind], x.expr)


@converter("Shrink")
def _shrink(node: NodeContext, x: Value) -> Any:
    lambd, bias, v = node.attr("lambd", 0.5), node.attr("bias", 0.0), x.expr
    low = node.make("where", node.make("less", v, const_like(-lambd, v)), node.make("add", v, const_like(bias, v)), const_like(0, v))
    return node.make("where", node.make("greater", v, const_like(lambd, v)), node.make("subtract", v, const_like(bias, v)), low)


@converter("Where")
def _where(node: NodeContext, c: Value, a: Value, b: Value) -> Any:
    return node.make("where", c.expr, a.expr, b.expr)


@converter("MatMul")
def _matmul(node: NodeContext, a: Value, b: Value) -> Any:
    return node.make("matmul", a.expr, b.expr)


@converter("Gemm")
def _gemm(node: NodeContext, a: Value, b: Value, c: Value | None = None) -> Any:
    x, w = a.expr, b.expr
    x = node.make("permute_dims", x, axes=(1, 0)) if node.attr("transA", 0) else x
    w = node.make("permute_dims", w, axes=(1, 0)) if node.attr("transB", 0) else w
    out = node.make("matmul", x, w)
    if node.attr("alpha", 1.0) != 1.0:
        out = node.make("multiply", out, const_like(node.attr("alpha"), out))
    if c is None or node.attr("beta", 1.0) == 0.0:
        return out
    bias = c.expr
    if node.attr("beta", 1.0) != 1.0:
        bias = node.make("multiply", bias, const_like(node.attr("beta"), bias))
    return node.make("add", out, bias)


@converter("Einsum")
def _einsum(node: NodeContext, *xs: Value) -> Any:
    return node.make("einsum", graph.Tuple(tuple(x.expr for x in xs)), subscripts=node.attr("equation"))
