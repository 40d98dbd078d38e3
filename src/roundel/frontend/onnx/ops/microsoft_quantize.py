# SPDX-License-Identifier: Apache-2.0
"""com.microsoft quantised operators: QLinear*, products of integers, weights in blocks of 2, 4 and 8 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter, find
from . import nn, recurrent
from .math import const_like
from .microsoft import MS, cut, kept_count, normalised, reshaped
from .microsoft_attention import attention_of
from .quantize import LIMITS, minus_zero, spread


def real(node: NodeContext, x: Any, scale: Value, zero: Value | None, shape: tuple[Any, ...] | None = None) -> Any:
    """The numbers that quantised ones stand for; ``shape`` is what a list of scales broadcasts as (see ``spread``)."""
    whole = node.make("astype", minus_zero(node, x, zero, shape), dtype="float32")
    return node.make("multiply", whole, node.make("astype", spread(node, scale.expr, shape), dtype="float32"))


def quantised(node: NodeContext, x: Any, scale: Value, zero: Value | None, dtype: Any) -> Any:
    """Numbers in units of a scale, rounded half to even, moved by the zero point and saturated."""
    out = node.make("round", node.make("divide", x, spread(node, scale.expr, None)))
    if zero is not None:
        out = node.make("add", out, node.make("astype", spread(node, zero.expr, None), dtype="float32"))
    low, high = LIMITS[dtype]
    return node.make("astype", node.make("minimum", node.make("maximum", out, const_like(low, out)), const_like(high, out)), dtype=dtype)


def _unary(fn: Callable[[NodeContext, Any], Any]) -> Callable[..., Any]:
    def convert(node: NodeContext, x: Value, scale: Value, zero: Value | None, y_scale: Value, y_zero: Value | None = None) -> Any:
        return quantised(node, fn(node, real(node, x.expr, scale, zero)), y_scale, y_zero, x.expr.sinfo.dtype)

    return convert


def _leaky_relu(node: NodeContext, x: Any) -> Any:
    return node.make("where", node.make("less", x, const_like(0, x)), node.make("multiply", x, const_like(node.attr("alpha", 0.01), x)), x)


def _pooled(node: NodeContext, x: Any, pool: Callable[[Any], Any]) -> Any:
    if not node.attr("channels_last", 0):
        return pool(x)
    n = x.sinfo.ndim
    out = pool(node.make("permute_dims", x, axes=(0, n - 1, *range(1, n - 1))))
    return node.make("permute_dims", out, axes=(0, *range(2, n), 1))


def _softmax(node: NodeContext, x: Any) -> Any:
    return find("", "Softmax", node.attr("opset"))(node, Value(x))  # type: ignore[misc]


def _mean(node: NodeContext, x: Any) -> Any:
    axes = node.attr("axes", None)
    return node.make("mean", x, axis=None if axes is None else node.axes(axes, x.sinfo.ndim), keepdims=bool(node.attr("keepdims", 1)))


for _name, _fn in {
    "QLinearSigmoid": lambda node, x: node.make("sigmoid", x),
    "QLinearLeakyRelu": _leaky_relu,
    "QLinearSoftmax": _softmax,
    "QLinearReduceMean": _mean,
    "QLinearGlobalAveragePool": lambda node, x: _pooled(node, x, lambda v: node.make("mean", v, axis=tuple(range(2, v.sinfo.ndim)), keepdims=True)),
    "QLinearAveragePool": lambda node, x: _pooled(node, x, lambda v: nn.average_pool(node, Value(v))),
}.items():
    converter(_name, domain=MS)(_unary(_fn))


def _binary(op: str) -> Callable[..., Any]:
    def convert(node: NodeContext, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value, b_zero: Value | None, scale: Value,
                zero: Value | None = None) -> Any:
        out = node.make(op, real(node, a.expr, a_scale, a_zero), real(node, b.expr, b_scale, b_zero))
        return quantised(node, out, scale, zero, a.expr.sinfo.dtype)

    return convert


for _name, _op in {"QLinearAdd": "add", "QLinearMul": "multiply"}.items():
    converter(_name, domain=MS)(_binary(_op))


@converter("QLinearConcat", domain=MS)
def _concat(node: NodeContext, scale: Value, zero: Value, *parts: Value) -> Any:
    values = [real(node, parts[k].expr, parts[k + 1], parts[k + 2]) for k in range(0, len(parts), 3)]
    axis = node.axis(node.attr("axis"), values[0].sinfo.ndim)
    return quantised(node, node.make("concat", graph.Tuple(tuple(values)), axis=axis), scale, zero, zero.expr.sinfo.dtype)


@converter("QLinearWhere", domain=MS)
def _where(node: NodeContext, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value, y_zero: Value, scale: Value,
           zero: Value) -> Any:
    out = node.make("where", condition.expr, real(node, x.expr, x_scale, x_zero), real(node, y.expr, y_scale, y_zero))
    return quantised(node, out, scale, zero, x.expr.sinfo.dtype)


# ---- products


def _scaled_product(node: NodeContext, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None, a_scale: Value, b_scale: Value) -> Any:
    """The product of integers without their zero points, exact in int32, in float32 units."""
    total = node.make("matmul", minus_zero(node, a.expr, a_zero, (None, 1)), minus_zero(node, b.expr, b_zero, (None,)))
    scale = node.make("multiply", spread(node, a_scale.expr, (None, 1)), spread(node, b_scale.expr, (None,)))
    return node.make("multiply", node.make("astype", total, dtype="float32"), scale)


def _plus(node: NodeContext, x: Any, bias: Value | None) -> Any:
    return x if bias is None else node.make("add", x, bias.expr)


@converter("MatMulIntegerToFloat", domain=MS)
def _matmul_to_float(node: NodeContext, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None, b_zero: Value | None = None,
                     bias: Value | None = None) -> Any:
    return _plus(node, _scaled_product(node, a, b, a_zero, b_zero, a_scale, b_scale), bias)


@converter("DynamicQuantizeMatMul", domain=MS)
def _dynamic_matmul(node: NodeContext, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None, bias: Value | None = None) -> Any:
    q, scale, zero = _quantised_now(node, a.expr)
    return _plus(node, _scaled_product(node, q, b, zero, b_zero, scale, b_scale), bias)


def _quantised_now(node: NodeContext, x: Any) -> tuple[Value, Value, Value]:
    """As DynamicQuantizeLinear: uint8 over the range of the values with 0 in it; the result, its scale, its zero point."""
    nought = const_like(0, x)
    low, high = node.make("minimum", node.make("min", x), nought), node.make("maximum", node.make("max", x), nought)
    scale = node.make("divide", node.make("subtract", high, low), const_like(255, x))
    scale = node.make("where", node.make("equal", scale, nought), const_like(1, x), scale)
    zero = node.make("round", node.make("divide", node.make("subtract", nought, low), scale))
    zero = node.make("astype", node.make("minimum", node.make("maximum", zero, nought), const_like(255, x)), dtype="uint8")
    values = Value(scale), Value(zero)
    return Value(quantised(node, x, *values, zero.sinfo.dtype)), *values


@converter("QGemm", domain=MS)
def _qgemm(node: NodeContext, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value, c: Value | None = None,
           y_scale: Value | None = None, y_zero: Value | None = None) -> Any:
    turned = lambda x, flag: node.make("permute_dims", x, axes=(1, 0)) if node.attr(flag, 0) else x
    columns = (None, 1) if node.attr("transB", 0) else (None,)
    x, w = turned(minus_zero(node, a.expr, a_zero), "transA"), turned(minus_zero(node, b.expr, b_zero, columns), "transB")
    total = node.make("matmul", x, w)
    total = total if c is None else node.make("add", total, c.expr)
    scale = node.make("multiply", spread(node, a_scale.expr, None), spread(node, b_scale.expr, (None,)))
    out = node.make("multiply", node.make("astype", total, dtype="float32"), scale)
    if node.attr("alpha", 1.0) != 1.0:
        out = node.make("multiply", out, const_like(node.attr("alpha"), out))
    return out if y_scale is None else quantised(node, out, y_scale, y_zero, "uint8" if y_zero is None else y_zero.expr.sinfo.dtype)


# ---- weights in blocks


def _unpacked(node: NodeContext, x: Any, bits: int) -> Any:
    """The levels in bytes, lowest bits first, along the last axis."""
    if bits == 8:
        return x
    per, mask = 8 // bits, graph.Constant.of(np.uint8((1 << bits) - 1))
    parts = [node.make("bitwise_and", node.make("right_shift", x, graph.Constant.of(np.uint8(bits * k))) if k else x, mask) for k in range(per)]
    last = x.sinfo.ndim
    out = node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(last,)) for p in parts)), axis=last)
    return reshaped(node, out, *x.sinfo.shape[:-1], x.sinfo.shape[-1] * per)


@converter("MatMulNBits", domain=MS)
def _matmul_nbits(node: NodeContext, a: Value, b: Value, scales: Value, zeros: Value | None = None, order: Value | None = None,
                  bias: Value | None = None) -> Any:
    if order is not None or node.attr("weight_prepacked", 0):
        raise node.unsupported("an order of groups, and weights that are packed for a device")
    bits, block, n, k = node.attr("bits", 4), node.attr("block_size"), node.attr("N"), node.attr("K")
    blocks = -(-k // block)
    dtype = a.expr.sinfo.dtype
    levels = reshaped(node, _unpacked(node, reshaped(node, b.expr, n, blocks, block * bits // 8), bits), n, blocks, block)
    levels = node.make("astype", levels, dtype="float32")
    if zeros is None:
        zero: Any = const_like(1 << (bits - 1), levels)
    elif zeros.expr.sinfo.dtype == "uint8":
        packed = reshaped(node, zeros.expr, n, -(-blocks * bits // 8))
        zero = reshaped(node, cut(node, _unpacked(node, packed, bits), 1, 0, blocks), n, blocks, 1)
    else:
        zero = reshaped(node, zeros.expr, n, blocks, 1)
    zero = zero if zeros is None else node.make("astype", zero, dtype="float32")
    scale = node.make("astype", reshaped(node, scales.expr, n, blocks, 1), dtype="float32")
    weights = reshaped(node, node.make("multiply", node.make("subtract", levels, zero), scale), n, blocks * block)
    weights = node.make("astype", cut(node, weights, 1, 0, k), dtype=dtype)
    return _plus(node, node.make("matmul", a.expr, node.make("permute_dims", weights, axes=(1, 0))), bias)


@converter("GatherBlockQuantized", domain=MS)
def _gather_blocks(node: NodeContext, data: Value, indices: Value, scales: Value, zeros: Value | None = None) -> Any:
    """Rows of a table whose last axis is quantised in blocks, the last of which may be shorter; what is read is widened, not the table."""
    rank, block = data.expr.sinfo.ndim, node.attr("block_size", 128)
    if node.axis(node.attr("gather_axis", 0), rank) or node.axis(node.attr("quantize_axis", 1), rank) != rank - 1:
        raise node.unsupported("gathering other than rows, or blocks along another axis than the last")
    dtype, bits = data.expr.sinfo.dtype, node.attr("bits", 4)
    is_packed = dtype == "uint8"
    rows = lambda v: node.make("take", v.expr, indices.expr, axis=0)
    levels = _unpacked(node, rows(data), bits) if is_packed else rows(data)
    *lead, width = levels.sinfo.shape
    scale = rows(scales)
    blocks = scale.sinfo.shape[-1]
    node.same_size(blocks, tir.ceildiv(width, block), f"scales of a row and blocks of {block} of its elements")
    out = node.make("astype", levels, dtype=scale.sinfo.dtype)

    def wide(t: Any) -> Any:
        """One number of each block for all its elements."""
        t = node.make("expand_dims", node.make("astype", t, dtype=scale.sinfo.dtype), axis=(levels.sinfo.ndim,))
        t = node.make("broadcast_to", t, graph.ShapeExpr((*lead, blocks, tir.index_const(block))))
        return cut(node, reshaped(node, t, *lead, blocks * block), len(lead), 0, width)

    if zeros is not None:
        zero = rows(zeros)
        out = node.make("subtract", out, wide(cut(node, _unpacked(node, zero, bits), -1, 0, blocks) if is_packed else zero))
    elif is_packed:
        out = node.make("subtract", out, const_like(1 << (bits - 1), out))
    return node.make("multiply", out, wide(scale))


# ---- networks


@converter("QEmbedLayerNormalization", domain=MS)
def _embed(node: NodeContext, ids: Value, segments: Value | None, words: Value, positions: Value, kinds: Value | None, gamma: Value, beta: Value,
           mask: Value | None, *facts: Value | None) -> Any:
    """``facts``: five scales, then five zero points, of words, positions, segments, gamma and beta. Rows are widened, not tables."""
    wide = lambda x, k: real(node, x, facts[k], facts[k + 5])  # type: ignore[arg-type]
    batch, length = ids.expr.sinfo.shape
    total = wide(node.make("take", words.expr, ids.expr, axis=0), 0)
    total = node.make("add", total, wide(cut(node, positions.expr, 0, 0, length), 1))
    if segments is not None and kinds is not None:
        total = node.make("add", total, wide(node.make("take", kinds.expr, segments.expr, axis=0), 2))
    out, _, _ = normalised(node, total, Value(wide(gamma.expr, 3)), Value(wide(beta.expr, 4)), centre=True)
    return out, kept_count(node, mask, batch)


@converter("DynamicQuantizeLSTM", domain=MS)
def _lstm(node: NodeContext, x: Value, w: Value, r: Value, bias: Value | None, lengths: Value | None, initial_h: Value | None,
          initial_c: Value | None, peepholes: Value | None, w_scale: Value, w_zero: Value, r_scale: Value, r_zero: Value) -> Any:
    """Inputs are quantised once, over all steps, the state in each step; products are sums of integers."""
    weights = {"w": (w, w_scale, w_zero), "r": (r, r_scale, r_zero)}

    def product(v: Any, which: str, direction: int) -> Any:
        matrix, b_scale, b_zero = (Value(recurrent.at(node, p.expr, direction)) for p in weights[which])
        q, scale, zero = _quantised_now(node, v)
        return _scaled_product(node, q, matrix, zero, b_zero, scale, b_scale)

    turned = (Value(node.make("permute_dims", v.expr, axes=(0, 2, 1))) for v in (w, r))
    return recurrent.lstm(node, x, *turned, bias, lengths, initial_h, initial_c, peepholes, product)


@converter("QAttention", domain=MS)
def _attention(node: NodeContext, x: Value, w: Value, bias: Value, x_scale: Value, w_scale: Value, mask: Value | None = None,
               x_zero: Value | None = None, w_zero: Value | None = None, past: Value | None = None) -> Any:
    product = _plus(node, _scaled_product(node, x, w, x_zero, w_zero, x_scale, w_scale), bias)
    return attention_of(node, product, mask, past, None)
