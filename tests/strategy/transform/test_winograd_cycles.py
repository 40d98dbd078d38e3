# SPDX-License-Identifier: Apache-2.0
"""What a Winograd convolution is expected to take before it is scheduled is what the model of costs says of it afterwards."""

from __future__ import annotations

import pytest

from roundel.builder import make_program
from roundel.ir import graph
from roundel.ir.attrs import Attrs
from roundel.ops import make
from roundel.strategy import choose
from roundel.strategy.choose import proposals
from roundel.strategy.cost import expected_cycles, working
from roundel.strategy.statements import statements
from roundel.target import Target


def winograd(channels, size, tile, lanes, results=None):
    blocks, edge, outer = channels // lanes, tile + 2, (results or channels) // lanes
    x, weight, kernel = (graph.Var(name, graph.TensorInfo(shape, "float32")) for name, shape in (
        ("x", (1, blocks, size, size, lanes)), ("w", (edge, edge, outer, blocks, lanes, lanes)), ("k", (outer, blocks, 3, 3, lanes, lanes))))
    call = make("nn.winograd_conv2d", x, weight, kernel, tile=tile, data_layout=f"NCHW{lanes}c")
    return make_program(lambda *args, **attrs: call.op.compute(args, Attrs(attrs)), call.args, dict(call.attrs)).func


@pytest.mark.parametrize("machine", ["znver5", "x86-64-v3", "neoverse-n1"])
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(("channels", "size"), [(64, 56), (256, 14), (512, 7)])
def test_it_is_expected_to_take_what_its_schedule_takes(channels, size, tile, machine):
    """With what the stages pass on to each other."""
    target = Target(machine)
    found = next(a for a in choose(winograd(channels, size, tile, target.lanes("float32")), target, (1, 2)) if a.fits)
    assert found.name == "winograd"
    assert 0.8 < found.expected / expected_cycles(found.applied.func, target, cores=1) < 1.3  # the table counts every condition of a tile's padding


@pytest.mark.parametrize(("channels", "results", "size", "tile", "cores"), [(512, 32, 28, 4, 2), (512, 32, 7, 2, 2), (256, 96, 14, 2, 2), (128, 128, 14, 2, 8)])
def test_products_keep_all_cores_busy(channels, results, size, tile, cores):
    """Fewer panels of result channels than cores: each core has some of the positions of the tiles."""
    target = Target("znver5", cores=cores)
    found = next(a for a in choose(winograd(channels, size, tile, 16, results), target, (1, 2)) if a.fits)
    longest = max(statements(found.applied.func, target, {}), key=lambda s: float(working(target, [s])))
    assert found.name == "winograd"
    assert longest.part(cores) <= 1.25 / cores


@pytest.mark.parametrize(("channels", "results", "size", "rows"), [
    (64, 128, 112, 1),   # products of a whole picture would leave the second-level cache: 5.5 ms instead of 3.2
    (96, 64, 40, 2),
    (128, 128, 28, 7),   # all rows: weights are read once, and what is between the stages stays
    (256, 256, 56, 14),  # it does not stay, but weights would be read fourteen times
])
def test_all_tiles_are_transformed_first_where_that_moves_fewer_bytes(channels, results, size, rows):
    sketch, choice = next(iter(proposals(winograd(channels, size, 4, 16, results), Target("znver5", cores=2), (1,))))
    assert (sketch.name, choice["tile_rows"]) == ("winograd", rows)


@pytest.mark.parametrize(("channels", "results", "size", "again"), [(512, 256, 56, False), (768, 192, 56, False), (256, 256, 28, True), (768, 64, 32, True)])
def test_data_that_the_last_cache_does_not_keep_is_not_read_again_for_each_panel(channels, results, size, again):
    """512 -> 256 channels on 56 x 56 took 38.6 ms on Zen 4, and 21.9 with the products of each position for all channels at once."""
    target = Target("znver4", cores=2)
    sketch, choice = next(iter(proposals(winograd(channels, size, 4, 16, results), target, (1,))))
    assert (sketch.name, choice["channels"] < results // 16) == ("winograd", again)
