# SPDX-License-Identifier: Apache-2.0
"""ONNX signal processing: Fourier transforms as products with constant matrices, mel filter banks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like

_LONGEST = 8192


def _cut(node: NodeContext, x: Any, axis: int, begin: int, end: int, step: int = 1) -> Any:
    return node.make("strided_slice", x, axes=(axis,), begin=(tir.index_const(begin),), end=(tir.index_const(end),), strides=(tir.index_const(step),))


def _extent(node: NodeContext, x: Any, axis: int) -> int:
    n = x.sinfo.shape[axis]
    if not isinstance(n, tir.IntImm):
        raise node.unsupported("a Fourier transform of unknown length")
    return n.value


def _fit(node: NodeContext, x: Any, length: int) -> Any:
    """The last axis cut or padded with zeros to ``length``."""
    last = x.sinfo.ndim - 1
    n = _extent(node, x, last)
    if n >= length:
        return x if n == length else _cut(node, x, last, 0, length)
    width = [0] * (2 * last) + [0, length - n]
    return node.make("nn.pad", x, pad_value=const_like(0, x), pad_width=tuple(tir.index_const(w) for w in width), pad_mode="constant")


def transform(node: NodeContext, re: Any, im: Any | None, length: int, bins: int, inverse: bool) -> tuple[Any, Any]:
    """Real and imaginary part of the discrete Fourier transform along the last axis, the first ``bins`` of it."""
    if length > _LONGEST:
        raise node.unsupported(f"a Fourier transform of length {length}")
    dtype = re.sinfo.dtype
    if dtype != "float64":  # sums that cancel keep their precision
        wide = (None if p is None else node.make("astype", p, dtype="float64") for p in (re, im))
        return tuple(node.make("astype", p, dtype=dtype) for p in transform(node, *wide, length, bins, inverse))
    angle = 2 * np.pi * (np.outer(np.arange(length), np.arange(bins)) % length) / length
    scale = 1 / length if inverse else 1.0
    cos, sin = (graph.Constant.of(f(angle) * scale) for f in (np.cos, np.sin))
    sin_re, cos_re = node.make("matmul", re, sin), node.make("matmul", re, cos)
    if not inverse:
        sin_re = node.make("negative", sin_re)
    if im is None:
        return cos_re, sin_re
    cos_im, sin_im = node.make("matmul", im, cos), node.make("matmul", im, sin)
    return node.make("subtract" if inverse else "add", cos_re, sin_im), node.make("add", cos_im, sin_re)


def _parts(node: NodeContext, x: Any) -> tuple[Any, Any | None]:
    last = x.sinfo.ndim - 1
    parts = [node.make("squeeze", _cut(node, x, last, k, k + 1), axis=(last,)) for k in range(_extent(node, x, last))]
    return parts[0], parts[1] if len(parts) > 1 else None


def _complex(node: NodeContext, re: Any, im: Any) -> Any:
    last = re.sinfo.ndim
    return node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(last,)) for p in (re, im))), axis=last)


def _swap(node: NodeContext, x: Any, axis: int) -> Any:
    """``axis`` and the last one exchanged."""
    order = list(range(x.sinfo.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return x if axis == x.sinfo.ndim - 1 else node.make("permute_dims", x, axes=tuple(order))


@converter("DFT", since=17)
def _dft_attribute(node: NodeContext, x: Value, length: Value | None = None) -> Any:
    return _dft_along(node, x, length, node.attr("axis", 1))


@converter("DFT", since=20)
def _dft(node: NodeContext, x: Value, length: Value | None = None, axis: Value | None = None) -> Any:
    return _dft_along(node, x, length, -2 if axis is None else int(node.static_ints(axis, "the axis")[0]))


def _dft_along(node: NodeContext, x: Value, length: Value | None, axis: int) -> Any:
    v, inverse, onesided = x.expr, bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    axis = axis + v.sinfo.ndim if axis < 0 else axis
    re, im = (None if p is None else _swap(node, p, axis) for p in _parts(node, v))
    n = _extent(node, re, re.sinfo.ndim - 1)
    size = None if length is None else int(node.static_ints(length, "the length")[0])
    if inverse and onesided:
        return _real_inverse(node, re, im, size or 2 * (n - 1), axis)
    size = size or n
    re, im = _fit(node, re, size), None if im is None else _fit(node, im, size)
    out = transform(node, re, im, size, size // 2 + 1 if onesided else size, inverse)
    return _complex(node, *(_swap(node, p, axis) for p in out))


def _real_inverse(node: NodeContext, re: Any, im: Any, size: int, axis: int) -> Any:
    """From the first half of a spectrum that is conjugate symmetric: each bin that is mirrored counts twice."""
    bins = size // 2 + 1
    re, im = _fit(node, re, bins), _fit(node, im, bins)
    weight = np.full(bins, 2.0)
    weight[0] = 1
    if size % 2 == 0:
        weight[-1] = 1
    angle = 2 * np.pi * (np.outer(np.arange(bins), np.arange(size)) % size) / size
    dtype = re.sinfo.dtype.numpy
    cos, sin = (graph.Constant.of((f(angle) * weight[:, None] / size).astype(dtype)) for f in (np.cos, np.sin))
    out = _swap(node, node.make("subtract", node.make("matmul", re, cos), node.make("matmul", im, sin)), axis)
    return node.make("expand_dims", out, axis=(out.sinfo.ndim,))


@converter("STFT", since=17)
def _stft(node: NodeContext, x: Value, step: Value, window: Value | None = None, frame: Value | None = None) -> Any:
    hop = int(node.static_ints(step, "the step")[0])
    if frame is not None:
        size = int(node.static_ints(frame, "the frame's length")[0])
    elif window is not None:
        size = _extent(node, window.expr, 0)
    else:
        raise node.error("there is neither a window nor a frame length")
    parts = _parts(node, x.expr)
    count = (_extent(node, parts[0], 1) - size) // hop + 1
    places = graph.Constant.of((np.arange(count)[:, None] * hop + np.arange(size)).astype(np.int64))
    frames = [None if p is None else node.make("take", p, places, axis=1) for p in parts]
    if window is not None:
        frames = [None if f is None else node.make("multiply", f, window.expr) for f in frames]
    onesided = bool(node.attr("onesided", 1))
    return _complex(node, *transform(node, frames[0], frames[1], size, size // 2 + 1 if onesided else size, False))


@converter("MelWeightMatrix", since=17)
def _mel(node: NodeContext, bins: Value, length: Value, rate: Value, low: Value, high: Value) -> Any:
    from ..load import dtype_of

    known = [v.constant() for v in (bins, length, rate, low, high)]
    if any(k is None for k in known):
        raise node.data_dependent("a mel filter bank")
    count, size, sample_rate, lower, upper = (k.reshape(-1)[0].item() for k in known)
    spectrum = size // 2 + 1
    first, last = (2595 * np.log10(1 + f / 700) for f in (lower, upper))
    mel = first + np.arange(count + 2) * ((last - first) / (count + 2))
    edges = 700 * (np.power(10, mel / 2595) - 1)
    places = ((size + 1) * edges // sample_rate).astype(np.int64)
    out = np.zeros((spectrum, count))
    for k in range(count):
        left, centre, right = places[k: k + 3]
        if centre == left:
            out[centre, k] = 1
        else:
            out[left: centre + 1, k] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            out[centre:right, k] = (right - np.arange(centre, right)) / (right - centre)
    return graph.Constant.of(out.astype(dtype_of(node.attr("output_datatype", 1)).numpy))
