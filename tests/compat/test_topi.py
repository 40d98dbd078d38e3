# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi``: each function of tensors on odd shapes, run by the interpreter, against NumPy or PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import roundel as rd
from roundel.compat.tvm import relax, te, tir, topi
from roundel.compat.tvm.script import relax as R
from roundel.ir import IRModule

RNG = np.random.default_rng(11)
nn = topi.nn


def _f(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def _i(*shape, low=0, high=5, dtype="int32"):
    return RNG.integers(low, high, shape).astype(dtype)


def _torch(fn):
    """A function of PyTorch's as one of arrays."""
    return lambda *arrays: fn(*map(torch.from_numpy, arrays)).numpy()


def _run(fn, arrays):
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"x{k}") for k, a in enumerate(arrays)]
    made = fn(*inputs)
    outs = list(made) if isinstance(made, list | tuple) else [made]
    results = [np.zeros([int(n) for n in o.shape], str(o.dtype)) for o in outs]
    rd.interpret(IRModule({"main": te.create_prim_func([*inputs, *outs])}))["main"](*arrays, *results)
    return results


X, V, W = _f(3, 5, 7), _f(5), _f(7)
CHANNELS, KERNEL = _f(2, 6, 5, 7), _f(4, 6, 3, 3)
LAST, LAST_KERNEL = CHANNELS.transpose(0, 2, 3, 1).copy(), KERNEL.transpose(2, 3, 1, 0).copy()
SIGNAL, FILM = _f(2, 6, 9), _f(1, 4, 5, 3, 6)
PLACES, ROWS = _i(2, 4, high=3), _i(3, 4, high=7)
SORTED = np.float32([-1, 0, 0, 1.5])
_conv2d = lambda **more: _torch(lambda x, w: F.conv2d(x, w, **more))
_last = lambda x: x.transpose(0, 2, 3, 1)


def _set_diagonals(data, diagonal):
    out = data.copy()
    for d in (-1, 0, 1):  # RIGHT_LEFT: those above the main one lie right, those below it left
        length = min(3 + min(d, 0), 5 - max(d, 0))
        for t in range(length):
            out[t - min(d, 0), t + max(d, 0)] = diagonal[1 - d, t + (3 - length if d >= 0 else 0)]
    return out


def _masked(x, lengths):
    return np.where((np.arange(5)[:, None] < lengths)[..., None], x, np.float32(-1)), None


MOVES = {
    "expand_like": (lambda v, x: topi.expand_like(v, x, [0, 2]), (V, X), lambda v, x: np.broadcast_to(v[:, None], x.shape)),
    "reverse_sequence": (lambda x, n: topi.reverse_sequence(x, n, 1, 0), (X, np.int32([5, 2, 0])),
                         lambda x, n: np.stack([np.concatenate([r[:k][::-1], r[k:]]) for r, k in zip(x, n)])),
    "sequence_mask": (lambda x, n: topi.sequence_mask(x, n, -1, 0), (_f(5, 3, 2), np.int32([5, 2, 0])), lambda x, n: _masked(x, n)[0]),
    "strided_set": (lambda x, v: topi.strided_set(x, v, [0, 1], [3, 5], [1, 2]), (X[:, :, 0].copy(), _f(3, 2)), lambda x, v: _assign(x, np.s_[:, 1:5:2], v)),
    "strided_set backwards": (lambda x, v: topi.strided_set(x, v, [2], [0], [-1]), (V, _f(2)), lambda x, v: _assign(x, np.s_[2:0:-1], v)),
    "unravel_index": (lambda i: topi.unravel_index(i, (3, 5, 7)), (_i(4, high=105),), lambda i: np.stack(np.unravel_index(i, (3, 5, 7)))),
    "sparse_to_dense": (lambda i, v: topi.sparse_to_dense(i, [3, 4], v, 9), (np.int32([[0, 1], [2, 3]]), np.float32([5, 6])),
                        lambda i, v: _assign(np.full((3, 4), 9, np.float32), tuple(i.T), v)),
    "matrix_set_diag": (lambda x, d: topi.matrix_set_diag(x, d, 1), (X[0], _f(5)), lambda x, d: _assign(x, (np.arange(5), np.arange(1, 6)), d)),
    "matrix_set_diag of several": (lambda x, d: topi.matrix_set_diag(x, d, (-1, 1)), (_f(3, 5), _f(3, 3)), _set_diagonals),
    "sliding_window": (lambda x: topi.sliding_window(x, 1, (2, 3), (2, 1)), (X,),
                       lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))[:, ::2]),
    "meshgrid": (lambda x, y: topi.meshgrid((x, y), "ij")[1], (V, W), lambda x, y: np.meshgrid(x, y, indexing="ij")[1]),
    "index_tensor": (lambda x, i, j: topi.index_tensor(x, (i, j)), (X, _i(2, 1, high=3), _i(4, high=5)), lambda x, i, j: x[i, j]),
    "index_put": (lambda x, i, v: topi.index_put(x, (i,), v, True), (X, np.int32([2, 2]), V[:, None].copy()),
                  lambda x, i, v: x + np.float32([0, 0, 2])[:, None, None] * v),
    "slice_scatter": (lambda x, v: topi.slice_scatter(x, v, 1, 5, 2, 1), (X, _f(3, 2, 7)), lambda x, v: _assign(x, np.s_[:, 1:5:2], v)),
    "take": (lambda x, i: topi.take(x, i, axis=1), (X, PLACES), lambda x, i: np.take(x, i, 1)),
    "take in batches": (lambda x, i: topi.take(x, i, axis=2, batch_dims=1), (X, ROWS), lambda x, i: np.take_along_axis(x, i[:, None].repeat(5, 1), 2)),
    "gather": (lambda x, i: topi.gather(x, 1, i), (X[0], _i(5, 4, high=7)), lambda x, i: np.take_along_axis(x, i, 1)),
    "gather_nd": (topi.gather_nd, (X, np.int32([[0, 2], [4, 1]])), lambda x, i: x[i[0], i[1]]),
    "scatter_nd": (lambda x, i, v: topi.scatter_nd(x, i, v, "add"), (X[0], np.int32([[0, 4]]), _f(2, 7)),
                   lambda x, i, v: x + _assign(np.zeros_like(x), i[0], v)),
    "scatter_elements": (lambda x, i, v: topi.scatter_elements(x, i, v, 1, "update"), (X[0], np.int32([[1], [3]]), _f(2, 1)),
                         lambda x, i, v: _assign(x, ([0, 1], [1, 3]), v[:, 0])),
    "trilu": (lambda x: topi.trilu(x, 1, True), (X,), lambda x: np.triu(x, 1)),
    "tile": (lambda x: topi.tile(x, (2, 1, 3)), (X,), lambda x: np.tile(x, (2, 1, 3))),
    "repeat": (lambda x: topi.repeat(x, 2, 1), (X,), lambda x: x.repeat(2, 1)), "flip": (lambda x: topi.flip(x, 1), (X,), lambda x: x[:, ::-1]),
    "stack": (lambda x, y: topi.stack([x, y], axis=1), (V, V + 1), lambda x, y: np.stack([x, y], 1)),
    "split": (lambda x: topi.split(x, [2, 3], axis=1)[2], (X,), lambda x: x[:, 3:]),
    "squeeze": (lambda x: topi.squeeze(x, 1), (_f(3, 1, 2),), lambda x: x[:, 0]),
    "expand_dims": (lambda x: topi.expand_dims(x, -1, 2), (V,), lambda x: x[:, None, None]),
    "layout_transform": (lambda x: topi.layout_transform(x, "NCHW", "NCHW3c"), (CHANNELS,), lambda x: x.reshape(2, 2, 3, 5, 7).transpose(0, 1, 3, 4, 2)),
    "broadcast_to": (lambda x: topi.broadcast_to(x, (3, 5)), (V,), lambda x: np.broadcast_to(x, (3, 5))),
    "dilate": (lambda x: nn.dilate(x, (2, 1, 3), 1.0), (X,), lambda x: _assign(np.ones((5, 5, 19), np.float32), np.s_[::2, :, ::3], x)),
    "space_to_batch_nd": (lambda x: nn.space_to_batch_nd(x, (2, 3), (0, 1), (1, 1)), (_f(1, 5, 7, 2),), lambda x: _space_to_batch(x)),
    "batch_to_space_nd": (lambda x: nn.batch_to_space_nd(x, (2, 3), (0, 1), (1, 1)), (_space := _f(6, 3, 3, 2),), lambda x: _batch_to_space(x)),
    "depth_to_space": (lambda x: nn.depth_to_space(x, 2, "NHWC", "CRD"), (_f(1, 3, 5, 8),),
                       lambda x: _last(_torch(lambda t: F.pixel_shuffle(t, 2))(x.transpose(0, 3, 1, 2)))),
    "pixel_shuffle": (lambda x: nn.pixel_shuffle(x, 2), (_f(1, 8, 3, 5),), _torch(lambda x: F.pixel_shuffle(x, 2))),
    "pad": (lambda x: nn.pad(x, (0, 1, 2), (1, 0, 3), 7.0), (X,), lambda x: np.pad(x, ((0, 1), (1, 0), (2, 3)), constant_values=7)),
    "mirror_pad": (lambda x: nn.mirror_pad(x, (0, 2, 1), (0, 1, 2)), (X,), lambda x: np.pad(x, ((0, 0), (2, 1), (1, 2)), "symmetric")),
    "reflect_pad": (lambda x: nn.reflect_pad(x, (0, 2, 1)), (X,), lambda x: np.pad(x, ((0, 0), (2, 2), (1, 1)), "reflect")),
    "replicate_pad": (lambda x: nn.replicate_pad(x, (0, 2, 1)), (X,), lambda x: np.pad(x, ((0, 0), (2, 2), (1, 1)), "edge")),
    "circular_pad": (lambda x: nn.circular_pad(x, (0, 2, 1)), (X,), lambda x: np.pad(x, ((0, 0), (2, 2), (1, 1)), "wrap")),
    "upsampling": (lambda x: nn.upsampling(x, 2, 3), (CHANNELS,), lambda x: x.repeat(2, 2).repeat(3, 3)),
    "upsampling with corners": (lambda x: nn.upsampling(x, 2, 2, method="bilinear", align_corners=True), (CHANNELS,),
                                _torch(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True))),
}
NUMBERS = {
    "arange": (lambda: topi.arange(2, 9, 3, "int32"), (), lambda: np.arange(2, 9, 3, "int32")), "eye": (lambda: topi.eye(3, 5, 1), (), lambda: np.eye(3, 5, 1)),
    "full": (lambda: topi.full((2, 3), "int32", 7), (), lambda: np.full((2, 3), 7)),
    "full_like": (lambda x: topi.full_like(x, 2.0), (X,), lambda x: np.full_like(x, 2)),
    "one_hot": (lambda i: topi.one_hot(i, 1, 0, 5, 1, "float32"), (_i(3, 4),), lambda i: np.moveaxis(np.eye(5, dtype=np.float32)[i], -1, 1)),
    "hamming_window": (lambda: topi.hamming_window(9, True, 0.54, 0.46, "float32"), (), lambda: torch.hamming_window(9).numpy()),
    "shape": (lambda x: topi.shape(x), (X,), lambda x: np.int32(x.shape)), "tensor_size": (lambda x: topi.tensor_size(x), (X,), lambda x: np.int32(x.size)),
    "log_add_exp": (topi.log_add_exp, (X, V[:, None].copy()), np.logaddexp), "floordiv": (topi.floordiv, (_i(5, low=-9), _i(5, low=1)), np.floor_divide),
    "floormod": (topi.floormod, (_i(5, low=-9), _i(5, low=1)), np.mod), "mod": (topi.mod, (_i(5, low=-9), _i(5, low=1)), np.fmod),
    "where": (topi.where, (_i(3, 5, 7, high=2), X, -X), lambda c, x, y: np.where(c != 0, x, y)),
    "ceil_log2": (topi.ceil_log2, (np.int32([1, 2, 3, 1024, 1025]),), lambda x: np.int32([0, 1, 2, 10, 11])),
    "reinterpret": (lambda x: topi.reinterpret(x, "int32"), (X,), lambda x: x.view(np.int32)),
    "clip": (lambda x: topi.clip(x, -1, 1), (X,), lambda x: x.clip(-1, 1)),
    "fixed_point_multiply": (lambda x: topi.fixed_point_multiply(x, 1 << 30, 2), (_i(7, low=-99, high=99),), lambda x: x * 2),
    "fixed_point_multiply rounds": (lambda x: topi.fixed_point_multiply(x, 1 << 30, 0), (np.int32([-3, -1, 1, 3]),), lambda x: np.int32([-1, 0, 1, 2])),
    "elemwise_sum": (lambda x, y: topi.elemwise_sum([x, y, x]), (X, V[:, None].copy()), lambda x, y: x + y + x), "identity": (topi.identity, (X,), lambda x: x),
    "logical_xor": (topi.logical_xor, (X > 0, X > 1), np.logical_xor), "left_shift": (topi.left_shift, (_i(5), _i(5)), np.left_shift),
}
SUMS = {
    "sum": (lambda x: topi.sum(x, axis=(0, -1), keepdims=True), (X,), lambda x: x.sum((0, 2), keepdims=True)), "prod": (lambda x: topi.prod(x, 1), (X,),
            lambda x: x.prod(1)),
    "argmax": (lambda x: topi.argmax(x, 1), (_i(3, 5, 7, high=3),), lambda x: x.argmax(1).astype(np.int32)),
    "argmin of several": (lambda x: topi.argmin(x, 1, True, True), (_i(3, 5, 7, high=3),),
                          lambda x: (4 - x[:, ::-1].argmin(1, keepdims=True)).astype(np.int32)),
    "collapse_sum": (lambda x: topi.collapse_sum(x, (5, 1)), (X,), lambda x: x.sum((0, 2))[:, None]),
    "cumsum": (lambda x: topi.cumsum(x, 1), (X,), lambda x: x.cumsum(1)),
    "cumprod without itself": (lambda x: topi.cumprod(x, 0, exclusive=True), (V,), lambda x: np.concatenate([[1], x.cumprod()[:-1]])),
    "sort": (lambda x: topi.sort(x, 1, False), (X,), lambda x: -np.sort(-x, 1)),
    "argsort": (lambda x: topi.argsort(x, axis=2, dtype="int32"), (X,), lambda x: x.argsort(2).astype(np.int32)),
    "topk": (lambda x: topi.topk(x, 3, 1)[1], (X,), lambda x: (-x).argsort(1)[:, :3].astype(np.int64)),
    "searchsorted": (lambda s, v: topi.searchsorted(s, v), (SORTED, X), lambda s, v: np.searchsorted(s, v)),
    "searchsorted right": (lambda s, v: topi.searchsorted(s, v, True, "int32"), (SORTED, np.float32([0, 9, -9])), lambda s, v: np.int32([3, 4, 0])),
    "searchsorted by row": (lambda s, v: topi.searchsorted(s, v), (np.sort(_f(3, 4)), _f(3, 2)), lambda s, v: np.stack(list(map(np.searchsorted, s, v)))),
    "tensordot": (lambda x, y: topi.tensordot(x, y, 2), (X, _f(5, 7, 2)), lambda x, y: np.tensordot(x, y, 2)),
    "tensordot of pairs": (lambda x, y: topi.tensordot(x, y, ((0, 2), (1, 0))), (X, _f(7, 3, 2)), lambda x, y: np.tensordot(x, y, ((0, 2), (1, 0)))),
    "einsum": (lambda x, y: topi.einsum("bij,bkj->bik", x, y), (X, _f(3, 2, 7)), lambda x, y: np.einsum("bij,bkj->bik", x, y)),
    "matmul": (lambda x, y: topi.matmul(x, y, True, True), (X[0], _f(4, 5)), lambda x, y: x.T @ y.T),
    "dft": (lambda x, y: topi.dft(x, y, tir.IntImm("int32", 0))[0], (X, X + 1), lambda x, y: np.fft.fft(x + 1j * y).real.astype(np.float32)),
    "dft back": (lambda x, y: topi.dft(x, y, tir.IntImm("int32", 1))[1], (X, X + 1), lambda x, y: np.fft.ifft(x + 1j * y).imag.astype(np.float32)),
    "dense": (lambda x, w, b: nn.dense(x, w, b), (_f(3, 7), _f(4, 7), _f(4)), lambda x, w, b: x @ w.T + b),
}
NETWORKS = {
    "conv2d": (lambda x, w: nn.conv2d_nchw(x, w, (2, 1), (1, 0, 0, 2), 1), (CHANNELS, KERNEL),
               _torch(lambda x, w: F.conv2d(F.pad(x, (0, 2, 1, 0)), w, stride=(2, 1)))),
    "conv2d SAME": (lambda x, w: nn.conv2d(x, w, 1, "SAME", 2), (CHANNELS, KERNEL), _conv2d(padding="same", dilation=2)),
    "conv2d_nhwc": (lambda x, w: nn.conv2d_nhwc(x, w, 1, 1, 1), (LAST, LAST_KERNEL), lambda x, w: _last(_conv2d(padding=1)(CHANNELS, KERNEL))),
    "conv2d_hwcn": (lambda x, w: nn.conv2d_hwcn(x, w, 1, "VALID", 1), (CHANNELS.transpose(2, 3, 1, 0).copy(), LAST_KERNEL),
                    lambda x, w: _conv2d()(CHANNELS, KERNEL).transpose(2, 3, 1, 0)),
    "group_conv2d_nchw": (lambda x, w: nn.group_conv2d_nchw(x, w, 1, 0, 1, 2), (CHANNELS, _f(4, 3, 3, 3)), _conv2d(groups=2)),
    "depthwise_conv2d_nhwc": (lambda x, w: nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1), (LAST, _f(3, 3, 6, 2)), lambda x, w: _last(
        _conv2d(groups=6, padding=1)(CHANNELS, w.reshape(3, 3, 1, 12).transpose(3, 2, 0, 1).copy()))),
    "conv1d_ncw": (lambda x, w: nn.conv1d_ncw(x, w, 2, 1, 1), (SIGNAL, _f(4, 6, 3)), _torch(lambda x, w: F.conv1d(x, w, stride=2, padding=1))),
    "conv1d_nwc": (lambda x, w: nn.conv1d_nwc(x, w), (SIGNAL.transpose(0, 2, 1).copy(), _f(3, 6, 4)),
                   lambda x, w: _torch(F.conv1d)(SIGNAL, w.transpose(2, 1, 0).copy()).transpose(0, 2, 1)),
    "conv3d_ncdhw": (lambda x, w: nn.conv3d_ncdhw(x, w, 1, 1, 1, 1), (FILM, _f(2, 4, 3, 1, 2)), _torch(lambda x, w: F.conv3d(x, w, padding=1))),
    "conv1d_transpose_ncw": (lambda x, w: nn.conv1d_transpose_ncw(x, w, 2, 1, "float32", 1), (SIGNAL, _f(6, 4, 3)),
                             _torch(lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1))),
    "conv2d_transpose_nchw": (lambda x, w: nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0)), (CHANNELS, _f(6, 4, 3, 3)),
                              _torch(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1))),
    "group_conv2d_transpose_nchw": (lambda x, w: nn.group_conv2d_transpose_nchw(x, w, 2, 0, "float32", 0, 3), (CHANNELS, _f(6, 2, 3, 3)),
                                    _torch(lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=3))),
    "pool1d": (lambda x: nn.pool1d(x, (3,), (2,), (1,), (1, 1), "avg"), (SIGNAL,), _torch(lambda x: F.avg_pool1d(x, 3, 2, 1))),
    "pool2d": (lambda x: nn.pool2d(x, (3, 2), (2, 1), (1, 1), (1, 0, 1, 0), "avg", count_include_pad=False), (CHANNELS,),
               _torch(lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), count_include_pad=False))),
    "pool3d": (lambda x: nn.pool3d(x, (2, 2, 2), (1, 1, 2), (1, 1, 1), (0,) * 6, "max"), (FILM,), _torch(lambda x: F.max_pool3d(x, 2, (1, 1, 2)))),
    "adaptive_pool1d": (lambda x: nn.adaptive_pool1d(x, (4,), "avg"), (SIGNAL,), _torch(lambda x: F.adaptive_avg_pool1d(x, 4))),
    "adaptive_pool3d": (lambda x: nn.adaptive_pool3d(x, (2, 1, 4), "max"), (FILM,), _torch(lambda x: F.adaptive_max_pool3d(x, (2, 1, 4)))),
    "batch_norm": (lambda x, *s: nn.batch_norm(x, *s, axis=1)[0], (CHANNELS, _f(6), _f(6), _f(6), _f(6, low=0.5)),
                   _torch(lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b))),
    "group_norm": (lambda x, g, b: nn.group_norm(x, g, b, 3, 1, (2, 3)), (CHANNELS, _f(6), _f(6)), _torch(lambda x, g, b: F.group_norm(x, 3, g, b))),
    "instance_norm": (lambda x, g, b: nn.instance_norm(x, g, b, 1, (2, 3)), (CHANNELS, _f(6), _f(6)),
                      _torch(lambda x, g, b: F.instance_norm(x, weight=g, bias=b))),
    "rms_norm": (lambda x, w: nn.rms_norm(x, w, -1), (X, W), _torch(lambda x, w: F.rms_norm(x, (7,), w, 1e-5))),
    "lrn": (lambda x: nn.lrn(x, 3, 1, 1e-4, 0.75, 2.0), (CHANNELS,), _torch(lambda x: F.local_response_norm(x, 3, 1e-4, 0.75, 2.0))),
    "softplus": (lambda x: nn.softplus(x, 2.0, 3.0), (X,), _torch(lambda x: F.softplus(x, 2.0, 3.0))), "prelu": (nn.prelu, (CHANNELS, _f(6)), _torch(F.prelu)),
    "scale_shift_nchw": (nn.scale_shift_nchw, (CHANNELS, _f(6), _f(6)), lambda x, s, t: x * s[:, None, None] + t[:, None, None]),
    "log_softmax": (lambda x: nn.log_softmax(x, axis=1), (X,), _torch(lambda x: F.log_softmax(x, 1))),
    "nll_loss": (lambda x, t, w: nn.nll_loss(x, t, w, "mean", -100), (_f(4, 5), _i(4, dtype="int64"), _f(5, low=0.5)),
                 _torch(lambda x, t, w: F.nll_loss(x, t, w))),
}


def _assign(x, where, value):
    out = x.copy()
    out[where] = value
    return out


def _space_to_batch(x):
    x = np.pad(x, ((0, 0), (0, 1), (1, 1), (0, 0)))
    return np.concatenate([x[:, a::2, b::3] for a in range(2) for b in range(3)])


def _batch_to_space(x):
    out = np.zeros((1, 6, 9, 2), x.dtype)
    for k, (a, b) in enumerate((a, b) for a in range(2) for b in range(3)):
        out[:, a::2, b::3] = x[k]
    return out[:, :5, 1:8]


@pytest.mark.parametrize("name", [*MOVES, *NUMBERS, *SUMS, *NETWORKS])
def test_against_numpy_and_pytorch(name):
    fn, arrays, wanted = (MOVES | NUMBERS | SUMS | NETWORKS)[name]
    expected = np.asarray(wanted(*arrays))
    (found,) = _run(fn, arrays)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_constants_and_paddings():
    n = tir.Var("n", "int64")
    utils = topi.utils
    assert utils.get_const_tuple([tir.IntImm("int32", 3), n, 2]) == (3, n, 2) and utils.get_const_int(tir.IntImm("int32", 3)) == 3
    assert nn.get_pad_tuple("SAME", (3, 4)) == (1, 2, 1, 1) and nn.get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2) and nn.get_pad_tuple(2, (3, 3)) == (2,) * 4
    with pytest.raises(ValueError, match="VALID, SAME"):
        nn.get_pad_tuple("FULL", (3, 3))
    with pytest.raises(ValueError, match="no constant"):
        utils.get_const_int(n)


def test_numbers_that_graphs_hand_over_bound_elements():
    x = relax.Var("x", R.Tensor((tir.Var("n", "int64"),), "float32"))
    low, high = (relax.PrimValue(tir.const(v, "int64")) for v in (-1, 2))
    bb = rd.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.clip, x, low, high))
    given = np.linspace(-5, 5, 7, dtype=np.float32)
    np.testing.assert_array_equal(rd.interpret(bb.get())["main"](given), given.clip(-1, 2))
