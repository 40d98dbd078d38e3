# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi.nn``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ops.on_tensors import on_tensors
from ..rooms import missing


def _same(name: str) -> Callable[..., Any]:
    def function(*args: Any, **attrs: Any) -> Any:
        return on_tensors(f"nn.{name}", *args, **attrs)

    function.__name__, function.__doc__ = name, f"The operator {name}."
    return function


relu, softmax, log_softmax = _same("relu"), _same("softmax"), _same("log_softmax")


def swapped(x: Any) -> Any:
    """The last two axes exchanged."""
    n = len(x.shape)
    return on_tensors("permute_dims", x, axes=(*range(n - 2), n - 1, n - 2))


def leaky_relu(x: Any, alpha: float) -> Any:
    """``x`` where it is positive, else ``alpha * x``."""
    return on_tensors("nn.leakyrelu", x, alpha=alpha)


def prelu(x: Any, slope: Any, axis: int = 1) -> Any:
    """``x`` where it is positive, else ``slope * x``, one slope for each channel."""
    return on_tensors("nn.prelu", x, slope, axis=axis)


def dense(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None, **_: Any) -> Any:
    """``data @ weight.T + bias``."""
    out = on_tensors("matmul", data, swapped(weight), out_dtype=out_dtype)
    return out if bias is None else on_tensors("add", out, bias)


def matmul(tensor_a: Any, tensor_b: Any, bias: Any = None, out_dtype: Any = None, transpose_a: bool = False, transpose_b: bool = False, **_: Any) -> Any:
    """The product of matrices plus a bias."""
    out = on_tensors("matmul", swapped(tensor_a) if transpose_a else tensor_a, swapped(tensor_b) if transpose_b else tensor_b, out_dtype=out_dtype)
    return out if bias is None else on_tensors("add", out, bias)


def batch_matmul(tensor_a: Any, tensor_b: Any, oshape: Any = None, out_dtype: Any = None, transpose_a: bool = False, transpose_b: bool = True,
                 **_: Any) -> Any:
    """Products of matrices, the second transposed unless told otherwise."""
    return matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def bias_add(data: Any, bias: Any, axis: int = 1) -> Any:
    """A bias along one axis."""
    axis, n = axis % len(data.shape), len(data.shape)
    return on_tensors("add", data, on_tensors("reshape", bias, (*(1,) * axis, bias.shape[0], *(1,) * (n - axis - 1))))


def flatten(data: Any) -> Any:
    """All axes but the first as one."""
    return on_tensors("nn.batch_flatten", data)


def _convolution(n: int, data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, groups: int, layout: str, kernel_layout: str,
                 out_dtype: Any) -> Any:
    return on_tensors(f"nn.conv{n}d", data, kernel, strides=strides, padding=padding, dilation=dilation, groups=groups, data_layout=layout,
                      kernel_layout=kernel_layout, out_dtype=out_dtype)


def conv1d(data: Any, kernel: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW",
           out_dtype: Any = None) -> Any:
    """A convolution along one axis."""
    return _convolution(1, data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv2d(data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW", kernel_layout: str = "", out_dtype: Any = None) -> Any:
    """A convolution of pictures; weights are OIHW, or HWIO for data whose channels come last."""
    kernel_layout = kernel_layout or ("OIHW" if data_layout == "NCHW" else "HWIO")
    return _convolution(2, data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(data: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out_dtype: Any = None) -> Any:
    """A convolution of pictures (batch, channels, height, width)."""
    return conv2d(data, kernel, stride, padding, dilation, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(data: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out_dtype: Any = None, **_: Any) -> Any:
    """A convolution of pictures (batch, height, width, channels)."""
    return conv2d(data, kernel, stride, padding, dilation, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(data: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: Any = None) -> Any:
    """A convolution in groups of channels."""
    return _convolution(2, data, kernel, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nchw(data: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out_dtype: Any = None) -> Any:
    """A convolution of each channel by itself, with ``kernel`` (channels, multiplier, height, width)."""
    channels, multiplier, *extent = kernel.shape
    weight = on_tensors("reshape", kernel, (channels * multiplier, 1, *extent))
    return _convolution(2, data, weight, stride, padding, dilation, int(channels), "NCHW", "OIHW", out_dtype)


def pool2d(data: Any, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = "NCHW",
           count_include_pad: bool = True) -> Any:
    """``avg`` or ``max`` of windows; ``padding`` is top, left, bottom, right."""
    more = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    return on_tensors(f"nn.{pool_type}_pool2d", data, pool_size=tuple(kernel), strides=tuple(stride), dilation=tuple(dilation), padding=tuple(padding),
                      ceil_mode=ceil_mode, layout=layout, **more)


def global_pool(data: Any, pool_type: str, layout: str = "NCHW") -> Any:
    """``avg`` or ``max`` of each channel."""
    return on_tensors({"avg": "mean", "max": "max"}[pool_type], data, axis=tuple(layout.index(a) for a in "HW"), keepdims=True)


def adaptive_pool(data: Any, output_size: Sequence[int], pool_type: str, layout: str = "NCHW") -> Any:
    """Windows such that there are ``output_size`` of them."""
    return on_tensors(f"nn.adaptive_{pool_type}_pool2d", data, output_size=tuple(output_size), layout=layout)


def pad(data: Any, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: Any = None, name: str = "PadInput", **_: Any) -> Any:
    """A border of one value around a tensor."""
    widths = tuple(v for pair in zip(pad_before, pad_after or pad_before, strict=True) for v in pair)
    return on_tensors("nn.pad", data, widths, pad_value=0.0 if pad_value is None else pad_value)


def layer_norm(data: Any, gamma: Any, beta: Any, axis: Sequence[int], epsilon: float = 1e-5) -> Any:
    """Normalised over axes."""
    return on_tensors("nn.layer_norm", data, gamma, beta, axes=tuple(axis), epsilon=epsilon)


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.topi.nn.{name}", name)
