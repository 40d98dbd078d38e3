# SPDX-License-Identifier: Apache-2.0
"""Taps of a convolution's window that meet nothing but padding at every place are cut off its weights.

A kernel of three taps of dilation 36 over a picture of 28 pixels is a kernel of one: the outer ones always lie outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import graph
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from ..pattern import Match, OpPattern, is_const, is_op, wildcard

x, weight = wildcard(), is_const()


def _cut(m: Match, convolution: OpPattern) -> Any:
    """The convolution with the taps that read something, where others stand before or after these."""
    call, kernel = m.call(convolution), m[weight].data
    axes = len(kernel.shape) - 2
    data, attrs = m[x].sinfo.shape, dict(call.attrs)
    plain = str(attrs["data_layout"]).startswith("NC") and str(attrs["kernel_layout"]).startswith("OI") and not attrs.get("out_layout")
    if not plain or data is None or len(data) != axes + 2 or call.sinfo.shape is None:
        return None
    sizes, results = ([static(n) for n in shape[2:]] for shape in (data, call.sinfo.shape))
    steps = per_axis(attrs["strides"], axes), per_axis(attrs["dilation"], axes)
    kept = [_kept(*axis) for axis in zip(kernel.shape[2:], sizes, results, *steps, paddings(attrs["padding"], axes), strict=True)]
    if [range(n) for n in kernel.shape[2:]] == [taps for taps, _ in kept]:
        return None
    cut = kernel.numpy()[(slice(None), slice(None), *(slice(taps.start, taps.stop) for taps, _ in kept))]
    attrs["padding"] = tuple(n for side in zip(*(ends for _, ends in kept), strict=True) for n in side)
    return make(call.op.name, m[x], graph.Constant.of(np.ascontiguousarray(cut)), **attrs)


def _kept(taps: int, size: int | None, results: int | None, stride: int, dilation: int, ends: tuple[int, int]) -> tuple[range, tuple[int, int]]:
    """Along one axis: the taps from the first to the last that read the data, and the padding that is left; all where sizes are not known, or where
    the data would have to be cut instead."""
    before, after = ends
    if not size or not results:
        return range(taps), ends
    first = [k * dilation - before for k in range(taps)]  # what each tap reads for the first result
    reads = [k for k, at in enumerate(first) if at < size and at + (results - 1) * stride >= 0]
    if not reads:
        return range(taps), ends
    left = before - reads[0] * dilation, after - (taps - 1 - reads[-1]) * dilation
    return (range(reads[0], reads[-1] + 1), left) if min(left) >= 0 else (range(taps), ends)


UNREAD_TAPS = [(p, lambda m, p=p: _cut(m, p)) for p in (is_op(f"nn.conv{n}d")(x, weight) for n in (1, 2, 3))]
"""The rules as the table of ``simplify`` takes them."""
