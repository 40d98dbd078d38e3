# SPDX-License-Identifier: Apache-2.0
"""Compares results of two versions of a program with a tolerance that allows reassociation and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dataclass import dataclass
from ..ir.dtype import DType

ROUNDINGS = 256  # how many rounding errors of the size of the magnitude may add up


@dataclass(frozen=True)
class Difference:
    """The worst element of the first output that differs."""

    output: str
    index: tuple[int, ...]
    got: Any
    want: Any
    tolerance: float
    count: int
    total: int

    def __str__(self) -> str:
        if self.count < 0:
            return f"{self.output}: {self.got} instead of {self.want}"
        return (
            f"{self.output}{list(self.index)} is {self.got}, expected {self.want} (tolerance {self.tolerance:.3g}); "
            f"{self.count} of {self.total} elements differ"
        )


def rounding(dtype: Any) -> float:
    """The relative rounding error of a type (0 for integers)."""
    dtype = DType(dtype)
    if not dtype.is_float:
        return 0.0
    if dtype.bits >= 16:
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype.numpy).eps)
    return 0.125


def compare(
    got: Any, want: Any, magnitude: Any = None, *, name: str = "output", roundings: float = ROUNDINGS
) -> Difference | None:
    """The first difference between two results (arrays, numbers or tuples of them), or None.

    ``magnitude`` (same structure as ``want``) is the size of what was added up in each element, as ``shadow_call``
    gives it; without it the element's own size and the array's mean size stand for it. Integers and bools must be
    equal; NaN equals NaN.
    """
    if isinstance(want, tuple | list):
        if not isinstance(got, tuple | list) or len(got) != len(want):
            return Difference(name, (), type(got).__name__, f"a tuple of {len(want)}", 0.0, -1, 0)
        parts = magnitude if isinstance(magnitude, tuple | list) else [None] * len(want)
        found = (
            compare(g, w, m, name=f"{name}[{k}]", roundings=roundings)
            for k, (g, w, m) in enumerate(zip(got, want, parts))
        )
        return next((d for d in found if d is not None), None)
    if isinstance(want, str) or want is None:
        return None if got == want else Difference(name, (), got, want, 0.0, -1, 0)
    return _arrays(np.asarray(got), np.asarray(want), magnitude, name, roundings)


def _arrays(got: np.ndarray, want: np.ndarray, magnitude: Any, name: str, roundings: float) -> Difference | None:
    if got.shape != want.shape:
        return Difference(name, (), f"an array of shape {got.shape}", f"one of shape {want.shape}", 0.0, -1, 0)
    if got.dtype != want.dtype and not (got.dtype.kind == want.dtype.kind == "f"):
        return Difference(name, (), f"an array of {got.dtype}", f"one of {want.dtype}", 0.0, -1, 0)
    if not got.size:
        return None
    if not DType(got.dtype).is_float:
        bad = got != want
        return _worst(name, bad, bad.astype(float), got, want, np.zeros(got.shape)) if bad.any() else None
    wide, exact = got.astype(np.float64), want.astype(np.float64)
    finite = exact[np.isfinite(exact)]
    size = (
        np.abs(exact) + (float(np.abs(finite).mean()) if finite.size else 0.0)
        if magnitude is None
        else np.maximum(magnitude, np.abs(exact))
    )
    with np.errstate(all="ignore"):
        tolerance = (
            max(rounding(got.dtype), rounding(want.dtype) if want.dtype == got.dtype else 0.0) * roundings * size
        )
        tolerance = tolerance + float(np.finfo(np.float32).tiny)
        error = np.abs(wide - exact)
        same = (wide == exact) | (np.isnan(wide) & np.isnan(exact)) | (error <= tolerance)
        same |= ~np.isfinite(tolerance)  # the magnitude overflows: nothing can be said
        if (
            got.dtype.itemsize < 8 and np.dtype(want.dtype).itemsize > got.dtype.itemsize
        ):  # float64 that this type cannot hold
            largest = float(np.finfo(np.float32).max) if got.dtype.itemsize == 4 else 65504.0
            same |= np.isinf(wide) & (np.abs(exact) > 0.99 * largest)
    if same.all():
        return None
    return _worst(name, ~same, np.where(np.isnan(error), np.inf, error), got, want, tolerance)


def _worst(
    name: str, bad: np.ndarray, error: np.ndarray, got: np.ndarray, want: np.ndarray, tolerance: np.ndarray
) -> Difference:
    at = np.unravel_index(int(np.argmax(np.where(bad, error, -1.0))), got.shape)
    index = tuple(int(i) for i in at)
    return Difference(
        name,
        index,
        got[at].item(),
        want[at].item(),
        float(np.broadcast_to(tolerance, got.shape)[at]),
        int(bad.sum()),
        got.size,
    )
