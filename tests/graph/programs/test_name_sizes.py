# SPDX-License-Identifier: Apache-2.0
"""Sizes with divisions become variables of the programs."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.driver import prepare
from roundel.ir import graph, tir
from roundel.ir.dtype import DType
from roundel.ir.visit import free_vars, walk
from roundel.ops import make
from roundel.target import Target

from ..functions import function


def _network(layers: int):
    """Convolutions with stride 2 of a picture whose size is not known."""
    rng = np.random.default_rng(0)
    n, h, w = (tir.Var(x, DType("int64"), True) for x in "nhw")
    weights = [(rng.standard_normal((16, 16, 3, 3)) / 12).astype("float32") for _ in range(layers)]

    def body(bb, x):
        for weight in weights:
            x = bb.emit(make("nn.relu", bb.emit(make("nn.conv2d", x, graph.Constant.of(weight), strides=2, padding=1))))
        return x

    return function([graph.TensorInfo((n, 16, h, w), "float32")], body), weights


def _reference(x: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
    for w in weights:
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
        x = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w), 0)
    return x


def test_programs_share_and_have_plain_sizes():
    mod, _ = _network(4)
    made = prepare(mod, target=Target.host())
    kernels = [f for n, f in made.items() if "conv2d" in n]
    assert len(kernels) <= 3, "convolutions between blocks with inner sizes are one program"
    for func in kernels:
        assert not any(type(n) is tir.FloorDiv and free_vars(n) for b in func.buffer_params for d in b.shape for n in walk(d))
        assert func.attrs["scheduled"] == "contraction"


@pytest.mark.parametrize("shape", [(1, 16, 40, 33), (2, 16, 7, 16), (1, 16, 1, 129)])
def test_results(shape: tuple[int, ...]):
    mod, weights = _network(3)
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    np.testing.assert_allclose(rd.build(mod)(x), _reference(x, weights), rtol=1e-4, atol=1e-5)
