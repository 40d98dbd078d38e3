# SPDX-License-Identifier: Apache-2.0
"""Padding in front of a convolution or a pooling becomes the padding that these have themselves, so no padded copy of the data is made.

PyTorch models pad by an operator of its own where the two ends of an axis differ (TensorFlow's "same"). Zeros go into convolutions, and into
averages that count them; the lowest value goes into maxima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import graph
from ...ir.dtype import DType
from ...ops import make
from ...ops.dims import paddings, static
from ...ops.layout import named_layout
from ..pattern import Match, OpPattern, is_op, wildcard

x, weight, widths = wildcard(), wildcard(), wildcard()
_padded = is_op("nn.pad")(x, widths)

Ends = list[tuple[int, int]]


def _of_convolution(m: Match, convolution: OpPattern, axes: str) -> Any:
    """``conv(pad(x, 0), w)`` -> ``conv(x, w)`` with the sum of both paddings."""
    call = m.call(convolution)
    ends = _ends(m, call.attrs["data_layout"], axes)
    if ends is None or len(call.args) > 2 or _filling(m) != 0:
        return None
    return make(call.op.name, m[x], m[weight], **{**call.attrs, "padding": _sum(ends, call.attrs["padding"])})


def _of_maximum(m: Match, pool: OpPattern, axes: str) -> Any:
    """``max_pool(pad(x, lowest))`` -> ``max_pool(x)``; not with ``ceil_mode``, where the number of windows depends on which of both pads."""
    call = m.call(pool)
    ends = _ends(m, call.attrs["layout"], axes)
    if ends is None or call.attrs["ceil_mode"] or _filling(m) != _lowest(call.sinfo.dtype):
        return None
    return make(call.op.name, m[x], **{**call.attrs, "padding": _sum(ends, call.attrs["padding"])})


def _of_average(m: Match, pool: OpPattern, axes: str) -> Any:
    """``avg_pool(pad(x, 0))`` -> ``avg_pool(x)`` that counts its padding; not where it left out padding of its own before, nor with ``ceil_mode``."""
    call = m.call(pool)
    ends = _ends(m, call.attrs["layout"], axes)
    own = paddings(call.attrs["padding"], len(axes))
    if ends is None or call.attrs["ceil_mode"] or _filling(m) != 0 or not (call.attrs["count_include_pad"] or all(e == (0, 0) for e in own)):
        return None
    return make(call.op.name, m[x], **{**call.attrs, "padding": _sum(ends, call.attrs["padding"]), "count_include_pad": True})


def _ends(m: Match, layout: Any, axes: str) -> Ends | None:
    """How much the data are padded before and after along each axis of space; None where that is not constant, crops, or pads other axes too."""
    call, names = m.call(_padded), named_layout(layout).axes
    flat = call.args[1].values if isinstance(call.args[1], graph.ShapeExpr) else None
    if call.attrs["pad_mode"] != "constant" or flat is None or len(flat) != 2 * len(names):
        return None
    width = [static(n) for n in flat]
    if any(n is None or n < 0 for n in width):
        return None
    pairs = dict(zip(names, zip(width[0::2], width[1::2], strict=True), strict=True))
    ends = [pairs.pop((c, None), None) for c in axes]
    if None in ends or any(e != (0, 0) for e in pairs.values()):
        return None
    return ends  # type: ignore[return-value]


def _filling(m: Match) -> Any:
    """What the data are padded with; None where it is not constant."""
    args = m.call(_padded).args
    if len(args) < 3:
        return 0
    return args[2].data.numpy().item() if isinstance(args[2], graph.Constant) and args[2].data.numpy().size == 1 else None


def _lowest(dtype: DType) -> Any:
    return -np.inf if dtype.is_float else np.iinfo(dtype.numpy).min


def _sum(ends: Ends, own: Any) -> tuple[int, ...]:
    both = [(a + c, b + d) for (a, b), (c, d) in zip(ends, paddings(own, len(ends)), strict=True)]
    return tuple(n for side in zip(*both, strict=True) for n in side)


def _rules() -> list[Any]:
    rules = []
    for axes in ("W", "HW", "DHW"):
        convolution = is_op(f"nn.conv{len(axes)}d")(_padded, weight)
        maximum, average = (is_op(f"nn.{how}_pool{len(axes)}d")(_padded) for how in ("max", "avg"))
        rules.append((convolution, lambda m, p=convolution, c=axes: _of_convolution(m, p, c)))
        rules.append((maximum, lambda m, p=maximum, c=axes: _of_maximum(m, p, c)))
        rules.append((average, lambda m, p=average, c=axes: _of_average(m, p, c)))
    return rules


PADDING = _rules()
"""The rules as the table of ``simplify`` takes them."""
