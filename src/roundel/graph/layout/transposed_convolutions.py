# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions as plain ones of their phases, which multiply by no zeros between pixels.

The results of stride s whose places leave the same remainder r, a phase, are a convolution of stride 1 with every s-th tap of the kernel. All phases
are computed as channels of one pixel, and then put in place:

    result[:, o, s * q + r] = sum over c, j of data[:, c, q - j] * weight[c, o, r + s * j]

Those of float32 by constant weights that are not in groups are left to ``block_channels``, which does the same to weights in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from ...passes import pass_
from ..rewriter import GraphRewriter, may_call

Emit = Callable[[graph.GraphExpr], graph.GraphExpr]
_NAMES = {f"nn.conv{n}d_transpose" for n in (1, 2, 3)}


@dataclass(frozen=True)
class Phased:
    """Along one axis of space: a kernel of so many taps (``kernel``) and a ``stride``; what the padding cuts off ``before`` and ``after``, less what
    ``output_padding`` adds. With a dilation other than 1 the stride is 1."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def taps(self) -> int:
        """Of each phase."""
        return -(-self.kernel // self.stride)

    @property
    def shift(self) -> int:
        """Zeros before the kernel with which the result begins with the first phase, where these cost no tap."""
        zeros = -self.before % self.stride
        return zeros if self.kernel + zeros <= self.taps * self.stride else 0

    @property
    def zeros(self) -> tuple[int, int]:
        """Before and after the kernel, so that all phases have as many taps."""
        return self.shift, self.taps * self.stride - self.kernel - self.shift

    @property
    def padding(self) -> tuple[int, int]:
        """Of the convolution of the phases."""
        last = -(-(self.shift + (self.kernel - 1) * self.dilation + 1 - self.after) // self.stride) - 1
        return max(0, self._reach - (self.before + self.shift) // self.stride), max(0, last)

    @property
    def cut(self) -> int:
        """Results before the first that is wanted."""
        return self.before + self.shift - self.stride * (self._reach - self.padding[0])

    @property
    def _reach(self) -> int:
        """Pixels from the first tap of a phase to the last."""
        return (self.taps - 1) * self.dilation


@pass_("transposed_convolutions")
def transposed_convolutions(mod: IRModule) -> IRModule:
    """Compute transposed convolutions of data weights, in groups, of other types than float32 or of stride 1 by their phases."""
    return _Phases(mod).module() if may_call(mod, _NAMES) else mod


class _Phases(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not isinstance(call.op, OpDef) or call.op.name not in _NAMES or len(call.args) != 2:
            return call
        axes = _axes(call)
        return call if axes is None else phased(call, axes, self.emit)


def _axes(call: graph.Call) -> list[Phased] | None:
    """The axes of space; None for a convolution that is left as it is."""
    weight, a = call.args[1], call.attrs
    space, sizes = "DHW"[5 - weight.sinfo.ndim :], [static(size) for size in weight.sinfo.shape or (None,)]
    if (a["data_layout"], a["kernel_layout"]) != (f"NC{space}", f"IO{space}") or a.get("out_layout") or None in sizes:
        return None
    n, kernel = len(space), sizes[2:]
    strides, dilations = per_axis(a["strides"], n), per_axis(a["dilation"], n)
    if any(d != 1 and s != 1 for s, d in zip(strides, dilations, strict=True)):
        return None
    if isinstance(weight, graph.Constant) and a["groups"] == 1 and set(strides) != {1} and set(dilations) == {1} and call.args[0].sinfo.dtype == "float32":
        return None
    each = zip(kernel, strides, dilations, paddings(a["padding"], n), per_axis(a["output_padding"], n), strict=True)
    return [Phased(k, s, d, before, after - more) for k, s, d, (before, after), more in each]


def phased(call: graph.Call, axes: Sequence[Phased], emit: Emit) -> graph.GraphExpr:
    """The call as a plain convolution of phases, and their pixels in place."""
    data, weight, a = call.args[0], call.args[1], call.attrs
    n, groups, outer = len(axes), int(a["groups"]), weight.sinfo.shape[1]
    padding = (*(p.padding[0] for p in axes), *(p.padding[1] for p in axes))
    out: graph.GraphExpr = make(f"nn.conv{n}d", data, phases(weight, groups, axes, emit), padding=padding, dilation=tuple(p.dilation for p in axes),
                                groups=groups, out_dtype=a["out_dtype"])
    images, _, *places = out.sinfo.shape
    whole = [size * p.stride for size, p in zip(places, axes, strict=True)]
    if any(p.stride != 1 for p in axes):
        strides = [tir.index_const(p.stride) for p in axes]
        cut = make("reshape", emit(out), graph.ShapeExpr((images, tir.index_const(groups), *strides, outer, *places)))
        placed = make("permute_dims", emit(cut), axes=(0, 1, 2 + n, *(k for axis in range(n) for k in (3 + n + axis, 2 + axis))))
        out = make("reshape", emit(placed), graph.ShapeExpr((images, outer * groups, *whole)))
    sizes = call.sinfo.shape[2:]
    if any(p.cut for p in axes) or any(have is not want for have, want in zip(out.sinfo.shape[2:], sizes, strict=True)):
        begin, end = [tir.index_const(p.cut) for p in axes], [size + p.cut for size, p in zip(sizes, axes, strict=True)]
        bounds = (graph.ShapeExpr(tuple(x)) for x in ([tir.index_const(2 + k) for k in range(n)], begin, end))
        out = make("strided_slice", emit(out), *bounds, assume_inbound=True)
    return out


def phases(weight: graph.GraphExpr, groups: int, axes: Sequence[Phased], emit: Emit) -> graph.GraphExpr:
    """The weights [I, O, *kernel] of a transposed convolution as those of a plain one, [groups * phases * O, I / groups, *taps]."""
    n, (inner, outer) = len(axes), weight.sinfo.shape[:2]
    if any(any(p.zeros) for p in axes):
        width = graph.ShapeExpr(tuple(map(tir.index_const, (0, 0, 0, 0, *(z for p in axes for z in p.zeros)))))
        weight = emit(make("nn.pad", weight, width))
    each = tir.index_const(inner.value // groups)
    parts = (tir.index_const(groups), each, outer, *(tir.index_const(x) for p in axes for x in (p.taps, p.stride)))
    weight = emit(make("reshape", weight, graph.ShapeExpr(parts)))
    weight = emit(make("flip", weight, axis=[3 + 2 * k for k in range(n)]))
    turned = emit(make("permute_dims", weight, axes=(0, *(4 + 2 * k for k in range(n)), 2, 1, *(3 + 2 * k for k in range(n)))))
    channels = tir.index_const(groups * outer.value * math.prod(p.stride for p in axes))
    return emit(make("reshape", turned, graph.ShapeExpr((channels, each, *(tir.index_const(p.taps) for p in axes)))))
