# SPDX-License-Identifier: Apache-2.0
"""com.microsoft attention: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding, with their masks and caches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import te
from ....arith import Analyzer
from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like
from .microsoft import MS, cut, reshaped

_ONE = tir.index_const(1)
FEW_QUERIES = 4


def _ramp(node: NodeContext, begin: Any, end: Any, *shape: Any) -> Any:
    """begin, begin + 1, ... as int64, shaped to broadcast."""
    prims = (graph.PrimValue(tir.as_index(v)) for v in (begin, end, 1))
    return reshaped(node, node.make("arange", *prims, dtype="int64"), *shape)


def _heads(node: NodeContext, x: Any, heads: int) -> Any:
    """(batch, length, heads * width) as (batch, heads, length, width)."""
    b, s, d = x.sinfo.shape
    return node.make("permute_dims", reshaped(node, x, b, s, heads, tir.floordiv(d, heads)), axes=(0, 2, 1, 3))


def _joined(node: NodeContext, x: Any) -> Any:
    """The inverse of ``_heads``."""
    b, n, s, h = x.sinfo.shape
    return reshaped(node, node.make("permute_dims", x, axes=(0, 2, 1, 3)), b, s, n * h)


def _concat(node: NodeContext, parts: list[Any], axis: int) -> Any:
    return node.make("concat", graph.Tuple(tuple(parts)), axis=axis)


def _scores(node: NodeContext, q: Any, k: Any) -> Any:
    """Scaled products of queries (batch, heads, queries, width) and keys, whose heads may each serve a group of query heads."""
    b, n, s, h = q.sinfo.shape
    kv, total = k.sinfo.shape[1], k.sinfo.shape[2]
    if not isinstance(h, tir.IntImm):
        raise node.unsupported("heads of a width that is not known")
    scale = node.attr("scale", 0.0) or 1 / math.sqrt(h.value)
    q = node.make("multiply", q, const_like(scale, q))
    if _many(n, kv, s):
        return node.make("matmul", q, node.make("permute_dims", _repeated(node, k, n), axes=(0, 1, 3, 2)))
    keys = node.make("permute_dims", k, axes=(0, 1, 3, 2))
    group = tir.floordiv(n, kv)
    return reshaped(node, node.make("matmul", reshaped(node, q, b, kv, group * s, h), keys), b, n, s, total)


def _weighted(node: NodeContext, weights: Any, v: Any) -> Any:
    b, n, s, total = weights.sinfo.shape
    kv, h = v.sinfo.shape[1], v.sinfo.shape[3]
    if _many(n, kv, s):
        return node.make("matmul", weights, _repeated(node, v, n))
    group = tir.floordiv(n, kv)
    return reshaped(node, node.make("matmul", reshaped(node, weights, b, kv, group * s, total), v), b, n, s, h)


def _many(heads: Any, kv: Any, queries: Any) -> bool:
    """Whether each head is multiplied by itself: the few queries of a group that shares keys and values make one matrix instead."""
    return kv is heads or not (isinstance(queries, tir.IntImm) and queries.value < FEW_QUERIES)


def _repeated(node: NodeContext, x: Any, heads: Any) -> Any:
    """A head of keys or values for each head of the queries."""
    times = tir.floordiv(heads, x.sinfo.shape[1])
    if not isinstance(times, tir.IntImm):
        raise node.unsupported("a number of heads that is not known")
    return x if x.sinfo.shape[1] is heads else node.make("repeat", x, repeats=times.value, axis=1)


def _hidden(node: NodeContext, scores: Any, seen: Any, fill: float | None = None) -> Any:
    """Scores with the lowest number (or ``fill`` added) where a key may not be seen."""
    if fill is None:
        return node.make("where", seen, scores, const_like(float(np.finfo(np.float32).min) if scores.sinfo.dtype.bits >= 32 else -65504.0, scores))
    return node.make("add", scores, node.make("where", seen, const_like(0, scores), const_like(fill, scores)))


def _causal(node: NodeContext, queries: Any, keys: Any) -> Any:
    """(1, 1, queries, keys): whether a key is not after the query; both end at the same position."""
    return node.make("less_equal", _ramp(node, 0, keys, 1, 1, 1, keys), _ramp(node, keys - queries, keys, 1, 1, queries, 1))


def _seen(node: NodeContext, mask: Any, batch: Any, queries: Any, keys: Any) -> Any:
    """A padding mask in any of its forms as booleans that broadcast to (batch, heads, queries, keys)."""
    if mask.sinfo.ndim == 4:  # (batch, 1, longest, longest)
        mask = cut(node, cut(node, mask, 2, keys - queries, keys), 3, 0, keys)
    elif mask.sinfo.ndim == 3:
        mask = node.make("expand_dims", mask, axis=(1,))
    elif mask.sinfo.ndim == 2:
        mask = node.make("expand_dims", mask, axis=(1, 2))
    else:
        return _within(node, mask, batch, keys)
    return mask if mask.sinfo.dtype.is_bool else node.make("greater", mask, const_like(0, mask))


def _within(node: NodeContext, ends: Any, batch: Any, keys: Any) -> Any:
    """From one end per batch element, optionally followed by one start per element."""
    place = _ramp(node, 0, keys, 1, 1, 1, keys)
    end, count, an = node.make("astype", ends, dtype="int64"), ends.sinfo.shape[0], Analyzer()
    if not an.prove_equal(count, batch) and an.prove_equal(count, batch * 3 + 2):
        raise node.unsupported("a mask of cumulated lengths")
    first = node.make("less", place, reshaped(node, cut(node, end, 0, 0, batch), batch, 1, 1, 1))
    if an.prove_equal(count, batch):
        return first
    start = reshaped(node, cut(node, end, 0, batch, batch * 2), batch, 1, 1, 1)
    return node.make("logical_and", first, node.make("greater_equal", place, start))


def _attend(node: NodeContext, q: Any, k: Any, v: Any, mask: Value | None, bias: Value | None) -> tuple[Any, Any]:
    """Result (batch, heads, queries, width) and weights, with the masks that Attention and MultiHeadAttention share."""
    scores = _scores(node, q, k)
    batch, _, queries, keys = scores.sinfo.shape
    if bias is not None:
        scores = node.make("add", scores, bias.expr)
    if mask is not None:
        scores = _hidden(node, scores, _seen(node, mask.expr, batch, queries, keys), node.attr("mask_filter_value", -10000.0))
    if node.attr("unidirectional", 0):
        scores = _hidden(node, scores, _causal(node, queries, keys))
    weights = node.make("nn.softmax", scores, axis=-1)
    return _weighted(node, weights, v), weights


@converter("Attention", domain=MS)
def _attention(node: NodeContext, x: Value, weights: Value, bias: Value | None = None, mask: Value | None = None, past: Value | None = None,
               addend: Value | None = None, shared: Value | None = None) -> Any:
    if node.attr("do_rotary", 0) or node.attr("past_present_share_buffer", 0) or shared is not None:
        raise node.unsupported("rotary positions and shared buffers in Attention")
    product = node.make("matmul", x.expr, weights.expr)
    return attention_of(node, product if bias is None else node.make("add", product, bias.expr), mask, past, addend)


def attention_of(node: NodeContext, product: Any, mask: Value | None, past: Value | None, addend: Value | None) -> Any:
    """Attention on queries, keys and values side by side: the result and, if wanted, the cache."""
    heads = node.attr("num_heads")
    third = tir.floordiv(product.sinfo.shape[-1], 3)
    sizes, at, parts = node.attr("qkv_hidden_sizes", None) or [third] * 3, tir.index_const(0), []
    for size in sizes:
        parts.append(_heads(node, cut(node, product, -1, at, at + size), heads))
        at = at + size
    q, k, v = parts
    wanted = len(node.node.output) > 1 and bool(node.node.output[1])
    present = _concat(node, [node.make("expand_dims", t, axis=(0,)) for t in (k, v)], 0) if wanted or past is not None else None
    if past is not None:  # what is returned is read, so that it can grow in place
        present = _concat(node, [past.expr, present], 3)
        k, v = (node.make("squeeze", cut(node, present, 0, i, i + 1), axis=(0,)) for i in range(2))
    out, _ = _attend(node, q, k, v, mask, addend)
    return _joined(node, out), present


@converter("MultiHeadAttention", domain=MS)
def _multi_head(node: NodeContext, query: Value, key: Value | None = None, value: Value | None = None, bias: Value | None = None,
                mask: Value | None = None, addend: Value | None = None, past_key: Value | None = None, past_value: Value | None = None,
                length: Value | None = None, beams: Value | None = None) -> Any:
    if length is not None or beams is not None:
        raise node.unsupported("shared buffers and beams in MultiHeadAttention")
    q, k, v = _projected(node, query.expr, key, value, bias, node.attr("num_heads"))
    if past_key is not None and past_value is not None:
        k, v = (_concat(node, [old.expr, new], 2) for old, new in ((past_key, k), (past_value, v)))
    out, weights = _attend(node, q, k, v, mask, addend)
    return _joined(node, out), k, v, weights


def _projected(node: NodeContext, q: Any, key: Value | None, value: Value | None, bias: Value | None, heads: int) -> tuple[Any, Any, Any]:
    """Queries, keys and values as (batch, heads, length, width), from one packed tensor, two, or three."""
    heads_first = lambda t: node.make("permute_dims", t, axes=(0, 2, 1, 3))
    unpacked = lambda t: [heads_first(node.make("squeeze", cut(node, t, 3, i, i + 1), axis=(3,))) for i in range(t.sinfo.shape[3].value)]
    if key is None:
        parts = unpacked(q)
    elif value is None:
        parts = [_heads(node, q, heads), *unpacked(key.expr)]
    else:
        parts = [_heads(node, t, heads) if t.sinfo.ndim == 3 else t for t in (q, key.expr, value.expr)]
    if bias is None:
        return tuple(parts)  # type: ignore[return-value]
    at, out = tir.index_const(0), []
    cached = key is not None and key.expr.sinfo.ndim == 4 and value is not None
    for i, t in enumerate(parts):
        width = t.sinfo.shape[3] * heads
        row = reshaped(node, cut(node, bias.expr, 0, at, at + width), heads, 1, t.sinfo.shape[3])
        out.append(t if i and cached else node.make("add", t, row))
        at = at + width
    return tuple(out)  # type: ignore[return-value]


# ---- positions


def rotated(node: NodeContext, x: Any, positions: Any, cos: Any, sin: Any, *, interleaved: bool, width: int = 0) -> Any:
    """Rotary embedding of (batch, heads, length, width) at positions (batch or 1, length); the first ``width`` components turn, all of them
    where it is 0. Where the model does not know how many these are, cosines and sines tell."""
    b, n, s, h = x.sinfo.shape
    if width and not isinstance(h, tir.IntImm):
        raise node.unsupported("a part of heads of a width that is not known")
    part = cut(node, x, 3, 0, width) if width and width != h.value else x
    half = Analyzer().simplify(tir.floordiv(part.sinfo.shape[3], 2))
    for t in (cos, sin):
        if not all(isinstance(d, tir.IntImm) for d in (half, t.sinfo.shape[1])):
            node.same_size(t.sinfo.shape[1] * 2, part.sinfo.shape[3], "cosines or sines are not half as many as components that turn")
    half = half if isinstance(half, tir.IntImm) else cos.sinfo.shape[1]
    positions = node.positions(positions, cos.sinfo.shape[0])
    node.same_size(cos.sinfo.shape[0], sin.sinfo.shape[0], "cosines and sines are not equally many")
    c, d = (node.make("expand_dims", node.make("take", cut(node, t, 1, 0, half), positions, axis=0), axis=(1,)) for t in (cos, sin))
    if interleaved:
        pairs = reshaped(node, part, b, n, s, half, 2)
        first, second = (node.make("squeeze", cut(node, pairs, 4, i, i + 1), axis=(4,)) for i in range(2))
    else:
        first, second = cut(node, part, 3, 0, half), cut(node, part, 3, half, half * 2)
    one = node.make("subtract", node.make("multiply", first, c), node.make("multiply", second, d))
    two = node.make("add", node.make("multiply", first, d), node.make("multiply", second, c))
    if interleaved:
        out = reshaped(node, _concat(node, [node.make("expand_dims", t, axis=(4,)) for t in (one, two)], 4), b, n, s, half * 2)
    else:
        out = _concat(node, [one, two], 3)
    return out if part is x else _concat(node, [out, cut(node, x, 3, half * 2, h)], 3)


@converter("RotaryEmbedding", domain=MS)
def _rotary(node: NodeContext, x: Value, positions: Value, cos: Value, sin: Value) -> Any:
    if node.attr("is_packed_batching", 0):
        raise node.unsupported("packed batches")
    v, width = x.expr, node.attr("rotary_embedding_dim", 0)
    flat = v.sinfo.ndim == 3
    if flat:
        heads = node.attr("num_heads", 0) if width else 0
        if not heads:
            heads = node.static_dims([Analyzer().simplify(tir.floordiv(v.sinfo.shape[2], cos.expr.sinfo.shape[1] * 2))],
                                     "the number of heads (the attribute num_heads, or the widths of the input and of cos_cache)")[0]
        v = _heads(node, v, heads)
    length = v.sinfo.shape[2]
    at = positions.expr
    if at.sinfo.ndim == 1:  # the position of the first token
        at = node.make("add", reshaped(node, at, 1, 1), _ramp(node, 0, length, 1, length))
    out = rotated(node, v, at, cos.expr, sin.expr, interleaved=bool(node.attr("interleaved", 0)), width=width)
    if node.attr("scale", 1.0) != 1.0:
        out = node.make("multiply", out, const_like(node.attr("scale"), out))
    return _joined(node, out) if flat else out


# ---- grouped queries


@converter("GroupQueryAttention", domain=MS)
def _group_query(node: NodeContext, query: Value, key: Value | None, value: Value | None, past_key: Value | None, past_value: Value | None,
                 last: Value, total: Value, cos: Value | None = None, sin: Value | None = None, positions: Value | None = None,
                 addend: Value | None = None, sink: Value | None = None, k_scale: Value | None = None, v_scale: Value | None = None,
                 q_weight: Value | None = None, k_weight: Value | None = None) -> Any:
    if node.attr("sliding_window_cache", 0) or k_scale is not None or v_scale is not None or node.attr("qk_output", 0):
        raise node.unsupported("quantised or window-sized caches, and scores as a result")
    heads, kv = node.attr("num_heads"), node.attr("kv_num_heads")
    q, k, v = _grouped(node, query.expr, key, value, heads, kv)
    if q_weight is not None and k_weight is not None:
        q, k = _unit(node, q, q_weight), _unit(node, k, k_weight)
    batch, _, length, _ = q.sinfo.shape
    whole = tir.as_index(node.ints(total, "the total length")[0])
    room = whole if past_key is None else tir.max_(whole, past_key.expr.sinfo.shape[2])
    final = node.make("astype", node.positions(reshaped(node, last.expr, batch), room), dtype="int64")
    ends = node.make("add", final, graph.Constant.of(np.int64(1)))
    begin = _begin(node, ends, length, whole)
    if node.attr("do_rotary", 0) and cos is not None and sin is not None:
        at = positions.expr if positions is not None else node.make("add", reshaped(node, begin, batch, 1), _ramp(node, 0, length, 1, length))
        turning = cos.expr.sinfo.shape[1]
        turn = lambda t: rotated(node, t, at, cos.expr, sin.expr, interleaved=bool(node.attr("rotary_interleaved", 0)),
                                 width=turning.value * 2 if isinstance(turning, tir.IntImm) and isinstance(t.sinfo.shape[3], tir.IntImm) else 0)
        q, k = turn(q), turn(k)
    for old, new in ((past_key, k), (past_value, v)):
        for axis in (0, 1, 3) if old is not None else ():
            node.same_size(old.expr.sinfo.shape[axis], new.sinfo.shape[axis], "the cache has another shape than keys and values")  # type: ignore[union-attr]
    if past_key is not None and past_value is not None:
        k, v = (node.te(_cache, old.expr, new, begin, whole) for old, new in ((past_key, k), (past_value, v)))
    elif not Analyzer().prove_equal(whole, length):
        zeros = lambda t: node.make("zeros", graph.ShapeExpr((batch, t.sinfo.shape[1], tir.index_const(0), t.sinfo.shape[3])), dtype=t.sinfo.dtype)
        k, v = (node.te(_cache, zeros(t), t, begin, whole) for t in (k, v))
    weights = _group_weights(node, _scores(node, q, k), begin, addend, sink)
    return _joined(node, _weighted(node, weights, v)), k, v


def _grouped(node: NodeContext, q: Any, key: Value | None, value: Value | None, heads: int, kv: int) -> tuple[Any, Any, Any]:
    if key is not None and value is not None:
        return _heads(node, q, heads), _heads(node, key.expr, kv), _heads(node, value.expr, kv)
    width = tir.floordiv(q.sinfo.shape[2], heads + 2 * kv)
    edges = [0, width * heads, width * (heads + kv), width * (heads + 2 * kv)]
    parts = [cut(node, q, 2, edges[i], edges[i + 1]) for i in range(3)]
    return _heads(node, parts[0], heads), _heads(node, parts[1], kv), _heads(node, parts[2], kv)


def _unit(node: NodeContext, x: Any, weight: Value) -> Any:
    """Each head divided by its root mean square."""
    v = node.make("astype", x, dtype="float32")
    spread = node.make("mean", node.make("multiply", v, v), axis=(3,), keepdims=True)
    v = node.make("multiply", v, node.make("rsqrt", node.make("add", spread, const_like(node.attr("qk_norm_epsilon", 1e-6), spread))))
    return node.make("multiply", node.make("astype", v, dtype=x.sinfo.dtype), weight.expr)


def _begin(node: NodeContext, ends: Any, length: Any, whole: Any) -> Any:
    """Where the new tokens of each batch element start: at 0 in a prompt, which is when they are as many as the total."""
    def build(end: Any, new: Any, total: Any) -> Any:
        return te.compute(end.shape, lambda b: te.select(tir.eq(new, total), tir.index_const(0), tir.max_(end(b) - new, 0)), "begin")

    return node.te(build, ends, length, whole)


def _cache(old: Any, new: Any, begin: Any, whole: Any) -> Any:
    """The cache with new entries written from each batch element's position on; it grows to ``whole`` where it is shorter."""
    (b, n, _, h), room = new.shape, old.shape[2]
    extent = Analyzer().simplify(tir.max_(room, whole))

    def body(i: Any, j: Any, t: Any, c: Any) -> Any:
        there = t - begin(i)
        fresh = new(i, j, tir.max_(tir.min_(there, new.shape[2] - 1), 0), c)
        kept = tir.if_then_else(t < room, old(i, j, tir.min_(t, tir.max_(room - 1, 0)), c), tir.const(0.0, old.dtype))
        return te.select(te.logical_and(there >= 0, there < new.shape[2]), fresh, kept)

    return te.compute((b, n, extent, h), body, "cache")


def _group_weights(node: NodeContext, scores: Any, begin: Any, addend: Value | None, sink: Value | None) -> Any:
    batch, heads, queries, keys = scores.sinfo.shape
    cap, window = node.attr("softcap", 0.0), node.attr("local_window_size", -1)
    if cap:
        scores = node.make("multiply", node.make("tanh", node.make("divide", scores, const_like(cap, scores))), const_like(cap, scores))
    if addend is not None:
        scores = node.make("add", scores, addend.expr)
    place = _ramp(node, 0, keys, 1, 1, 1, keys)
    mine = node.make("add", reshaped(node, begin, batch, 1, 1, 1), _ramp(node, 0, queries, 1, 1, queries, 1))
    if not node.attr("causal", 1):
        raise node.unsupported("GroupQueryAttention without a causal mask")
    seen = node.make("less_equal", place, mine)
    if window >= 0:
        seen = node.make("logical_and", seen, node.make("greater", place, node.make("subtract", mine, graph.Constant.of(np.int64(window)))))
    scores = node.make("where", seen, scores, const_like(-np.inf, scores))
    if sink is None and not node.attr("smooth_softmax", 0):
        return node.make("nn.softmax", scores, axis=-1)
    extra = const_like(0, scores) if sink is None else reshaped(node, sink.expr, 1, heads, 1, 1)
    column = node.make("broadcast_to", extra, graph.ShapeExpr((batch, heads, queries, _ONE)))
    return cut(node, node.make("nn.softmax", _concat(node, [scores, column], 3), axis=-1), 3, 0, keys)
