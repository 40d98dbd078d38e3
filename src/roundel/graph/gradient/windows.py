# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolutions and pools, in the layouts NC... and OI...; sizes have to be numbers.

The gradient by data is a transposed convolution, that by weights a convolution of data with the gradient, whose batch is what is summed over
(Dumoulin and Visin, 2016, https://arxiv.org/abs/1603.07285).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from .rules import RULES, Step, nothing
from .shapes import part, placed

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class _Windows:
    """Sizes of a convolution or pool of ``n`` spatial axes, by axis: of data, windows, steps and padding before; ``out`` of the result."""

    def __init__(self, s: Step, n: int, window: Sequence[int], layouts: Sequence[tuple[str, str]]) -> None:
        for name, plain in layouts:
            if s.attrs[name] not in (None, plain):
                raise s.refuse(f"{name} is {s.attrs[name]}, not {plain}")
        self.n, self.letters = n, _SPATIAL[n]
        self.shape = s.sizes()
        self.data, self.window = self.shape[2:], list(window)
        self.strides, self.dilation = per_axis(s.attrs["strides"], n), per_axis(s.attrs["dilation"], n)
        self.before, self.after = (list(side) for side in zip(*paddings(s.attrs["padding"], n), strict=True))
        self.out = [static(d) or 0 for d in s.out.sinfo.shape[2:]]

    def spread(self, g: Any, weight: Any, groups: int) -> Any:
        """The transposed convolution of ``g`` with the weights, in the size of data."""
        cut, extra = [], []
        for n, m, step, k, d, b in zip(self.data, self.out, self.strides, self.window, self.dilation, self.before, strict=True):
            whole = (m - 1) * step - b + d * (k - 1) + 1  # what the windows cover, counted from the first element of data
            cut.append(max(0, whole - n))
            extra.append(max(0, n - whole))
        out = make(f"nn.conv{self.n}d_transpose", g, weight, strides=self.strides, padding=(*self.before, *cut), dilation=self.dilation, groups=groups,
                   data_layout=f"NC{self.letters}", kernel_layout=f"IO{self.letters}")
        return make("nn.pad", out, (0, 0, 0, 0, *itertools.chain(*((0, n) for n in extra)))) if any(extra) else out


def _layouts(n: int) -> list[tuple[str, str]]:
    return [("out_layout", f"NC{_SPATIAL[n]}"), ("data_layout", f"NC{_SPATIAL[n]}"), ("kernel_layout", f"OI{_SPATIAL[n]}")]


def _conv(n: int) -> Any:
    def rule(s: Step, g: Any) -> Sequence[Any]:
        data, weight = s.args[:2]
        kernel = s.sizes(1)
        w, groups = _Windows(s, n, kernel[2:], _layouts(n)), s.attrs["groups"]
        return w.spread(g, weight, groups), _by_weight(w, s.emit(g), data, kernel, groups), *[None] * (len(s.args) - 2)

    return rule


def _by_weight(w: _Windows, g: Any, data: Any, kernel: Sequence[int], groups: int) -> Any:
    """What was the batch is summed over: channels of a group become the batch, the gradient the kernel, strides and dilations change places."""
    batch, channels, out_channels = w.shape[0], kernel[1], kernel[0]
    rest = list(range(3, 3 + w.n))
    x = make("reshape", data, (batch, groups, channels, *w.data))
    x = make("reshape", make("permute_dims", x, axes=(2, 1, 0, *rest)), (channels, groups * batch, *w.data))
    k = make("reshape", g, (batch, groups, out_channels // groups, *w.out))
    k = make("reshape", make("permute_dims", k, axes=(1, 2, 0, *rest)), (out_channels, batch, *w.out))
    found = make(f"nn.conv{w.n}d", x, k, strides=w.dilation, dilation=w.strides, padding=(*w.before, *w.after), groups=groups,
                 data_layout=f"NC{w.letters}", kernel_layout=f"OI{w.letters}")
    inside = part(found, [0] * w.n, kernel[2:], range(2, 2 + w.n))
    return make("permute_dims", inside, axes=(1, 0, *range(2, 2 + w.n)))


def _conv_transpose(n: int) -> Any:
    def rule(s: Step, g: Any) -> Sequence[Any]:
        data, weight = s.args
        kernel, sizes, groups = s.sizes(1), s.sizes(), s.attrs["groups"]
        for name, plain in (("out_layout", f"NC{_SPATIAL[n]}"), ("data_layout", f"NC{_SPATIAL[n]}"), ("kernel_layout", f"IO{_SPATIAL[n]}")):
            if s.attrs[name] not in (None, plain):
                raise s.refuse(f"{name} is {s.attrs[name]}, not {plain}")
        options = {"strides": s.attrs["strides"], "padding": s.attrs["padding"], "dilation": s.attrs["dilation"], "groups": groups}
        by_data = make(f"nn.conv{n}d", g, weight, **options, data_layout=f"NC{_SPATIAL[n]}", kernel_layout=f"OI{_SPATIAL[n]}")
        by_data = part(by_data, [0] * n, sizes[2:], range(2, 2 + n))
        forward = Step(make(f"nn.conv{n}d", g, weight, **options), data, s.builder)  # of which this operator is the gradient by data
        w = _Windows(forward, n, kernel[2:], _layouts(n))
        return by_data, _by_weight(w, data, s.emit(g), kernel, groups)

    return rule


def _pool_layouts(n: int) -> list[tuple[str, str]]:
    return [("layout", f"NC{_SPATIAL[n]}"), ("out_layout", f"NC{_SPATIAL[n]}")]


def _avg_pool(n: int) -> Any:
    def rule(s: Step, g: Any) -> Sequence[Any]:
        """An average is a sum over a window times a share, which the average of ones tells."""
        dtype = s.out.sinfo.dtype
        w = _Windows(s, n, per_axis(s.attrs["pool_size"], n), _pool_layouts(n))
        ones = make("ones", (1, 1, *w.data), dtype=dtype)
        inside = np.ones([1, 1, *w.out], dtype.numpy)
        for k in range(n):
            first = np.arange(w.out[k]) * w.strides[k] - w.before[k]
            at = first[:, None] + np.arange(w.window[k]) * w.dilation[k]
            inside = inside * ((at >= 0) & (at < w.data[k])).sum(1).reshape([-1 if j == k + 2 else 1 for j in range(n + 2)])
        share = make(str(s.call.op.name), ones, **s.attrs) / graph.Constant.of(np.maximum(inside, 1).astype(dtype.numpy))
        kernel = make("ones", (w.shape[1], 1, *w.window), dtype=dtype)
        return (w.spread(g * share, kernel, w.shape[1]),)

    return rule


def _max_pool(n: int) -> Any:
    def rule(s: Step, g: Any) -> Sequence[Any]:
        """To the first element of each window that equals its maximum: looked for place by place."""
        (x,) = s.args
        w = _Windows(s, n, per_axis(s.attrs["pool_size"], n), _pool_layouts(n))
        axes = range(2, 2 + n)
        reach = [(m - 1) * step + d * (k - 1) + 1 for m, step, d, k in zip(w.out, w.strides, w.dilation, w.window, strict=True)]
        behind = [max(0, r - b - size) for r, b, size in zip(reach, w.before, w.data, strict=True)]
        lowest = graph.PrimValue(tir.const(-math.inf, s.out.sinfo.dtype))
        padded = s.emit(make("nn.pad", x, (0, 0, 0, 0, *itertools.chain(*zip(w.before, behind, strict=True))), pad_value=lowest))
        left, total = None, None
        for at in itertools.product(*map(range, w.window)):
            begin = [i * d for i, d in zip(at, w.dilation, strict=True)]
            end = [b + (m - 1) * step + 1 for b, m, step in zip(begin, w.out, w.strides, strict=True)]
            hit = make("equal", make("strided_slice", padded, tuple(axes), tuple(begin), tuple(end), tuple(w.strides)), s.out)
            hit = s.emit(hit if left is None else make("logical_and", hit, left))
            missed = make("logical_not", hit)
            left = s.emit(missed if left is None else make("logical_and", left, missed))
            piece = s.emit(placed(make("where", hit, g, nothing(g)), padded, begin, w.strides, axes))
            total = piece if total is None else s.emit(total + piece)
        return (part(total, w.before, [b + d for b, d in zip(w.before, w.data, strict=True)], axes),)

    return rule


def _adaptive_avg_pool(n: int) -> Any:
    def rule(s: Step, g: Any) -> Sequence[Any]:
        """Axis by axis a product with the matrix of the averages' shares"""
        for name, plain in _pool_layouts(n):
            if s.attrs[name] not in (None, plain):
                raise s.refuse(f"{name} is {s.attrs[name]}, not {plain}")
        sizes, out = s.sizes()[2:], [static(d) or 0 for d in s.out.sinfo.shape[2:]]
        ndim = n + 2
        for k, (size, m) in enumerate(zip(sizes, out, strict=True)):
            shares = np.zeros((m, size), s.out.sinfo.dtype.numpy)
            for j in range(m):
                first, last = j * size // m, -(-(j + 1) * size // m)
                shares[j, first:last] = 1.0 / (last - first)
            order = [a for a in range(ndim) if a != k + 2] + [k + 2]
            product = make("matmul", make("permute_dims", g, axes=order), graph.Constant.of(shares))
            g = make("permute_dims", product, axes=sorted(range(ndim), key=order.__getitem__))
        return (g,)

    return rule


for _n in _SPATIAL:
    RULES[f"nn.conv{_n}d"] = _conv(_n)
    RULES[f"nn.conv{_n}d_transpose"] = _conv_transpose(_n)
    RULES[f"nn.avg_pool{_n}d"] = _avg_pool(_n)
    RULES[f"nn.max_pool{_n}d"] = _max_pool(_n)
    RULES[f"nn.adaptive_avg_pool{_n}d"] = _adaptive_avg_pool(_n)

