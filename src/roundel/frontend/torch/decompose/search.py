# SPDX-License-Identifier: Apache-2.0
"""Order statistics, bins and distances."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .table import decomposes


def _kth(x: Tensor, k: Any, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Element ``k`` (a number, or one per row with the axis kept) in ascending order, NaN last, and its position."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    values, order = torch.sort(x, dim=dim, stable=True)
    if isinstance(k, int):
        found = values.narrow(dim, k, 1), order.narrow(dim, k, 1)
    else:
        found = values.gather(dim, k), order.gather(dim, k)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


@decomposes("kthvalue")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least along ``dim`` (NaN counts as largest) and where it is."""
    return _kth(x, k - 1, dim, keepdim)


@decomposes("median.dim")
def median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median along ``dim`` and where it is; NaN where there is one."""
    if x.dim() == 0 or not x.is_floating_point():
        return _kth(x, (x.shape[dim] - 1) // 2 if x.dim() else 0, dim, keepdim)
    n = x.shape[dim]
    spoiled = torch.isnan(x).any(dim, keepdim=True)
    whole = (~torch.isnan(x)).to(torch.int64).sum(dim, keepdim=True)  # the first NaN stands after the numbers
    return _kth(x, torch.where(spoiled, whole, (n - 1) // 2), dim, keepdim)


@decomposes("nanmedian.dim")
def nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower median of what is not NaN, and where it is."""
    if x.dim() == 0 or not x.is_floating_point():
        return median_along(x, dim, keepdim)
    whole = (~torch.isnan(x)).to(torch.int64).sum(dim, keepdim=True)
    return _kth(x, torch.div((whole - 1).clamp(min=0), 2, rounding_mode="floor"), dim, keepdim)


@decomposes("median.default")
def median(x: Tensor) -> Tensor:
    """The lower median of all elements."""
    return median_along(x.reshape(-1), 0)[0]


@decomposes("nanmedian.default")
def nanmedian(x: Tensor) -> Tensor:
    """The lower median of all elements that are not NaN."""
    return nanmedian_along(x.reshape(-1), 0)[0]


@decomposes("mode")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest of the most frequent values, and the last place where it stands."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    rows = x.movedim(dim, -1)
    values, order = torch.sort(rows, dim=-1, stable=True)
    often = (values.unsqueeze(-1) == values.unsqueeze(-2)).to(torch.int64).sum(-1)
    first = often.argmax(-1, keepdim=True)
    last = first + often.gather(-1, first) - 1
    found = values.gather(-1, first).movedim(-1, dim), order.gather(-1, last).movedim(-1, dim)
    return found if keepdim else (found[0].squeeze(dim), found[1].squeeze(dim))


@decomposes("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(sequence: Tensor, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                 sorter: Tensor | None = None) -> Tensor:
    """How many elements stand before: counted."""
    if sorter is not None:
        sequence = sequence.gather(-1, sorter)
    values = values if isinstance(values, Tensor) else torch.full((), values)
    after = right or side == "right"
    edges = sequence.unsqueeze(-2) if sequence.dim() > 1 else sequence
    asked = values.unsqueeze(-1)
    before = ~(edges > asked) if after else ~(edges >= asked)
    return before.to(torch.int32 if out_int32 else torch.int64).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@decomposes("bucketize.Tensor", "bucketize.Scalar")
def bucketize(values: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Into which of the intervals between ``boundaries`` each value falls."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


@decomposes("histc")
def histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:  # noqa: A002
    """How many elements fall into each of ``bins`` equal intervals from ``min`` to ``max`` (both 0: those of x)."""
    flat = x.reshape(-1)
    if flat.shape[0] == 0:
        return torch.zeros(bins, dtype=x.dtype)
    low, high = torch.full((), float(min), dtype=x.dtype), torch.full((), float(max), dtype=x.dtype)
    if min == max:
        low, high = flat.amin(), flat.amax()
        same = low == high
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    place = ((flat - low) / (high - low) * bins).to(torch.int64).clamp(0, bins - 1)
    inside = (flat >= low) & (flat <= high)
    return torch.zeros(bins, dtype=x.dtype).index_add(0, place, inside.to(x.dtype))


@decomposes("dist")
def dist(a: Tensor, b: Tensor, p: float = 2) -> Tensor:
    """The p-norm of a - b."""
    return torch.linalg.vector_norm(a - b, p)


@decomposes("_cdist_forward")
def cdist(a: Tensor, b: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """p-norms of the differences of all rows of a (*, m, k) and b (*, n, k): (*, m, n)."""
    if a.shape[-1] == 0:
        return (a @ b.mT).zero_()
    return torch.linalg.vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, -1)


@decomposes("_pdist_forward")
def pdist(x: Tensor, p: float = 2) -> Tensor:
    """p-norms of the differences of all pairs of rows, each pair once."""
    i, j = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return torch.linalg.vector_norm(x[i] - x[j], p, -1)


@decomposes("_euclidean_dist")
def euclidean_dist(a: Tensor, b: Tensor) -> Tensor:
    """``cdist`` of 2."""
    return cdist(a, b, 2.0)
