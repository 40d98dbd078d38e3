# SPDX-License-Identifier: Apache-2.0
"""Quantisation to integers and back, per tensor or per position of an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roundel import te
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import FLOAT32, DType
from roundel.ir.op import FuseKind, OpDef, register

from .dims import axis_of, fail, fill, same, static, tensor_info
from .elementwise import widen


class _Quantizing(OpDef):
    """Base: ``scale`` and ``zero_point`` are scalars or have one element per position of ``axis``."""

    kind = FuseKind.BROADCAST
    operands = ("data", "scale", "zero_point?")

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale, zero = fill(args, 3)
        tensor_info(self, data, args)
        for p in (scale, zero):
            if (
                p is not None
                and p.shape is not None
                and data.shape is not None
                and p.ndim == 1
                and static(p.shape[0]) != 1
            ):
                axis = axis_of(self, attrs["axis"], data.ndim, *args)
                if not same(p.shape[0], data.shape[axis]):
                    fail(self, f"a parameter does not have one element per position of axis {axis}", *args)
            if p is not None and p.ndim > 1:
                fail(self, f"a parameter has {p.ndim} dimensions", *args)
        return data.replace(dtype=DType(attrs["out_dtype"]))

    def at(self, p: Any, index: tuple[Any, ...], attrs: Attrs) -> Any:
        """The parameter that goes with an index."""
        if p is None or not p.shape:
            return 0 if p is None else p()
        return p(0 if static(p.shape[0]) == 1 else index[attrs["axis"] % len(index)])

    def np_along(self, p: Any, ndim: int, attrs: Attrs) -> Any:
        """The parameter ready to broadcast."""
        if p is None or p.ndim == 0:
            return 0 if p is None else p
        return p.reshape([-1 if k == attrs["axis"] % ndim else 1 for k in range(ndim)])


@register
class Quantize(_Quantizing):
    """clamp(round(data / scale) + zero_point) as ``out_dtype``, rounding half to even."""

    name, attributes = "quantize", {"axis": -1, "out_dtype": "int8"}

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale, zero = fill(args, 3)
        dtype = DType(attrs["out_dtype"])

        def body(*i: Any) -> Any:
            ratio = te.cast(data(*i), FLOAT32) / te.cast(self.at(scale, i, attrs), FLOAT32)
            offset = te.cast(te.cast(self.at(zero, i, attrs), "int32"), FLOAT32)
            return te.cast(_clamp(te.nearbyint(ratio) + offset, dtype, te.min_, te.max_), dtype)

        return te.compute(data.shape, body, "quantize")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale, zero = fill(args, 3)
        dtype = DType(attrs["out_dtype"])
        ratio = np.rint(widen(data) / self.np_along(widen(scale), data.ndim, attrs))
        moved = ratio.astype(np.float64) + np.asarray(self.np_along(zero, data.ndim, attrs)).astype(np.float64)
        return np.nan_to_num(_clamp(moved, dtype, np.minimum, np.maximum)).astype(dtype.numpy)


def _clamp(v: Any, dtype: DType, least: Callable[..., Any], most: Callable[..., Any]) -> Any:
    low, high = te.lowest(dtype).value, te.highest(dtype).value
    return least(most(v, float(low)), float(high))


@register
class Dequantize(_Quantizing):
    """(data - zero_point) * scale as ``out_dtype``; the difference is taken in int32."""

    name, attributes = "dequantize", {"axis": -1, "out_dtype": "float32"}

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale, zero = fill(args, 3)

        def body(*i: Any) -> Any:
            whole = te.cast(data(*i), "int32")
            whole = whole if zero is None else whole - te.cast(self.at(zero, i, attrs), "int32")
            return te.cast(te.cast(whole, FLOAT32) * te.cast(self.at(scale, i, attrs), FLOAT32), attrs["out_dtype"])

        return te.compute(data.shape, body, "dequantize")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        data, scale, zero = fill(args, 3)
        whole = data.astype(np.int32) - np.asarray(self.np_along(zero, data.ndim, attrs)).astype(np.int32)
        out = whole.astype(np.float32) * self.np_along(widen(scale), data.ndim, attrs)
        return out.astype(DType(attrs["out_dtype"]).numpy)
