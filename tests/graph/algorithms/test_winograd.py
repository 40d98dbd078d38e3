# SPDX-License-Identifier: Apache-2.0
"""Winograd convolutions: the operator, its schedule on several machines, and when it is chosen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, compile_module, prepare
from roundel.graph.algorithms.winograd import LARGEST, NAMES, convolution_algorithms, fastest
from roundel.graph.expectations import Expectations
from roundel.interp import interpret
from roundel.ir import IRModule, graph, options, tir
from roundel.ir.choice import Later
from roundel.ir.constants import ConstData
from roundel.ir.op import get_op
from roundel.ir.visit import statements, walk
from roundel.lower import lower
from roundel.ops import make
from roundel.ops.even_tiles import uneven_share, unevenness
from roundel.ops.winograd import DATA_TRANSFORM, KERNEL_TRANSFORM, RESULT_TRANSFORM, transform_weight
from roundel.strategy import schedule_module
from roundel.strategy.expected import Setting
from roundel.target import Target
from roundel.target.profile import Profile

DIRECT, W2, W4 = NAMES.values()
LANES = 16  # of the blocks of channels


def _info(*shape):
    return graph.TensorInfo(shape, "float32")


def _attrs(**given):
    return get_op("nn.conv2d").attributes | {"padding": 1} | given


def _direct(x, w, padding):
    op = get_op("nn.conv2d")
    return op.numpy((x, w), make("nn.conv2d", graph.Var("x", _info(*x.shape)), graph.Var("w", _info(*w.shape)), padding=padding).attrs)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("space, padding", [((9, 7), 1), ((8, 8), (0, 1, 2, 1)), ((5, 13), 0), ((1, 3), 1)])
def test_operator_gives_the_convolution(tile, space, padding):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 8, *space)).astype(np.float32)
    w = rng.standard_normal((16, 8, 3, 3)).astype(np.float32)
    blocked = np.ascontiguousarray(x.reshape(2, 2, 4, *space).transpose(0, 1, 3, 4, 2))
    kernel = np.ascontiguousarray(w.reshape(2, 8, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1))
    u = np.ascontiguousarray(transform_weight(w, tile).reshape(tile + 2, tile + 2, 2, 8, 2, 4).transpose(0, 1, 2, 4, 5, 3))
    bb = BlockBuilder()
    tensors = [("x", blocked), ("u", u), ("k", kernel)]
    args = [graph.Var(name, _info(*a.shape)) for name, a in tensors]
    with bb.function("main", args):
        bb.emit_func_output(bb.emit(make("nn.winograd_conv2d", *args, tile=tile, padding=padding, data_layout="NCHW4c")))
    out = interpret(bb.get())["main"](*(a for _, a in tensors))
    expected = _direct(x, w, padding)
    got = out.transpose(0, 1, 4, 2, 3).reshape(expected.shape)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def _network(n, channels, out, h, w, rng):
    """conv + bias + residual + relu, the shape that epilogues take in networks."""
    bb = BlockBuilder()
    x = graph.Var("x", _info(n, channels, h, w))
    weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((out, channels, 3, 3), (1, out, 1, 1)))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(make("nn.conv2d", x, graph.Constant(ConstData(weight), _info(*weight.shape)), padding=1))
            y = bb.emit(make("add", y, graph.Constant(ConstData(bias), _info(*bias.shape))))
            y = bb.emit(make("add", y, x)) if out == channels else y
            result = bb.emit_output(make("nn.relu", y))
        bb.emit_func_output(result)
    return bb.get(), weight, bias


@pytest.mark.parametrize("machine", ["host", "znver3"])
@pytest.mark.parametrize("n, channels, out, h, w", [(1, 64, 64, 20, 20), (1, 64, 64, 14, 14), (2, 32, 64, 15, 13), (1, 128, 128, 7, 7),
                                                     (3, 64, 64, 5, 5), (5, 32, 32, 16, 16)])
def test_compiled_networks_give_the_convolution(machine, n, channels, out, h, w):
    rng = np.random.default_rng(1)
    mod, weight, bias = _network(n, channels, out, h, w, rng)
    target = Target.host() if machine == "host" else Target(machine)
    if n > 2:  # with weights that do not stay in the cache: all images together, and one by one
        target = Target(target, l2_bytes=1 << 15)
    if set(target.features) - set(Target.host().features) and target.vector_bytes > Target.host().vector_bytes:
        pytest.skip("this machine does not run its code")
    x = rng.standard_normal((n, channels, h, w)).astype(np.float32)
    built = compile_module(mod, target=target)
    got = built.load()["main"](x)
    expected = _direct(x, weight, 1) + bias + (x if out == channels else 0)
    np.testing.assert_allclose(np.asarray(got), np.maximum(expected, 0), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("tile", "images"), [(2, 3), (4, 1)])
def test_products_of_positions_by_many_cores_give_the_convolution(tile, images):
    rng = np.random.default_rng(2)
    mod, weight, bias = _network(images, 64, 16, 13, 10, rng)
    x = rng.standard_normal((images, 64, 13, 10)).astype(np.float32)
    got = compile_module(mod, target=Target(Target.host(), cores=16), choices={"*": NAMES[tile]}).load(threads=2)["main"](x)
    np.testing.assert_allclose(np.asarray(got), np.maximum(_direct(x, weight, 1) + bias, 0), rtol=2e-3, atol=2e-3)


def test_choice():
    target = Target("znver4")
    assert _fastest(_info(1, 64, 56, 56), _info(64, 64, 3, 3), _attrs(), target) == W4
    assert _fastest(_info(1, 64, 56, 56), _info(64, 64, 3, 3), _attrs(strides=2), target) == DIRECT
    assert _fastest(_info(1, 64, 56, 56), _info(64, 1, 3, 3), _attrs(groups=64), target) == DIRECT
    assert _fastest(_info(1, 64, 56, 56), _info(64, 64, 5, 5), _attrs(), target) == DIRECT
    assert _fastest(_info(1, 24, 56, 56), _info(24, 24, 3, 3), _attrs(), target) == DIRECT
    with options.override(accuracy="strict"):
        assert _fastest(_info(1, 64, 56, 56), _info(64, 64, 3, 3), _attrs(), target) == DIRECT


def _fastest(*layer):
    *layer, target = layer
    return fastest(convolution_algorithms(*layer, Expectations(Setting(target))))


EMERALD = Profile(gflops=165.8, l1_gbs=314, l2_gbs=117, l3_gbs=25.3, dram_gbs=13.8, cores=2, all_gflops=320, all_dram_gbs=22.2)
"""Of one virtual machine on an Emerald Rapids, where F(4x4) of 512 channels at 7 x 7 took 4.04 ms, of 256 channels at 14 x 14 1.3 ms."""


@pytest.mark.parametrize("channels, size, zen5, emerald", [(64, 56, W4, W4), (128, 28, W4, W4), (256, 14, W4, W2), (512, 7, W2, DIRECT)])
def test_the_choice_follows_from_the_machine(channels, size, zen5, emerald):
    """How fast weights come from memory decides between algorithms that need few of them and algorithms that need many."""
    layer = _info(1, channels, size, size), _info(channels, channels, 3, 3), _attrs()
    assert _fastest(*layer, Target("znver5")) == zen5
    assert _fastest(*layer, EMERALD.of(Target("sapphirerapids", cores=2))) == emerald


def test_how_fast_lines_are_written_decides_what_large_pictures_pass_on():
    """Data of large tiles that leave the second-level cache between the stages; 16 ms by F(4x4) and 24 by F(2x2) where these rates were measured."""
    layer = _info(4, 256, 56, 56), _info(160, 256, 3, 3), _attrs()
    here = Profile(gflops=241, l1_gbs=347, l2_gbs=175, l3_gbs=29.9, dram_gbs=15.6, cores=2, all_gflops=427, all_dram_gbs=31, frequency_ghz=4.06,
                   l2_stored_gbs=63, l3_stored_gbs=29.6, dram_stored_gbs=10.1, l3_bytes=128 << 20, cold_exposed=0.5).of(Target("sapphirerapids", cores=2))
    assert _fastest(*layer, here) == W4
    assert _fastest(*layer, here.with_(l3_stored=here.l3_stored / 20)) == W2


def test_a_target_of_json_that_reads_memory_slowly_computes_deep_layers_directly(tmp_path):
    """The same machine as a user would describe it, for a whole model whose constants fill its caches."""
    file = tmp_path / "emerald.json"
    file.write_text(json.dumps({"kind": "llvm", "cpu": "sapphirerapids", "cores": 2, "frequency_ghz": 2.479, "l1_rate": 126.7, "l2_rate": 47.2, "l3_rate": 10.2,
                                "dram_gbs": 13.8, "all_dram_gbs": 22.2}))
    bb, x = BlockBuilder(), graph.Var("x", _info(1, 512, 7, 7))
    weights = [graph.Constant.of(np.random.default_rng(k).standard_normal((512, 512, 3, 3)).astype(np.float32)) for k in range(12)]
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for weight in weights:
                y = bb.emit(make("nn.conv2d", y, weight, padding=1))
            y = bb.emit_output(make("nn.relu", y))
        bb.emit_func_output(y)
    made = prepare(bb.get(), target=Target(str(file)), pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    assert {c.taken for c in made.choices.made if c.kind == "algorithm"} == {DIRECT}


def test_expected_times_are_near_those_measured():
    machine = EMERALD.of(Target("sapphirerapids", cores=2))
    expectations = Expectations(Setting(machine))
    for channels, size, measured in ((512, 7, 4.04e-3), (256, 14, 1.3e-3)):
        cycles = convolution_algorithms(_info(1, channels, size, size), _info(channels, channels, 3, 3), _attrs(), expectations)["winograd4"]
        assert cycles / machine.frequency_ghz * 1e-9 == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("value, chosen", [(2.0**45, True), (-2.0**56, False), (2.0**127, False), (np.inf, False), (-np.inf, False), (np.nan, False)])
def test_kernels_that_overflow_are_used_as_they_are(value, chosen):
    mod, weight, _ = _network(1, 64, 64, 56, 56, np.random.default_rng(0))
    weight[5, 3, 1, 2] = value
    target = Target("x86-64-v4")
    made = prepare(mod, target=target)
    (choice,) = (c for c in made.choices.made if c.kind == "algorithm")
    assert (choice.taken != DIRECT) == any("winograd" in name for name in made) == chosen == (len(choice.possible) > 1)


@pytest.mark.parametrize("tile", [2, 4])
def test_kernels_that_are_transformed_overflow_nowhere(tile):
    """The bound on all numbers of a tile: |A| |B| |G| in both directions, times the largest kernel and the largest pixels that are not computed directly."""
    units = [list(row) for row in np.eye(tile + 2)]
    data, result = (np.array([f[tile](row) for row in units]).T for f in (DATA_TRANSFORM, RESULT_TRANSFORM))
    gain = (np.abs(result) * np.linalg.norm(data, axis=1) * np.linalg.norm(KERNEL_TRANSFORM[tile], axis=1)).sum(1).max() ** 2
    assert gain < {2: 2.0**4, 4: 94}[tile]
    assert gain * LARGEST * np.sqrt(LANES * 2.0**128) < np.finfo(np.float32).max  # each lane of the sum of squares is finite


@pytest.mark.parametrize(("growth", "algorithm"), [(5.0, W4), (4.0, W2), (1.7, DIRECT)])
def test_weights_grow_no_more_than_allowed(growth, algorithm):
    with options.override(weight_growth=growth):
        assert _fastest(_info(1, 64, 56, 56), _info(64, 64, 3, 3), _attrs(), Target("znver5")) == algorithm


@pytest.mark.parametrize("tile", [2, 4])
def test_every_pass_keeps_results(tile):
    mod, _, _ = _network(1, 32, 32, 6, 9, np.random.default_rng(0))
    compile_module(mod, verify=True, choices={"*": NAMES[tile]})


def test_interpolation_points_are_precise():
    """The error of tiles of 4 is at most 2.5 times that of plain sums (of 4 for the points 0, 1, -1, 2, -2 and infinity)."""
    rng = np.random.default_rng(0)
    mod, weight, bias = _network(1, 64, 64, 28, 28, rng)
    x = rng.standard_normal((1, 64, 28, 28)).astype(np.float32)
    expected = np.maximum(_direct(x.astype(np.float64), weight.astype(np.float64), 1) + bias + x, 0)
    error = {}
    for accuracy in ("strict", "default"):
        with options.override(accuracy=accuracy):
            got = np.asarray(compile_module(mod).load()["main"](x))
        error[accuracy] = np.linalg.norm(got - expected)
    assert error["default"] < 2.5 * error["strict"]


def _scheduled(target, size=56, channels=64):
    """The kernel of a convolution of tiles of 4."""
    mod, _, _ = _network(1, channels, channels, size, size, np.random.default_rng(0))
    made = prepare(mod, target=target, pipeline=DEFAULT[: DEFAULT.index(schedule_module) + 1], choices={"*": W4})
    (kernel,) = (f for name, f in made.functions.items() if "winograd" in name)
    return kernel


def test_code_for_uneven_tiles_stands_beside_the_code_for_others():
    """Borders of pictures, which uneven tiles read with padding of their own, do not make a second copy of the transforms."""
    flat = lower(IRModule({"main": _scheduled(Target("x86-64-v4"))}))
    stores = [s.buffer.name for f in flat.functions.values() for s in statements(f.body) if type(s) is tir.BufferStore]
    assert stores.count("winograd_conv2d_data") == 36


@pytest.mark.parametrize("size", [56, 20])
def test_the_next_weights_are_fetched_while_one_tile_of_registers_passes(size):
    """Also where a panel of weights is read by one tile alone, so that no loop over tiles is left."""
    flat = lower(IRModule({"main": _scheduled(Target("x86-64-v4"), size)}))
    assert any(type(n) is tir.Call and n.op == "prefetch" for f in flat.functions.values() for n in walk(f.body))


def test_weights_that_a_run_passes_over_once_are_left_to_the_prefetchers_of_the_hardware():
    """One tile of registers is all rows, and the data of all tiles is transformed before: the panels are one stream."""
    flat = lower(IRModule({"main": _scheduled(Target("x86-64-v4"), size=7, channels=256)}))
    assert not any(type(n) is tir.Call and n.op == "prefetch" for f in flat.functions.values() for n in walk(f.body))


def test_passing_on_costs_what_does_not_stay_in_a_cache():
    """Stages hand each other data through the second-level cache where the first is too small for it, which takes longer the slower that cache is."""
    layer = _info(1, 64, 56, 56), _info(64, 64, 3, 3), _attrs()
    fast, slow = (Expectations(Setting(Target("znver5", l2_rate=rate))) for rate in (64, 16))
    cycles = lambda found: getattr(found, "cycles", found)  # of what is worked out when somebody asks, too
    grown = {m: cycles(convolution_algorithms(*layer, slow)[m]) / cycles(convolution_algorithms(*layer, fast)[m]) for m in (W4, DIRECT)}
    assert grown[W4] > 1.15 * grown[DIRECT]


def test_squares_are_added_up_where_the_tile_is_transformed():
    made = _scheduled(Target("x86-64-v4"))
    blocks = lambda loop: {s.name.removeprefix("winograd_conv2d_") for s in statements(loop) if type(s) is tir.Block}
    around = [blocks(s) for s in statements(made.body) if type(s) is tir.For]
    assert {"data_columns", "data", "parts"} in around


@pytest.mark.parametrize(("blocks", "lanes", "few"), [(1, 16, False), (2, 16, True), (2, 8, True), (4, 4, True), (1, 8, False)])
def test_tiles_of_few_channels_are_expected_to_be_uneven(blocks, lanes, few):
    """The share of tiles that are computed directly, against the test of random ones."""
    squares = np.random.default_rng(0).standard_normal((2000, blocks, 36, lanes)) ** 2
    cores = [[7, 8, 13, 14], [9, 10, 15, 16], [19, 20, 25, 26], [21, 22, 27, 28]]
    least = np.min([squares[:, :, core].sum((1, 2)) for core in cores], axis=0).sum(-1)
    turned_down = np.mean(least < squares.sum((1, 2, 3)) / unevenness(blocks * lanes) ** 2)
    assert abs(uneven_share(blocks * lanes, lanes) - turned_down) < 0.1 and (turned_down < 0.3) == few


def test_few_channels_are_not_computed_by_large_tiles():
    target = Target("znver5")
    for channels, wanted in ((16, W2), (64, W4)):
        layer = _info(1, channels, 12, 12), _info(368, channels, 3, 3), _attrs(), Expectations(Setting(target))
        assert fastest(convolution_algorithms(*layer)) == wanted


@pytest.mark.parametrize("name", ["znver5", "x86-64-v3", "x86-64", "neoverse-v1"])
def test_an_algorithm_that_is_not_priced_is_not_the_fastest(name):
    """Its products alone take longer than another algorithm in full. Whoever asks for its time gets it."""
    target, rng, left = Target(name), np.random.default_rng(7), 0
    lanes = target.lanes("float32")
    for _ in range(3):
        channels, outer, size = (int(rng.choice(n)) for n in ([4, 8], [4, 8], [5, 7, 14, 28]))
        layer = _info(1, channels * lanes, size, size), _info(outer * lanes, channels * lanes, 3, 3), _attrs()
        found = convolution_algorithms(*layer, Expectations(Setting(target)))
        later = [cycles for cycles in found.values() if isinstance(cycles, Later)]
        left += len(later)
        assert all(cycles.cycles >= found[fastest(found)] for cycles in later)
    assert left
