# SPDX-License-Identifier: Apache-2.0
"""Convolutions and transposed convolutions of one to three dimensions, in any layout, with groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import dim_text, fail, fill, paddings, per_axis, same, same_dtype, simplify, static, tensor_info
from .elementwise import label, widen
from .layout import NamedLayout, Position, named_layout
from .matmul import cast_result, product_dtype


class _Convolution(OpDef):
    """Base: letters, layouts and geometry."""

    kind = FuseKind.ANCHOR
    operands = ("data", "weight")

    def __init__(self, spatial: str) -> None:
        self.spatial = spatial

    def layouts(self, attrs: Attrs) -> tuple[NamedLayout, NamedLayout, NamedLayout]:
        """Of data, weight and result."""
        out = attrs["out_layout"] or attrs["data_layout"]
        return named_layout(attrs["data_layout"]), named_layout(attrs["kernel_layout"]), named_layout(out)

    def geometry(self, attrs: Attrs) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]:
        """Strides, paddings, dilations per spatial axis."""
        n = len(self.spatial)
        return per_axis(attrs["strides"], n), paddings(attrs["padding"], n), per_axis(attrs["dilation"], n)

    def spatial_extents(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs) -> list[Any]:
        """Spatial extents of the result."""
        raise NotImplementedError

    def channels(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs, infos: Any = ()) -> tir.Expr:
        """Output channels; raises when input channels, weight and groups do not fit."""
        raise NotImplementedError

    def result_extents(
        self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs, infos: Any = ()
    ) -> dict[str, Any]:
        """Logical extents of the result."""
        channels = self.channels(data, weight, attrs, infos)
        spatial = zip(self.spatial, self.spatial_extents(data, weight, attrs))
        return {"N": data["N"], "C": channels, **{c: simplify(n) for c, n in spatial}}

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = (tensor_info(self, a, args) for a in args)
        dtype = product_dtype(self, None if attrs["out_dtype"] else same_dtype(self, (data, weight)), attrs)
        dl, kl, ol = self.layouts(attrs)
        for info, layout in ((data, dl), (weight, kl)):
            if 0 <= info.ndim != len(layout.axes):
                fail(self, f"layout {layout.spec} is for {len(layout.axes)} dimensions, not {info.ndim}", *args)
        if data.shape is None or weight.shape is None:
            return graph.TensorInfo(None, dtype, len(ol.axes))
        extents = self.result_extents(dl.extents(data.shape), kl.extents(weight.shape), attrs, args)
        negative = [c for c in self.spatial if (static(extents[c]) or 0) < 0]
        if negative:
            fail(self, f"the kernel is larger than the padded data along {', '.join(negative)}", *args)
        return graph.TensorInfo(ol.shape(extents), dtype)


class Conv(_Convolution):
    """The sum over input channels of a group and kernel positions of data times weight.

    ``padding`` is one number, one per spatial axis, or all befores then all afters; ``fill``, a tensor of no dimensions of
    the type of the data, is what it puts around these (default 0). Narrow floats accumulate in float32, 8-bit integers in
    ``out_dtype``.
    """

    operands = ("data", "weight", "fill?")

    def __init__(self, spatial: str) -> None:
        super().__init__(spatial)
        self.name = f"nn.conv{len(spatial)}d"
        self.attributes = {
            "strides": 1,
            "padding": 0,
            "dilation": 1,
            "groups": 1,
            "data_layout": "NC" + spatial,
            "kernel_layout": "OI" + spatial,
            "out_layout": None,
            "out_dtype": None,
        }
        self.signature = ("data", "weight", *self.attributes, "fill")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, around = fill(args, 3)
        if around is not None and (around.ndim != 0 or around.dtype != data.dtype):
            fail(self, "what fills the border is not one number of the type of the data", *args)
        return super().infer((data, weight), attrs)

    def spatial_extents(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs) -> list[Any]:
        geometry = zip(self.spatial, *self.geometry(attrs))
        return [tir.floordiv(data[c] + (lo + hi) - ((weight[c] - 1) * d + 1), s) + 1 for c, s, (lo, hi), d in geometry]

    def channels(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs, infos: Any = ()) -> tir.Expr:
        groups = attrs["groups"]
        if infos and not same(data["C"], weight["I"] * groups):
            fail(self, f"{dim_text(data['C'])} channels are not {groups} groups of {dim_text(weight['I'])}", *infos)
        if infos and not same(weight["O"], simplify(tir.floordiv(weight["O"], groups) * groups)):
            fail(self, f"{dim_text(weight['O'])} output channels do not divide into {groups} groups", *infos)
        return weight["O"]

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight, border = fill(args, 3)
        dl, kl, ol = self.layouts(attrs)
        sizes, kernel = dl.extents(data.shape), kl.extents(weight.shape)
        strides, pads, dilations = self.geometry(attrs)
        dtype = product_dtype(self, data.dtype, attrs)
        wide = te.accumulator(dtype)
        result = self.result_extents(sizes, kernel, attrs)
        around, outside = dict(zip(self.spatial, pads)), tir.const(0, data.dtype) if border is None else border()
        last, stride, dilation = self.spatial[-1], strides[-1], dilations[-1]
        apart = stride > 1 and dl.axes[-1] == ol.axes[-1] == (last, None) and static(result[last]) != 1
        if apart:
            length = simplify(result[last] + tir.floordiv((kernel[last] - 1) * dilation, stride))
            count = 1 if static(kernel[last]) == 1 or dilation % stride == 0 else stride
            padded = pad_phases(data, dl, around, (count, length, stride), outside, label(self) + "_phases")
        else:
            padded = pad_spatial(data, dl, around, outside, label(self) + "_pad")
        block = max(kl.factor("I"), dl.factor("C") if attrs["groups"] == 1 else 1)
        extent, block = (
            kernel["I"],
            block if static(kernel["I"]) is not None and static(kernel["I"]) % block == 0 else 1,
        )
        rc = te.reduce_axis(simplify(tir.floordiv(extent, block)), "rc")
        rb = te.reduce_axis(block, "rc_block")
        window = [te.reduce_axis(kernel[c], "r" + c.lower()) for c in self.spatial]
        inner = Position(rc.var, rb.var, block) if block > 1 else Position(rc.var)
        per_group = simplify(tir.floordiv(kernel["O"], attrs["groups"]))

        def body(*index: Any) -> Any:
            at = ol.positions(index)
            channel = inner
            if attrs["groups"] > 1:
                group = at["C"].quotient(per_group)
                if static(per_group) is None:  # a number of channels that no groups divide is refused elsewhere
                    group = tir.min_(group, attrs["groups"] - 1)
                channel = at["C"] if static(extent) == 1 and static(per_group) == 1 else inner.after(group * extent)
            there = {
                c: Position(at[c].value * s + k.var * d) for c, s, d, k in zip(self.spatial, strides, dilations, window)
            }
            x_index = dl.index({"N": at["N"], "C": channel, **there})
            if apart:
                k = window[-1].var * dilation
                x_index = (*x_index[:-1], tir.floormod(k, stride), at[last].value + tir.floordiv(k, stride))
            x = padded(*x_index)
            w = weight(
                *kl.index({"O": at["C"], "I": inner, **{c: Position(k.var) for c, k in zip(self.spatial, window)}})
            )
            return te.sum(te.cast(x, wide) * te.cast(w, wide), axis=[rc, *window, *([rb] if block > 1 else [])])

        out = te.compute(ol.shape(result), body, label(self))
        return cast_result(out, dtype, label(self) + "_cast")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        dl, kl, ol = self.layouts(attrs)
        dtype = product_dtype(self, DType(args[0].dtype), attrs)
        x, w = dl.to_logical(args[0], "NC" + self.spatial), kl.to_logical(args[1], "OI" + self.spatial)
        x, w = (a.astype(dtype.numpy) if dtype.is_int else widen(a) for a in (x, w))
        strides, pads, dilations = self.geometry(attrs)
        outside = 0 if fill(args, 3)[2] is None else args[2].item()
        out = _np_conv(np.pad(x, [(0, 0), (0, 0), *pads], constant_values=outside), w, strides, dilations, attrs["groups"])
        return ol.from_logical(out.astype(dtype.numpy), "NC" + self.spatial)


def _np_conv(x: np.ndarray, w: np.ndarray, strides: Any, dilations: Any, groups: int) -> np.ndarray:
    """Convolution of padded data by one matrix product per kernel position."""
    n, kernel = x.shape[0], w.shape[2:]
    spatial = [(s - (k - 1) * d - 1) // t + 1 for s, k, d, t in zip(x.shape[2:], kernel, dilations, strides)]
    out = np.zeros((n, groups, w.shape[0] // groups, int(np.prod(spatial, dtype=np.int64))), x.dtype)
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for at in np.ndindex(*kernel):
        cut = tuple(
            slice(a * d, a * d + (o - 1) * t + 1 if o else 0, t) for a, d, t, o in zip(at, dilations, strides, spatial)
        )
        part = x[(slice(None), slice(None), *cut)].reshape(n, groups, x.shape[1] // groups, -1)
        out += np.matmul(w[(..., *at)], part)
    return out.reshape(n, -1, *spatial)


def pad_spatial(
    x: te.Tensor, layout: NamedLayout, pads: dict[str, tuple[Any, Any]], fill: tir.Expr, name: str
) -> te.Tensor:
    """``x`` with ``fill`` around logical axes, as a stage of its own; ``x`` itself when there is nothing to add."""
    if all(static(lo) == 0 and static(hi) == 0 for lo, hi in pads.values()):
        return x
    sizes = layout.extents(x.shape)
    grown = {c: simplify(n + sum(pads[c])) if c in pads else n for c, n in sizes.items()}

    def body(*index: Any) -> Any:
        inside: list[Any] = []
        at = layout.positions(index)
        for c, (lo, hi) in pads.items():
            there = at[c].value - lo
            inside += [there >= 0] if static(lo) != 0 else []
            inside += [there < sizes[c]] if static(hi) != 0 else []
            at[c] = Position(there)
        return te.if_then_else(te.logical_and(*inside), x(*layout.index(at)), fill)

    return te.compute(layout.shape(grown), body, name)


def pad_phases(
    x: te.Tensor, layout: NamedLayout, pads: dict[str, tuple[Any, Any]], phases: tuple[int, Any, int], fill: tir.Expr, name: str
) -> te.Tensor:
    """``x`` with ``fill`` around logical axes, its last axis w as two: [..., p, w // stride] with p = w % stride, so that windows which
    are ``stride`` apart read elements that follow one another. ``phases``: how many there are, of which length, the stride."""
    count, length, stride = phases
    last = layout.axes[-1][0]
    sizes = layout.extents(x.shape)
    grown = {c: simplify(n + sum(pads[c])) if c in pads else n for c, n in sizes.items()}

    def body(*index: Any) -> Any:
        inside: list[Any] = []
        at = layout.positions((*index[:-2], index[-1] * stride + index[-2]))
        for c, (lo, hi) in pads.items():
            there = at[c].value - lo
            inside += [there >= 0] if static(lo) != 0 else []
            inside += [there < sizes[c]] if static(hi) != 0 or c == last else []
            at[c] = Position(there)
        return te.if_then_else(te.logical_and(*inside), x(*layout.index(at)), fill)

    return te.compute((*layout.shape(grown)[:-1], tir.index_const(count), length), body, name)


class ConvTranspose(_Convolution):
    """The gradient of a convolution by its data: each element of data adds the kernel times it to the result.

    ``output_padding`` extends the result at its end; ``kernel_layout`` has input channels as I, those of a group as O.
    """

    def __init__(self, spatial: str) -> None:
        super().__init__(spatial)
        self.name = f"nn.conv{len(spatial)}d_transpose"
        self.attributes = {
            "strides": 1,
            "padding": 0,
            "output_padding": 0,
            "dilation": 1,
            "groups": 1,
            "data_layout": "NC" + spatial,
            "kernel_layout": "IO" + spatial,
            "out_layout": None,
            "out_dtype": None,
        }

    def spatial_extents(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs) -> list[Any]:
        extra = per_axis(attrs["output_padding"], len(self.spatial))
        geometry = zip(self.spatial, *self.geometry(attrs), extra)
        return [
            (data[c] - 1) * s - (lo + hi) + (weight[c] - 1) * d + (1 + more) for c, s, (lo, hi), d, more in geometry
        ]

    def channels(self, data: dict[str, Any], weight: dict[str, Any], attrs: Attrs, infos: Any = ()) -> tir.Expr:
        if infos and not same(data["C"], weight["I"]):
            fail(self, f"{dim_text(data['C'])} channels meet a weight for {dim_text(weight['I'])}", *infos)
        if infos and not same(data["C"], simplify(tir.floordiv(data["C"], attrs["groups"]) * attrs["groups"])):
            fail(self, f"{dim_text(data['C'])} channels do not divide into {attrs['groups']} groups", *infos)
        return simplify(weight["O"] * attrs["groups"])

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, weight = args
        dl, kl, ol = self.layouts(attrs)
        sizes, kernel = dl.extents(data.shape), kl.extents(weight.shape)
        dtype = product_dtype(self, data.dtype, attrs)
        wide = te.accumulator(dtype)
        result = self.result_extents(sizes, kernel, attrs)
        _, _, dilations = self.geometry(attrs)
        spread = self._spread(data, dl, sizes, kernel, result, attrs)
        each = simplify(tir.floordiv(sizes["C"], attrs["groups"]))
        rc = te.reduce_axis(each, "rc")
        window = [te.reduce_axis(kernel[c], "r" + c.lower()) for c in self.spatial]

        def body(*index: Any) -> Any:
            at = ol.positions(index)
            group = tir.floordiv(at["C"].value, kernel["O"]) if attrs["groups"] > 1 else tir.index_const(0)
            channel = Position(group * each + rc.var)
            there = {c: Position(at[c].value + k.var * d) for c, d, k in zip(self.spatial, dilations, window)}
            x = spread(*dl.index({"N": at["N"], "C": channel, **there}))
            turned = {c: Position(kernel[c] - 1 - k.var) for c, k in zip(self.spatial, window)}
            out = at["C"] if attrs["groups"] == 1 else Position(tir.floormod(at["C"].value, kernel["O"]))
            w = weight(*kl.index({"I": channel, "O": out, **turned}))
            return te.sum(te.cast(x, wide) * te.cast(w, wide), axis=[rc, *window])

        return cast_result(te.compute(ol.shape(result), body, label(self)), dtype, label(self) + "_cast")

    def _spread(
        self, data: te.Tensor, layout: NamedLayout, sizes: Any, kernel: Any, result: Any, attrs: Attrs
    ) -> te.Tensor:
        """Data with zeros between elements (for strides) and around, so that a plain convolution is left."""
        strides, pads, dilations = self.geometry(attrs)
        grown, before = dict(sizes), {}
        for c, (lo, _), d in zip(self.spatial, pads, dilations):
            grown[c] = simplify(result[c] + (kernel[c] - 1) * d)
            before[c] = (kernel[c] - 1) * d - lo

        def body(*index: Any) -> Any:
            inside: list[Any] = []
            at = layout.positions(index)
            for c, s in zip(self.spatial, strides):
                there = at[c].value - before[c]
                if s > 1:
                    inside.append(tir.eq(tir.floormod(there, s), 0))
                there = tir.floordiv(there, s)
                inside += [there >= 0, there < sizes[c]]
                at[c] = Position(there)
            return te.if_then_else(te.logical_and(*inside), data(*layout.index(at)), tir.const(0, data.dtype))

        return te.compute(layout.shape(grown), body, label(self) + "_spread")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        dl, kl, ol = self.layouts(attrs)
        dtype = product_dtype(self, DType(args[0].dtype), attrs)
        x, w = widen(dl.to_logical(args[0], "NC" + self.spatial)), widen(kl.to_logical(args[1], "IO" + self.spatial))
        strides, pads, dilations = self.geometry(attrs)
        groups, extra = attrs["groups"], per_axis(attrs["output_padding"], len(self.spatial))
        full = [
            max((s - 1) * t + (k - 1) * d + 1 + e, 0)
            for s, k, t, d, e in zip(x.shape[2:], w.shape[2:], strides, dilations, extra)
        ]
        n, c = x.shape[:2]
        out = np.zeros((n, w.shape[1] * groups, *full), x.dtype)
        flat, w = x.reshape(n, groups, c // groups, -1), w.reshape(groups, c // groups, *w.shape[1:])
        for at in np.ndindex(*w.shape[3:]):
            part = np.matmul(np.swapaxes(w[(..., *at)], 1, 2), flat).reshape(n, -1, *x.shape[2:])
            cut = tuple(
                slice(a * d, a * d + (s - 1) * t + 1 if s else 0, t)
                for a, d, t, s in zip(at, dilations, strides, x.shape[2:])
            )
            out[(slice(None), slice(None), *cut)] += part
        crop = tuple(slice(lo, size - hi) for (lo, hi), size in zip(pads, full))
        return ol.from_logical(out[(slice(None), slice(None), *crop)].astype(dtype.numpy), "NC" + self.spatial)


for _spatial in ("W", "HW", "DHW"):
    register(Conv(_spatial))
    register(ConvTranspose(_spatial))
