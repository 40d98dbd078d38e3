# SPDX-License-Identifier: Apache-2.0
"""Layers with the parameters' names and shapes of PyTorch's, so that its ``state_dict`` fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import op
from .core import Module, Parameter, Tensor


def _per_axis(value: Any, count: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * count


class Linear(Module):
    """x @ weight^T + bias; the weight is (out_features, in_features)."""

    def __init__(self, in_features: Any, out_features: Any, bias: bool = True, dtype: str | None = None, out_dtype: str | None = None) -> None:
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), dtype if out_dtype is None else out_dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Of rows (..., in_features)."""
        out = op.call("linear", x, self.weight, out_dtype=self.out_dtype)
        return out if self.bias is None else out + self.bias


class _Conv(Module):
    """A convolution over pictures (N, C, ...); the weight is (out_channels, in_channels // groups, ...)."""

    axes = 0

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True, dtype: str | None = None) -> None:
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = Parameter((out_channels, in_channels // groups, *_per_axis(kernel_size, self.axes)), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Of pictures (N, in_channels, ...)."""
        convolve = getattr(op, f"conv{self.axes}d")
        return convolve(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1D(_Conv):
    """Of (N, C, W)."""

    axes = 1


class Conv2D(_Conv):
    """Of (N, C, H, W)."""

    axes = 2


class Conv3D(_Conv):
    """Of (N, C, D, H, W)."""

    axes = 3


class ConvTranspose1D(Module):
    """A transposed convolution of (N, C, W); the weight is (in_channels, out_channels // groups, kernel_size)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, dilation: int = 1,
                 groups: int = 1, bias: bool = True, dtype: str | None = None) -> None:
        self.stride, self.padding, self.output_padding, self.dilation, self.groups = stride, padding, output_padding, dilation, groups
        self.weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Of (N, in_channels, W)."""
        return op.conv1d_transpose(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.dilation, self.groups)


class LayerNorm(Module):
    """Normalised over the last dimensions, as many as ``normalized_shape`` has."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, dtype: str | None = None) -> None:
        self.normalized_shape, self.eps = _per_axis(normalized_shape, 1), eps
        self.weight = Parameter(self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = Parameter(self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Of (..., *normalized_shape)."""
        return op.call("nn.layer_norm", x, self.weight, self.bias, axes=list(range(-len(self.normalized_shape), 0)), epsilon=self.eps)


class RMSNorm(Module):
    """Divided by the root of the mean square over ``axes``."""

    def __init__(self, hidden_size: int, axes: int | Sequence[int] = -1, epsilon: float = 1e-5, bias: bool = True, dtype: str | None = None) -> None:
        self.axes, self.epsilon = list(_per_axis(axes, 1)), epsilon
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Of (..., hidden_size)."""
        out = op.call("nn.rms_norm", x, self.weight, axes=self.axes, epsilon=self.epsilon)
        return out if self.bias is None else out + self.bias


class GroupNorm(Module):
    """Normalised over groups of channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: str | None = None) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Of (N, C, ...)."""
        return op.call("nn.group_norm", x, self.weight, self.bias, num_groups=self.num_groups, epsilon=self.eps)


class Embedding(Module):
    """The row of the weight (num, dim) for each whole number."""

    def __init__(self, num: Any, dim: Any, dtype: str | None = None) -> None:
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Of whole numbers of any shape."""
        return op.call("take", self.weight, x, axis=0)


class Identity(Module):
    """Gives its input back."""

    def forward(self, x: Tensor) -> Tensor:
        """``x`` itself."""
        return x


class ReLU(Module):
    """max(x, 0)"""

    def forward(self, x: Tensor) -> Tensor:
        """Element by element."""
        return op.call("nn.relu", x)


class SiLU(Module):
    """x * sigmoid(x)"""

    def forward(self, x: Tensor) -> Tensor:
        """Element by element."""
        return op.call("nn.silu", x)


class GELU(Module):
    """x times the normal distribution's integral up to x"""

    def forward(self, x: Tensor) -> Tensor:
        """Element by element."""
        return op.call("nn.gelu", x)
