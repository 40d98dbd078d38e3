# SPDX-License-Identifier: Apache-2.0
"""com.microsoft operators that fuse or vary standard ones: activations with a bias, normalisation of sums, products, convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ops.data_dependent import unique_of
from ..importer import NodeContext, Value
from ..registry import converter, find
from . import data_dependent, index, quantize, tensor, vision  # noqa: F401  (their converters are used under another domain)
from .math import UNARY, const_like
from .nn import convolution
from .tensor import cut

MS = "com.microsoft"

# Operators that are the standard's, by the opset version whose form they have.
for _name, _version in {"Trilu": 14, "Pad": 13, "Range": 11, "GatherND": 12, "GridSample": 16, "QuantizeLinear": 19, "DequantizeLinear": 19}.items():
    converter(_name, domain=MS)(find("", _name, _version))  # type: ignore[arg-type]


def reshaped(node: NodeContext, x: Any, *dims: Any) -> Any:
    """``x`` with other dimensions (ints or expressions)."""
    return node.make("reshape", x, graph.ShapeExpr(tuple(tir.as_index(d) for d in dims)))


def _biased(node: NodeContext, x: Value, bias: Value | None) -> Any:
    return x.expr if bias is None else node.make("add", x.expr, bias.expr)


@converter("BiasGelu", domain=MS)
def _bias_gelu(node: NodeContext, x: Value, bias: Value | None = None) -> Any:
    return node.make("nn.gelu", _biased(node, x, bias))


@converter("FastGelu", domain=MS)
def _fast_gelu(node: NodeContext, x: Value, bias: Value | None = None) -> Any:
    return node.make("nn.gelu_tanh", _biased(node, x, bias))


@converter("QuickGelu", domain=MS)
def _quick_gelu(node: NodeContext, x: Value) -> Any:
    scaled = node.make("multiply", x.expr, const_like(node.attr("alpha", 1.702), x.expr))
    return node.make("multiply", x.expr, node.make("sigmoid", scaled))


@converter("BiasSplitGelu", domain=MS)
def _bias_split_gelu(node: NodeContext, x: Value, bias: Value) -> Any:
    v = _biased(node, x, bias)
    width = tir.floordiv(v.sinfo.shape[-1], 2)
    return node.make("multiply", cut(node, v, -1, 0, width), node.make("nn.gelu", cut(node, v, -1, width, width * 2)))


@converter("BiasAdd", domain=MS)
def _bias_add(node: NodeContext, x: Value, bias: Value, skip: Value) -> Any:
    return node.make("add", _biased(node, x, bias), skip.expr)


# ---- normalisation


def _wide(node: NodeContext, x: Any) -> Any:
    return node.make("astype", x, dtype="float32") if x.sinfo.dtype.bits < 32 else x


def normalised(node: NodeContext, x: Any, gamma: Value, beta: Value | None, *, centre: bool, axis: int = -1) -> tuple[Any, Any, Any]:
    """Layer normalisation (root mean square without ``centre``) over the axes from ``axis`` on: result, mean, 1 / deviation."""
    v, axes = _wide(node, x), tuple(range(node.axis(axis, x.sinfo.ndim), x.sinfo.ndim))
    eps = node.attr("epsilon", 1e-12 if centre else 1e-5)
    simple = centre and x.sinfo.dtype.bits >= 32 and beta is not None and not any(node.node.output[1:3]) and len(axes) == 1
    if simple:
        return node.make("nn.layer_norm", x, gamma.expr, beta.expr, axes=axes, epsilon=eps), None, None  # type: ignore[union-attr]
    mean = node.make("mean", v, axis=axes, keepdims=True) if centre else None
    v = node.make("subtract", v, mean) if mean is not None else v
    spread = node.make("mean", node.make("multiply", v, v), axis=axes, keepdims=True)
    inverse = node.make("rsqrt", node.make("add", spread, const_like(eps, spread)))
    out = node.make("multiply", node.make("multiply", v, inverse), _wide(node, gamma.expr))
    out = out if beta is None else node.make("add", out, _wide(node, beta.expr))
    return node.make("astype", out, dtype=x.sinfo.dtype), mean, inverse


def _rms_norm(node: NodeContext, x: Value, scale: Value) -> Any:
    out, _, inverse = normalised(node, x.expr, scale, None, centre=False, axis=node.attr("axis", -1))
    return out, inverse


for _domain in ("", MS):  # exporters write it in either
    converter("SimplifiedLayerNormalization", domain=_domain)(_rms_norm)


def _with_skip(node: NodeContext, x: Value, skip: Value, bias: Value | None) -> Any:
    total = node.make("add", x.expr, skip.expr)
    return total if bias is None else node.make("add", total, bias.expr)


@converter("SkipLayerNormalization", domain=MS)
def _skip_layer_norm(node: NodeContext, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None) -> Any:
    total = _with_skip(node, x, skip, bias)
    return (*normalised(node, total, gamma, beta, centre=True), total)


@converter("SkipSimplifiedLayerNormalization", domain=MS)
def _skip_rms_norm(node: NodeContext, x: Value, skip: Value, gamma: Value, bias: Value | None = None) -> Any:
    total = _with_skip(node, x, skip, bias)
    return (*normalised(node, total, gamma, None, centre=False), total)


@converter("EmbedLayerNormalization", domain=MS)
def _embed(node: NodeContext, ids: Value, segments: Value | None, words: Value, positions: Value, segment_table: Value | None, gamma: Value,
           beta: Value, mask: Value | None = None, places: Value | None = None) -> Any:
    rows_of = lambda table, at: node.make("take", table.expr, node.positions(at.expr, table.expr.sinfo.shape[0]), axis=0)
    total = rows_of(words, ids)
    batch, length = ids.expr.sinfo.shape
    if places is None:
        rows = cut(node, positions.expr, 0, 0, length)
    else:
        rows = rows_of(positions, places)
    total = node.make("add", total, rows)
    if segments is not None and segment_table is not None:
        total = node.make("add", total, rows_of(segment_table, segments))
    out, _, _ = normalised(node, total, gamma, beta, centre=True)
    return out, kept_count(node, mask, batch), total


def kept_count(node: NodeContext, mask: Value | None, batch: Any) -> Any:
    """How many tokens of each row a mask keeps; 0 without one."""
    if mask is None:
        return node.make("zeros", graph.ShapeExpr((batch,)), dtype="int32")
    kept = node.make("equal", mask.expr, const_like(1, mask.expr))
    return node.make("sum", node.make("astype", kept, dtype="int32"), axis=(1,), keepdims=False)


@converter("GroupNorm", domain=MS)
def _group_norm(node: NodeContext, x: Value, gamma: Value, beta: Value) -> Any:
    return _grouped(node, x.expr, gamma, beta)


@converter("SkipGroupNorm", domain=MS)
def _skip_group_norm(node: NodeContext, x: Value, gamma: Value, beta: Value, skip: Value, bias: Value | None = None) -> Any:
    s = skip.expr
    if s.sinfo.ndim == 2:
        s = node.make("expand_dims", s, axis=(1, 2) if node.attr("channels_last", 1) else (2, 3))
    total = node.make("add", x.expr, s)
    if bias is not None:
        total = node.make("add", total, bias.expr if node.attr("channels_last", 1) else node.make("expand_dims", bias.expr, axis=(1, 2)))
    return _grouped(node, total, gamma, beta), total


def _grouped(node: NodeContext, x: Any, gamma: Value, beta: Value) -> Any:
    last = bool(node.attr("channels_last", 1))
    v = node.make("permute_dims", x, axes=(0, 3, 1, 2)) if last else x
    groups = node.attr("groups")
    n, c, h, w = v.sinfo.shape
    v = reshaped(node, _wide(node, v), n, groups, tir.floordiv(c, groups), h, w)
    mean = node.make("mean", v, axis=(2, 3, 4), keepdims=True)
    v = node.make("subtract", v, mean)
    spread = node.make("mean", node.make("multiply", v, v), axis=(2, 3, 4), keepdims=True)
    v = node.make("multiply", v, node.make("rsqrt", node.make("add", spread, const_like(node.attr("epsilon", 1e-5), spread))))
    shaped = lambda p: reshaped(node, _wide(node, p.expr), c, 1, 1)
    v = node.make("add", node.make("multiply", reshaped(node, v, n, c, h, w), shaped(gamma)), shaped(beta))
    v = node.make("nn.silu", v) if node.attr("activation", 0) else v
    v = node.make("astype", v, dtype=x.sinfo.dtype)
    return node.make("permute_dims", v, axes=(0, 2, 3, 1)) if last else v


# ---- products and convolutions


@converter("FusedMatMul", "TransposeMatMul", domain=MS)
def _fused_matmul(node: NodeContext, a: Value, b: Value) -> Any:
    x, y = (_turned(node, v.expr, node.attr(f"transBatch{n}", 0), node.attr(f"trans{n}", 0)) for v, n in ((a, "A"), (b, "B")))
    out = node.make("matmul", x, y)
    alpha = node.attr("alpha", 1.0)
    return out if alpha == 1.0 else node.make("multiply", out, const_like(alpha, out))


def _turned(node: NodeContext, x: Any, batch: int, matrix: int) -> Any:
    """The first axis moved behind the batch axes, then the last two exchanged."""
    order = list(range(x.sinfo.ndim))
    if len(order) < 2 or not (batch or matrix):
        return x
    if batch:
        order = [*order[1:-1], order[0], order[-1]]
    if matrix:
        order[-2:] = order[-1], order[-2]
    return node.make("permute_dims", x, axes=tuple(order))


def activated(node: NodeContext, x: Any, name: str, params: list[float]) -> Any:
    """``x`` after an activation named as ONNX operators are, with that operator's numbers."""
    c = lambda k, default: const_like(params[k] if k < len(params) else default, x)
    shaped: dict[str, Callable[[], Any]] = {
        "": lambda: x,
        "LeakyRelu": lambda: node.make("where", node.make("less", x, const_like(0, x)), node.make("multiply", x, c(0, 0.01)), x),
        "Clip": lambda: node.make("minimum", node.make("maximum", x, c(0, -np.inf)), c(1, np.inf)),
        "HardSigmoid": lambda: node.make("minimum", node.make("maximum", node.make("add", node.make("multiply", x, c(0, 0.2)), c(1, 0.5)),
                                                              const_like(0, x)), const_like(1, x)),
        "Gelu": lambda: node.make("nn.gelu", x),
    }
    if name in shaped:
        return shaped[name]()
    if name not in UNARY:
        raise node.unsupported(f"activation {name!r}")
    return node.make(UNARY[name], x)


@converter("FusedGemm", domain=MS)
def _fused_gemm(node: NodeContext, a: Value, b: Value, c: Value | None = None) -> Any:
    out = find("", "Gemm", 13)(node, a, b, c)  # type: ignore[misc]
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    given = [node.attr(n, None) for n in names]
    return activated(node, out, node.attr("activation", ""), [v for v in given if v is not None])


@converter("GemmFastGelu", domain=MS)
def _gemm_fast_gelu(node: NodeContext, x: Value, w: Value, bias: Value | None = None) -> Any:
    out = node.make("matmul", x.expr, w.expr)
    return node.make("nn.gelu_tanh", out if bias is None else node.make("add", out, bias.expr))


@converter("FusedConv", domain=MS)
def _fused_conv(node: NodeContext, x: Value, w: Value, bias: Value | None = None, addend: Value | None = None) -> Any:
    out = convolution(node, x, w, bias)
    if addend is not None:
        out = node.make("add", out, addend.expr)
    return activated(node, out, node.attr("activation", ""), list(node.attr("activation_params", [])))


@converter("NhwcConv", "NhwcFusedConv", domain=MS)
def _nhwc_conv(node: NodeContext, x: Value, w: Value, bias: Value | None = None, addend: Value | None = None) -> Any:
    rank = x.expr.sinfo.ndim
    first, last = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    out = convolution(node, Value(node.make("permute_dims", x.expr, axes=first)), w, bias)
    out = node.make("permute_dims", out, axes=last)
    if addend is not None:
        out = node.make("add", out, addend.expr)
    return activated(node, out, node.attr("activation", ""), list(node.attr("activation_params", [])))


# ---- the rest


@converter("ExpandDims", domain=MS)
def _expand_dims(node: NodeContext, x: Value, axis: Value) -> Any:
    return node.make("expand_dims", x.expr, axis=(node.axis(node.static_ints(axis, "the axis")[0], x.expr.sinfo.ndim + 1),))


@converter("Unique", domain=MS)
def _unique(node: NodeContext, x: Value) -> Any:
    return tuple(unique_of(node.importer.bb, x.expr, ordered=False, parts=("values", "inverse", "counts")))


@converter("CDist", domain=MS)
def _cdist(node: NodeContext, a: Value, b: Value) -> Any:
    metric = node.attr("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise node.unsupported(f"distances by {metric!r}")
    gap = node.make("subtract", node.make("expand_dims", a.expr, axis=(1,)), node.make("expand_dims", b.expr, axis=(0,)))
    total = node.make("sum", node.make("multiply", gap, gap), axis=(2,), keepdims=False)
    return total if metric == "sqeuclidean" else node.make("sqrt", total)


@converter("IsAllFinite", domain=MS)
def _is_all_finite(node: NodeContext, *xs: Value) -> Any:
    if node.attr("isinf_only", 0) or node.attr("isnan_only", 0):
        raise node.unsupported("looking for infinities or NaN alone")
    out = None
    for x in xs:
        part = node.make("all", node.make("isfinite", x.expr))
        out = part if out is None else node.make("logical_and", out, part)
    return out


@converter("Inverse", domain=MS)
def _inverse(node: NodeContext, x: Value) -> Any:
    from .elements import inverse, square

    return node.te(inverse, square(node, x.expr))
