# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks composed of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .table import decomposes


@decomposes("addbmm")
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    product = torch.bmm(a, b).sum(0)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else x * beta + product


@decomposes("_trilinear")
def trilinear(a: Tensor, b: Tensor, c: Tensor, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
              unroll_dim: int = 1) -> Tensor:
    for dims, k in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in sorted(dims):
            a, b, c = (t.unsqueeze(d) if i == k else t for i, t in enumerate((a, b, c)))
    return (a * b * c).sum(list(sumdim)) if sumdim else a * b * c


@decomposes("max_pool2d_with_indices_backward")
def max_pool2d_backward(grad: Tensor, x: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor) -> Tensor:
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape)


def _triangle_weights(size: int, target: int, align_corners: bool, scale: float | None, cubic: bool) -> Tensor:
    """Weights (target, size) of antialiased interpolation: a triangle or cubic as wide as the step between outputs."""
    step = ((size - 1) / max(target - 1, 1) if align_corners else size / target if not scale else 1 / scale)
    wide = max(step, 1.0)
    support = (2.0 if cubic else 1.0) * wide
    rows = []
    for i in range(target):
        centre = step * (i + 0.5)
        low, high = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), size)
        row = [0.0] * size
        for j in range(low, high):
            t = abs((j - centre + 0.5) / wide)
            row[j] = _cubic(t) if cubic else max(1.0 - t, 0.0)
        total = sum(row)
        rows.append([v / total for v in row])
    return torch.tensor(rows)


def _cubic(t: float, a: float = -0.5) -> float:
    return ((a + 2) * t - (a + 3)) * t * t + 1 if t < 1 else (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


def _antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[Any], cubic: bool) -> Any:
    if not all(isinstance(n, int) for n in (*x.shape[2:], *size)):
        return NotImplemented
    down, across = (_triangle_weights(x.shape[2 + k], size[k], align_corners, scales[k], cubic).to(x.dtype) for k in range(2))
    return torch.matmul(down, torch.matmul(x, across.t()))


@decomposes("_upsample_bilinear2d_aa.default")
def bilinear_antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales_h: Any = None, scales_w: Any = None) -> Any:
    return _antialiased(x, size, align_corners, (scales_h, scales_w), False)


@decomposes("_upsample_bicubic2d_aa.default")
def bicubic_antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales_h: Any = None, scales_w: Any = None) -> Any:
    return _antialiased(x, size, align_corners, (scales_h, scales_w), True)


