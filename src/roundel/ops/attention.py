# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention, composed of matrix products and a softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import broadcast_shapes, dim_text, fail, fill, same, same_dtype, static, tensor_info
from .elementwise import element, widen
from .matmul import MatMul, cast_result


@register
class Attention(OpDef):
    """softmax(query key^T * scale + bias) value for tensors (batch, sequence, heads, width).

    ``scale`` is 1 / sqrt(width) by default; ``bias`` broadcasts to (batch, heads, queries, keys); ``causal_mask`` lets
    a query see keys up to its own position, counted from the start (TopLeft) or from the end (BottomRight). Heads of
    key and value may be fewer, each serving a group of query heads.
    """

    name, operands, kind = "nn.attention", ("query", "key", "value", "bias?"), FuseKind.OPAQUE
    (attributes,) = ({"scale": None, "causal_mask": None, "window_size": None},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        q, k, v, bias = fill(args, 4)
        for info in (q, k, v):
            if tensor_info(self, info, args).ndim not in (-1, 4):
                fail(self, "query, key and value have to be (batch, sequence, heads, width)", *args)
        if attrs["causal_mask"] not in (None, "TopLeft", "BottomRight"):
            fail(self, f"causal_mask is {attrs['causal_mask']!r}, not None, TopLeft or BottomRight", *args)
        dtype = same_dtype(self, [i for i in (q, k, v, bias) if i is not None])
        if q.shape is None or v.shape is None or k.shape is None:
            return graph.TensorInfo(None, dtype, 4)
        for a, b in (
            (q.shape[3], k.shape[3]),
            (k.shape[1], v.shape[1]),
            (q.shape[0], k.shape[0]),
            (k.shape[2], v.shape[2]),
        ):
            if not same(a, b):
                fail(self, f"dimensions {dim_text(a)} and {dim_text(b)} do not agree", *args)
        return graph.TensorInfo((*q.shape[:3], v.shape[3]), dtype)

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from . import make

        q, k, v, *bias = args
        emit = lambda name, *operands, **more: builder.emit(make(name, *operands, **more))
        groups = (static(q.sinfo.shape[2]) or 1) // (static(k.sinfo.shape[2]) or 1)
        if groups > 1:
            k, v = (emit("repeat", t, repeats=groups, axis=2) for t in (k, v))
        heads_first = lambda t, axes: emit("permute_dims", t, axes=axes)
        q, k, v = heads_first(q, (0, 2, 1, 3)), heads_first(k, (0, 2, 3, 1)), heads_first(v, (0, 2, 1, 3))
        scale = attrs["scale"] if attrs["scale"] is not None else 1 / math.sqrt(q.sinfo.shape[3].value)
        scores = emit("matmul", emit("multiply", q, float(scale)), k)
        if bias:
            scores = emit("add", scores, bias[0])
        if attrs["causal_mask"] or attrs["window_size"]:
            scores = self._masked(emit, scores, attrs)
        out = emit("matmul", emit("nn.softmax", scores), v)
        return make("permute_dims", out, axes=(0, 2, 1, 3))

    def _masked(self, emit: Any, scores: Any, attrs: Attrs) -> Any:
        """Scores with -inf where a key may not be seen."""
        queries, keys = scores.sinfo.shape[2:]
        shift = keys - queries if attrs["causal_mask"] == "BottomRight" else tir.index_const(0)
        rows = emit("arange", graph.PrimValue(shift), graph.PrimValue(queries + shift), 1, dtype="int64")
        rows = emit("expand_dims", rows, axis=1)
        columns = emit("arange", graph.PrimValue(keys), dtype="int64")
        seen = emit("less_equal", columns, rows)
        if attrs["window_size"]:
            recent = emit("greater", columns, emit("subtract", rows, int(attrs["window_size"])))
            seen = emit("logical_and", seen, recent)
        return emit("where", seen, scores, graph.Constant.of(-math.inf, scores.sinfo.dtype))

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        q, k, v, bias = (None if a is None else widen(a) for a in fill(args, 4))
        k, v = (np.repeat(t, q.shape[2] // t.shape[2], 2) for t in (k, v))
        scale = attrs["scale"] if attrs["scale"] is not None else 1 / math.sqrt(q.shape[3])
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) * scale + (0 if bias is None else bias)
        n, m = scores.shape[2:]
        if attrs["causal_mask"] or attrs["window_size"]:
            row = np.arange(n)[:, None] + (m - n if attrs["causal_mask"] == "BottomRight" else 0)
            seen = np.arange(m) <= row
            if attrs["window_size"]:
                seen &= np.arange(m) > row - attrs["window_size"]
            scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhqk,bkhd->bqhd", weights, v).astype(args[0].dtype)


@register
class SoftmaxMatMul(OpDef):
    """softmax(scores) value, divided by the sums of exponentials at the end: rows of the result, not of the scores.

    ``scores`` are transposed, (..., n, rows), ``value`` (..., n, columns); the dimensions before broadcast. With ``reach``, a number,
    a row sees the keys up to its own index plus that: the scores of others count as -infinity and what belongs to them need not be
    computed. ``zero``: which rows give zeros, those whose softmax is NaN (``nan``) or of which all scores are -infinity (``empty``).
    The program of this operator takes that of the product that makes the scores into it (``fuse``).
    """

    name, operands, kind = "nn.softmax_matmul", ("scores", "value", "reach?"), FuseKind.ATTENTION
    attributes, scalars = {"zero": ""}, ("reach",)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        scores, value = (tensor_info(self, x, args) for x in args[:2])
        if scores.dtype is not None and not scores.dtype.is_float:
            fail(self, f"scores have to be float, not {scores.dtype}", *args)
        if -1 < scores.ndim < 2 or scores.shape is None or value.shape is None:
            return graph.TensorInfo(None, same_dtype(self, (scores, value)), max(scores.ndim, value.ndim))
        turned = graph.TensorInfo((*scores.shape[:-2], scores.shape[-1], scores.shape[-2]), scores.dtype)
        return MatMul().infer((turned, value), Attrs({"out_dtype": None}))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        scores, value, reach = fill(args, 3)
        wide = te.accumulator(scores.dtype)
        *lead, count, rows = scores.shape
        batch, columns = broadcast_shapes(self, [tuple(lead), value.shape[:-2]]), value.shape[-1]
        n, m, k = (te.reduce_axis(count, "n") for _ in range(3))
        below = (*lead, rows)

        def seen(value: Any, other: Any, at: Any) -> Any:
            return value if reach is None else te.select(at[-2] <= at[-1] + reach, value, other)

        if reach is not None:
            given = scores
            scores = te.compute(given.shape, lambda *at: seen(given(*at), te.lowest(given.dtype), at), "attention_seen")
        top = te.compute(below, lambda *at: te.max_finite(te.cast(scores[(*at[:-1], n.var, at[-1])], wide), axis=n), "attention_max")

        def exponential(*at: Any) -> Any:  # of -infinity it is zero, also where there is nothing else
            return seen(te.exp_flushed(te.cast(scores(*at), wide) - top(*at[:-2], at[-1])), tir.const(0, wide), at)

        exps = te.compute(scores.shape, exponential, "attention_exp")
        total = te.compute(below, lambda *at: te.sum(exps[(*at[:-1], m.var, at[-1])], axis=m), "attention_sum")
        none = tir.const(0, wide) if attrs["zero"] else te.select(count > 0, tir.const(math.nan, wide), 0.0)  # of no keys: zeros
        share = te.compute(below, lambda *at: te.select(tir.eq(total(*at), 0.0), none, 1.0 / total(*at)), "attention_share")

        def product(*at: Any) -> Any:
            x = element(exps, (*at[:-2], k.var, at[-2]), (*batch, count, rows))
            y = element(value, (*at[:-2], k.var, at[-1]), (*batch, count, columns))
            return te.sum(x * te.cast(y, wide), axis=k)

        weighted = te.compute((*batch, rows, columns), product, "attention_product")

        def scaled(*at: Any) -> Any:
            one, result = element(share, at[:-1], (*batch, rows)), weighted(*at)
            return te.if_then_else(te.isnan(one), tir.const(0, wide), result * one) if attrs["zero"] == "nan" else result * one

        return cast_result(te.compute(weighted.shape, scaled, "attention"), scores.dtype, "attention_cast")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        scores, value = map(widen, args[:2])
        if len(args) > 2 and args[2] is not None:
            key, row = np.indices(scores.shape[-2:])
            scores = np.where(key <= row + args[2], scores, -np.inf)
        top = scores.max(-2, keepdims=True) if scores.size else scores
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - top) if scores.size else scores
        total = weights.sum(-2, keepdims=True)
        weights = np.swapaxes(weights / np.where(total == 0, 1, total), -1, -2)
        empty = np.swapaxes(np.isneginf(top), -1, -2) if scores.size else False
        none = {"nan": np.isnan(weights), "empty": empty}.get(attrs["zero"])
        return np.matmul(weights if none is None else np.where(none, 0, weights), value).astype(args[0].dtype)
