# SPDX-License-Identifier: Apache-2.0
"""Normalisations as the simpler operators that they are made of, so that those have the gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import graph
from .rules import composition

Emit = Callable[..., Any]


def _given(value: Any) -> Any:
    """An operand, None where it was left out."""
    return None if value is None or (isinstance(value, graph.Tuple) and not value.fields) else value


def _along(emit: Emit, x: Any, values: Any, axes: Sequence[int]) -> Any:
    """``values``, whose dimensions are these axes of x in order, in a shape that broadcasts with x."""
    return emit("reshape", values, graph.ShapeExpr(tuple(d if k in axes else 1 for k, d in enumerate(x.sinfo.shape))))


def _standard(emit: Emit, x: Any, axes: Sequence[int], epsilon: float) -> Any:
    mean = emit("mean", x, axis=list(axes), keepdims=True)
    variance = emit("variance", x, axis=list(axes), keepdims=True)
    return emit("divide", emit("subtract", x, mean), emit("sqrt", emit("add", variance, graph.Constant.of(epsilon, x.sinfo.dtype))))


def _scaled(emit: Emit, x: Any, gamma: Any, beta: Any, axes: Sequence[int]) -> Any:
    if _given(gamma) is not None:
        x = emit("multiply", x, _along(emit, x, gamma, axes))
    return x if _given(beta) is None else emit("add", x, _along(emit, x, beta, axes))


def _axes(x: Any, axes: Any) -> list[int]:
    return sorted(a % x.sinfo.ndim for a in ([axes] if isinstance(axes, int) else axes))


@composition("nn.layer_norm")
def layer_norm(emit: Emit, data: Any, gamma: Any = None, beta: Any = None, *, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    """Statistics over the last axes."""
    found = _axes(data, axes)
    return _scaled(emit, _standard(emit, data, found, epsilon), gamma if scale else None, beta if center else None, found)


@composition("nn.rms_norm")
def rms_norm(emit: Emit, data: Any, weight: Any = None, *, axes: Any, epsilon: float) -> Any:
    """Divided by the root of the mean square."""
    found = _axes(data, axes)
    square = emit("mean", emit("square", data), axis=found, keepdims=True)
    normal = emit("multiply", data, emit("rsqrt", emit("add", square, graph.Constant.of(epsilon, data.sinfo.dtype))))
    return _scaled(emit, normal, weight, None, found)


@composition("nn.group_norm")
def group_norm(emit: Emit, data: Any, gamma: Any = None, beta: Any = None, *, num_groups: int, channel_axis: int, axes: Any, epsilon: float,
               center: bool, scale: bool) -> Any:
    """Statistics over groups of channels and the other axes."""
    shape, channel = data.sinfo.shape, channel_axis % data.sinfo.ndim
    grouped = emit("reshape", data, graph.ShapeExpr((*shape[:channel], num_groups, shape[channel] // num_groups, *shape[channel + 1:])))
    found = [a for a in range(1, data.sinfo.ndim) if a != channel] if axes is None else [a for a in _axes(data, axes) if a != channel]
    normal = _standard(emit, grouped, [channel + 1, *(a + (a > channel) for a in found)], epsilon)
    return _scaled(emit, emit("reshape", normal, graph.ShapeExpr(shape)), gamma if scale else None, beta if center else None, [channel])


@composition("nn.instance_norm")
def instance_norm(emit: Emit, data: Any, gamma: Any = None, beta: Any = None, *, channel_axis: int, axes: Any, epsilon: float, center: bool,
                  scale: bool) -> Any:
    """Statistics over the axes behind batch and channels."""
    channel = channel_axis % data.sinfo.ndim
    found = [a for a in range(1, data.sinfo.ndim) if a != channel] if axes is None else _axes(data, axes)
    return _scaled(emit, _standard(emit, data, found, epsilon), gamma if scale else None, beta if center else None, [channel])


@composition("nn.batch_norm")
def batch_norm(emit: Emit, data: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, axis: int, epsilon: float, center: bool, scale: bool,
               momentum: float, training: bool) -> Any:
    """Normalised by the batch's statistics or the moving ones; then the statistics, moved where training."""
    channel, new = [axis % data.sinfo.ndim], (mean, variance)
    if training:
        others = [k for k in range(data.sinfo.ndim) if k not in channel]
        batch = (emit("mean", data, axis=others), emit("variance", data, axis=others))
        part = lambda value, share: emit("multiply", value, graph.Constant.of(share, value.sinfo.dtype))
        new = tuple(emit("add", part(old, 1.0 - momentum), part(now, momentum)) for old, now in zip((mean, variance), batch, strict=True))
        mean, variance = batch
    centred = emit("subtract", data, _along(emit, data, mean, channel))
    width = emit("sqrt", emit("add", _along(emit, data, variance, channel), graph.Constant.of(epsilon, data.sinfo.dtype)))
    normal = _scaled(emit, emit("divide", centred, width), gamma if scale else None, beta if center else None, channel)
    return graph.Tuple((normal, *new))


@composition("nn.l2_normalize")
def l2_normalize(emit: Emit, data: Any, *, axis: Any, eps: float) -> Any:
    """Divided by the root of the sum of squares, which is at least ``eps``."""
    total = emit("sum", emit("square", data), axis=_axes(data, axis), keepdims=True)
    return emit("divide", data, emit("sqrt", emit("maximum", total, graph.Constant.of(eps, data.sinfo.dtype))))


@composition("nn.prelu")
def prelu(emit: Emit, data: Any, alpha: Any, *, axis: int) -> Any:
    """A slope for each channel."""
    return emit("nn.prelu_broadcast", data, _along(emit, data, alpha, [axis % data.sinfo.ndim]))


@composition("nn.attention")
def attention(emit: Emit, query: Any, key: Any, value: Any, bias: Any = None, *, scale: float | None, causal_mask: Any, window_size: Any) -> Any:
    """Scores, softmax and the product with values; (batch, length, heads, size). Raises NotImplementedError for windows and masks by position."""
    from ...ir.errors import UnsupportedError

    if causal_mask is not None or window_size is not None:
        raise UnsupportedError("R.nn.attention has no gradient where it masks by position", hint="give the mask as bias")
    heads_first = lambda x: emit("permute_dims", x, axes=(0, 2, 1, 3))
    size = graph.Constant.of(scale if scale is not None else float(query.sinfo.shape[3].value) ** -0.5, query.sinfo.dtype)
    scores = emit("multiply", emit("matmul", heads_first(query), emit("permute_dims", key, axes=(0, 2, 3, 1))), size)
    if _given(bias) is not None:
        scores = emit("add", scores, bias)
    return emit("permute_dims", emit("matmul", emit("nn.softmax", scores, axis=-1), heads_first(value)), axes=(0, 2, 1, 3))
