# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of ranges, and weights as integers."""

from __future__ import annotations

import numpy as np

from ..ir.dataclass import dataclass

MOST = 255  # of uint8
BINS = 4096  # of a histogram
GROUP = 32  # weights of four bits that share a scale, unless another number is asked for


@dataclass(frozen=True)
class Range:
    """The least and the greatest number that a tensor held; 0 is among them."""

    low: float
    high: float

    @property
    def scale(self) -> np.float32:
        """The distance of neighbouring uint8 numbers."""
        return np.float32((self.high - self.low) / MOST) or np.float32(1)

    @property
    def zero_point(self) -> np.uint8:
        """Which of them is 0."""
        return np.uint8(np.clip(np.rint(-self.low / self.scale), 0, MOST))


class Histogram:
    """How often a tensor held numbers in each of equal parts of a range, to cut off what is rare on both sides."""

    def __init__(self, whole: Range) -> None:
        self.whole, self.counts = whole, np.zeros(BINS, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Count finite numbers."""
        self.counts += np.histogram(values[np.isfinite(values)], BINS, (self.whole.low, max(self.whole.high, self.whole.low + 1e-30)))[0]

    def range(self, percentile: float) -> Range:
        """The range of so many percent of the numbers, as many left out above as below."""
        total = np.cumsum(self.counts) / max(self.counts.sum(), 1)
        out = (100 - percentile) / 200
        edges = np.linspace(self.whole.low, self.whole.high, BINS + 1)
        low, high = edges[int(np.searchsorted(total, out, "right"))], edges[min(int(np.searchsorted(total, 1 - out)) + 1, BINS)]
        return Range(float(min(low, 0.0)), float(max(high, 0.0)))


@dataclass(frozen=True)
class Integers:
    """A weight as ``scale * (levels - zero)``: ``scale`` and ``zero`` have one element for each channel (``axis``), for all, or, where ``group`` is a
    number, for each group of so many levels along ``axis``, which is the one that is summed over."""

    levels: np.ndarray
    scale: np.ndarray
    zero: np.ndarray | None
    axis: int
    bits: int = 8
    group: int | None = None

    def numbers(self) -> np.ndarray:
        """What they stand for, in float32."""
        wide = self.levels.astype(np.float32)
        if self.group is None:
            return wide * self._along(self.scale)
        spread = lambda v: np.take(np.repeat(v, self.group, self.axis), range(wide.shape[self.axis]), self.axis)  # type: ignore[arg-type]
        return (wide if self.zero is None else wide - spread(self.zero).astype(np.float32)) * spread(self.scale)

    def _along(self, v: np.ndarray) -> np.ndarray:
        return v.reshape([-1 if k == self.axis else 1 for k in range(self.levels.ndim)]) if v.ndim else v


def by_channel(weight: np.ndarray, axis: int | None) -> Integers:
    """Weights as int8 from -127 to 127, each channel along ``axis`` (None: all) in units of its own."""
    others = tuple(k for k in range(weight.ndim) if k != axis)
    most = np.abs(weight).max(others if axis is not None else None, initial=0.0).astype(np.float32)
    scale = np.where(most > 0, most / np.float32(127), np.float32(1)).astype(np.float32)
    by = scale.reshape([-1 if k == axis else 1 for k in range(weight.ndim)]) if axis is not None else scale
    return Integers(np.clip(np.rint(weight / by), -127, 127).astype(np.int8), scale, None, 0 if axis is None else axis)


def in_groups(weight: np.ndarray, axis: int, bits: int, group: int, symmetric: bool) -> Integers:
    """Weights as unsigned numbers of some bits, in groups along ``axis``, of which the last may be shorter. Symmetric ones have the zero point in the
    middle, and the largest weight of a group is its lowest level, so that its sign decides the scale's; others have a zero point for each group."""
    depth = weight.shape[axis]
    groups = -(-depth // group)
    filled = np.pad(weight, [(0, groups * group - depth if k == axis else 0) for k in range(weight.ndim)])
    parts = filled.reshape(*weight.shape[:axis], groups, group, *weight.shape[axis + 1:])
    inside, half, top = axis + 1, 1 << (bits - 1), (1 << bits) - 1
    if symmetric:
        largest = np.take_along_axis(parts, np.abs(parts).argmax(inside, keepdims=True), inside)
        scale, zero = largest / np.float32(-half), np.full_like(largest, half)
    else:
        low, high = np.minimum(parts.min(inside, keepdims=True), 0), np.maximum(parts.max(inside, keepdims=True), 0)
        scale = (high - low) / np.float32(top)
        zero = np.rint(-low / np.where(scale == 0, np.float32(1), scale))
    scale = np.where(scale == 0, np.float32(1), scale).astype(np.float32)
    levels = np.clip(np.rint(parts / scale + zero), 0, top).astype(np.uint8).reshape(filled.shape)
    return Integers(np.take(levels, range(depth), axis), scale.squeeze(inside), zero.squeeze(inside).astype(np.uint8), axis,
                    bits, group)


def decibels(signal: float, noise: float) -> float:
    """The ratio of two sums of squares: 20 more are a tenth of the error."""
    return float("inf") if noise == 0 else -float("inf") if signal == 0 else float(10 * np.log10(signal / noise))
