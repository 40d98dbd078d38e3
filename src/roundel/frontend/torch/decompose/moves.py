# SPDX-License-Identifier: Apache-2.0
"""Views and copies that are gathers or scatters by computed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .table import decomposes


def _flat_positions(size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """Where a strided view finds each of its elements in the storage."""
    place = torch.full((), offset, dtype=torch.int64)
    for k, (n, s) in enumerate(zip(size, stride)):
        place = place + (torch.arange(n) * s).reshape(-1, *[1] * (len(size) - 1 - k))
    return place.expand(tuple(size))


def _storage(x: Tensor) -> Any:
    """The elements in the order of their storage, which the tensor has to fill; else None."""
    order = sorted(range(x.dim()), key=lambda k: (-x.stride(k), -x.size(k)))
    expected = 1
    for k in reversed(order):
        if x.size(k) != 1 and x.stride(k) != expected:
            return None
        expected *= x.size(k)
    return order if x.storage_offset() == 0 else None


@decomposes("as_strided", "as_strided_copy")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """A view of x's memory by strides, as a gather."""
    order = _storage(x)
    if order is None:
        return NotImplemented
    flat, offset = x.permute(order).reshape(-1), storage_offset or 0
    axes = sorted(range(len(size)), key=lambda k: (-stride[k], -size[k]))
    if _is_dense([size[k] for k in axes], [stride[k] for k in axes]):
        part = flat[offset: offset + math.prod(size)].reshape([size[k] for k in axes])
        return part.permute([axes.index(k) for k in range(len(size))])
    return flat[_flat_positions(size, stride, offset)]


def _is_dense(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the axes, outermost first, are those of a contiguous tensor."""
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


@decomposes("as_strided_scatter")
def as_strided_scatter(x: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Any:
    """x with such a view replaced by ``src``."""
    order = _storage(x)
    if order is None:
        return NotImplemented
    front = x.permute(order)
    out = torch.index_put(front.reshape(-1), (_flat_positions(size, stride, storage_offset or 0),), src).reshape(front.shape)
    return out.permute([order.index(k) for k in range(x.dim())])


def _diagonal_positions(x: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Tensor, list[int]]:
    """``x`` with the two axes last, and the order that brings them there."""
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    order = [k for k in range(x.dim()) if k not in (dim1, dim2)] + [dim1, dim2]
    rows, cols = x.shape[dim1], x.shape[dim2]
    count = max(min(rows, cols - offset) if offset >= 0 else min(rows + offset, cols), 0)
    return torch.arange(count), order


@decomposes("diagonal", "diagonal_copy")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of two axes, along a new last one."""
    steps, order = _diagonal_positions(x, offset, dim1, dim2)
    return x.permute(order)[..., steps + max(-offset, 0), steps + max(offset, 0)]


@decomposes("diagonal_scatter")
def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with a diagonal replaced by ``src``."""
    steps, order = _diagonal_positions(x, offset, dim1, dim2)
    indices = [None] * (x.dim() - 2) + [steps + max(-offset, 0), steps + max(offset, 0)]
    return torch.ops.aten.index_put(x.permute(order), indices, src).permute([order.index(k) for k in range(x.dim())])


@decomposes("unfold", "unfold_copy")
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """All windows of ``size`` along ``dim``, ``step`` apart, along a new last axis."""
    if x.dim() == 0:
        return x.expand(size).clone() if size else x.reshape(1)[:0]
    count = (x.shape[dim] - size) // step + 1
    place = torch.arange(count)[:, None] * step + torch.arange(size)
    return x.movedim(dim, -1)[..., place].movedim(-2, dim % x.dim())


@decomposes("unbind_copy.int")
def unbind_copy(x: Tensor, dim: int = 0) -> Any:
    """The slices along ``dim``."""
    return torch.unbind(x, dim)


@decomposes("narrow_copy")
def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """``length`` elements along ``dim`` from ``start``."""
    return torch.narrow(x, dim, start, length).clone()


@decomposes("resize.default")
def resize(x: Tensor, size: Sequence[int], memory_format: Any = None) -> Tensor:
    """The first elements of x in another shape; more than it has are 0."""
    count = 1
    for n in size:
        count *= n
    flat = x.reshape(-1)
    return (flat[:count] if count <= flat.shape[0] else torch.cat([flat, flat.new_zeros(count - flat.shape[0])])).reshape(tuple(size))


@decomposes("new_empty_strided", "empty_permuted")
def empty(*args: Any, **kwargs: Any) -> Tensor:
    """Memory whose content nobody may rely on: zeros."""
    first = args[0]
    if isinstance(first, Tensor):
        return first.new_zeros(args[1], dtype=kwargs.get("dtype"))
    return torch.zeros(first, dtype=kwargs.get("dtype"))


@decomposes("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with elements of its flat form replaced (or added to)."""
    return torch.index_put(x.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate).reshape(x.shape)


@decomposes("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with elements where ``mask`` holds taken from ``source``, in order."""
    x, mask = torch.broadcast_tensors(x, mask)
    if x.numel() == 0:
        return x.clone()
    place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(min=0)
    return torch.where(mask, source.reshape(-1)[place].reshape(x.shape), x)


_START = {"sum": 0, "prod": 1, "mean": 0}


def _start(reduce: str, x: Tensor) -> Any:
    if reduce in _START:
        return _START[reduce]
    if x.is_floating_point():
        return float("-inf") if reduce == "amax" else float("inf")
    return torch.iinfo(x.dtype).min if reduce == "amax" else torch.iinfo(x.dtype).max


@decomposes("scatter_reduce.two")
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Any:
    """Without the tensor itself, positions that are written start from the neutral element; a mean is a sum over a count."""
    if include_self and reduce != "mean":
        return NotImplemented
    if x.dim() == 0:
        return scatter_reduce(x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self).reshape(())
    start = x if include_self else x.scatter(dim, index, _start(reduce, x))
    if reduce != "mean":
        return torch.scatter_reduce(start, dim, index, src, reduce)
    total = start.scatter_add(dim, index, src)
    ones = torch.ones_like(x) if include_self else torch.ones_like(x).scatter(dim, index, 0)
    count = ones.scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    return total / count if x.is_floating_point() else torch.div(total, count, rounding_mode="floor")


@decomposes("index_reduce")
def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """x with slices of ``source`` combined into those that ``index`` names: product, mean, largest or least."""
    shape = [1] * source.dim()
    if source.dim():
        shape[dim] = -1
    where = index.reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, where, source, {"prod": "prod", "mean": "mean"}.get(reduce, reduce), include_self=include_self)
