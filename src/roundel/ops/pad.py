# SPDX-License-Identifier: Apache-2.0
"""Padding and slicing."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axes_of, axis_of, dim_text, fail, fill, may_fit, same, same_dtype, simplify, static, tensor_info
from .elementwise import only_element

_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "edge": "edge",
    "replicate": "edge",
    "wrap": "wrap",
    "circular": "wrap",
}


@register
class Pad(OpDef):
    """x with (before, after) elements around each dimension, flat in ``pad_width``; negative widths crop.

    The mode says what they are: constant ``pad_value`` (default 0), edge (or replicate), reflect (without the edge),
    symmetric (with it), wrap (or circular).
    """

    name, operands, attributes, kind = (
        "nn.pad",
        ("data", "pad_width", "pad_value?"),
        {"pad_mode": "constant"},
        FuseKind.INJECTIVE,
    )
    signature = ("data", "pad_width", "pad_mode", "pad_value")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, width, _ = fill(args, 3)
        if attrs["pad_mode"] not in _MODES:
            fail(self, f"there is no mode {attrs['pad_mode']!r}, only {', '.join(_MODES)}", *args)
        tensor_info(self, x, args)
        if x.ndim >= 0 and width.ndim != 2 * x.ndim:
            fail(self, f"{width.ndim} widths are given for {x.ndim} dimensions, not {2 * x.ndim}", *args)
        if x.shape is None or width.values is None:
            return graph.TensorInfo(None, x.dtype, x.ndim)
        return graph.TensorInfo(self._shape(x.shape, width.values), x.dtype)

    def _shape(self, shape: Any, width: Any) -> tuple[Any, ...]:
        return tuple(simplify(s + width[2 * k] + width[2 * k + 1]) for k, s in enumerate(shape))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, width, value = fill(args, 3)
        mode, before = _MODES[attrs["pad_mode"]], width[0::2]
        other = (
            only_element(value) if isinstance(value, te.Tensor) else tir.const(0 if value is None else value, x.dtype)
        )

        def body(*at: Any) -> Any:
            there, inside = [i - b for i, b in zip(at, before)], []
            for k, (i, n) in enumerate(zip(there, x.shape)):
                inside += [] if _nonpositive(width[2 * k]) else [i >= 0]
                inside += [] if _nonpositive(width[2 * k + 1]) else [i < n]
            if mode == "constant":
                outside = te.cast(other, x.dtype)
            else:  # inside, too, the formula would be right, but no vector could read by it
                outside = x(*(_source(mode, i, n, *width[2 * k : 2 * k + 2]) for k, (i, n) in enumerate(zip(at, x.shape))))
            return te.if_then_else(te.logical_and(*inside), x(*there), outside)

        return te.compute(self._shape(x.shape, width), body, "pad")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, width, value = fill(args, 3)
        pairs = [(width[2 * k], width[2 * k + 1]) for k in range(x.ndim)]
        x = x[tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(pairs, x.shape))]
        pairs = [(max(lo, 0), max(hi, 0)) for lo, hi in pairs]
        mode: Any = _MODES[attrs["pad_mode"]]
        if mode == "constant":
            return np.pad(x, pairs, mode, constant_values=0 if value is None else np.asarray(value).item())
        return np.pad(x, pairs, mode)


def _nonpositive(width: Any) -> bool:
    value = static(width)
    return value is not None and value <= 0


def _source(mode: str, i: Any, n: Any, before: Any, after: Any) -> Any:
    """The position in a dimension of extent ``n`` that position ``i`` of the padded one shows; cropping comes first."""
    low, high = (min(static(w) or 0, 0) for w in (before, after))
    n, i = n + (low + high), i - (before - low)
    return _mirrored(mode, i, n, _nonpositive(before) and _nonpositive(after)) - low


def _mirrored(mode: str, i: Any, n: Any, inside: bool) -> Any:
    if inside:
        return i
    if mode == "edge":
        return tir.max_(tir.min_(i, n - 1), 0)
    if mode == "wrap":
        return tir.floormod(i, n)
    if mode == "symmetric":
        i = tir.floormod(i, n * 2)
        return tir.min_(i, n * 2 - 1 - i)
    period = tir.max_((n - 1) * 2, 1)
    i = tir.floormod(i, period)
    return tir.min_(i, tir.max_(period - i, 0)) if static(n) != 1 else tir.index_const(0)


@register
class StridedSlice(OpDef):
    """x[begin:end:stride] along ``axes`` with NumPy's meaning of negative and excessive bounds.

    With ``assume_inbound`` begin and end are taken as they are: no wrapping, no clamping.
    """

    name, operands, attributes = "strided_slice", ("x", "axes", "begin", "end", "strides?"), {"assume_inbound": False}
    kind = FuseKind.INJECTIVE

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, *bounds = fill(args, 5)
        tensor_info(self, x, args)
        values = [None if b is None else b.values for b in bounds]
        if x.shape is None or any(v is None for v in values[:3]):
            return graph.TensorInfo(None, x.dtype, x.ndim)
        if len({len(v) for v in values if v is not None}) > 1:
            fail(self, "axes, begin, end and strides differ in length", *args)
        plan = self._plan(x.shape, values, attrs, args)
        return graph.TensorInfo(tuple(plan[k][2] if k in plan else s for k, s in enumerate(x.shape)), x.dtype)

    def _plan(self, shape: Any, values: Any, attrs: Attrs, infos: Any = ()) -> dict[int, tuple[Any, int, Any]]:
        """(begin, stride, extent) by axis."""
        axes, begin, end, strides = values
        where = axes_of(self, tuple(static(a) for a in axes), len(shape), *infos)
        steps = [1] * len(where) if strides is None else [static(s) for s in strides]
        out = {}
        for a, b, e, s in zip(where, begin, end, steps):
            if not s:
                fail(self, "strides have to be constants other than 0", *infos)
            if not attrs["assume_inbound"]:
                b, e = _clamp(b, shape[a], s), _clamp(e, shape[a], s)
            elif not _inbound(b, e, s, shape[a]):
                fail(self, f"the part [{dim_text(b)}, {dim_text(e)}) of axis {a} is not within [0, {dim_text(shape[a])})", *infos)
            span = tir.ceildiv(e - b, s) if s > 0 else tir.ceildiv(b - e, -s)
            out[a] = (simplify(b), s, simplify(tir.max_(span, 0)))
        return out

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, *values = fill(args, 5)
        plan = self._plan(x.shape, values, attrs)
        shape = [plan[k][2] if k in plan else s for k, s in enumerate(x.shape)]
        source = lambda k, i: plan[k][0] + i * plan[k][1] if k in plan else i
        return te.compute(shape, lambda *at: x(*(source(k, i) for k, i in enumerate(at))), "strided_slice")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, axes, begin, end, strides = fill(args, 5)
        for a, b, e, s in zip(axes, begin, end, strides or (1,) * len(axes)):
            if attrs["assume_inbound"]:
                x = np.take(x, np.arange(b, e, s), a)
            else:
                x = x[(slice(None),) * (a % x.ndim) + (slice(b, e, s),)]
        return np.ascontiguousarray(x)


@register
class SliceScatter(OpDef):
    """A copy of ``input_tensor`` with ``input_tensor[start:end:step] = src`` along ``axis``; the bounds are numbers or sizes, ``step`` positive."""

    name, operands, kind = "slice_scatter", ("input_tensor", "src", "start", "end", "step?"), FuseKind.INJECTIVE
    scalars, attributes = ("start", "end", "step"), {"axis": 0}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, src, start, end, step = fill(args, 5)
        for t in (x, src):
            tensor_info(self, t, args)
        if x.shape is None or src.shape is None:
            return x
        axis = axis_of(self, attrs["axis"], x.ndim, *args)
        _, by, count = self._part(x.shape[axis], start.value, end.value, None if step is None else step.value)
        if not by or by < 0:
            fail(self, "step has to be a positive constant", *args)
        wanted = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        if len(wanted) != len(src.shape) or not all(map(same, wanted, src.shape)):
            fail(self, f"src does not have the shape ({', '.join(map(dim_text, wanted))}) of the part", *args)
        return x.replace(dtype=same_dtype(self, (x, src)))

    def _part(self, n: Any, start: Any, end: Any, step: Any) -> tuple[Any, int, Any]:
        """(first, step, how many)."""
        by = 1 if step is None else static(step) or 0
        first, last = _clamp(tir.as_index(start), n, 1), _clamp(tir.as_index(end), n, 1)
        return simplify(first), by, simplify(tir.max_(tir.ceildiv(last - first, max(by, 1)), 0))

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, src, start, end, step = fill(args, 5)
        axis = attrs["axis"] % len(x.shape)
        first, by, count = self._part(x.shape[axis], start, end, step)

        def body(*at: Any) -> Any:
            k = at[axis] - first
            inside = tir.logical_and(k >= 0, tir.floordiv(k, by) < count, *(() if by == 1 else (tir.eq(tir.floormod(k, by), 0),)))
            return te.if_then_else(inside, src(*at[:axis], tir.floordiv(k, by), *at[axis + 1 :]), x(*at))

        return te.compute(x.shape, body, "slice_scatter")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, src, start, end, step = fill(args, 5)
        out = x.copy()
        out[(slice(None),) * (attrs["axis"] % x.ndim) + (slice(int(start), int(end), None if step is None else int(step)),)] = src
        return out


def _inbound(begin: Any, end: Any, stride: int, n: Any) -> bool:
    """Whether what a slice takes may be inside of an axis of extent ``n``; what is not proven is noted as assumed."""
    if stride > 0:
        return may_fit(0, begin) and may_fit(end, n)
    return may_fit(begin, n - 1) and may_fit(-1, end)


def _clamp(bound: Any, n: Any, stride: int) -> Any:
    """NumPy's reading of a slice bound for extent ``n``."""
    value, extent = static(bound), static(n)
    low, high = (0, n) if stride > 0 else (-1, n - 1)
    if value is not None and extent is not None:
        top = extent if stride > 0 else extent - 1
        return tir.index_const(max(low, min(top, value + extent if value < 0 else value)))
    if value is None:
        bound = tir.select(tir.lt(bound, 0), bound + n, bound)
    elif value < 0:
        if value <= -(1 << 31):  # the customary "to the very start"
            return tir.index_const(low)
        bound = n + value
    elif value >= (1 << 31) - 1:
        return high
    return tir.max_(tir.min_(bound, high), low)
