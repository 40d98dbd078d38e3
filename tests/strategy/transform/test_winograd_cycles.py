# SPDX-License-Identifier: Apache-2.0
"""What a Winograd convolution is expected to take before it is scheduled is what the model of costs says of it afterwards."""

from __future__ import annotations

import pytest

from roundel.builder import make_program
from roundel.ir import graph
from roundel.ir.attrs import Attrs
from roundel.ops import make
from roundel.strategy import choose
from roundel.strategy.cost import expected_cycles
from roundel.target import Target


def winograd(channels, size, tile, lanes):
    blocks, edge = channels // lanes, tile + 2
    x, weight, kernel = (graph.Var(name, graph.TensorInfo(shape, "float32")) for name, shape in (
        ("x", (1, blocks, size, size, lanes)), ("w", (edge, edge, blocks, blocks, lanes, lanes)), ("k", (blocks, blocks, 3, 3, lanes, lanes))))
    call = make("nn.winograd_conv2d", x, weight, kernel, tile=tile, data_layout=f"NCHW{lanes}c")
    return make_program(lambda *args, **attrs: call.op.compute(args, Attrs(attrs)), call.args, dict(call.attrs)).func


@pytest.mark.parametrize("machine", ["znver5", "x86-64-v3", "neoverse-n1"])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(("channels", "size"), [(64, 56), (256, 14), (512, 7)])
def test_it_is_expected_to_take_what_its_schedule_takes(channels, size, tile, machine):
    target = Target(machine)
    found = next(a for a in choose(winograd(channels, size, tile, target.lanes("float32")), target, (1, 2)) if a.fits)
    assert found.name == "winograd"
    assert 0.8 < found.expected / expected_cycles(found.applied.func, target, cores=1) < 1.15
