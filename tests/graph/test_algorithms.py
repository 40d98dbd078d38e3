# SPDX-License-Identifier: Apache-2.0
"""The account of algorithms: it names what the passes choose, with what the model expects of the others."""

from __future__ import annotations

import numpy as np

from roundel.driver import DEFAULT, prepare, strassen
from roundel.graph.algorithms import algorithms
from roundel.ir import graph, options, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.target import Target

from .programs import function

F32 = "float32"


def _layers(rows, size=64, channels=64):
    draw = np.random.default_rng(0)
    weight = lambda *shape: graph.Constant.of(draw.standard_normal(shape).astype(F32))
    infos = [graph.TensorInfo((1, channels, size, size), F32), graph.TensorInfo((rows, 1024), F32)]

    def body(bb, image, x):
        e = lambda name, *a, **more: bb.emit(make(name, *a, **more))
        for _ in range(2):
            image = e("nn.conv2d", image, weight(channels, channels, 3, 3), padding=(1, 1, 1, 1))
        return e("matmul", x, weight(1024, 1024)), e("nn.conv2d", image, weight(channels, channels, 3, 3), strides=(2, 2))

    return function(infos, body)


def _choices(mod, sizes=None):
    return algorithms(prepare(mod, pipeline=DEFAULT[: DEFAULT.index(strassen)]), Target.host(), sizes)


def test_what_is_chosen_is_what_runs():
    mod = _layers(512)
    names = list(prepare(mod))
    convolution, product = sorted(_choices(mod), key=lambda c: c.operator)
    assert convolution.calls == 2 and len(convolution.cycles) == 3 and convolution.chosen == min(convolution.cycles, key=convolution.cycles.__getitem__)
    assert any("winograd" in n for n in names) == (convolution.chosen != "direct")
    assert any("strassen_matmul" in n for n in names) == (product.chosen == "Strassen") and set(product.cycles) == {"plain", "Strassen"}


def test_sizes_and_options():
    n = tir.Var("n", INT64, True)
    mod = _layers(n)
    assert len(_choices(mod)) == 1 and len(_choices(mod, {"n": 300})) == 2
    few = next(c for c in _choices(mod, {"n": 2}) if "matmul" in c.operator)
    assert few.chosen == "plain"
    with options.override(accuracy="strict"):
        assert _choices(mod, {"n": 300}) == []
