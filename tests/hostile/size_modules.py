# SPDX-License-Identifier: Apache-2.0
"""PyTorch functions of which every size is an input's; PyTorch itself says what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .size_subjects import Subject, f, i


def _functions() -> Iterator[tuple[str, Callable[..., Any], list[np.ndarray]]]:
    import torch
    import torch.nn.functional as F

    for mode in ("reflect", "replicate", "circular"):
        yield f"pad {mode}", lambda x, mode=mode: F.pad(x, (2, 3), mode=mode), [f(2, 3, 6)]
    yield "pad negative", lambda x: F.pad(x, (-1, 2, -2, 0)), [f(3, 6, 5)]
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        yield f"interpolate {mode}", lambda x, mode=mode: F.interpolate(x, (7, 9), mode=mode), [f(2, 3, 5, 6)]
    yield "interpolate scale", lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), [f(2, 3, 5, 6)]
    for mode in ("zeros", "border", "reflection"):
        def sample(x: Any, g: Any, mode: str = mode) -> Any:
            return F.grid_sample(x, torch.cat([g, g], -1), padding_mode=mode, align_corners=False)

        yield f"grid_sample {mode}", sample, [f(2, 3, 5, 5), f(2, 4, 4, 1)]
    for equation, shapes in (("ij,jk->ik", [(4, 5), (5, 6)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ii->i", [(5, 5)]), ("i,j->ij", [(3,), (4,)])):
        yield f"einsum {equation}", lambda *xs, equation=equation: torch.einsum(equation, *xs), [f(*s) for s in shapes]
    yield "cholesky", torch.linalg.cholesky, [np.eye(4, dtype=np.float32) * 3 + 0.5]
    yield "solve_triangular", lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), [np.tril(f(4, 4)) + np.eye(4, dtype=np.float32), f(4, 3)]
    yield "trace", torch.trace, [f(4, 4)]
    yield "diagonal", torch.diagonal, [f(4, 5)]
    yield "argmax", lambda x: torch.argmax(x, 1), [f(3, 4)]
    yield "max", lambda x: torch.max(x, 0)[0], [f(3, 4)]
    yield "adaptive average", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), [f(2, 3, 7, 8)]
    yield "adaptive max", lambda x: F.adaptive_max_pool2d(x, (3, 2)), [f(2, 3, 7, 8)]
    yield "adaptive max of all", lambda x: F.adaptive_max_pool2d(x, 1), [f(2, 3, 7, 8)]
    yield "embedding_bag", lambda k, x: F.embedding_bag(k, x, mode="sum"), [i(0, 3, 2, 5, 1, 1).reshape(3, 2), f(9, 4)]
    yield "embedding", F.embedding, [i(0, 3, 2), f(9, 4)]
    yield "gather", lambda x, k: torch.gather(x, 1, k), [f(3, 4), i(0, 1, 2, 3, 0, 1).reshape(3, 2)]
    yield "index_select", lambda x, k: torch.index_select(x, 0, k), [f(5, 4), i(0, 4)]
    yield "scatter_add", lambda x, k, u: torch.scatter_add(x, 0, k, u), [f(5, 4), i(0, 4, 1, 2).reshape(1, 4), f(1, 4)]
    yield "cat", lambda a, b: torch.cat([a, b]), [f(3, 4), f(2, 4)]
    yield "stack", lambda a, b: torch.stack([a, b]), [f(3, 4), f(3, 4)]
    yield "add", torch.add, [f(3, 4), f(3, 4)]
    yield "bmm", torch.bmm, [f(2, 3, 4), f(2, 4, 5)]
    yield "attention", F.scaled_dot_product_attention, [f(2, 2, 3, 4), f(2, 2, 5, 4), f(2, 2, 5, 4)]
    yield "layer_norm", lambda x: F.layer_norm(x, x.shape[-1:]), [f(3, 4)]
    yield "unfold", lambda x: x.unfold(1, 3, 2), [f(3, 9)]
    yield "im2col", lambda x: F.unfold(x, (2, 2)), [f(2, 3, 5, 6)]
    yield "roll", lambda x: torch.roll(x, 2, 1), [f(3, 5)]
    yield "cumsum", lambda x: torch.cumsum(x, 0), [f(3, 5)]
    yield "sort", lambda x: torch.sort(x, -1)[0], [f(3, 5)]
    yield "topk", lambda x: torch.topk(x, 3)[0], [f(3, 5)]
    yield "flip slice", lambda x: x[1:-1].flip(0), [f(6, 3)]
    yield "pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [f(2, 8, 3, 4)]
    yield "cross_entropy", F.cross_entropy, [f(4, 5), i(0, 1, 2, 3)]
    yield "median", lambda x: torch.median(x, 1)[0], [f(3, 5)]
    yield "cdist", torch.cdist, [f(3, 5), f(4, 5)]
    yield "conv1d", F.conv1d, [f(2, 3, 9), f(4, 3, 3)]


def modules() -> Iterator[Subject]:
    """Each function, every size of it dynamic as far as PyTorch lets it be."""
    for name, function, example in _functions():
        axes = tuple(tuple(range(a.ndim)) for a in example)
        yield Subject(f"torch {name}", _compile(function, example), tuple(example), axes, _reference(function))


def _compile(function: Callable[..., Any], example: list[np.ndarray]) -> Callable[[], Any]:
    def compile_() -> Any:
        import torch

        import roundel as rd

        class Module(torch.nn.Module):
            def forward(self, *inputs: Any) -> Any:
                return function(*inputs)

        auto = ({d: torch.export.Dim.AUTO for d in range(a.ndim)} for a in example)
        exported = torch.export.export(Module(), tuple(map(torch.from_numpy, example)), dynamic_shapes=(tuple(auto),))
        return rd.compile(exported, threads=1)

    return compile_


def _reference(function: Callable[..., Any]) -> Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]:
    def reference(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        import torch

        return [function(*map(torch.from_numpy, arrays)).numpy()]

    return reference
