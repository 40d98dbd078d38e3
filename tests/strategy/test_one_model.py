# SPDX-License-Identifier: Apache-2.0
"""What a table expects of a candidate is what the model expects of the program that this candidate becomes."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.driver import DEFAULT, prepare
from roundel.ir import tir
from roundel.ir.dtype import INT64
from roundel.strategy import schedule_module
from roundel.strategy.attention.attention import attention
from roundel.strategy.cost import expected_cycles
from roundel.strategy.nest import Nest, Operand
from roundel.strategy.pointwise.elementwise import elementwise
from roundel.strategy.product.contraction import contraction
from roundel.strategy.program import Program
from roundel.strategy.reduction.columns import columns
from roundel.strategy.reduction.rows import rows
from roundel.strategy.statements import number
from roundel.strategy.window.windows import windows
from roundel.target import Target

from ..graph.algorithms.test_attention import chain


def product(m=96, n=128, k=200):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "r")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")])


def depthwise(blocks=4, side=30, lanes=16):
    x, w = te.placeholder((blocks, side, side, lanes), "float32", "X"), te.placeholder((blocks, 3, 3, lanes), "float32", "W")
    h, v, out = te.reduce_axis((0, 3), "h"), te.reduce_axis((0, 3), "v"), side - 2
    y = te.compute((blocks, out, out, lanes), lambda b, i, j, c: te.sum(x[b, i + h, j + v, c] * w[b, h, v, c], axis=[h, v]), "Y")
    return te.create_prim_func([x, w, y])


def sums(shape, along):
    x, r = te.placeholder(shape, "float32", "X"), te.reduce_axis((0, shape[along]), "r")
    at = (lambda i: x[r, i]) if along == 0 else (lambda i: x[i, r])
    return te.create_prim_func([x, te.compute((shape[1 - along],), lambda i: te.sum(at(i), axis=r), "Y")])


def clipped_product(m=196, n=96, k=32):
    """A product of few steps, with arithmetic after it."""
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    low = te.compute((m, n), lambda i, j: te.exp(c[i, j] * 3 + 1), "L")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.exp(low[i, j]) * low[i, j], "Y")])


def prepared_windows(side=30, lanes=16):
    """Largest numbers of windows over what is computed before."""
    x, h, v, out = te.placeholder((side, side, lanes), "float32", "X"), te.reduce_axis((0, 3), "h"), te.reduce_axis((0, 3), "v"), side - 2
    e = te.compute((side, side, lanes), lambda i, j, c: te.exp(x[i, j, c]) / (x[i, j, c] + 1), "E")
    return te.create_prim_func([x, te.compute((out, out, lanes), lambda i, j, c: te.max(e[i + h, j + v, c], axis=[h, v]), "Y")])


def elements(shape=(200, 333)):
    x, y = te.placeholder(shape, "float32", "X"), te.placeholder(shape[1:], "float32", "Y")
    z = te.compute(shape, lambda i, j: x[i, j] * y[j] + 1, "Z")
    return te.create_prim_func([x, y, te.compute(shape, lambda i, j: te.exp(z[i, j]) + 0.5, "W")])


def attended(rows=96, keys=240, width=64, heads=2):
    """Queries over keys and their values: two products with a softmax between them."""
    shapes = [(1, n, heads, width) for n in (rows, keys, keys)]
    mod = prepare(chain(*shapes), target=Target("znver5", cores=1), pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    return max((f for _, f in mod.items() if isinstance(f, tir.PrimFunc)), key=lambda f: len(f.root_block.alloc_buffers))



CASES = {"contraction": (contraction, product()), "windows": (windows, depthwise()), "columns": (columns, sums((100, 1024), 0)),
         "rows": (rows, sums((256, 1024), 1))}
ATTENDED = {"kept": {"span": 0, "packed": 0}, "in spans": {"span": 120, "packed": 0}, "together": {"span": 0, "packed": 1}}
OTHERS = {"epilogue": (contraction, clipped_product()), "prologue": (windows, prepared_windows()), "elementwise": (elementwise, elements())}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cpu", ["znver5", "x86-64-v3", "neoverse-n1"])
def test_tables_and_scheduled_programs_are_priced_alike(name, cpu):
    rule, func = CASES[name]
    target = Target(cpu, cores=1)
    sketch = rule(Program(func, target))[0]
    order = sketch.candidates.ranking()
    for k in (order[0], order[len(order) // 4]):
        choice = sketch.candidates.decisions(int(k))
        priced = expected_cycles(sketch.schedule(choice).func, target, cores=1)
        assert 0.6 < sketch.expected(choice) / priced < 1.6, choice


@pytest.mark.parametrize("pins", ATTENDED.values(), ids=ATTENDED)
@pytest.mark.parametrize("cpu", ["znver5", "x86-64-v3", "neoverse-n1"])
def test_attention_is_priced_as_the_program_that_it_becomes(cpu, pins):
    target = Target(cpu, cores=1)
    (sketch,) = attention(Program(attended(), target))
    choice = sketch.candidates.best(np.logical_and.reduce([sketch.candidates.columns[n] == v for n, v in pins.items()]))
    assert 0.6 < sketch.expected(choice) / expected_cycles(sketch.schedule(choice).func, target, cores=1) < 1.6, choice


def test_what_attention_decides_depends_on_the_machine_and_on_sizes():
    """All scores are kept where a cache holds them, and keys are taken in spans where none does; a symbolic number of keys counts as several."""
    def best(target, **sizes):
        (sketch,) = attention(Program(attended(**sizes), target))
        return sketch.best(), sketch

    large, small = Target("znver5", cores=1), Target("znver5", cores=1, l1_bytes=8 << 10, l2_bytes=64 << 10, l3_bytes=64 << 10)
    (kept, _), (spans, _) = best(large, keys=720), best(small, keys=720)
    assert kept["span"] == 0 < spans["span"]
    n = tir.Var("n", INT64, size=True)
    _, symbolic = best(large, rows=n, keys=n)
    times = [best(large, rows=n, keys=n)[1].candidates.cycles.min() for n in (32, 2048)]
    assert times[0] < symbolic.candidates.cycles.min() < times[1]


@pytest.mark.parametrize("neighbours, vectors", [(12, 1), (3, 7), (2, 7)])
def test_vectors_beside_each_other_load_windows_of_their_own(neighbours, vectors):
    """As many loads are counted for several vectors of channels in a candidate as in the program that it becomes."""
    target, func = Target("znver5", cores=1), depthwise(blocks=1, side=14, lanes=112)
    sketch = windows(Program(func, target))[0]
    choice = {"neighbours": neighbours, "vectors": vectors, "straight": 1, "order": 0}
    assert sketch.expected(choice) == pytest.approx(expected_cycles(sketch.schedule(choice).func, target, cores=1), rel=0.2)


@pytest.mark.parametrize("cpu", ["znver4", "x86-64-v3"])
def test_neighbours_share_the_tests_of_a_largest_number(cpu):
    """Whether an element is a number is tested once for all windows that it is in, and as long as registers hold the answers."""
    x = te.placeholder((4, 34, 66), "float32", "X")
    h, w = (te.reduce_axis((0, 5), name) for name in "hw")
    func = te.create_prim_func([x, te.compute((4, 30, 62), lambda c, i, j: te.max(x[c, i + h, j + w], axis=[h, w]), "largest")])
    target = Target(cpu, cores=1)
    sketch = windows(Program(func, target))[0]
    expected = {n: sketch.expected({"neighbours": n, "vectors": 1, "straight": 2, "order": 0}) for n in (1, 5, 10)}
    assert expected[5] < 0.9 * expected[1] and expected[5] < 0.95 * expected[10]
    scheduled = sketch.schedule({"neighbours": 5, "vectors": 1, "straight": 2, "order": 0}).func
    assert expected[5] == pytest.approx(expected_cycles(scheduled, target, cores=1), rel=0.2)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("cpu", ["znver5", "x86-64-v3", "neoverse-n1"])
def test_a_sketch_expects_the_time_of_all_blocks(name, cpu):
    rule, func = OTHERS[name]
    target = Target(cpu, cores=1)
    sketch = rule(Program(func, target))[0]
    found = sketch.expected(sketch.best())
    assert 0.6 < found / expected_cycles(sketch.schedule().func, target, cores=1) < 1.6
    assert sketch.candidates is None or found > 1.1 * sketch.candidates.cycles.min()


@pytest.mark.parametrize("name", CASES)
def test_candidates_cost_no_less_than_their_instructions(name):
    rule, func = CASES[name]
    target = Target("znver5", cores=1)
    table = rule(Program(func, target))[0].candidates
    (block,) = Program(func, target).reductions
    steps = 1
    for axis in block.block.iter_vars:
        steps *= number(axis.dom.extent, {})
    assert table.cycles.min() >= 0.5 * steps / target.lanes("float32") / target.fma_ports


def test_rows_that_lie_a_power_of_two_apart_share_few_places_of_a_cache():
    packed, apart = (Operand(((1024, {"k": 1}), (1024, {"j": 1})), 4.0, 64, is_packed=flag) for flag in (True, False))
    cross = [Nest([("i", 8), ("k", 1024)], [o], {"j": 16}).traffic([200_000], [4096])[0] for o in (packed, apart)]
    assert cross[0] == 0 < cross[1]


def test_a_cache_that_is_somewhat_too_small_keeps_a_share_of_what_comes_around_again():
    """A panel that eight rounds read: once where it fits, and gradually up to eight times where it does not."""
    nest = Nest([("round", 8), ("k", 1024)], [Operand(((1024, {"k": 1}), (16, {"j": 1})), 4.0, 64, is_packed=True)], {"j": 16})
    size = 1024 * 64
    cross = lambda capacity, gradual: nest.traffic([capacity], [0], gradual)[0]
    assert [cross(0.99 * size, gradual) for gradual in (False, True)] == [8 * size, pytest.approx(1.07 * size)]
    assert size < cross(0.9 * size, True) < cross(0.5 * size, True) < cross(1, True) <= 8 * size and cross(size, True) == 0
