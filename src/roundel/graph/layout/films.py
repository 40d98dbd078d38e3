# SPDX-License-Identifier: Apache-2.0
"""Convolutions of films as convolutions of pictures, for which there are more algorithms.

A result of a convolution over three axes is a sum over the pictures that its window holds, of as many convolutions over two. With these
pictures one after another as channels of one picture, it is a single convolution over two axes:

    result[n, d] = conv2d(concat(film[n, s * d - p], film[n, s * d - p + t], ...), concat(weight[..., 0, :, :], weight[..., 1, :, :], ...))

of stride s, dilation t and padding p between pictures, in blocks of channels ``[N, D, C/b, H, W, b]``, where this only copies whole
pictures. A window of one picture at a time copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from ..expectations import stand_in


@dataclass(frozen=True)
class Pictures:
    """A convolution of a film as one of pictures: ``data`` [N * D', taps * C, H, W] by ``kernel`` [O, taps * C, Y, X] with the attributes
    ``attrs``; along the film ``taps`` pictures, ``dilation`` apart, every ``stride``, with ``before`` and ``after`` pictures of zeros."""

    data: graph.TensorInfo
    kernel: graph.TensorInfo
    attrs: Mapping[str, Any]
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def is_view(self) -> bool:
        """Whether the pictures are those of the film, one after another."""
        return self.taps == self.stride == 1 and not self.before and not self.after

    def copying(self, lanes: int) -> list[graph.Call]:
        """Calls that copy as much as making the pictures does, in blocks of so many channels."""
        if self.is_view:
            return []
        n, channels, height, width = (static(x) for x in self.data.shape)
        parts = [stand_in(f"part{k}", (n, channels // self.taps // lanes, height, width, lanes)) for k in range(self.taps)]
        return [make("concat", graph.Tuple(tuple(parts)), axis=1)]

    def weights(self, weight: graph.Constant) -> graph.Constant:
        """Those of the film, [O, C, taps, Y, X], as those of the pictures."""
        shape = [n.value for n in self.kernel.shape]
        return graph.Constant.of(np.ascontiguousarray(weight.data.numpy().swapaxes(1, 2)).reshape(shape))

    def stacked(self, emit: Callable[[graph.GraphExpr], graph.GraphExpr], film: graph.GraphExpr) -> graph.GraphExpr:
        """The film ``[N, D, C/b, H, W, b]`` as data ``[N * D', taps * C/b, H, W, b]``."""
        n, _, blocks, *picture = film.sinfo.shape
        count = static(self.data.shape[0]) // static(n)
        if not self.is_view:
            film = self._chosen(emit, film, count)
        return emit(make("reshape", film, graph.ShapeExpr((self.data.shape[0], tir.index_const(self.taps * static(blocks)), *picture))))

    def restored(self, emit: Callable[[graph.GraphExpr], graph.GraphExpr], pictures: graph.GraphExpr) -> graph.GraphExpr:
        """Results are held as pictures, one after another."""
        return pictures

    def _chosen(self, emit: Callable[[graph.GraphExpr], graph.GraphExpr], film: graph.GraphExpr, count: int) -> graph.GraphExpr:
        """``[N, D', taps * C/b, H, W, b]``."""
        parts = []
        if self.before or self.after:
            width = graph.ShapeExpr(tuple(map(tir.index_const, (0, 0, self.before, self.after, *([0] * 8)))))
            film = emit(make("nn.pad", film, width))
        for first in range(0, self.taps * self.dilation, self.dilation):
            bounds = ([k] for k in (1, first, first + (count - 1) * self.stride + 1, self.stride))
            parts.append(emit(make("strided_slice", film, *(graph.ShapeExpr(tuple(map(tir.index_const, b))) for b in bounds), assume_inbound=True)))
        return emit(make("concat", graph.Tuple(tuple(parts)), axis=2)) if len(parts) > 1 else parts[0]


def as_pictures(call: graph.Call) -> Pictures | None:
    """``nn.conv3d`` with constant weights as a convolution of pictures; None where sizes are unknown or the result is empty."""
    data, weight, a = call.args[0].sinfo, call.args[1], call.attrs
    (before, after), *around = paddings(a["padding"], 3)
    (stride, *strides), (dilation, *dilations) = per_axis(a["strides"], 3), per_axis(a["dilation"], 3)
    outer, inner, taps, *window = weight.data.shape
    sizes = [static(n) for n in (*data.shape, *call.sinfo.shape)]
    if None in sizes or 0 in sizes or a["groups"] != 1:
        return None
    n, channels, _, height, width = sizes[:5]
    info = lambda shape: graph.TensorInfo(tuple(map(tir.index_const, shape)), data.dtype)
    attrs = {"strides": tuple(strides), "dilation": tuple(dilations), "padding": tuple(k for side in zip(*around, strict=True) for k in side), "groups": 1}
    made, kernel = info((n * sizes[7], taps * channels, height, width)), info((outer, taps * inner, *window))
    return Pictures(made, kernel, attrs, taps, stride, dilation, before, after)
