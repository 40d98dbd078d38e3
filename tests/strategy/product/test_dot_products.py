# SPDX-License-Identifier: Apache-2.0
"""Free choices of products of 8-bit integers: the table, forced decisions, and that every choice sums the same."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.interp import interpret
from roundel.ir import IRModule, Var
from roundel.ir.dtype import INT64
from roundel.ir.errors import ScheduleError
from roundel.ir.tir import For, ForKind
from roundel.ir.visit import walk
from roundel.strategy.explain import alternatives, explain_program
from roundel.strategy.match.dot_product import fastest_group
from roundel.strategy.pack_constants import relayout
from roundel.strategy.parallelism import GRAIN
from roundel.strategy.roofline import rates
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

HOST = Target(Target.host(), features=tuple(f for f in Target.host().features if not f.startswith("amx")))  # whose tiles have a rule of their own
COMPILED = HOST.lanes("int32") in fastest_group(HOST, ("uint8", "int8", "int32"))
TARGET = HOST if COMPILED else Target("znver4")
WEIGHT = 1  # its position


def product(m, n, k):
    a, b, r = te.placeholder((m, k), "uint8", "A"), te.placeholder((k, n), "int8", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] + 3, "D")]).with_attr("global_symbol", "main")


def pointwise(inner, outer, high, wide, lanes=16):
    """A 1 x 1 convolution of a picture in blocks of channels."""
    x, w = te.placeholder((inner, high, wide, lanes), "uint8", "X"), te.placeholder((outer, inner, lanes, lanes), "int8", "W")
    c, v = te.reduce_axis((0, inner), "c"), te.reduce_axis((0, lanes), "v")
    y = te.compute((outer, high, wide, lanes), lambda o, i, j, q: te.sum(x[c, i, j, v].astype("int32") * w[o, c, v, q].astype("int32"), axis=[c, v]), "Y")
    return te.create_prim_func([x, w, y]).with_attr("global_symbol", "main")


def explained(func, **decisions):
    return explain_program(func.with_attr("decisions", decisions) if decisions else func, TARGET, constants=(WEIGHT,))


def scheduled(func, decisions, data, weight, result):
    """What the program computes under these decisions."""
    made, layouts = schedule_program(func.with_attr("decisions", decisions), TARGET, (WEIGHT,))
    assert made.attrs["scheduled"] == "dot_products"
    packed = relayout(weight, layouts[WEIGHT], [n.value for n in made.buffer_params[WEIGHT].shape])
    out, mod = np.full(result, -1, np.int32), IRModule({"main": made})
    (rd.build(mod, threads=1) if COMPILED else interpret(mod))["main"](data, packed, out)
    return out


def numbers(*shape, dtype="uint8"):
    info = np.iinfo(dtype)
    return np.random.default_rng(0).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("m, n, k", [(7, 48, 12), (1, 16, 4), (37, 112, 20), (13, 24, 8), (5, 4, 4)])
def test_candidates_of_products_sum_the_same(m, n, k):
    func, table = product(m, n, k), explained(product(m, n, k)).candidates
    data, weight = numbers(m, k), numbers(k, n, dtype="int8")
    some = np.random.default_rng(1).choice(len(table), min(3, len(table)), replace=False).tolist()
    for choice in [{}, *({"lanes": n} for n in set(table.columns["lanes"].tolist())), *map(table.decisions, some)]:
        out = scheduled(func, choice, data, weight, (m, n))
        np.testing.assert_array_equal(out, data.astype(np.int32) @ weight.astype(np.int32) + 3)


@pytest.mark.parametrize("inner, outer, high, wide", [(2, 3, 5, 7), (1, 1, 3, 1), (3, 5, 2, 13)])
def test_candidates_of_convolutions_sum_the_same(inner, outer, high, wide):
    func, data, weight = pointwise(inner, outer, high, wide), numbers(inner, high, wide, 16), numbers(outer, inner, 16, 16, dtype="int8")
    expected = np.einsum("chwv,ocvq->ohwq", data.astype(np.int32), weight.astype(np.int32))
    table = explained(func).candidates
    some = np.random.default_rng(1).choice(len(table), min(3, len(table)), replace=False).tolist()
    for choice in [{}, {"lanes": 8}, {"lanes": 16, "rows": wide}, *map(table.decisions, some)]:
        np.testing.assert_array_equal(scheduled(func, choice, data, weight, expected.shape), expected)


def test_tables_hold_what_fits_the_registers_and_the_columns():
    found = explained(product(64, 48, 64))
    c = found.candidates.columns
    assert found.rule == "dot_products" and set(c) == {"rows", "vectors", "lanes"} and len(found.candidates) > 100
    assert np.all(c["rows"] * c["vectors"] + c["vectors"] < TARGET.vector_registers)
    assert np.all(c["vectors"] * c["lanes"] <= 48) and set(c["lanes"].tolist()) <= {4, 8, 16}
    assert found.candidates.expected(found.decisions) == found.candidates.cycles.min()
    assert set(explained(product(64, 24, 64)).candidates.columns["lanes"].tolist()) == {4, 8}  # 16 do not fill 24
    assert explained(product(1, 16, 4)).candidates.columns["rows"].max() == 1


@pytest.mark.parametrize("cpu", ["x86-64-v3", "skylake-avx512"])
def test_instructions_made_of_several_have_registers_for_what_is_between_them(cpu):
    """Without sums of products of bytes, operands are widened once for all uses, and each product waits in a register to be added: tiles of 14 rows took 1.5
    times as long as the best, since sums went through memory."""
    target = Target(cpu)
    found = explain_program(product(40, 320, 776), target, constants=(WEIGHT,))
    c = found.candidates.columns
    assert found.rule == "dot_products" and np.all(c["rows"] * c["vectors"] + c["vectors"] + 2 <= target.vector_registers)
    assert found.decisions["vectors"] > 1  # fewer operands to widen than with one vector


def test_what_was_passed_over_is_told():
    found = explained(product(64, 48, 64))
    others = alternatives(found, TARGET, rates(TARGET))
    seconds = [s for _, s in others]
    assert len(others) == 8 and seconds == sorted(seconds) and all(set(d) == {"rows", "vectors", "lanes"} for d, _ in others)
    assert all(any(found.decisions[n] != v for n, v in d.items()) for d, _ in others)


def test_forced_decisions():
    func = product(64, 64, 64)
    free = explained(func).decisions
    assert free["rows"] != 7 and free["lanes"] == TARGET.lanes("int32")
    found = explained(func, rows=7)
    assert found.rule == "dot_products" and found.decisions["rows"] == 7
    narrow = explained(func, rows=3, lanes=8, vectors=2)
    assert {n: narrow.decisions[n] for n in ("rows", "vectors", "lanes")} == {"rows": 3, "vectors": 2, "lanes": 8}
    for wrong, why in (({"rows": 1000}, "cannot have rows=1000"), ({"order": 1}, "no decision 'order'")):
        with pytest.raises(ScheduleError, match=f"sketch dot_products.*{why}"):
            explained(func, **wrong)


def test_grain_is_a_decision():
    free = explained(product(512, 512, 512))
    assert free.decisions[GRAIN] >= 1
    forced = explained(product(512, 512, 512), grain=free.decisions[GRAIN] + 1, rows=4)
    assert forced.decisions[GRAIN] == free.decisions[GRAIN] + 1 and forced.decisions["rows"] == 4


def test_symbolic_and_empty_rows():
    found = explained(product(Var("m", INT64, True), 96, 64))
    assert found.rule == "dot_products" and found.decisions["rows"] > 1
    assert explained(product(0, 96, 64)).candidates.columns["rows"].max() == 1


@pytest.mark.parametrize("func, constants, why", [(product(8, 16, 8), (), "B is no constant"), (product(8, 16, 6), (1,), "r is no whole number of groups of 4"),
                                                  (product(8, 15, 8), (1,), "its columns fill no vector")])
def test_instructions_that_are_refused_are_told_with_the_reason(func, constants, why):
    passed = explain_program(func, TARGET, constants=constants).passed_over
    assert why in passed["dot_products by avx512vnni.dot_16x4_u8i8i32"]


@pytest.mark.parametrize("cpu, name", [("znver4", "avx512vnni.dot_16x4_u8i8i32"), ("alderlake", "avxvnni.dot_8x4_u8i8i32"), ("haswell", "avx2.dot_8x2_u8i8i32"),
                                       ("neoverse-v1", "neon.usdot.dot_4x4_u8i8i32")])
def test_the_fastest_instruction_of_each_machine_is_taken(cpu, name):
    target = Target(cpu)
    assert fastest_group(target, ("uint8", "int8", "int32"))[target.lanes("int32")].intrin.name == name
    assert explain_program(product(8, 32, 8), target, constants=(WEIGHT,)).rule == "dot_products"


def test_c_source_has_no_instructions_of_llvm():
    assert not fastest_group(Target("c -mcpu=znver4"), ("uint8", "int8", "int32"))


def test_what_is_computed_of_the_sums_is_counted():
    """Few products for each result, which is brought to 8 bits again: what follows the sums takes as long as they do."""
    m, n, k = 784, 192, 16
    a, b, r = te.placeholder((m, k), "uint8", "A"), te.placeholder((k, n), "int8", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), "C")
    scaled = te.compute((m, n), lambda i, j: te.nearbyint(c[i, j].astype("float32") * 0.01 + 3.0), "S")
    low = te.compute((m, n), lambda i, j: te.min(te.max(scaled[i, j], 0.0), 255.0).astype("uint8"), "Y")
    sums, results = (explain_program(te.create_prim_func([a, b, x]).with_attr("global_symbol", "main"), Target("znver4", cores=2), constants=(WEIGHT,))
                     for x in (c, low))
    assert results.cycles > 1.2 * sums.cycles
    assert results.decisions[GRAIN] < sums.decisions.get(GRAIN, 1 << 60)  # a thread has enough to do with fewer of them


@pytest.mark.parametrize("columns", [5000, 4112])
def test_columns_that_are_no_whole_number_of_tiles_run_in_parallel(columns):
    """209 tiles of 3 vectors hold 625 and two more that do not exist: a tile's vectors are found without a remainder, which would hide that tiles are apart."""
    func, _ = schedule_program(product(17, columns, 256), TARGET, (WEIGHT,))
    assert func.attrs["scheduled"] == "dot_products" and not func.attrs.get("schedule_notes")
    assert any(loop.kind is ForKind.PARALLEL for loop in walk(func.body) if type(loop) is For)
