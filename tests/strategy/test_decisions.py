# SPDX-License-Identifier: Apache-2.0
"""Free choices of schedule rules: every candidate computes the same, what a program may force, and the bytes of a nest."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.ir import IRModule
from roundel.ir.errors import ScheduleError
from roundel.strategy.candidates import combinations
from roundel.strategy.explain import alternatives, explain_program
from roundel.strategy.nest import Nest, Operand
from roundel.strategy.roofline import rates
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

TARGET = Target("znver4")


def matmul(m, n, k, fused=True):
    a, b = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    out = te.compute((m, n), lambda i, j: c[i, j] + 1.0, "D") if fused else c
    return te.create_prim_func([a, b, out]).with_attr("global_symbol", "main")


def conv(channels, outer, side, kernel):
    x, w = te.placeholder((channels, side, side), "float32", "X"), te.placeholder((channels, kernel, kernel, outer), "float32", "W")
    c, h, v = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, kernel), "h"), te.reduce_axis((0, kernel), "v")
    out = side - kernel + 1
    y = te.compute((out, out, outer), lambda i, j, o: te.sum(x[c, i + h, j + v] * w[c, h, v, o], axis=[c, h, v]), "Y")
    return te.create_prim_func([x, w, y]).with_attr("global_symbol", "main")


def depthwise(blocks, side, kernel, lanes):
    x, w = te.placeholder((blocks, side, side, lanes), "float32", "X"), te.placeholder((blocks, kernel, kernel, lanes), "float32", "W")
    h, v = te.reduce_axis((0, kernel), "h"), te.reduce_axis((0, kernel), "v")
    out = side - kernel + 1
    y = te.compute((blocks, out, out, lanes), lambda b, i, j, c: te.sum(x[b, i + h, j + v, c] * w[b, h, v, c], axis=[h, v]), "Y")
    return te.create_prim_func([x, w, y]).with_attr("global_symbol", "main")


def pool(blocks, side, kernel, lanes):
    x, h, v = te.placeholder((blocks, side, side, lanes), "float32", "X"), te.reduce_axis((0, kernel), "h"), te.reduce_axis((0, kernel), "v")
    out = (side - kernel) // 2 + 1
    y = te.compute((blocks, out, out, lanes), lambda b, i, j, c: te.max(x[b, i * 2 + h, j * 2 + v, c], axis=[h, v]), "Y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", "main")


@pytest.mark.parametrize("func, shapes", [
    (matmul(7, 37, 12), [(7, 12), (12, 37)]), (conv(3, 20, 9, 3), [(3, 9, 9), (3, 3, 3, 20)]), (depthwise(3, 13, 3, 16), [(3, 13, 13, 16), (3, 3, 3, 16)]),
    (pool(2, 15, 3, 37), [(2, 15, 15, 37)]),
])
def test_candidates_compute_the_same(func, shapes):
    target = Target.host()
    table = explain_program(func, target).candidates
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    expected = None
    for k in [int(table.ranking()[0]), *rng.choice(len(table), 4, replace=False).tolist()]:
        made, _ = schedule_program(func.with_attr("decisions", table.decisions(k)), target)
        assert made.attrs["scheduled"] in ("contraction", "windows")
        out = np.full([n.value for n in func.buffer_params[-1].shape], np.nan, np.float32)
        rd.build(IRModule({"main": made}), threads=1)["main"](*arrays, out)
        expected = out if expected is None else expected
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_forced_decisions():
    func = matmul(64, 64, 64)
    found = explain_program(func.with_attr("decisions", {"rows": 5}), TARGET)
    assert found.rule == "contraction" and found.decisions["rows"] == 5
    assert explain_program(func, TARGET).decisions["rows"] != 5
    with pytest.raises(ScheduleError, match="sketch contraction cannot have rows=1000\n.*rows can be 1 to 30"):
        explain_program(func.with_attr("decisions", {"rows": 1000}), TARGET)


def test_data_whose_panels_crowd_a_cache_may_be_copied():
    target, func = Target.host().with_(l2_bytes=8192), matmul(11, 64, 28)
    table = explain_program(func, target).candidates
    assert set(table.columns["copied"].tolist()) == {0, 1}
    assert "copied" not in explain_program(func, target, constants=(1,)).decisions
    assert "copied" not in explain_program(matmul(11, 66, 28), target).decisions
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((11, 28)).astype(np.float32), rng.standard_normal((28, 64)).astype(np.float32)
    for decisions in ({"copied": 0}, {"copied": 1}, {"copied": 1, "rows": 4, "vectors": 3, "lanes": target.lanes("float32")}):
        made, _ = schedule_program(func.with_attr("decisions", decisions), target)
        assert made.attrs["scheduled"] == "contraction"
        out = np.full((11, 64), np.nan, np.float32)
        rd.build(IRModule({"main": made}), threads=1)["main"](a, b, out)
        np.testing.assert_allclose(out, a @ b + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(19, 70, 512), (8, 64, 256), (1, 33, 256)])
@pytest.mark.parametrize("fused", [True, False])
def test_reductions_in_blocks(shape, fused):
    """Sums of blocks of the reduction, with and without something fused after them."""
    (m, n, k), target = shape, Target.host().with_(l2_bytes=8192, cores=1)
    func = matmul(m, n, k, fused)
    asked = func.with_attr("decisions", {"sketch": "contraction"})
    assert set(explain_program(asked, target).candidates.columns["blocks"].tolist()) == ({1, 2, 4} if k == 512 else {1, 2})
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    for decisions in ({"blocks": 1}, {"blocks": 2}, {"blocks": 2, "unroll": 1}, {"blocks": 4, "vectors": 2, "rows": 4}):
        if decisions["blocks"] == 4 and shape != (19, 70, 512):
            continue
        made, _ = schedule_program(func.with_attr("decisions", decisions), target)
        assert made.attrs["scheduled"] == "contraction"
        out = np.full((m, n), np.nan, np.float32)
        rd.build(IRModule({"main": made}), threads=1)["main"](a, b, out)
        np.testing.assert_allclose(out, a @ b + fused, rtol=1e-4, atol=1e-4)


def test_convolutions_in_blocks_of_channels():
    target = Target.host().with_(l2_bytes=4096, cores=1)
    x, w = te.placeholder((16, 3, 5, 16), "float32", "X"), te.placeholder((4, 16, 16, 16), "float32", "W")
    c, v = te.reduce_axis((0, 16), "c"), te.reduce_axis((0, 16), "v")
    y = te.compute((4, 3, 5, 16), lambda o, h, i, l: te.sum(x[c, h, i, v] * w[o, c, v, l], axis=[c, v]), "Y")
    func = te.create_prim_func([x, w, te.compute(y.shape, lambda *i: y[i] * 2.0, "Z")]).with_attr("global_symbol", "main")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((16, 3, 5, 16)).astype(np.float32), rng.standard_normal((4, 16, 16, 16)).astype(np.float32)
    for decisions in ({"rows": 3, "vectors": 2}, {"rows": 5, "vectors": 1}, {"unroll": 1}):
        made, _ = schedule_program(func.with_attr("decisions", decisions | {"blocks": 2}), target)
        assert made.attrs["scheduled"] == "contraction"
        out = np.full((4, 3, 5, 16), np.nan, np.float32)
        rd.build(IRModule({"main": made}), threads=1)["main"](a, b, out)
        np.testing.assert_allclose(out, 2 * np.einsum("chiv,ocvl->ohil", a, b), rtol=1e-4, atol=1e-4)


def test_grain_is_a_decision():
    func, target = matmul(256, 512, 64), TARGET.with_(cores=2)
    free = explain_program(func, target)
    assert free.decisions["grain"] >= 1 and "grain" not in free.candidates.columns
    assert free.decisions["grain"] in free.space["grain"] and len(free.space["grain"]) > 1 and free.pin["grain"] == free.decisions["grain"]
    forced = explain_program(func.with_attr("decisions", {"grain": free.decisions["grain"] + 1, "rows": 8}), target)
    assert forced.rule == "contraction" and forced.decisions["rows"] == 8 and forced.decisions["grain"] == free.decisions["grain"] + 1
    assert all("grain" not in decisions for decisions, _ in alternatives(forced, target, rates(target)))
    whole = explain_program(func.with_attr("decisions", {"grain": 1 << 20}), target)  # all that there is
    assert free.decisions["grain"] < whole.decisions["grain"] < 1 << 20
    for wrong in (0, -1, 1.5, "x", True, 1 << 63):
        with pytest.raises(ScheduleError, match="grain cannot be"):
            explain_program(func.with_attr("decisions", {"grain": wrong}), target)
    for wrong in (True, [4], 1.5, "4"):
        with pytest.raises(ScheduleError, match="rows of sketch contraction cannot be"):
            explain_program(func.with_attr("decisions", {"sketch": "contraction", "rows": wrong}), target)


def test_tables_hold_what_fits_the_registers():
    table = explain_program(matmul(64, 512, 64), TARGET).candidates
    c = table.columns
    assert len(table) > 300 and np.all(c["rows"] * c["vectors"] + c["vectors"] < TARGET.vector_registers)
    assert table.expected(table.best()) == table.cycles.min()
    fma = 64 * 512 * 64 / 16 / TARGET.fma_ports  # cycles of nothing but multiply-adds
    assert fma < table.cycles.min() < 1.25 * fma


def test_combinations():
    made = combinations({"a": (1, 2, 3), "b": (4, 5)}, lambda c: c["a"] * c["b"] != 10)
    assert sorted(zip(made["a"].tolist(), made["b"].tolist())) == [(1, 4), (1, 5), (2, 4), (3, 4), (3, 5)]


def test_traffic_of_a_matrix_product():
    a, b = Operand(((64, {"i": 1}), (32, {"k": 1})), 4.0, 64), Operand(((32, {"k": 1}), (48, {"j": 1})), 4.0, 64)
    tiles = np.array([8, 16])
    nest = Nest([("j", 48 // 16), ("i", 64 // tiles), ("k", 32)], [a, b], {"i": tiles, "j": 16})
    everything, panel, nothing = nest.traffic([1e9, 32 * 16 * 4 + 16 * 32 * 4, 0.0], (0, 0, 0))
    np.testing.assert_array_equal(everything, 0)
    np.testing.assert_array_equal(panel, 4 * (3 * 64 * 32 + 32 * 48))  # rows pass again for each panel
    np.testing.assert_array_equal(nothing, 64 * (3 * 64 * 32 + (64 // tiles) * 32 * 3))  # a line for each element of a row


def test_footprints_of_windows():
    x = Operand(((30, {"y": 2, "h": 1}), (40, {"x": 1, "w": 1})), 4.0, 64)
    assert x.bytes({"y": 3, "h": 3, "x": 8, "w": 5}) == 4.0 * 7 * 24  # rows begin in the middle of every other line
    assert x.bytes({"y": 100, "h": 3, "x": 8}) == 4.0 * 30 * 16
