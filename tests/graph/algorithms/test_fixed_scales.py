# SPDX-License-Identifier: Apache-2.0
"""Scales in integers for processors without instructions for floats: where they are used, and that results are those of floats."""

import numpy as np
import pytest

from roundel.graph.algorithms.fixed_scales import fixed_scales
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ops import make
from roundel.target import Target

from ..functions import calls, function
from ..running import agree

RNG = np.random.default_rng(4)
CHANNELS = 96


def _scaled(zero, out, bias=True):
    """Sums of 8-bit products, scaled for each channel and made bytes."""
    info = np.iinfo(out)
    scale = (2.0 ** RNG.uniform(-16, -2, (CHANNELS, 1))).astype(np.float32) * RNG.choice([-1, 1, 1, 1], (CHANNELS, 1)).astype(np.float32)
    added = RNG.uniform(-900, 900, (CHANNELS, 1)).astype(np.float32) / np.float32(8) ** RNG.integers(0, 8, (CHANNELS, 1)).astype(np.float32)
    scale[::9], added[::9] = 0.25, np.rint(added[::9])  # often just in the middle

    def body(bb, x):
        emit = lambda *a, **k: bb.emit(make(*a, **k))
        y = emit("multiply", emit("astype", x, dtype="float32"), graph.Constant.of(scale))
        y = emit("round", emit("add", y, graph.Constant.of(added)) if bias else y)
        y = emit("add", y, np.float32(zero)) if zero else y
        return emit("astype", emit("minimum", emit("maximum", y, np.float32(info.min)), np.float32(info.max)), dtype=out)

    return function([graph.TensorInfo((CHANNELS, 400), "int32")], body)


@pytest.mark.parametrize("zero, out, bias", [(3, "int8", True), (0, "uint8", True), (-128, "int8", False)])
def test_results_are_those_of_floats(zero, out, bias):
    """Rounded once: of float32, multiplied and added in float64."""
    mod = _scaled(zero, out, bias)
    made = fixed_scales(mod.replace(attrs=mod.attrs | {"target": Target("cortex-m3")}))
    assert calls(made) == ["nn.scaled_whole"]
    x = (RNG.uniform(-1, 1, (CHANNELS, 400)) * 2.0 ** RNG.uniform(1, 30, (CHANNELS, 400))).astype(np.int32)
    agree(made, (x,))
    scale, added = (c.data.numpy().astype(np.float64) for c in made["main"].body.bindings[0].value.args[1:3])
    info = np.iinfo(out)
    want = np.clip(np.rint((x.astype(np.float32) * scale + added).astype(np.float32)) + zero, info.min, info.max).astype(out)
    got = interpret(made)["main"](x)
    assert (got == want).mean() > 0.9999  # two roundings in the interpreter's floats
    assert len(np.unique(want)) > 200


def test_processors_with_floats_keep_them():
    mod = _scaled(3, "int8")
    for cpu in ("cortex-m4", "rv32imafc", "x86-64"):
        assert fixed_scales(mod.replace(attrs=mod.attrs | {"target": Target(cpu)}))["main"] is mod["main"]
