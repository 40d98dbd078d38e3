# SPDX-License-Identifier: Apache-2.0
"""Functions of tensors with PyTorch's names and arguments, where the operator has others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from roundel.ir import tir

from . import op
from .core import Tensor


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A new dimension of one element."""
    return op.call("expand_dims", x, axis=dim)


def permute(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Dimensions in another order, by default the reverse."""
    return op.call("permute_dims", x, axes=axes)


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many equal parts along a dimension."""
    return op.call("split", x, indices_or_sections=chunks, axis=dim)


def gelu(x: Tensor, approximate: str | None = None) -> Tensor:
    """GELU, with ``approximate="tanh"`` by the hyperbolic tangent."""
    return op.call("nn.gelu_tanh" if approximate == "tanh" else "nn.gelu", x)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle, from a diagonal on."""
    return op.call("triu", x, k=diagonal)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle, up to a diagonal."""
    return op.call("tril", x, k=diagonal)


def empty(shape: Sequence[Any], dtype: str = "float32") -> Tensor:
    """A tensor to be overwritten (of zeros)."""
    return op.call("zeros", shape, dtype=dtype)


def full(shape: Sequence[Any], fill_value: Any, dtype: str = "float32") -> Tensor:
    """A tensor of one number."""
    return op.call("full", shape, fill_value, dtype=dtype)


def squeeze(x: Tensor, axis: int | Sequence[int] | None = -1) -> Tensor:
    """Without dimensions of one element."""
    return op.call("squeeze", x, axis=axis)


def astype(x: Tensor, dtype: str) -> Tensor:
    """Elements of another type; the tensor itself where it has that type."""
    return x if x.dtype == dtype else op.call("astype", x, dtype=dtype)


def layer_norm(x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Normalised over the last dimensions, as many as ``normalized_shape`` has."""
    count = len(normalized_shape) if isinstance(normalized_shape, Sequence) else 1
    return op.call("nn.layer_norm", x, weight, bias, axes=list(range(-count, 0)), epsilon=eps)


def group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, channel_axis: int = 1,
               axes: Sequence[int] | None = None) -> Tensor:
    """Normalised over groups of channels."""
    return op.call("nn.group_norm", x, weight, bias, num_groups=num_groups, channel_axis=channel_axis, axes=axes, epsilon=eps)


def rms_norm(x: Tensor, weight: Tensor, axes: int | Sequence[int], epsilon: float = 1e-5) -> Tensor:
    """Divided by the root of the mean square."""
    return op.call("nn.rms_norm", x, weight, axes=list(axes) if isinstance(axes, Sequence) else [axes], epsilon=epsilon)


def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    """``x`` where it is positive, else ``alpha * x``."""
    return op.call("nn.prelu", x, alpha)


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """A border: before and after each dimension, the first one first."""
    return op.call("nn.pad", x, pad, pad_mode=mode, pad_value=value if mode == "constant" else None)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False,
                                 scale: float | None = None) -> Tensor:
    """Attention of (batch, length, heads, size); ``attn_mask`` is added to the scores, ``is_causal`` hides what comes later."""
    return op.call("nn.attention", query, key, value, attn_mask, scale=scale, causal_mask="TopLeft" if is_causal else None)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False, **_: Any) -> Tensor:
    """Pictures (N, C, H, W) of another size: ``nearest``, ``linear`` (``bilinear``) or ``cubic`` (``bicubic``)."""
    pair = lambda v: tuple(v) if isinstance(v, Sequence) else (v, v)
    extents = x.shape[2:]
    wanted = pair(size) if size is not None else tuple(_scaled(n, s) for n, s in zip(extents, pair(scale_factor)))
    method = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    corners = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
    return op.call("image.resize2d", x, wanted, method=method, coordinate_transformation_mode=corners,
                   rounding_method="floor" if mode == "nearest" else "round")


def _scaled(extent: Any, factor: float) -> Any:
    return math.floor(extent * factor) if isinstance(extent, int) else tir.as_index(extent) * int(factor)


def get_timestep_embedding(x: Tensor, embedding_dim: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1, scale: float = 1,
                           max_period: int = 10000) -> Tensor:
    """Sines and cosines of each timestep at falling frequencies, (n, embedding_dim)."""
    half = embedding_dim // 2
    exponent = op.call("multiply", op.call("arange", 0, half, dtype="float32"), -math.log(max_period) / (half - downscale_freq_shift))
    angles = astype(x, "float32").reshape(-1, 1) * op.call("expand_dims", op.call("exp", exponent), axis=0)
    angles = angles if scale == 1 else angles * scale
    parts = [op.call("sin", angles), op.call("cos", angles)]
    out = op.concat(parts[::-1] if flip_sin_to_cos else parts, dim=1)
    return pad(out, [0, 0, 0, 1]) if embedding_dim % 2 else out


def _transposed_convolution(axes: int) -> Callable[..., Tensor]:
    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Tensor:
        """A transposed convolution and, where there is a bias, its sum; the weight is (in_channels, out_channels // groups, ...)."""
        out = op.call(f"nn.conv{axes}d_transpose", x, weight, strides=stride, padding=padding, output_padding=output_padding, dilation=dilation, groups=groups)
        return out if bias is None else out + bias.reshape((1, -1) + (1,) * axes)

    return convolve


conv1d_transpose, conv2d_transpose, conv3d_transpose = map(_transposed_convolution, (1, 2, 3))


def print_(tensor: Tensor) -> None:
    """Show the tensor when the function runs."""
    op.call("print", tensor)
