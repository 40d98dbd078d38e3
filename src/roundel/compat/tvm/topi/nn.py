# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi.nn``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from .... import te
from ....ir import tir
from ....ops.on_tensors import on_tensors
from ..rooms import missing
from .named import number, numbers, same
from .utils import (  # noqa: F401  # names of tvm.topi.nn
    equal_const_int,
    get_const_int,
    get_const_tuple,
    get_pad_tuple,
    get_pad_tuple1d,
    get_pad_tuple3d,
    get_pad_tuple_generic,
    simplify,
)

relu, softmax, log_softmax = same("relu", "nn.relu"), same("softmax", "nn.softmax"), same("log_softmax", "nn.log_softmax")
fast_softmax = softmax
add, pixel_shuffle = same("add"), same("pixel_shuffle", "nn.pixel_shuffle")


def swapped(x: Any) -> Any:
    """The last two axes exchanged."""
    n = len(x.shape)
    return on_tensors("permute_dims", x, axes=(*range(n - 2), n - 1, n - 2))


# ---- activations, products


def leaky_relu(x: Any, alpha: float) -> Any:
    """``x`` where it is positive, else ``alpha * x``."""
    return on_tensors("nn.leakyrelu", x, alpha=alpha)


def prelu(x: Any, slope: Any, axis: int = 1) -> Any:
    """``x`` where it is positive, else ``slope * x``, one slope for each channel."""
    return on_tensors("nn.prelu", x, slope, axis=axis)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + e ** (beta * x)) / beta``; ``x`` where ``beta * x`` is above the threshold."""
    return on_tensors("nn.softplus", x, beta=beta, threshold=threshold)


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


def along(vector: Any, axis: int, rank: int) -> Any:
    """A vector as a tensor of ``rank`` axes, along one of them."""
    axis %= rank
    return on_tensors("reshape", vector, (*(1,) * axis, vector.shape[0], *(1,) * (rank - axis - 1)))


def bias_add(data: Any, bias: Any, axis: int = 1) -> Any:
    """A bias along one axis."""
    return on_tensors("add", data, along(bias, axis, len(data.shape)))


def _scale_shift(axis: int) -> Callable[[Any, Any, Any], Any]:
    def scale_shift(data: Any, scale: Any, shift: Any) -> Any:
        n = len(data.shape)
        return on_tensors("add", on_tensors("multiply", data, along(scale, axis, n)), along(shift, axis, n))

    scale_shift.__doc__ = "Each channel times its scale plus its shift."
    return scale_shift


scale_shift_nchw, scale_shift_nhwc = _scale_shift(1), _scale_shift(3)


def flatten(data: Any) -> Any:
    """All axes but the first as one."""
    return on_tensors("nn.batch_flatten", data)


# ---- convolutions


def convolution(data: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, groups: int, layout: str, kernel_layout: str, out_dtype: Any) -> Any:
    """A convolution of any number of axes in any layout."""
    n = len(data.shape) - 2
    extents = [kernel.shape[kernel_layout.index(a)] for a in layout if a not in "NC"]
    wide = numbers(dilation) if isinstance(dilation, Sequence) else (number(dilation),) * n
    before, after = get_pad_tuple_generic(numbers(padding), [(number(k) - 1) * d + 1 for k, d in zip(extents, wide)] if isinstance(padding, str) else extents)
    return on_tensors(f"nn.conv{n}d", data, kernel, strides=numbers(strides), padding=(*before, *after), dilation=wide, groups=groups, data_layout=layout,
                      kernel_layout=kernel_layout, out_dtype=out_dtype)


def _kernel_layout(data_layout: str) -> str:
    """What TVM takes for a layout of data: output channels first, or last where the data's channels are not second."""
    space = data_layout.replace("N", "").replace("C", "")
    return f"OI{space}" if data_layout.startswith("NC") else f"{space}IO"


def conv(inp: Any, filt: Any, stride: Any, padding: Any, dilation: Any, groups: int, data_layout: str, kernel_layout: str = "", out_dtype: Any = None,
         **_: Any) -> Any:
    """A convolution of any number of axes in any layout."""
    return convolution(inp, filt, stride, padding, dilation, groups, data_layout, kernel_layout or _kernel_layout(data_layout), out_dtype)


def conv1d(data: Any, kernel: Any, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1, data_layout: str = "NCW",
           kernel_layout: str = "", out_dtype: Any = None) -> Any:
    """A convolution along one axis."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv2d(input: Any, filter: Any, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW", kernel_layout: str = "",  # noqa: A002  # TVM's
           out_dtype: Any = None) -> Any:
    """A convolution of pictures; weights are OIHW, or HWIO for data whose channels come last."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def _fixed(layout: str, kernel_layout: str) -> Callable[..., Any]:
    """A convolution in one layout, without groups."""

    def function(data: Any, kernel: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: Any = None, **_: Any) -> Any:
        return convolution(data, kernel, stride, padding, dilation, 1, layout, kernel_layout, out_dtype)

    function.__doc__ = f"A convolution of {layout} by {kernel_layout}."
    return function


def _grouped(layout: str, kernel_layout: str) -> Callable[..., Any]:
    """A convolution in groups of channels, in one layout."""

    def function(data: Any, kernel: Any, stride: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1, out_dtype: Any = None, **_: Any) -> Any:
        return convolution(data, kernel, stride, padding, dilation, groups, layout, kernel_layout, out_dtype)

    function.__doc__ = f"A convolution of {layout} by {kernel_layout} in groups of channels."
    return function


conv1d_ncw, conv1d_nwc = _fixed("NCW", "OIW"), _fixed("NWC", "WIO")
conv2d_nchw, conv2d_nhwc, conv2d_hwcn = _fixed("NCHW", "OIHW"), _fixed("NHWC", "HWIO"), _fixed("HWCN", "HWIO")
conv2d_winograd_nchw, conv2d_winograd_nhwc = _fixed("NCHW", "OIHW"), _fixed("NHWC", "HWIO")  # the algorithm is chosen by cost
group_conv1d_ncw, group_conv1d_nwc = _grouped("NCW", "OIW"), _grouped("NWC", "WIO")
group_conv2d_nchw, group_conv2d_nhwc = _grouped("NCHW", "OIHW"), _grouped("NHWC", "HWIO")
conv3d_ncdhw, conv3d_ndhwc = _grouped("NCDHW", "OIDHW"), _grouped("NDHWC", "DHWIO")


def depthwise_conv2d_nchw(Input: Any, Filter: Any, stride: Any, padding: Any, dilation: Any, out_dtype: Any = None) -> Any:
    """A convolution of each channel by itself, with weights (channels, multiplier, height, width)."""
    channels, multiplier, *extent = Filter.shape
    weight = on_tensors("reshape", Filter, (channels * multiplier, 1, *extent))
    return convolution(Input, weight, stride, padding, dilation, get_const_int(channels), "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(Input: Any, Filter: Any, stride: Any, padding: Any, dilation: Any, kernel_layout: str = "HWOI", out_dtype: Any = None) -> Any:
    """A convolution of each channel by itself, with weights (height, width, channels, multiplier)."""
    height, width, channels, multiplier = Filter.shape
    weight = on_tensors("reshape", Filter, (height, width, 1, channels * multiplier))
    return convolution(Input, weight, stride, padding, dilation, get_const_int(channels), "NHWC", "HWIO", out_dtype)


def _transposed(n: int, grouped: bool) -> Callable[..., Any]:
    def convolve(data: Any, kernel: Any, strides: Any, padding: Any, out_dtype: Any, output_padding: Any, groups: int) -> Any:
        before, after = get_pad_tuple_generic(numbers(padding), kernel.shape[2:])
        return on_tensors(f"nn.conv{n}d_transpose", data, kernel, strides=numbers(strides), padding=(*before, *after), output_padding=numbers(output_padding),
                          groups=groups, out_dtype=out_dtype)

    def plain(data: Any, kernel: Any, strides: Any, padding: Any, out_dtype: Any = None, output_padding: Any = 0) -> Any:
        return convolve(data, kernel, strides, padding, out_dtype, output_padding, 1)

    def in_groups(data: Any, kernel: Any, stride: Any, padding: Any, out_dtype: Any = None, output_padding: Any = 0, groups: int = 1) -> Any:
        return convolve(data, kernel, stride, padding, out_dtype, output_padding, groups)

    function = in_groups if grouped else plain
    function.__doc__ = f"A transposed convolution along {n} axes, weights by input channels first."
    return function


conv1d_transpose_ncw, conv2d_transpose_nchw, conv3d_transpose_ncdhw = (_transposed(n, False) for n in (1, 2, 3))
group_conv1d_transpose_ncw, group_conv2d_transpose_nchw, group_conv3d_transpose_ncdhw = (_transposed(n, True) for n in (1, 2, 3))


# ---- pooling


def _pool(n: int, default_layout: str) -> Callable[..., Any]:
    def pool(data: Any, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool = False, layout: str = default_layout,
             count_include_pad: bool = True) -> Any:
        more = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
        return on_tensors(f"nn.{pool_type}_pool{n}d", data, pool_size=numbers(kernel), strides=numbers(stride), dilation=numbers(dilation),
                          padding=numbers(padding), ceil_mode=ceil_mode, layout=layout, **more)

    pool.__doc__ = "``avg`` or ``max`` of windows; ``padding`` is all before, then all after."
    return pool


def _adaptive_pool(n: int, default_layout: str) -> Callable[..., Any]:
    def pool(data: Any, output_size: Any, pool_type: str, layout: str = default_layout) -> Any:
        return on_tensors(f"nn.adaptive_{pool_type}_pool{n}d", data, output_size=numbers(output_size), layout=layout)

    pool.__doc__ = "``avg`` or ``max`` of windows such that there are ``output_size`` of them."
    return pool


pool1d, pool2d, pool3d = _pool(1, "NCW"), _pool(2, "NCHW"), _pool(3, "NCDHW")
adaptive_pool1d, adaptive_pool, adaptive_pool3d = _adaptive_pool(1, "NCW"), _adaptive_pool(2, "NCHW"), _adaptive_pool(3, "NCDHW")


def global_pool(data: Any, pool_type: str, layout: str = "NCHW") -> Any:
    """``avg`` or ``max`` of each channel."""
    return on_tensors({"avg": "mean", "max": "max"}[pool_type], data, axis=tuple(layout.index(a) for a in "HW"), keepdims=True)


# ---- padding, blocks, pictures


def _pad(mode: str, data: Any, pad_before: Sequence[Any], pad_after: Sequence[Any] | None, value: Any = None) -> Any:
    widths = tuple(v for pair in zip(pad_before, pad_after or pad_before, strict=True) for v in pair)
    more = {} if value is None else {"pad_value": value}
    return on_tensors("nn.pad", data, widths, pad_mode=mode, **more)


def pad(data: Any, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, pad_value: Any = None, name: str = "PadInput", attrs: Any = None) -> Any:
    """A border of one value around a tensor."""
    return _pad("constant", data, pad_before, pad_after, 0.0 if pad_value is None else number(pad_value))


def mirror_pad(data: Any, pad_before: Any, pad_after: Any = None, mode: str = "SYMMETRIC", name: str = "MirrorPadInput") -> Any:
    """A border that mirrors the tensor, with its edge (``SYMMETRIC``) or without (``REFLECT``)."""
    return _pad(mode.lower(), data, pad_before, pad_after)


def reflect_pad(data: Any, pad_before: Any, pad_after: Any = None, name: str = "ReflectPadInput") -> Any:
    """A border that mirrors the tensor without its edge."""
    return _pad("reflect", data, pad_before, pad_after)


def replicate_pad(data: Any, pad_before: Any, pad_after: Any = None, name: str = "ReplicatePadInput") -> Any:
    """A border that repeats the edge."""
    return _pad("edge", data, pad_before, pad_after)


def circular_pad(data: Any, pad_before: Any, pad_after: Any = None, name: str = "CircularPadInput") -> Any:
    """A border that goes on at the other end."""
    return _pad("circular", data, pad_before, pad_after)


def dilate(data: Any, strides: Sequence[Any], dilation_value: Any = 0.0, name: str = "DilatedInput") -> Any:
    """``strides - 1`` elements of one value between those of the tensor, by axis."""
    steps = numbers(tuple(strides))

    def body(*i: Any) -> Any:
        inside = [tir.eq(tir.floormod(k, s), 0) for k, s in zip(i, steps) if s != 1]
        value = data(*(k if s == 1 else tir.floordiv(k, s) for k, s in zip(i, steps)))
        return te.if_then_else(tir.logical_and(*inside), value, tir.const(number(dilation_value), data.dtype)) if inside else value

    return te.compute(tuple((n - 1) * s + 1 for n, s in zip(data.shape, steps, strict=True)), body, name)


def _channels_second(function: Callable[[Any], Any], data: Any, layout: str) -> Any:
    """Pictures with channels last through a function of pictures with channels second."""
    if layout == "NCHW":
        return function(data)
    return on_tensors("permute_dims", function(on_tensors("permute_dims", data, axes=(0, 3, 1, 2))), axes=(0, 2, 3, 1))


def depth_to_space(data: Any, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Any:
    """Groups of channels as blocks of pixels."""
    return _channels_second(lambda x: on_tensors("depth_to_space", x, block_size=block_size, mode=mode), data, layout)


def space_to_depth(data: Any, block_size: int, layout: str = "NCHW") -> Any:
    """Blocks of pixels as groups of channels."""
    return _channels_second(lambda x: on_tensors("space_to_depth", x, block_size=block_size), data, layout)


def space_to_batch_nd(data: Any, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: Any = 0.0) -> Any:
    """Blocks of the axes behind the first, padded, as parts of the batch."""
    m, n = len(block_shape), len(data.shape)
    zeros = (0,) * (n - m - 1)
    x = pad(data, (0, *pad_before, *zeros), (0, *pad_after, *zeros), pad_value)
    batch, *space = x.shape[: m + 1]
    rest = x.shape[m + 1 :]
    cut = on_tensors("reshape", x, (batch, *(v for s, b in zip(space, block_shape) for v in (tir.floordiv(s, b), b)), *rest))
    order = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m + 1, 2), *range(2 * m + 1, n + m))
    moved = on_tensors("permute_dims", cut, axes=order)
    return on_tensors("reshape", moved, (batch * tir.product_of(block_shape), *(tir.floordiv(s, b) for s, b in zip(space, block_shape)), *rest))


def batch_to_space_nd(data: Any, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]) -> Any:
    """Parts of the batch as blocks of the axes behind the first, cropped."""
    m, n = len(block_shape), len(data.shape)
    batch, *space = data.shape[: m + 1]
    rest, whole = data.shape[m + 1 :], tir.floordiv(batch, tir.product_of(block_shape))
    cut = on_tensors("reshape", data, (*block_shape, whole, *space, *rest))
    order = (m, *(v for k in range(m) for v in (m + 1 + k, k)), *range(2 * m + 1, n + m))
    joined = on_tensors("reshape", on_tensors("permute_dims", cut, axes=order), (whole, *(s * b for s, b in zip(space, block_shape)), *rest))
    begin, end = tuple(crop_begin_list), tuple(s * b - e for s, b, e in zip(space, block_shape, crop_end_list))
    return on_tensors("strided_slice", joined, tuple(range(1, m + 1)), begin, end)


def upsampling(data: Any, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False,
               output_shape: Any = None) -> Any:
    """Pictures made larger."""
    height, width = (data.shape[layout.index(a)] for a in "HW")
    grown = lambda n, s: tir.as_index(n) * int(s) if float(s).is_integer() else round(get_const_int(n) * s)
    size = tuple(output_shape) if output_shape is not None else (grown(height, scale_h), grown(width, scale_w))
    kind = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}[method]
    corners = "align_corners" if align_corners else "asymmetric"
    return on_tensors("image.resize2d", data, size, layout=layout, method=kind, coordinate_transformation_mode=corners,
                      rounding_method="floor" if kind == "nearest_neighbor" else "round")


# ---- normalisation, losses


def layer_norm(data: Any, gamma: Any, beta: Any, axis: Sequence[int], epsilon: float = 1e-5) -> Any:
    """Normalised over axes."""
    return on_tensors("nn.layer_norm", data, gamma, beta, axes=tuple(axis), epsilon=epsilon)


def rms_norm(data: Any, weight: Any, axis: Any, epsilon: float = 1e-5) -> Any:
    """Divided by the root of the mean square over axes."""
    return on_tensors("nn.rms_norm", data, weight, axes=tuple(axis) if isinstance(axis, Sequence) else (axis,), epsilon=epsilon)


def group_norm(data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int, axes: Sequence[int], epsilon: float = 1e-5) -> Any:
    """Normalised in groups of channels."""
    return on_tensors("nn.group_norm", data, gamma, beta, num_groups=num_groups, channel_axis=channel_axis, axes=tuple(axes), epsilon=epsilon)


def instance_norm(data: Any, gamma: Any, beta: Any, channel_axis: int, axis: Sequence[int], epsilon: float = 1e-5) -> Any:
    """Each channel of each item normalised."""
    return on_tensors("nn.instance_norm", data, gamma, beta, channel_axis=channel_axis, axes=tuple(axis), epsilon=epsilon)


def batch_norm(data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int | None = None, epsilon: float | None = None,
               center: bool | None = None, scale: bool | None = None, training: bool | None = None, momentum: float | None = None) -> list[Any]:
    """Normalised by the statistics of each channel; the result, then the statistics as they are afterwards."""
    given = {"axis": axis, "epsilon": epsilon, "center": center, "scale": scale, "training": training, "momentum": momentum}
    return list(on_tensors("nn.batch_norm", data, gamma, beta, moving_mean, moving_var, **{k: v for k, v in given.items() if v is not None}))


def lrn(data: Any, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> Any:
    """Divided by what neighbouring channels hold."""
    return on_tensors("nn.lrn", data, size=size, axis=axis, alpha=alpha, beta=beta, bias=bias)


def nll_loss(predictions: Any, targets: Any, weights: Any, reduction: str, ignore_index: int) -> Any:
    """The negative log likelihood of the targets."""
    return on_tensors("nn.nll_loss", predictions, targets, weights, reduction=reduction, ignore_index=ignore_index)


for _name in ("batch_matmul", "conv2d", "dense", "elemwise", "pad", "pooling", "softmax", "utils"):  # modules that TVM keeps these functions in
    sys.modules.setdefault(f"{__name__}.{_name}", sys.modules[__name__])


def __getattr__(name: str) -> Any:
    from .. import topi

    if name in ("concatenate", "strided_slice"):  # which TVM has here too
        return getattr(topi, name)
    raise missing(f"tvm.topi.nn.{name}", name)
