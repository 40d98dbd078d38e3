# SPDX-License-Identifier: Apache-2.0
"""Resizing with all of ONNX's coordinate modes, and sampling at a grid of positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import equal, fail, same, simplify, static, tensor_info
from .elementwise import widen
from .layout import named_layout

F64 = "float64"
_ROUND: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "round": (lambda x: te.floor(x + 0.5), lambda x: math.floor(x + 0.5)),
    "round_prefer_floor": (lambda x: te.ceil(x - 0.5), lambda x: math.ceil(x - 0.5)),
    "round_prefer_ceil": (lambda x: te.floor(x + 0.5), lambda x: math.floor(x + 0.5)),
    "floor": (te.floor, math.floor),
    "ceil": (te.ceil, math.ceil),
}
_TAPS = {"nearest": 1, "nearest_neighbor": 1, "linear": 2, "cubic": 4}


def coordinate(
    mode: str, i: Any, n: Any, m: Any, scale: Any, roi: tuple[float, float], choose: Callable[..., Any]
) -> Any:
    """Where output position ``i`` (of m) lies in the input (of n), by ONNX's formulas; ``choose`` is a conditional."""
    if mode in ("half_pixel", "pytorch_half_pixel"):
        x = (i + 0.5) / scale - 0.5
        return x if mode == "half_pixel" else choose(m > 1, x, 0.0)
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        whole = scale * n  # of which m is the integer part
        return choose(m > 1, i * (n - 1) / choose(m > 1, whole - 1, 1.0), 0.0)
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "half_pixel_symmetric":
        return n / 2 * (1 - m / (scale * n)) + (i + 0.5) / scale - 0.5
    start, end = roi
    spread = start * (n - 1) + i * (end - start) * (n - 1) / choose(m > 1, m - 1, 1.0)
    return choose(m > 1, spread, 0.5 * (start + end) * (n - 1))


_MODES = (
    "half_pixel",
    "pytorch_half_pixel",
    "asymmetric",
    "align_corners",
    "tf_half_pixel_for_nn",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
)


def cubic_weight(d: Any, a: float, choose: Callable[..., Any]) -> Any:
    """Keys' cubic at distance ``d`` >= 0."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return choose(d <= 1, near, choose(d < 2, far, 0.0))


@register
class Resize(OpDef):
    """data resized to ``size`` (one extent per dimension) by nearest, linear or cubic interpolation.

    ``scales`` are the factors where they are not the ratios of the extents; ``factors``, one number for each dimension, stands for those that
    are None in it and known to the run only. Coordinates and rounding are ONNX's; ``roi`` (all starts, then all ends) and
    ``extrapolation_value`` are for tf_crop_and_resize.
    """

    name, operands, kind = "image.resize", ("data", "size", "factors?"), FuseKind.INJECTIVE
    (attributes,) = (
        {
            "scales": None,
            "method": "linear",
            "coordinate_transformation_mode": "half_pixel",
            "rounding_method": "round_prefer_floor",
            "cubic_alpha": -0.75,
            "cubic_exclude": False,
            "extrapolation_value": 0.0,
            "roi": None,
        },
    )

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, size = tensor_info(self, args[0], args), args[1]
        if (
            attrs["method"] not in _TAPS
            or attrs["coordinate_transformation_mode"] not in _MODES
            or attrs["rounding_method"] not in _ROUND
        ):
            fail(
                self,
                "the method, coordinate mode or rounding is unknown",
                *args,
                hint=f"methods: {', '.join(_TAPS)}; modes: {', '.join(_MODES)}; roundings: {', '.join(_ROUND)}",
            )
        if x.ndim >= 0 and size.ndim != x.ndim:
            fail(self, f"{size.ndim} extents are given for {x.ndim} dimensions", *args)
        return graph.TensorInfo(size.values, x.dtype, x.ndim)

    def _moved(self, old: Sequence[Any], new: Sequence[Any], attrs: Attrs) -> list[int]:
        """Dimensions that really are resampled."""
        scales = attrs["scales"] or (None,) * len(old)
        whole = [self._roi(k, len(old), attrs) == (0.0, 1.0) for k in range(len(old))]
        same = [equal(n, m) and s in (None, 1.0) and all_of for n, m, s, all_of in zip(old, new, scales, whole)]
        return [k for k, unchanged in enumerate(same) if not unchanged]

    def _roi(self, k: int, ndim: int, attrs: Attrs) -> tuple[float, float]:
        return (attrs["roi"][k], attrs["roi"][k + ndim]) if attrs["roi"] else (0.0, 1.0)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, size, *more = args
        factors = more[0] if more else None
        moved, wide = (
            self._moved(x.shape, size, attrs),
            te.accumulator(x.dtype) if x.dtype.is_float else DType("float32"),
        )
        exact = {k: f for k in moved if factors is None and (f := self._factor(x.shape[k], size[k], k, attrs)) is not None}
        tables = {k: self._table(x.shape[k], size[k], k, len(x.shape), attrs, factors) for k in moved if k not in exact}
        taps = _TAPS[attrs["method"]]

        def sample(at: Any, tap: dict[int, int]) -> Any:
            there = lambda k, i: (
                tir.floordiv(i, exact[k]) if k in exact else tables[k][0](i, tap[k]) if k in tables else i
            )
            value = x(*(there(k, i) for k, i in enumerate(at)))
            if taps == 1:
                return value
            weight = te.cast(value, wide)
            for k in tables:
                weight = weight * tables[k][1](at[k], tap[k])
            return weight

        def body(*at: Any) -> Any:
            out = None
            for combination in product(range(taps), repeat=len(tables)):
                part = sample(at, dict(zip(tables, combination)))
                out = part if out is None else out + part
            out = te.cast(te.nearbyint(out) if taps > 1 and x.dtype.is_int else out, x.dtype)
            if attrs["coordinate_transformation_mode"] != "tf_crop_and_resize" or not tables:
                return out
            outside = te.logical_or(*(te.ne(tables[k][2](at[k]), 0) for k in tables))
            return te.select(outside, te.cast(tir.const(attrs["extrapolation_value"]), x.dtype), out)

        return te.compute(size, body, "resize")

    def _factor(self, n: Any, m: Any, k: int, attrs: Attrs) -> int | None:
        """The whole number f with nearest position i // f, where that is what the formulas give."""
        scale = (attrs["scales"] or {k: None})[k]
        ratio = static(simplify(tir.floordiv(m, n))) if static(simplify(tir.floormod(m, n))) == 0 else None
        if scale is not None and scale != ratio:
            ratio = None if scale != int(scale) or not equal(m, n * int(scale)) else int(scale)
        pair = attrs["coordinate_transformation_mode"], attrs["rounding_method"]
        fits = pair == ("asymmetric", "floor") or (
            pair[0] in ("half_pixel", "half_pixel_symmetric") and pair[1].startswith("round")
        )
        return ratio if fits and _TAPS[attrs["method"]] == 1 else None

    def _table(self, n: Any, m: Any, k: int, ndim: int, attrs: Attrs, factors: Any) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
        """Per output position: the input positions of its taps, their weights, whether it lies outside."""
        taps, scale = _TAPS[attrs["method"]], (attrs["scales"] or {k: None})[k]
        nf, mf = te.cast(n, F64), te.cast(m, F64)
        factor = tir.const(scale, F64) if scale is not None else mf / nf if factors is None else te.cast(factors(k), F64)
        choose = lambda c, a, b: te.select(c, tir.const(a, F64), tir.const(b, F64))
        where = lambda i: tir.const(
            coordinate(
                attrs["coordinate_transformation_mode"],
                te.cast(i, F64),
                nf,
                mf,
                factor,
                self._roi(k, ndim, attrs),
                choose,
            ),
            F64,
        )
        xs = te.compute((m,), where, f"coordinate{k}")
        first = {1: lambda x: _ROUND[attrs["rounding_method"]][0](x), 2: te.floor, 4: lambda x: te.floor(x) - 1.0}[taps]
        place = lambda i, t: te.cast(first(xs(i)), "int64") + t
        clamped = te.compute((m, taps), lambda i, t: tir.max_(tir.min_(place(i, t), n - 1), 0), f"position{k}")

        def weight(i: Any, t: Any) -> Any:
            if taps == 2:
                fraction = xs(i) - te.floor(xs(i))
                return te.select(tir.eq(t, 0), 1.0 - fraction, fraction)
            w = cubic_weight(te.abs(xs(i) - te.cast(place(i, t), F64)), attrs["cubic_alpha"], choose)
            inside = te.logical_and(place(i, t) >= 0, place(i, t) < n)
            return te.select(inside, w, 0.0) if attrs["cubic_exclude"] else w

        weights = te.compute((m, taps), (lambda i, t: tir.const(1.0, F64)) if taps == 1 else weight, f"weight{k}")
        if taps == 4 and attrs["cubic_exclude"]:
            total = lambda i: weights(i, 0) + weights(i, 1) + weights(i, 2) + weights(i, 3)
            weights = te.compute((m, taps), lambda i, t, w=weights: w(i, t) / total(i), f"normalised{k}")
        narrow = te.compute((m, taps), lambda i, t: te.cast(weights(i, t), "float32"), f"factor{k}")
        outside = te.compute(
            (m,), lambda i: te.cast(te.logical_or(xs(i) < 0.0, xs(i) > nf - 1.0), "int32"), f"outside{k}"
        )
        return clamped, narrow, outside

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, size, *more = args
        factors = more[0] if more else None
        out, mask = widen(data).astype(np.float64), np.zeros(size, bool)
        scales = list(attrs["scales"] or (None,) * data.ndim)
        if factors is not None:
            scales = [float(f) if s is None else s for s, f in zip(scales, factors)]
        for k, (n, m) in enumerate(zip(data.shape, size)):
            if k not in self._moved(data.shape, size, attrs):
                continue
            matrix, outside = np.zeros((m, n)), np.zeros(m, bool)
            scale = m / n if scales[k] is None else scales[k]
            for i in range(m):
                x = coordinate(
                    attrs["coordinate_transformation_mode"],
                    float(i),
                    n,
                    m,
                    scale,
                    self._roi(k, data.ndim, attrs),
                    lambda c, a, b: a if c else b,
                )
                outside[i] = x < 0 or x > n - 1
                for p, w in self._np_taps(x, n, attrs):
                    matrix[i, min(max(p, 0), n - 1)] += w
            if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
                mask |= outside.reshape([-1 if d == k else 1 for d in range(data.ndim)])
            out = np.moveaxis(np.tensordot(matrix, out, (1, k)), 0, k)
        out = np.rint(out) if DType(data.dtype).is_int else out
        return np.where(mask, attrs["extrapolation_value"], out).astype(data.dtype)

    @staticmethod
    def _np_taps(x: float, n: int, attrs: Attrs) -> list[tuple[int, float]]:
        taps, low = _TAPS[attrs["method"]], math.floor(x)
        if taps == 1:
            return [(int(_ROUND[attrs["rounding_method"]][1](x)), 1.0)]
        if taps == 2:
            return [(low, 1 - (x - low)), (low + 1, x - low)]
        found = [
            (low + t, cubic_weight(abs(x - low - t), attrs["cubic_alpha"], lambda c, a, b: a if c else b))
            for t in (-1, 0, 1, 2)
        ]
        if attrs["cubic_exclude"]:
            found = [(p, w if 0 <= p < n else 0.0) for p, w in found]
            total = sum(w for _, w in found)
            found = [(p, w / total) for p, w in found]
        return found


@register
class Resize2D(OpDef):
    """data with its two spatial dimensions resized to ``size``."""

    name, operands, kind = "image.resize2d", ("data", "size"), FuseKind.INJECTIVE
    (attributes,) = (
        {
            "roi": (0.0, 0.0, 0.0, 0.0),
            "layout": "NCHW",
            "method": "linear",
            "coordinate_transformation_mode": "half_pixel",
            "rounding_method": "round",
            "cubic_alpha": -0.75,
            "cubic_exclude": False,
            "extrapolation_value": 0.0,
            "out_dtype": None,
        },
    )

    def _sizes(self, shape: Any, size: Any, attrs: Attrs) -> tuple[Any, ...]:
        layout = named_layout(attrs["layout"])
        given = dict(zip("HW", size if len(size) == 2 else (size[0], size[0])))
        return layout.shape({**layout.extents(shape), **given})

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, size = tensor_info(self, args[0], args), args[1]
        dtype = DType(attrs["out_dtype"]) if attrs["out_dtype"] else x.dtype
        if x.shape is None or size.values is None:
            return graph.TensorInfo(None, dtype, x.ndim)
        return graph.TensorInfo(self._sizes(x.shape, size.values, attrs), dtype)

    def _general(self, ndim: int, attrs: Attrs) -> dict[str, Any]:
        """The attributes of the general operator."""
        places = [named_layout(attrs["layout"]).letters().index(c) for c in "HW"]
        roi = [0.0] * ndim + [1.0] * ndim
        for (start, end), k in zip((attrs["roi"][0::2], attrs["roi"][1::2]), places):
            roi[k], roi[ndim + k] = start, end
        crop = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
        shared = (
            "method",
            "coordinate_transformation_mode",
            "rounding_method",
            "cubic_alpha",
            "cubic_exclude",
            "extrapolation_value",
        )
        return {**{n: attrs[n] for n in shared}, "roi": tuple(roi) if crop else None}

    def decompose(self, builder: Any, args: tuple[Any, ...], attrs: Attrs) -> Any:
        from . import make

        x, size = args
        sizes = self._sizes(x.sinfo.shape, size.sinfo.values, attrs)
        out = make("image.resize", x, graph.ShapeExpr(sizes), **self._general(x.sinfo.ndim, attrs))
        return make("astype", builder.emit(out), dtype=attrs["out_dtype"]) if attrs["out_dtype"] else out

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, size = args
        sizes = tuple(s.value for s in self._sizes(x.shape, [tir.index_const(s) for s in size], attrs))
        out = Resize().numpy((x, sizes), Attrs({**Resize.attributes, **self._general(x.ndim, attrs)}))
        return out.astype(DType(attrs["out_dtype"]).numpy) if attrs["out_dtype"] else out


@register
class GridSample(OpDef):
    """data (n, c, h, w) at the positions of ``grid`` (n, 2, h', w'; x then y, from -1 to 1), to (n, c, h', w').

    The same with one more dimension. ``padding_mode``: zeros, border, reflection; method: nearest, bilinear, bicubic.
    """

    name, operands, kind = "image.grid_sample", ("data", "grid"), FuseKind.INJECTIVE
    (attributes,) = ({"method": "bilinear", "layout": "NCHW", "padding_mode": "zeros", "align_corners": True},)

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, grid = (tensor_info(self, a, args) for a in args)
        if attrs["method"] not in ("nearest", "bilinear", "linear", "bicubic") or attrs["padding_mode"] not in (
            "zeros",
            "border",
            "reflection",
        ):
            fail(self, f"method {attrs['method']!r} or padding_mode {attrs['padding_mode']!r} is unknown", *args)
        if x.shape is None or grid.shape is None:
            return graph.TensorInfo(None, x.dtype, x.ndim)
        if len(grid.shape) != len(x.shape) or static(grid.shape[1]) != len(x.shape) - 2:
            fail(self, "grid does not have one coordinate per spatial dimension of data", *args)
        if not same(x.shape[0], grid.shape[0]):
            fail(self, "data and grid are batches of different sizes", *args)
        return graph.TensorInfo((*x.shape[:2], *grid.shape[2:]), x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, grid = args
        dims, taps = len(x.shape) - 2, {"nearest": 1, "bicubic": 4}.get(attrs["method"], 2)
        ops = _Symbolic(x.shape[2:], attrs)

        def body(*at: Any) -> Any:
            out = None
            where = [ops.source(te.cast(grid(at[0], dims - 1 - k, *at[2:]), "float32"), k) for k in range(dims)]
            for tap in product(range(taps), repeat=dims):
                weight, index, inside = None, [], []
                for k, (v, t) in enumerate(zip(where, tap)):
                    p, w = ops.tap(v, t, taps)
                    index.append(ops.pad(p, k))
                    inside += [p >= 0, p < x.shape[2 + k]] if attrs["padding_mode"] == "zeros" else []
                    weight = w if weight is None else weight * w
                value = x(at[0], at[1], *index)
                if inside:
                    value = te.if_then_else(te.logical_and(*inside), value, tir.const(0, x.dtype))
                value = te.cast(value, "float32")
                value = value if taps == 1 else value * weight
                out = value if out is None else out + value
            return te.cast(out, x.dtype)

        return te.compute((*x.shape[:2], *grid.shape[2:]), body, "grid_sample")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, grid = widen(args[0]), widen(args[1]).astype(np.float64)
        dims, taps = x.ndim - 2, {"nearest": 1, "bicubic": 4}.get(attrs["method"], 2)
        out = np.zeros((*x.shape[:2], *grid.shape[2:]))
        for at in np.ndindex(x.shape[0], *grid.shape[2:]):
            found = [_np_taps(grid[(at[0], dims - 1 - k, *at[1:])], x.shape[2 + k], taps, attrs) for k in range(dims)]
            for combination in product(*found):
                weight = math.prod(w for _, w in combination)
                if all(p is not None for p, _ in combination):
                    out[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *(p for p, _ in combination))]
        return out.astype(args[0].dtype)


class _Symbolic:
    """Positions of grid_sample as expressions."""

    def __init__(self, extents: Any, attrs: Attrs) -> None:
        self.extents, self.attrs = extents, attrs

    def source(self, v: Any, k: int) -> Any:
        """The unnormalised coordinate, moved inside by border and reflection."""
        n = te.cast(self.extents[k], "float32")
        corners = self.attrs["align_corners"]
        x = (v + 1.0) * 0.5 * (n - 1.0) if corners else ((v + 1.0) * n - 1.0) * 0.5
        if self.attrs["method"] == "bicubic" or self.attrs["padding_mode"] == "zeros":
            return x
        if self.attrs["padding_mode"] == "reflection":
            x = self._reflect(x, n)
        return te.min_(te.max_(x, 0.0), n - 1.0)

    def _reflect(self, x: Any, n: Any) -> Any:
        low, span = (0.0, n - 1.0) if self.attrs["align_corners"] else (-0.5, n)
        x = te.abs(x - low)
        span = te.max_(span, 1e-30) if self.attrs["align_corners"] else span
        turns = te.floor(x / span)
        rest = x - turns * span
        even = te.eq(turns - 2.0 * te.floor(turns * 0.5), 0.0)
        return te.select(even, rest + low, span - rest + low)

    def tap(self, v: Any, t: int, taps: int) -> tuple[Any, Any]:
        """Position and weight of a tap."""
        if taps == 1:
            return te.cast(te.nearbyint(v), "int64"), None
        low = te.floor(v)
        if taps == 2:
            return te.cast(low, "int64") + t, v - low if t else 1.0 - (v - low)
        choose = lambda c, a, b: te.select(c, tir.const(a, "float32"), tir.const(b, "float32"))
        return te.cast(low, "int64") + (t - 1), cubic_weight(te.abs(v - low - float(t - 1)), -0.75, choose)

    def pad(self, p: Any, k: int) -> Any:
        """A position that can be read."""
        n = self.extents[k]
        if self.attrs["padding_mode"] == "reflection" and self.attrs["method"] == "bicubic":
            p = te.cast(te.nearbyint(self._reflect(te.cast(p, "float32"), te.cast(n, "float32"))), "int64")
        return p if self.attrs["padding_mode"] == "zeros" else tir.max_(tir.min_(p, n - 1), 0)


def _np_taps(v: float, n: int, taps: int, attrs: Attrs) -> list[tuple[int | None, float]]:
    """Positions (None outside) and weights of one coordinate."""
    mode, corners = attrs["padding_mode"], attrs["align_corners"]
    x = (v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
    low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)

    def reflected(x: float) -> float:
        if high == low:
            return low
        x = math.fmod(abs(x - low), 2 * (high - low))
        return low + min(x, 2 * (high - low) - x)

    if mode != "zeros" and taps < 4:
        x = reflected(x) if mode == "reflection" else x
        x = min(max(x, 0), n - 1)
    base = math.floor(x)
    if taps == 1:
        found = [(round(x), 1.0)]
    elif taps == 2:
        found = [(base, 1 - (x - base)), (base + 1, x - base)]
    else:
        found = [
            (base + t, cubic_weight(abs(x - base - t), -0.75, lambda c, a, b: a if c else b)) for t in (-1, 0, 1, 2)
        ]
    if mode == "zeros":
        return [(p if 0 <= p < n else None, w) for p, w in found]
    inside = lambda p: min(max(round(reflected(p)) if mode == "reflection" and taps == 4 else p, 0), n - 1)
    return [(inside(p), w) for p, w in found]
