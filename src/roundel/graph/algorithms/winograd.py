# SPDX-License-Identifier: Apache-2.0
"""Ways to compute a convolution, directly and by Winograd's algorithm with tiles of two sizes: what each is expected to take, or why it cannot be had."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...intrinsics.chips import of_target
from ...ir import graph, options
from ...ir.choice import Later
from ...ir.constants import ConstData
from ...ops import make
from ...ops.dims import paddings, per_axis, static
from ...ops.even_tiles import uneven_share
from ...ops.winograd import transform_weight
from ...strategy.match.accelerated import chip_instructions
from ...target import Target
from ..expectations import Expectations, stand_in
from ..tidy.whole_numbers import are_whole

NAMES = {0: "direct", 2: "winograd2", 4: "winograd4"}
"""Of the algorithms, by their tiles: F(2x2,3x3) and F(4x4,3x3); 0 is the direct way."""
LARGEST = 2.0**54
"""The largest norm of a kernel that is transformed. A tile that is not computed directly has pixels of norm below 2^66 (`ops/even_tiles.py`),
and no number on the way to a result, U = G g Gᵀ, V = Bᵀ d B, sums of U V over channels and of these over positions, is larger than ||g|| ||d||
times the square of the sum over x of |A_ix| ||B_x|| ||G_x|| for any i, 94 (of tiles of 2: 15). So nothing overflows."""
WEIGHT = (1,)  # the operands that every run reads from where constants are; the kernel as it is is for uneven tiles
GROWTH = {2: 16 / 9 + 1, 4: 36 / 9 + 1}  # of the weights: transformed, and beside them as they are


def convolution_algorithms(data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, expectations: Expectations,
                           factors: str = "float32", besides: Callable[[], float] = float) -> dict[str, float | str | Later | None]:
    """For each algorithm of a convolution NCHW by OIHW the cycles of one core that are expected of it, its data and results in blocks of
    channels that fill a vector; or why it cannot be had (then nothing is expected of the direct way either). ``factors``: the type to which the
    direct way rounds what it multiplies. ``besides``: the cycles that the other ways take for what else they need.

    What would not be the fastest if it did nothing but multiply is worked out when somebody asks for it, since its whole program has to be made."""
    target = expectations.setting.target
    why_not = _only_direct(data, weight, attrs, target)
    if why_not:
        return {name: why_not if m else None for m, name in NAMES.items()}
    growth, lanes = options.get("weight_growth"), target.lanes("float32")

    def cycles(m: int) -> float:
        found = expectations.cycles(_blocked_call(m, data, weight, attrs, lanes, factors), WEIGHT)
        if m == 4 and uneven > sys.float_info.epsilon:  # of few channels, many tiles are computed directly
            found += uneven * cycles(0)
        return found + besides() if m else found

    uneven = uneven_share(static(weight.shape[1]) or lanes, lanes)
    made: dict[str, float | str | Later | None] = {}
    best = math.inf
    for m, name in reversed(NAMES.items()):
        if m and GROWTH[m] > growth:
            made[name] = f"weights grow to {GROWTH[m]:.2g} times their size, the option weight_growth allows {growth:g}"
        elif (m or factors == "float32") and best <= _least(m, data, weight, attrs, target):
            made[name] = Later(partial(cycles, m))
        else:
            made[name] = expected = cycles(m)
            best = min(best, expected)
    return {name: made[name] for name in NAMES.values()}


def _least(m: int, data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, target: Target) -> float:
    """Cycles of one core that an algorithm takes at least, by its tile: those of its products. The direct way leaves out what reads padding."""
    images, per_pixel = static(data.shape[0]) or 1, static(weight.shape[0]) * static(weight.shape[1])
    along = []
    for n, (before, after) in zip(map(static, data.shape[2:]), paddings(attrs["padding"], 2), strict=True):
        results = n + before + after - 2
        taps = (max(0, min(results, n + before - k) - max(0, before - k)) for k in range(3))
        along.append(-(-results // m) * (m + 2) if m else sum(taps))
    return images * per_pixel * math.prod(along) / (target.lanes("float32") * target.fma_ports)


def direct_cycles(data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, expectations: Expectations) -> float:
    """Cycles of one core that are expected of the direct way, of a convolution whose channels fill vectors."""
    return expectations.cycles(_blocked_call(0, data, weight, attrs, expectations.setting.target.lanes("float32")), WEIGHT)


def _blocked_call(m: int, data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, lanes: int, factors: str = "float32") -> graph.Call:
    """The call of an algorithm, by its tile, for one image where their number is not known."""
    batch, (channels, *space), outer = static(data.shape[0]) or 1, map(static, data.shape[1:]), static(weight.shape[0])
    x, layout = stand_in("data", (batch, channels // lanes, *space, lanes)), f"NCHW{lanes}c"
    kernel = stand_in("kernel", (outer // lanes, channels // lanes, 3, 3, lanes, lanes))
    if not m:
        x, kernel = (stand_in(v.name, v.sinfo.shape, factors) for v in (x, kernel))
        attrs = dict(attrs) | ({} if factors == "float32" else {"out_dtype": "float32"})
        plain = {name: value for name, value in attrs.items() if name not in ("data_layout", "kernel_layout", "out_layout")}
        return make("nn.conv2d", x, kernel, data_layout=layout, kernel_layout=f"OIHW{lanes}i{lanes}o", out_layout=layout, **plain)
    transformed = stand_in("weight", (m + 2, m + 2, outer // lanes, channels // lanes, lanes, lanes))
    return make("nn.winograd_conv2d", x, transformed, kernel, tile=m, padding=attrs["padding"], data_layout=layout)


def fastest(algorithms: Mapping[str, float | str | Later | None]) -> str:
    """The name of the algorithm that is expected to take the least time; the direct one where nothing is expected. What is worked out later is not it."""
    expected = {name: cycles for name, cycles in algorithms.items() if isinstance(cycles, float)}
    return min(expected, key=expected.__getitem__, default=NAMES[0])


def _only_direct(data: graph.TensorInfo, weight: graph.TensorInfo, attrs: Any, target: Target) -> str:
    """Why a convolution cannot run by Winograd's algorithm with any tile; "" where it can."""
    kernel, strides, dilation = [static(n) for n in weight.shape[2:]], per_axis(attrs["strides"], 2), per_axis(attrs["dilation"], 2)
    sizes = [static(n) for n in (*data.shape[1:], weight.shape[0])]
    lanes = target.lanes("float32")
    if options.get("accuracy") == "strict":
        return "the option accuracy is strict"
    if target.is_bare:
        return f"{target.cpu} has no memory to spare"
    if data.dtype != "float32":
        return f"its data is {data.dtype}, not float32"
    if int(attrs["groups"]) != 1:
        return f"it has {attrs['groups']} groups of channels"
    if kernel != [3, 3]:
        return f"its kernels are {'x'.join(map(str, kernel))}, not 3x3"
    chip = of_target(target)
    if chip is not None and any(i.types[0] == data.dtype for i in chip_instructions(chip)):
        return f"{chip.name} multiplies {data.dtype} directly"
    if {*strides, *dilation} != {1}:
        return f"its strides are {'x'.join(map(str, strides))} and its dilations {'x'.join(map(str, dilation))}, not 1x1"
    if None in sizes:
        return "its sizes are not all known at compile time"
    channels, height, width, outer = sizes
    if any(n + sum(p) < 3 for n, p in zip((height, width), paddings(attrs["padding"], 2), strict=True)):
        return "its result is empty"
    if channels % lanes or outer % lanes:
        return f"{channels} and {outer} channels are not both multiples of {lanes}, a vector's elements"
    return ""


def is_transformable(weight: graph.Constant) -> bool:
    """Whether kernels OIHW are finite, and so small that Winograd's algorithm overflows nowhere where the direct one would not; and no whole numbers, as those
    of 8 bits, whose sums of products are exact in the direct way."""
    kernels = weight.data.numpy()
    if are_whole(kernels):
        return False
    most = max(float(np.max(kernels)), -float(np.min(kernels))) if kernels.size else math.nan
    return most * math.sqrt(kernels[0].size) <= LARGEST


def winograd_weight(weight: graph.Constant, tile: int, inner: int, outer: int) -> graph.Constant:
    """A kernel OIHW transformed: [tile + 2, tile + 2, O / outer, I / inner, inner, outer]."""
    o, i = (static(n) for n in weight.sinfo.shape[:2])
    shape = (tile + 2, tile + 2, o // outer, i // inner, inner, outer)
    source = weight.data

    def transformed(array: np.ndarray) -> np.ndarray:
        cut = transform_weight(array, tile).reshape(tile + 2, tile + 2, o // outer, outer, i // inner, inner)
        return np.ascontiguousarray(cut.transpose(0, 1, 2, 4, 5, 3))

    data = ConstData.derived(transformed, (source,), "winograd", shape=shape, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(shape, source.dtype))
