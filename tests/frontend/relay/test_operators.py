# SPDX-License-Identifier: Apache-2.0
"""Operators of Relay one by one against NumPy and PyTorch, with attributes left out (Relay's defaults) and given, at odd shapes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import special

import roundel as rd
from roundel.ir.errors import RoundelError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 5)).astype(np.float32)
P = np.abs(X) + 0.1
I = RNG.integers(-9, 9, (2, 3, 5)).astype(np.int32)
PICTURE = RNG.standard_normal((2, 4, 7, 9)).astype(np.float32)


def _run(call, *inputs):
    params = ", ".join(f"%{'xyzw'[k]}: Tensor[{tuple(a.shape) if a.ndim else '()'}, {a.dtype}]" for k, a in enumerate(inputs))
    module = rd.import_relay(f'#[version = "0.0.5"]\ndef @main({params}) {{\n  {call}\n}}\n')
    found = rd.interpret(module)["main"](*inputs)
    return [np.asarray(f) for f in found] if isinstance(found, tuple | list) else [np.asarray(found)]


def _t(*arrays):
    return [torch.from_numpy(a) for a in arrays]


CASES = {
    "round(%x)": ((np.array([-2.5, -0.5, 0.49999997, 0.5, 1.5, 2.5], np.float32),), lambda x: np.trunc(x + np.copysign(0.5, x)) * (np.abs(x) != 0.49999997)),
    "divide(%x, 3)": ((I,), lambda x: np.trunc(x / 3).astype(np.int32)),
    "floor_divide(%x, 3)": ((I,), lambda x: x // 3), "floor_mod(%x, 3)": ((I,), lambda x: x % 3), "mod(%x, 3)": ((I,), lambda x: np.fmod(x, 3)),
    "power(%x, %y)": ((P, X), np.power), "clip(%x, a_min=-1f, a_max=0.5f)": ((X,), lambda x: np.clip(x, -1, 0.5)),
    'cast(%x, dtype="int8")': ((I,), lambda x: x.astype(np.int8)), "erf(%x)": ((X,), special.erf),
    "where(greater(%x, 0f), %x, %y)": ((X, P), lambda x, y: np.where(x > 0, x, y)),
    "nn.leaky_relu(%x)": ((X,), lambda x: np.where(x > 0, x, x * np.float32(0.25))),
    "nn.prelu(%x, %y)": ((X, X[0, :, 0].copy()), lambda x, y: np.where(x > 0, x, x * y[:, None])),
    "nn.bias_add(%x, %y)": ((X, X[0, :, 0].copy()), lambda x, y: x + y[:, None]),
    "nn.bias_add(%x, %y, axis=-1)": ((X, X[0, 0].copy()), lambda x, y: x + y),
    'full(3f, shape=[2, 3], dtype="int32")': ((), lambda: np.full((2, 3), 3, np.int32)), "zeros_like(%x)": ((X,), np.zeros_like),
    "sum(%x)": ((X,), np.sum), "sum(%x, axis=[1])": ((X,), lambda x: x.sum(1)), "sum(%x, axis=[1], exclude=True)": ((X,), lambda x: x.sum((0, 2))),
    "mean(%x, axis=[-1, 0], keepdims=True)": ((X,), lambda x: x.mean((0, 2), keepdims=True)), "max(%x, axis=[2])": ((X,), lambda x: x.max(2)),
    "prod(%x, axis=[0])": ((X,), lambda x: x.prod(0)), "argmax(%x, axis=[1])": ((X,), lambda x: x.argmax(1).astype(np.int32)),
    "argmin(%x)": ((X,), lambda x: np.int32(x.argmin())), "argmax(%x, axis=[2], select_last_index=True)": (
        (np.array([[[1, 2, 2], [2, 1, 2]]], np.float32),), lambda x: np.array([[2, 2]], np.int32)),
    "variance(%x, mean(%x, axis=[1]), axis=[1])": ((X,), lambda x: x.var(1)),
    "variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1], unbiased=True)": ((X,), lambda x: x.var(1, ddof=1)),
    "cumsum(%x, axis=1)": ((X,), lambda x: x.cumsum(1)), "cumsum(%x, axis=1, exclusive=True)": ((X,), lambda x: x.cumsum(1) - x), "logsumexp(%x, axis=[2])": (
        (X,), lambda x: special.logsumexp(x, 2)),
    "reshape(%x, newshape=[0, -1])": ((X,), lambda x: x.reshape(2, 15)), "reshape(%x, newshape=[-3, 0])": ((X,), lambda x: x.reshape(6, 5)),
    "reshape(%x, newshape=[-4, 1, -1, -2])": ((X,), lambda x: x.reshape(1, 2, 3, 5)),
    "reshape(%x, newshape=[5, -2])": ((X[:, :1, :].copy().reshape(5, 2),), lambda x: x),
    "reshape_like(%x, %y)": ((X, X.reshape(5, 6).copy()), lambda x, y: x.reshape(5, 6)), "nn.batch_flatten(%x)": ((X,), lambda x: x.reshape(2, 15)),
    "transpose(%x)": ((X,), np.transpose), "transpose(%x, axes=[1, 0, -1])": ((X,), lambda x: x.transpose(1, 0, 2)),
    "expand_dims(%x, axis=-1)": ((X,), lambda x: x[..., None]), "expand_dims(%x, axis=1, num_newaxis=2)": ((X,), lambda x: x[:, None, None]),
    "squeeze(%x)": ((X[:1],), np.squeeze), "stack((%x, %y), axis=1)": ((X, P), lambda x, y: np.stack((x, y), 1)),
    "concatenate((%x, %y), axis=-1)": ((X, P), lambda x, y: np.concatenate((x, y), -1)),
    "split(%x, indices_or_sections=[1, 3], axis=2)": ((X,), lambda x: np.split(x, [1, 3], 2)),
    "split(%x, indices_or_sections=3, axis=1)": ((X,), lambda x: np.split(x, 3, 1)),
    "strided_slice(%x, begin=[0, -1], end=[1, -4], strides=[1, -1])": ((X,), lambda x: x[0:1, -1:-4:-1]),
    'strided_slice(%x, begin=[1, 1], end=[-1, 2], slice_mode="size", strides=[1])': ((X,), lambda x: x[1:, 1:3]),
    "slice_like(%x, %y)": ((X, X[:1, :2, :2].copy()), lambda x, y: x[:1, :2, :2]),
    "slice_like(%x, %y, axes=[2])": ((X, X[:1, :2, :2].copy()), lambda x, y: x[..., :2]),
    "reverse(%x, axis=1)": ((X,), lambda x: x[:, ::-1]), "repeat(%x, repeats=2, axis=1)": ((X,), lambda x: x.repeat(2, 1)), "tile(%x, reps=[2, 1, 1, 2])": (
        (X,), lambda x: np.tile(x, (2, 1, 1, 2))),
    "broadcast_to(%x, shape=[2, 2, 3, 5])": ((X,), lambda x: np.broadcast_to(x, (2, 2, 3, 5))), "collapse_sum_like(%x, %y)": (
        (X, X[:1, :, 0, None][0].copy()), lambda x, y: x.sum((0, 2))[:, None]),
    "shape_of(%x)": ((X,), lambda x: np.array([2, 3, 5], np.int32)), "ndarray_size(%x)": ((X,), lambda x: np.int32(30)),
    'arange(1, 10, 3, dtype="int32")': ((), lambda: np.arange(1, 10, 3, dtype=np.int32)),
    "nn.pad(%x, 2f, pad_width=[[0, 0], [1, 2], [0, 3]])": ((X,), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 3)), constant_values=2)),
    'nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2], [0, 3]], pad_mode="edge")': ((X,), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 3)), "edge")),
    'nn.mirror_pad(%x, mode="REFLECT", pad_width=[[0, 0], [1, 2], [0, 3]])': ((X,), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 3)), "reflect")),
    "nn.mirror_pad(%x, pad_width=[[0, 0], [1, 2], [0, 3]])": ((X,), lambda x: np.pad(x, ((0, 0), (1, 2), (0, 3)), "symmetric")),
    'layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")': ((PICTURE,), lambda x: x.transpose(0, 2, 3, 1)),
    'layout_transform(%x, src_layout="NCHW", dst_layout="NCHW2c")': ((PICTURE,), lambda x: x.reshape(2, 2, 2, 7, 9).transpose(0, 1, 3, 4, 2)),
    'layout_transform(%x, src_layout="NCHW2c", dst_layout="NHWC")': (
        (PICTURE.reshape(2, 2, 2, 7, 9).transpose(0, 1, 3, 4, 2).copy(),), lambda x: PICTURE.transpose(0, 2, 3, 1)),
    "take(%x, %y, axis=1)": ((X, np.array([0, 2, 5, -1], np.int32)), lambda x, y: x[:, [0, 2, 2, 0]]),
    'take(%x, %y, axis=2, mode="wrap")': ((X, np.array([[7, -1]], np.int64)), lambda x, y: x[:, :, [[2, 4]]]), 'take(%x, %y, mode="fast")': (
        (X, np.array([29, 3], np.int32)), lambda x, y: x.reshape(-1)[y]),
    "gather(%x, %y, axis=2)": ((X, np.abs(I) % 5), lambda x, y: np.take_along_axis(x, y, 2)),
    "gather_nd(%x, %y)": ((X, np.array([[0, 1], [2, 0]], np.int64)), lambda x, y: x[y[0], y[1]]),
    'scatter_nd(%x, %y, %z, mode="add")': ((X, np.array([[0, 0], [2, 2]], np.int64), P[0, :2].copy()), lambda x, y, z: _scattered(x, y, z)),
    'one_hot(%x, 1f, 0f, depth=4, axis=-1, dtype="float32")': (
        (np.array([0, 3, 4, -1], np.int32),), lambda x: (x[:, None] == np.arange(4)).astype(np.float32)),
    "argsort(%x, axis=1, is_ascend=False)": ((X,), lambda x: (-x).argsort(1, kind="stable").astype(np.float32).astype(np.int32)),
    'topk(%x, k=2, is_ascend=True, ret_type="values")': ((X,), lambda x: np.sort(x)[..., :2]),
    "nn.dense(%x, %y, units=4)": ((X[0], RNG.standard_normal((4, 5)).astype(np.float32)), lambda x, y: x @ y.T),
    "nn.batch_matmul(%x, %y, transpose_b=True)": ((X, P), lambda x, y: x @ y.transpose(0, 2, 1)),
    "nn.batch_matmul(%x, %y, transpose_a=True)": (
        (X, P), lambda x, y: x.transpose(0, 2, 1) @ y),
    "nn.softmax(%x, axis=1)": ((X,), lambda x: special.softmax(x, 1)), "nn.l2_normalize(%x, eps=1e-10f, axis=[1])": (
        (X,), lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
    'einsum((%x, %y), equation="bij, bkj -> bik")': ((X, P), lambda x, y: x @ y.transpose(0, 2, 1)),
    "nn.group_norm(%x, %y, %z, num_groups=2)": (
        (PICTURE, P[0, 0, :4].copy(), X[0, 0, :4].copy()), lambda x, y, z: F.group_norm(*_t(x), 2, *_t(y, z)).numpy()),
    "nn.global_max_pool2d(%x)": ((PICTURE,), lambda x: x.max((2, 3), keepdims=True)), "nn.adaptive_avg_pool2d(%x, output_size=[3])": (
        (PICTURE,), lambda x: F.adaptive_avg_pool2d(*_t(x), 3).numpy()),
    "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 2], ceil_mode=True)": ((PICTURE,), lambda x: F.max_pool2d(*_t(x), (3, 2), 2, ceil_mode=True).numpy()),
    "nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1])": (
        (PICTURE,), lambda x: F.avg_pool2d(*_t(x), 3, 2, 1, count_include_pad=False).numpy()),
    'nn.global_avg_pool2d(%x, layout="NHWC")': ((PICTURE,), lambda x: x.mean((1, 2), keepdims=True)),
    "nn.conv1d(%x, %y, padding=[1], channels=4, kernel_size=[3])": (
        (X, RNG.standard_normal((4, 3, 3)).astype(np.float32)), lambda x, y: F.conv1d(*_t(x, y), padding=1).numpy()),
    "nn.conv2d(%x, %y, groups=2)": (
        (PICTURE, RNG.standard_normal((6, 2, 3, 2)).astype(np.float32)), lambda x, y: F.conv2d(*_t(x, y), groups=2).numpy()),
    'nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO", padding=[0, 1, 2, 3])': (
        (PICTURE, RNG.standard_normal((3, 3, 9, 2)).astype(np.float32)),
        lambda x, y: F.conv2d(F.pad(torch.from_numpy(x).permute(0, 3, 1, 2), (1, 3, 0, 2)),
                              torch.from_numpy(y).permute(3, 2, 0, 1)).permute(0, 2, 3, 1).numpy()),
    "nn.conv2d_transpose(%x, %y, strides=[2, 2], padding=[1, 1], output_padding=[1, 1], channels=3)": (
        (PICTURE, RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)), lambda x, y: F.conv_transpose2d(*_t(x, y), None, 2, 1, 1).numpy()),
    'nn.upsampling(%x, scale_h=2f, scale_w=3f, method="bilinear", align_corners=True)': (
        (PICTURE,), lambda x: F.interpolate(*_t(x), scale_factor=(2, 3), mode="bilinear", align_corners=True).numpy()),
    'image.resize2d(%x, size=[5, 4], method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="floor")': (
        (PICTURE,), lambda x: F.interpolate(*_t(x), size=(5, 4)).numpy()),
    'qnn.quantize(%x, 0.1f, 3, out_dtype="uint8")': ((X,), lambda x: np.clip(np.round(x / np.float32(0.1)) + 3, 0, 255).astype(np.uint8)),
    "qnn.dequantize(%x, %y, %z, axis=1)": ((I.astype(np.int8), P[0, :, 0].copy(), np.array([1, 0, -2], np.int32)),
                                           lambda x, y, z: (x - z[:, None]).astype(np.float32) * y[:, None]),
    'qnn.requantize(%x, 0.37f, 2, 0.91f, -3, out_dtype="int8")': (
        (I * 40,), lambda x: np.clip(np.floor((x - 2).astype(np.float32) * (np.float32(0.37) / np.float32(0.91)) + 0.5) - 3, -128, 127).astype(np.int8)),
    'qnn.requantize(%x, 0.75f, 0, 1f, 0, rounding="TONEAREST", out_dtype="int32")': (
        (np.array([-2, 2, -6, 6], np.int32),), lambda x: np.array([-2, 2, -5, 5], np.int32)),
}


def _scattered(x, y, z):
    out = x.copy()
    np.add.at(out, (y[0], y[1]), z)
    return out


@pytest.mark.parametrize("call", CASES)
def test_operator(call):
    inputs, expected = CASES[call]
    wanted = expected(*inputs)
    wanted = wanted if isinstance(wanted, list | tuple) else [wanted]
    found = _run(call, *inputs)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_sizes_that_only_the_run_tells():
    text = '''#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) {
  %0 = add(%x, %y);
  %1 = shape_of(%0, dtype="int64");
  %2 = take(%1, 0, axis=0);
  %3 = reshape(%0, newshape=[-1]);
  (%3, %2)
}'''
    run = rd.compile(rd.import_relay(text))
    x, y = (RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    total, rows = run(x, y)
    np.testing.assert_allclose(total, (x + y).reshape(-1))
    assert rows == 3
    with pytest.raises(RoundelError, match="add"):
        run(x, y[:2])


def test_indices_out_of_range_in_the_fast_mode_are_an_error():
    module = rd.import_relay('def @main(%x: Tensor[(4, 2), float32], %i: Tensor[(1), int32]) { take(%x, %i, axis=0, mode="fast") }')
    with pytest.raises(RoundelError, match="take"):
        rd.compile(module)(np.zeros((4, 2), np.float32), np.array([4], np.int32))
