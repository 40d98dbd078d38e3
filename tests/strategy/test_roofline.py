# SPDX-License-Identifier: Apache-2.0
"""FLOPs, bytes and bounds of tensor programs, and the account of how they are scheduled."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import tir
from roundel.strategy.explain import explain_program, predicted_seconds
from roundel.strategy.roofline import Cost, Rates, program_cost, rates, roofline
from roundel.target import Target


def matmul(m, k, n, name="C"):
    a, b = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name)
    return te.create_prim_func([a, b, c])


def test_matmul():
    cost = program_cost(matmul(13, 17, 5), constants=(1,))
    assert cost == Cost(2 * 13 * 17 * 5, 4 * 17 * 5, 4 * (13 * 17 + 13 * 5))


def test_what_a_likely_condition_leaves_out_counts_for_nothing():
    a, b, even = te.placeholder((64, 32), "float32", "A"), te.placeholder((64, 512), "float32", "B"), te.placeholder((64,), "bool", "even")
    r = te.reduce_axis((0, 512), "r")
    rare = te.compute((64,), lambda i: te.sum(b[i, r] * b[i, r], axis=r), "rare")
    c = te.compute((64, 32), lambda i, j: tir.select(tir.call("likely", even[i]), a[i, j] * 2.0, rare[i]), "C")
    cost = program_cost(te.create_prim_func([a, b, even, c]))
    assert cost.flops == 64 * 32 and cost.data_bytes == 2 * 4 * 64 * 32


def test_symbolic_sizes():
    n = te.size_var("n")
    cost = program_cost(matmul(n, 8, 4), sizes={"n": 10})
    assert cost.flops == 2 * 10 * 8 * 4
    assert program_cost(matmul(n, 8, 4)).flops == 2 * 8 * 4


def test_elementary_functions_and_conditions():
    a = te.placeholder((6, 7), "float32", "A")
    b = te.compute((6, 7), lambda i, j: te.if_then_else(i + j < 3, te.exp(a[i, j]) + 1.0, a[i, j]), "B")
    cost = program_cost(te.create_prim_func([a, b]))
    assert cost.flops == 6 * 7 * 15
    assert cost.data_bytes == 2 * 4 * 6 * 7


def test_gather_reads_what_it_needs():
    table, index = te.placeholder((30000, 8), "float32", "table"), te.placeholder((5,), "int64", "index")
    out = te.compute((5, 8), lambda i, j: table[index[i], j], "out")
    cost = program_cost(te.create_prim_func([table, index, out]), constants=(0,))
    assert cost == Cost(0, 4 * 5 * 8, 8 * 5 + 4 * 5 * 8)


def test_roofline():
    machine = Rates(100.0, ((1000.0, 50.0), (float("inf"), 10.0)))
    assert roofline(Cost(1e6, 0, 800), machine).limit == "compute"
    assert roofline(Cost(1e6, 0, 800), machine).seconds == pytest.approx(1e-5)
    from_memory = roofline(Cost(10, 800, 0), machine, constants=1e6)
    assert from_memory.limit == "memory" and from_memory.seconds == pytest.approx(80e-9)


def test_products_of_bytes_go_four_times_as_fast_where_an_instruction_sums_them():
    a, b = te.placeholder((13, 16), "uint8", "A"), te.placeholder((16, 32), "int8", "B")
    r = te.reduce_axis((0, 16), "r")
    c = te.compute((13, 32), lambda i, j: te.sum(te.cast(a[i, r], "int32") * te.cast(b[r, j], "int32"), axis=r), "C")
    cost = program_cost(te.create_prim_func([a, b, c]), constants=(1,))
    assert cost.narrow_products == {("uint8", "int8", "int32"): 2 * 13 * 16 * 32} and cost.flops == 2 * 13 * 16 * 32
    plain, fast = (roofline(cost, rates(Target(name))).compute * rates(Target(name)).gflops for name in ("znver3", "znver4"))
    assert plain == pytest.approx(4 * fast)


def test_rates_of_a_target():
    target = Target("znver3")
    one, two = rates(target, 1), rates(target.with_(cores=2), 2)
    assert two.gflops == 2 * one.gflops == pytest.approx(2 * target.peak_gflops())
    assert one.gbs(1000) > one.gbs(1 << 40)


def test_explanation():
    target = Target("znver4")
    found = explain_program(matmul(64, 64, 64), target)
    assert found.rule == "contraction" and found.decisions["rows"] * found.decisions["vectors"] <= target.vector_registers
    assert "elementwise" in found.passed_over and "sch.vectorize" in found.schedule
    machine = rates(target)
    assert predicted_seconds(found, target, machine) >= roofline(found.cost, machine).seconds
