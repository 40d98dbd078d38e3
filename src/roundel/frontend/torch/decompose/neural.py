# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks composed of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .table import decomposes

if find_spec(LOSSES := "torch.nn.modules.linear_cross_entropy"):
    import_module(LOSSES)  # registers its operators


@decomposes("addbmm")
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta x + alpha times the sum over the batch of the products a b."""
    product = torch.bmm(a, b).sum(0)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else x * beta + product


@decomposes("_trilinear")
def trilinear(a: Tensor, b: Tensor, c: Tensor, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
              unroll_dim: int = 1) -> Tensor:
    """The sum over ``sumdim`` of a * b * c, each first given the axes that it lacks."""
    for dims, k in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in sorted(dims):
            a, b, c = (t.unsqueeze(d) if i == k else t for i, t in enumerate((a, b, c)))
    return (a * b * c).sum(list(sumdim)) if sumdim else a * b * c


@decomposes("max_pool2d_with_indices_backward")
def max_pool2d_backward(grad: Tensor, x: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor) -> Tensor:
    """The gradient goes to where each largest element was."""
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape)


def _weights(size: int, target: int, align_corners: bool, scale: float | None, cubic: bool, dtype: torch.dtype) -> Tensor:
    """Weights (target, size) of antialiased interpolation: a triangle or cubic as wide as the step between outputs."""
    count, wanted = (torch.scalar_tensor(n, dtype=torch.float64) for n in (size, target))
    if align_corners:
        step = torch.where(wanted > 1, (count - 1) / (wanted - 1), 0.0)
    else:
        step = torch.scalar_tensor(1 / scale, dtype=torch.float64) if scale else count / wanted
    wide = step.clamp(min=1.0)
    support = (2.0 if cubic else 1.0) * wide
    centre = (step * (torch.arange(target, dtype=torch.float64) + 0.5))[:, None]
    place = torch.arange(size, dtype=torch.float64)
    low, high = torch.floor((centre - support + 0.5).clamp(min=0)), torch.floor(torch.minimum(centre + support + 0.5, count))
    t = ((place - centre + 0.5) / wide).abs()
    shape = _cubic(t) if cubic else (1 - t).clamp(min=0)
    shape = torch.where((place >= low) & (place < high), shape, 0.0)
    total = shape.sum(1, keepdim=True)
    return (shape / torch.where(total == 0, 1.0, total)).to(dtype)


def _cubic(t: Tensor, a: float = -0.5) -> Tensor:
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, (((t - 5) * t + 8) * t - 4) * a
    return torch.where(t < 1, near, torch.where(t < 2, far, 0.0))


def _antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[Any], cubic: bool) -> Any:
    down, across = (_weights(x.shape[2 + k], size[k], align_corners, scales[k], cubic, x.dtype) for k in range(2))
    return torch.matmul(down, torch.matmul(x, across.t()))


@decomposes("_upsample_bilinear2d_aa.default")
def bilinear_antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales_h: Any = None, scales_w: Any = None) -> Any:
    """Resized with triangles as wide as the step."""
    return _antialiased(x, size, align_corners, (scales_h, scales_w), False)


@decomposes("_upsample_bicubic2d_aa.default")
def bicubic_antialiased(x: Tensor, size: Sequence[int], align_corners: bool, scales_h: Any = None, scales_w: Any = None) -> Any:
    """Resized with cubics as wide as the step."""
    return _antialiased(x, size, align_corners, (scales_h, scales_w), True)


@decomposes("_native_batch_norm_legit_functional")
def batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, training: bool, momentum: float,
               eps: float) -> tuple[Tensor, ...]:
    """With the statistics after this batch as further results."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    wide = x.to(torch.float64) if x.dtype == torch.float64 else x.to(torch.float32)
    if not training:
        out = (wide - mean.reshape(shape)) * torch.rsqrt(var + eps).reshape(shape)
        none = x.new_zeros(0)
        return _affine(out, weight, bias, shape).to(x.dtype), none, none, mean.clone(), var.clone()
    over = [0, *range(2, x.dim())]
    centre = wide.mean(over)
    spread = (wide - centre.reshape(shape)).square().mean(over)
    scale = torch.rsqrt(spread + eps)
    out = _affine((wide - centre.reshape(shape)) * scale.reshape(shape), weight, bias, shape)
    count = x.numel() // x.shape[1]
    new_mean = momentum * centre + (1 - momentum) * mean
    new_var = momentum * spread * (count / (count - 1)) + (1 - momentum) * var
    return out.to(x.dtype), centre, scale, new_mean.to(mean.dtype), new_var.to(var.dtype)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: list[int]) -> Tensor:
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


@decomposes("_batch_norm_with_update_functional")
def batch_norm_with_update(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, momentum: float,
                           eps: float) -> tuple[Tensor, ...]:
    """Batch normalisation in training, with the new running mean and variance."""
    out, centre, scale, new_mean, new_var = batch_norm(x, weight, bias, mean, var, True, momentum, eps)
    return out, centre, scale, torch.zeros(0, dtype=torch.uint8), new_mean, new_var


@decomposes("_embedding_bag_forward_only", "_embedding_bag")
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Tensor, ...]:
    """Rows summed (mode 0), averaged (1) or their largest elements (2) for each bag; what only gradients need is left empty."""
    begins = offsets[:-1] if include_last_offset else offsets
    bags = begins.shape[0]
    torch._assert_async((offsets[:1] == 0).all(), "embedding_bag: the first of the offsets has to be 0")
    torch._assert_async((offsets[1:] >= offsets[:-1]).all(), "embedding_bag: the offsets decrease")
    torch._assert_async((offsets <= indices.shape[0]).all(), "embedding_bag: an offset is greater than the number of indices")
    bag = (torch.arange(indices.shape[0])[:, None] >= begins).to(torch.int64).sum(1) - 1
    counts = indices != padding_idx
    rows = weight[indices]
    rows = rows if per_sample_weights is None else rows * per_sample_weights[:, None]
    size = torch.zeros(bags, dtype=torch.int64).index_add(0, bag, counts.to(torch.int64))
    if mode == 2:
        where = bag[:, None].expand(rows.shape)
        least = torch.where(counts[:, None], rows, float("-inf"))
        best = torch.full((bags, weight.shape[1]), float("-inf"), dtype=weight.dtype).scatter_reduce(0, where, least, "amax")
        out = torch.where(size[:, None] > 0, best, 0.0).to(weight.dtype)
    else:
        out = torch.zeros(bags, weight.shape[1], dtype=weight.dtype).index_add(0, bag, torch.where(counts[:, None], rows, 0.0).to(weight.dtype))
        out = out / size.clamp(min=1)[:, None] if mode == 1 else out
    return out, bag, size, size


@decomposes("_native_multi_head_attention")
def multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor,
                         proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True, average_attn_weights: bool = True,
                         mask_type: int | None = None) -> tuple[Tensor, Tensor]:
    """A mask is true (or not 0) where attention is not allowed; by its type it is for (query, key) (0), (batch, key) (1) or all axes (2)."""
    parts = (functional.linear(x, w, b) for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3)))
    q, k, v = (x.unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2) for x in parts)
    scores = (q / (embed_dim // num_head) ** 0.5) @ k.transpose(-1, -2)
    if mask is not None:
        mask = mask[:, None, None, :] if mask_type == 1 else mask
        scores = scores.masked_fill(mask.to(torch.bool), float("-inf"))
    weights = torch.softmax(scores, -1)
    out = functional.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return out, out.new_zeros(0)
    return out, weights.mean(1) if average_attn_weights else weights


@decomposes("_transformer_encoder_layer_fwd")
def transformer_encoder_layer(x: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
                              use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
                              norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
                              mask: Tensor | None = None, mask_type: int | None = None) -> Tensor:
    """PyTorch's fused encoder layer, of attention and a network of two layers."""
    def normed(t: Tensor, first: bool, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(t, (embed_dim,), weight, bias, eps) if first == norm_first else t

    h = normed(x, True, norm_weight_1, norm_bias_1)
    h = multi_head_attention(h, h, h, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]
    x = normed(x + h, False, norm_weight_1, norm_bias_1)
    h = functional.linear(normed(x, True, norm_weight_2, norm_bias_2), ffn_weight_1, ffn_bias_1)
    h = functional.linear(functional.gelu(h) if use_gelu else functional.relu(h), ffn_weight_2, ffn_bias_2)
    return normed(x + h, False, norm_weight_2, norm_bias_2)


@decomposes("torch_nn::_linear_cross_entropy_batch_chunked")
def linear_cross_entropy(x: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None, reduction: str,
                         ignore_index: int, label_smoothing: float, *training: Any) -> Any:
    """The loss, where the gradients of the last three arguments' names are not asked for."""
    if any(training[-3:]):
        return NotImplemented
    loss = functional.cross_entropy(functional.linear(x, linear_weight, linear_bias), target, weight, ignore_index=ignore_index, reduction=reduction,
                                    label_smoothing=label_smoothing)
    return loss, x.new_zeros(0, 0), x.new_zeros(0, 0), x.new_zeros(0)


@decomposes("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def linear_cross_entropy_of_each(x: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None, weight: Tensor | None, ignore_index: int,
                                 *_: Any) -> Tensor:
    """The loss of each row of logits x w + b."""
    return functional.cross_entropy(functional.linear(x, linear_weight, linear_bias), target, weight, ignore_index=ignore_index, reduction="none")
