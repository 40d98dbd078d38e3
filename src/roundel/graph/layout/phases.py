# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions as convolutions without dilation, for which there are more algorithms.

A result of a convolution of dilation d reads pixels that are d apart, and so do its neighbours d apart. So a picture whose d * d phases
(rows q * d + r, columns likewise) become pictures of their own is d * d pictures, each of which is convolved without dilation:

    result[n, :, q * d + r, p * d + s] = conv2d(picture[n, :, r::d, s::d], kernel)[:, q, p]

Pixels are put in order again afterwards. Phases of unequal size are filled up with zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ops import make
from ...ops.dims import paddings, per_axis, simplify, static
from ..expectations import stand_in

Emit = Callable[[graph.GraphExpr], graph.GraphExpr]


@dataclass(frozen=True)
class Axis:
    """Along one axis of space: the ``size`` of the data, that of the ``result``, the ``dilation`` and the ``kernel``'s extent; zeros
    ``before`` and ``after``."""

    size: int
    result: int
    dilation: int
    kernel: int
    before: int
    after: int

    @property
    def shift(self) -> int:
        """Zeros that come before the data, so that it begins with the first phase; those of the padding that are whole pixels of all phases do not count."""
        return self.before % self.dilation

    @property
    def pixels(self) -> int:
        """Of each phase of the data."""
        return -(-(self.size + self.shift) // self.dilation)

    @property
    def results(self) -> int:
        """Of each phase."""
        return -(-self.result // self.dilation)

    @property
    def padding(self) -> tuple[int, int]:
        """Zeros before and after each phase."""
        before = self.before // self.dilation
        return before, self.results + self.kernel - 1 - before - self.pixels

    @property
    def inside(self) -> float:
        """The share of the products that read no padding."""
        reads = (max(0, min(self.result, self.size + first) - max(0, first)) for first in (self.before - k * self.dilation for k in range(self.kernel)))
        return sum(reads) / (self.result * self.kernel)


@dataclass(frozen=True)
class Phases:
    """A dilated convolution of so many ``images`` as one of phases: ``data`` [N * d * d, C, H', W'] by ``kernel`` [O, C, Y, X] with the attributes
    ``attrs``; ``data`` is of one image where their number is not known."""

    images: tir.Expr
    data: graph.TensorInfo
    kernel: graph.TensorInfo
    attrs: Mapping[str, Any]
    axes: tuple[Axis, Axis]

    @property
    def inside(self) -> float:
        """The share of the products of the convolution that read no padding; a direct one leaves out the others."""
        return math.prod(axis.inside for axis in self.axes)

    def copying(self, lanes: int) -> list[graph.Call]:
        """Calls that copy as much as taking a picture apart and putting the result together do, in blocks of so many channels."""
        channels, outer = (static(n) // lanes for n in (self.kernel.shape[1], self.kernel.shape[0]))
        images = static(self.images) or 1
        picture = (images, channels, *(n for a in self.axes for n in (a.pixels, a.dilation)), lanes)
        phases = (images, *(a.dilation for a in self.axes), outer, *(a.results for a in self.axes), lanes)
        return [make("permute_dims", stand_in("picture", picture), axes=APART), make("permute_dims", stand_in("phases", phases), axes=TOGETHER)]

    def weights(self, weight: graph.Constant) -> graph.Constant:
        """The weights of a phase are those of the picture."""
        return weight

    def stacked(self, emit: Emit, picture: graph.GraphExpr) -> graph.GraphExpr:
        """The picture ``[N, C/b, H, W, b]`` as data ``[N * d * d, C/b, H', W', b]``."""
        blocks, lanes = (static(picture.sinfo.shape[k]) for k in (1, 4))
        ends = [(a.shift, a.pixels * a.dilation - a.size - a.shift) for a in self.axes]
        if any(map(any, ends)):
            picture = emit(make("nn.pad", picture, _shape(0, 0, 0, 0, *(n for end in ends for n in end), 0, 0)))
        cut = emit(make("reshape", picture, _shape(self.images, blocks, *(n for a in self.axes for n in (a.pixels, a.dilation)), lanes)))
        phases = emit(make("permute_dims", cut, axes=APART))
        count = simplify(self.images * math.prod(a.dilation for a in self.axes))
        return emit(make("reshape", phases, _shape(count, blocks, *(a.pixels for a in self.axes), lanes)))

    def restored(self, emit: Emit, phases: graph.GraphExpr) -> graph.GraphExpr:
        """The result of the convolution of phases ``[N * d * d, O/o, ...]`` as that of the picture ``[N, O/o, ...]``."""
        blocks, lanes = (static(phases.sinfo.shape[k]) for k in (1, 4))
        cut = emit(make("reshape", emit(phases), _shape(self.images, *(a.dilation for a in self.axes), blocks, *(a.results for a in self.axes), lanes)))
        picture = emit(make("permute_dims", cut, axes=TOGETHER))
        whole = make("reshape", picture, _shape(self.images, blocks, *(a.results * a.dilation for a in self.axes), lanes))
        if all(a.results * a.dilation == a.result for a in self.axes):
            return whole
        bounds = _shape(2, 3), _shape(0, 0), _shape(*(a.result for a in self.axes)), _shape(1, 1)
        return make("strided_slice", emit(whole), *bounds, assume_inbound=True)


APART = (0, 3, 5, 1, 2, 4, 6)     # [N, C/b, H', d, W', d, b] to [N, d, d, C/b, H', W', b]
TOGETHER = (0, 3, 4, 1, 5, 2, 6)  # [N, d, d, O/o, H', W', o] to [N, O/o, H', d, W', d, o]


def as_phases(call: graph.Call) -> Phases | None:
    """``nn.conv2d`` with constant weights as a convolution of phases; None where it has no dilation, or strides, or sizes of a picture are unknown or its
    result is empty."""
    data, weight, a = call.args[0].sinfo, call.args[1], call.attrs
    dilations = per_axis(a["dilation"], 2)
    images, *known = (*data.shape, *call.sinfo.shape[1:])
    sizes = [static(n) for n in known]
    if set(dilations) == {1} or set(per_axis(a["strides"], 2)) != {1} or None in sizes or 0 in sizes or a["groups"] != 1:
        return None
    outer, inner, *kernel = weight.data.shape
    axes = [Axis(*of, *ends) for *of, ends in zip(sizes[1:3], sizes[4:], dilations, kernel, paddings(a["padding"], 2), strict=True)]
    attrs = {"strides": 1, "dilation": 1, "padding": tuple(n for side in zip(*(a.padding for a in axes), strict=True) for n in side), "groups": 1}
    info = lambda *shape: graph.TensorInfo(tuple(map(tir.index_const, shape)), data.dtype)
    pictures = info((static(images) or 1) * math.prod(dilations), sizes[0], *(a.pixels for a in axes))
    return Phases(images, pictures, info(outer, inner, *kernel), attrs, (axes[0], axes[1]))


def _shape(*extents: int | tir.Expr) -> graph.ShapeExpr:
    return graph.ShapeExpr(tuple(tir.index_const(n) if isinstance(n, int) else n for n in extents))
