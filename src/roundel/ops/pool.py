# SPDX-License-Identifier: Apache-2.0
"""Pooling over windows (max, average, Lp) and adaptive pooling, of one to three dimensions, in any layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register

from .conv import pad_spatial
from .dims import fail, paddings, per_axis, simplify, static, tensor_info
from .elementwise import label, widen
from .layout import NamedLayout, Position, named_layout


class _Pooling(OpDef):
    """Base: the layout and the walk over a window."""

    kind = FuseKind.REDUCTION
    operands = ("data",)

    def layout(self, attrs: Attrs) -> NamedLayout:
        """Of data and result."""
        if attrs["out_layout"] not in (None, "", attrs["layout"]):
            fail(
                self,
                f"out_layout {attrs['out_layout']} differs from layout {attrs['layout']}",
                hint="convert by R.layout_transform",
            )
        return named_layout(attrs["layout"])

    def extents(self, data: dict[str, Any], attrs: Attrs) -> dict[str, Any]:
        """Logical extents of the result from those of data."""
        raise NotImplementedError

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x, layout = tensor_info(self, args[0], args), self.layout(attrs)
        if x.ndim >= 0 and x.ndim != len(layout.axes):
            fail(self, f"layout {layout.spec} is for {len(layout.axes)} dimensions, not {x.ndim}", *args)
        if x.shape is None:
            return x
        return graph.TensorInfo(layout.shape(self.extents(layout.extents(x.shape), attrs)), x.dtype)


class Pool(_Pooling):
    """The maximum, average or Lp norm of each window. With ``ceil_mode`` windows may stick out at the end, as long as
    they start inside; an average counts the padding only with ``count_include_pad``, and never what sticks out further.
    """

    def __init__(self, how: str, spatial: str) -> None:
        self.how, self.spatial = how, spatial
        self.name = f"nn.{how}_pool{len(spatial)}d"
        more: dict[str, Any] = {"max": {}, "avg": {"count_include_pad": False}, "lp": {"p": 2}}[how]
        self.attributes = {
            "pool_size": 1,
            "strides": 1,
            "padding": 0,
            "dilation": 1,
            "ceil_mode": False,
            **more,
            "layout": "NC" + spatial,
            "out_layout": None,
        }

    def geometry(self, attrs: Attrs) -> list[tuple[str, int, int, tuple[int, int], int]]:
        """(letter, window, stride, padding, dilation) per spatial axis."""
        n = len(self.spatial)
        return list(
            zip(
                self.spatial,
                per_axis(attrs["pool_size"], n),
                per_axis(attrs["strides"], n),
                paddings(attrs["padding"], n),
                per_axis(attrs["dilation"], n),
            )
        )

    def extents(self, data: dict[str, Any], attrs: Attrs) -> dict[str, Any]:
        out = dict(data)
        for c, k, s, (lo, hi), d in self.geometry(attrs):
            room = data[c] + (lo + hi - (k - 1) * d - 1)
            count = tir.floordiv(room, s) + 1
            if attrs["ceil_mode"]:
                count = tir.min_(tir.ceildiv(room, s) + 1, tir.ceildiv(data[c] + lo, s))
            out[c] = simplify(count)
        return out

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), layout = args, self.layout(attrs)
        sizes, geometry, wide = layout.extents(x.shape), self.geometry(attrs), te.accumulator(x.dtype)
        result = self.extents(sizes, attrs)
        pads = {}
        for c, k, s, (lo, hi), d in geometry:
            over = simplify((result[c] - 1) * s + ((k - 1) * d + 1 - lo) - sizes[c]) if attrs["ceil_mode"] else hi
            pads[c] = (lo, over if not isinstance(over, tir.IntImm) else max(over.value, 0))
        fill = te.lowest(x.dtype) if self.how == "max" else tir.const(0, x.dtype)
        padded = pad_spatial(x, layout, pads, fill, label(self) + "_pad")
        window = {c: te.reduce_axis(k, "r" + c.lower()) for c, k, *_ in geometry}

        def body(*index: Any) -> Any:
            at = layout.positions(index)
            for c, _, s, _, d in geometry:
                at[c] = Position(at[c].value * s + window[c].var * d)
            v = padded(*layout.index(at))
            if self.how == "max":
                return te.max(v, axis=list(window.values()))
            v = te.cast(v, wide)
            return te.sum(v if self.how == "avg" else self._powered(v, attrs["p"]), axis=list(window.values()))

        out = te.compute(layout.shape(result), body, label(self))
        if self.how == "max":
            return out
        return te.compute(
            out.shape,
            lambda *i: te.cast(self._finish(out(*i), layout.positions(i), sizes, attrs), x.dtype),
            label(self) + "_result",
        )

    @staticmethod
    def _powered(v: Any, p: int) -> Any:
        return te.abs(v) if p == 1 else v * v if p == 2 else te.power(te.abs(v), tir.const(float(p), v.dtype))

    def _finish(self, total: Any, at: Any, sizes: Any, attrs: Attrs) -> Any:
        if self.how == "lp":
            p = attrs["p"]
            return total if p == 1 else te.sqrt(total) if p == 2 else te.power(total, tir.const(1 / p, total.dtype))
        count = tir.index_const(1)
        for c, k, s, (lo, hi), d in self.geometry(attrs):
            whole = attrs["count_include_pad"] or (lo == 0 and hi == 0)
            if whole and not attrs["ceil_mode"]:
                count = count * k
                continue
            low, high = (-lo, sizes[c] + hi) if attrs["count_include_pad"] else (0, sizes[c])
            start = at[c].value * s - lo
            first = tir.max_(tir.ceildiv(low - start, d), 0)
            last = tir.min_(tir.ceildiv(high - start, d), k)
            count = count * tir.max_(last - first, 0)
        if total.dtype.is_int:
            return tir.truncdiv(total, te.cast(count, total.dtype))
        return total / te.cast(count, total.dtype)

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        layout, geometry, order = self.layout(attrs), self.geometry(attrs), "NC" + self.spatial
        x = widen(layout.to_logical(args[0], order))
        pads, counts = [(0, 0), (0, 0)], []
        for k, s, (lo, hi), d, n in [(*g[1:], size) for g, size in zip(geometry, x.shape[2:])]:
            room = n + lo + hi - (k - 1) * d - 1
            count = room // s + 1
            if attrs["ceil_mode"]:
                count = -(-room // s) + 1
                count -= (count - 1) * s >= n + lo
            counts.append(count)
            pads.append((lo, max((count - 1) * s + (k - 1) * d + 1 - lo - n, 0)))
        low = (-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min) if self.how == "max" else 0
        padded = np.pad(x, pads, constant_values=low)
        ones = np.zeros(padded.shape[2:])
        edge = tuple(
            slice(0, lo + n + hi) if attrs.get("count_include_pad") else slice(lo, lo + n)
            for (_, _, _, (lo, hi), _), n in zip(geometry, x.shape[2:])
        )
        ones[edge] = 1
        parts, number = [], 0.0
        for at in np.ndindex(*(g[1] for g in geometry)):
            cut = tuple(slice(a * d, a * d + (m - 1) * s + 1, s) for a, (_, _, s, _, d), m in zip(at, geometry, counts))
            parts.append(padded[(slice(None), slice(None), *cut)])
            number = number + ones[cut]
        return layout.from_logical(self._np_reduce(parts, number, attrs).astype(args[0].dtype), order)

    def _np_reduce(self, parts: list[np.ndarray], number: Any, attrs: Attrs) -> np.ndarray:
        if self.how == "max":
            return np.maximum.reduce(parts)
        if self.how == "lp":
            return sum(np.abs(p) ** attrs["p"] for p in parts) ** (1 / attrs["p"])
        with np.errstate(all="ignore"):
            out = sum(parts) / number
        return np.trunc(out) if parts[0].dtype.kind != "f" else out


class AdaptivePool(_Pooling):
    """Windows whose sizes follow from ``output_size``: from floor(i n / m) to ceil((i + 1) n / m)."""

    def __init__(self, how: str, spatial: str) -> None:
        self.how, self.spatial = how, spatial
        self.name = f"nn.adaptive_{how}_pool{len(spatial)}d"
        self.attributes = {"output_size": None, "layout": "NC" + spatial, "out_layout": None}

    def extents(self, data: dict[str, Any], attrs: Attrs) -> dict[str, Any]:
        size = attrs["output_size"]
        if size is None:
            return data
        wanted = zip(self.spatial, per_axis(size, len(self.spatial)))
        return {**data, **{c: tir.as_index(n) for c, n in wanted if n is not None}}

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,), layout = args, self.layout(attrs)
        sizes, wide = layout.extents(x.shape), te.accumulator(x.dtype)
        result = self.extents(sizes, attrs)
        even = {c: static(simplify(tir.floormod(sizes[c], result[c]))) == 0 for c in self.spatial}
        widest = {
            c: simplify(tir.floordiv(sizes[c], result[c]) if even[c] else tir.floordiv(sizes[c] - 1, result[c]) + 2)
            for c in self.spatial
        }
        window = {c: te.reduce_axis(widest[c], "r" + c.lower()) for c in self.spatial}

        def bounds(c: str, i: Any) -> tuple[Any, Any]:
            if even[c]:
                return i * widest[c], widest[c]
            start = tir.floordiv(i * sizes[c], result[c])
            return start, tir.ceildiv((i + 1) * sizes[c], result[c]) - start

        def body(*index: Any) -> Any:
            at, inside = layout.positions(index), []
            for c in self.spatial:
                start, count = bounds(c, at[c].value)
                inside += [] if even[c] else [window[c].var < count]
                at[c] = Position(start + window[c].var)
            v = x(*layout.index(at))
            where = te.logical_and(*inside) if inside else None
            axes = list(window.values())
            return (
                te.max(v, axis=axes, where=where)
                if self.how == "max"
                else te.sum(te.cast(v, wide), axis=axes, where=where)
            )

        out = te.compute(layout.shape(result), body, label(self))
        if self.how == "max":
            return out

        def mean(*index: Any) -> Any:
            at = layout.positions(index)
            count = tir.product_of([bounds(c, at[c].value)[1] for c in self.spatial])
            return te.cast(out(*index) / te.cast(count, wide), x.dtype)

        return te.compute(out.shape, mean, label(self) + "_result")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        layout, order = self.layout(attrs), "NC" + self.spatial
        out = widen(layout.to_logical(args[0], order))
        wanted = per_axis(attrs["output_size"], len(self.spatial))
        for k, m in enumerate(wanted, 2):
            n, m = out.shape[k], out.shape[k] if m is None else m
            parts = [np.take(out, range(i * n // m, -(-(i + 1) * n // m)), k) for i in range(m)]
            out = np.stack([p.max(k) if self.how == "max" else p.mean(k) for p in parts], k)
        return layout.from_logical(out.astype(args[0].dtype), order)


for _spatial in ("W", "HW", "DHW"):
    for _how in ("max", "avg", "lp"):
        register(Pool(_how, _spatial))
    for _how in ("max", "avg"):
        register(AdaptivePool(_how, _spatial))
