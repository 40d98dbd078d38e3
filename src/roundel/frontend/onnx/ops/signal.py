# SPDX-License-Identifier: Apache-2.0
"""ONNX signal processing: Fourier transforms, also of frames of a signal, mel filter banks."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te

from ....ir import graph, options, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .math import const_like


def _cut(node: NodeContext, x: Any, axis: int, begin: Any, end: Any) -> Any:
    one = tir.index_const(1)
    return node.make("strided_slice", x, axes=(axis,), begin=(tir.as_index(begin),), end=(tir.as_index(end),), strides=(one,))


def _fit(node: NodeContext, x: Any, length: tir.Expr) -> Any:
    """The last axis cut or padded with zeros to ``length``."""
    last = x.sinfo.ndim - 1
    n = x.sinfo.shape[last]
    if n is length:
        return x
    kept = tir.min_(n, length)
    x = _cut(node, x, last, 0, kept)
    width = (tir.index_const(0),) * (2 * last + 1) + (length - kept,)
    return node.make("nn.pad", x, pad_value=const_like(0, x), pad_width=width, pad_mode="constant")


def _parts(node: NodeContext, x: Any) -> tuple[Any, Any | None]:
    """Real and imaginary part: the last axis has one or both."""
    last = x.sinfo.ndim - 1
    if not isinstance(x.sinfo.shape[last], tir.IntImm):
        raise node.unsupported("a signal of which nobody says whether it is real or complex (its last dimension is symbolic)")
    parts = [node.make("squeeze", _cut(node, x, last, k, k + 1), axis=(last,)) for k in range(x.sinfo.shape[last].value)]
    return parts[0], parts[1] if len(parts) > 1 else None


def _complex(node: NodeContext, re: Any, im: Any) -> Any:
    last = re.sinfo.ndim
    return node.make("concat", graph.Tuple(tuple(node.make("expand_dims", p, axis=(last,)) for p in (re, im))), axis=last)


def _swap(node: NodeContext, x: Any, axis: int) -> Any:
    """``axis`` and the last one exchanged."""
    order = list(range(x.sinfo.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return x if axis == x.sinfo.ndim - 1 else node.make("permute_dims", x, axes=tuple(order))


def _transform(node: NodeContext, re: Any, im: Any | None, inverse: bool, onesided: bool) -> list[Any]:
    """Real and imaginary part of the transform along the last axis, or of the first half of it."""
    if im is None and not inverse:
        both = node.make("fft.r2c", re, onesided=onesided)
        return [node.emit(graph.TupleGetItem(both, k)) for k in (0, 1)]
    if im is None:
        im = node.make("multiply", re, const_like(0, re))
    both = node.make("fft.c2c", re, im, inverse=inverse, norm="points" if inverse else None)
    out = [node.emit(graph.TupleGetItem(both, k)) for k in (0, 1)]
    last, n = re.sinfo.ndim - 1, re.sinfo.shape[-1]
    return [_cut(node, v, last, 0, tir.floordiv(n, 2) + 1) for v in out] if onesided else out


@converter("DFT", since=17)
def _dft_attribute(node: NodeContext, x: Value, length: Value | None = None) -> Any:
    return _dft_along(node, x, length, node.attr("axis", 1))


@converter("DFT", since=20)
def _dft(node: NodeContext, x: Value, length: Value | None = None, axis: Value | None = None) -> Any:
    return _dft_along(node, x, length, -2 if axis is None else int(node.static_ints(axis, "the axis")[0]))


def _dft_along(node: NodeContext, x: Value, length: Value | None, axis: int) -> Any:
    v, inverse, onesided = x.expr, bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    axis = node.axis(axis, v.sinfo.ndim)
    re, im = (None if p is None else _swap(node, p, axis) for p in _parts(node, v))
    n = re.sinfo.shape[-1]
    whole_from_half = inverse and onesided
    size = node.ints(length, "the length")[0] if length is not None else (n - 1) * 2 if whole_from_half else n
    size = tir.as_index(size)
    bins = tir.floordiv(size, 2) + 1 if whole_from_half else size
    re, im = _fit(node, re, bins), None if im is None else _fit(node, im, bins)
    if whole_from_half:
        im = node.make("multiply", re, const_like(0, re)) if im is None else im
        out = _swap(node, node.make("fft.c2r", re, im, graph.PrimValue(size), norm="points"), axis)
        return node.make("expand_dims", out, axis=(out.sinfo.ndim,))
    return _complex(node, *(_swap(node, p, axis) for p in _transform(node, re, im, inverse, onesided)))


@converter("STFT", since=17)
def _stft(node: NodeContext, x: Value, step: Value, window: Value | None = None, frame: Value | None = None) -> Any:
    if frame is None and window is None:
        raise node.error("there is neither a window nor a frame length")
    hop = tir.as_index(node.ints(step, "the step")[0])
    size = tir.as_index(node.ints(frame, "the frame's length")[0]) if frame is not None else window.expr.sinfo.shape[0]
    if window is not None:
        node.same_size(window.expr.sinfo.shape[0], size, "the window is not as long as a frame")
    node.same_size(tir.max_(hop, 1), hop, "the step must be at least 1, it is below")
    parts = _parts(node, x.expr)
    samples = parts[0].sinfo.shape[1]
    node.same_size(tir.max_(samples, size), samples, "the signal is shorter than a frame")
    count = tir.floordiv(parts[0].sinfo.shape[1] - size, hop) + 1

    def frames(signal: te.Tensor, weights: te.Tensor | None, count: Any, size: Any, hop: Any) -> te.Tensor:
        def sample(b: Any, i: Any, j: Any) -> Any:
            value = signal[b, i * hop + j]
            return value if weights is None else value * te.cast(weights[j], signal.dtype)

        return te.compute((signal.shape[0], count, size), sample, "frames")

    weights = None if window is None else window.expr
    cut = [None if p is None else node.te(frames, p, weights, count, size, hop) for p in parts]
    return _complex(node, *_transform(node, cut[0], cut[1], False, bool(node.attr("onesided", 1))))


@converter("MelWeightMatrix", since=17)
def _mel(node: NodeContext, bins: Value, length: Value, rate: Value, low: Value, high: Value) -> Any:
    from ..load import dtype_of

    known = [v.constant() for v in (bins, length, rate, low, high)]
    if any(k is None for k in known):
        raise node.data_dependent("a mel filter bank")
    count, size, sample_rate, lower, upper = (k.reshape(-1)[0].item() for k in known)
    spectrum = size // 2 + 1
    if spectrum * count * 8 > (most := options.get("max_folded_bytes")):
        raise node.unsupported(f"a mel filter bank of {spectrum} x {count} numbers is larger than the option max_folded_bytes ({most}) allows")
    first, last = (2595 * np.log10(1 + f / 700) for f in (lower, upper))
    mel = first + np.arange(count + 2) * ((last - first) / (count + 2))
    edges = 700 * (np.power(10, mel / 2595) - 1)
    places = ((size + 1) * edges // sample_rate).astype(np.int64)
    left, centre, right, at = places[:-2], places[1:-1], places[2:], np.arange(spectrum)[:, None]
    rising = np.where(centre == left, at == centre, (at - left) / np.maximum(centre - left, 1))
    out = np.where((left <= at) & (at <= centre), rising, 0.0)
    out = np.where((centre <= at) & (at < right), (right - at) / np.maximum(right - centre, 1), out)
    return graph.Constant.of(out.astype(dtype_of(node.attr("output_datatype", 1)).numpy))
