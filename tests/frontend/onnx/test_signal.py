# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of models whose lengths are symbolic, or computed."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import roundel as rd


def model(op, inputs, outputs, **attributes):
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    node = helper.make_node(op, [n if n[0] != "_" else "" for n, _, _ in inputs], ["y"], **attributes)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, outputs)
    graph = helper.make_graph([node], "g", [i for i in infos if i.name[0] != "_"], [y])
    return rd.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


def pairs(z):
    return np.stack([z.real, z.imag], -1).astype(np.float32)


@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_dft_of_a_length_that_is_computed(inverse, onesided):
    f = model("DFT", [("x", TensorProto.FLOAT, ["n", 3, 2 if inverse else 1]), ("length", TensorProto.INT64, [])], [None] * 3,
              inverse=inverse, onesided=onesided)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 3, 2 if inverse else 1)).astype(np.float32)
    for length in (1, 3, 7, 10):
        if inverse:
            z = x[..., 0] + 1j * x[..., 1]
            want = np.fft.irfft(z, length)[..., None] if onesided else pairs(np.fft.ifft(z, length))
        else:
            want = pairs((np.fft.rfft if onesided else np.fft.fft)(x[..., 0], length))
        np.testing.assert_allclose(f(x, np.int64(length)), want, atol=2e-6)


def test_stft_of_a_signal_of_any_length():
    f = model("STFT", [("x", TensorProto.FLOAT, ["b", "n", 1]), ("step", TensorProto.INT64, []), ("window", TensorProto.FLOAT, [16])], ["b", None, 9, 2])
    window = np.hanning(16).astype(np.float32)
    for b, n, step in ((1, 16, 3), (2, 61, 5)):
        x = np.random.default_rng(n).standard_normal((b, n)).astype(np.float32)
        frames = np.stack([x[:, k:k + 16] for k in range(0, n - 15, step)], 1) * window
        np.testing.assert_allclose(f(x[..., None], np.int64(step), window), pairs(np.fft.rfft(frames)), atol=2e-5)
