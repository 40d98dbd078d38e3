# SPDX-License-Identifier: Apache-2.0
"""Generation rules, postprocessors and mutators: spaces that a user describes in a few lines, and what becomes of their candidates."""

import json

import numpy as np
import pytest

import roundel as rd
from roundel import strategy, te
from roundel.intrinsics import TensorIntrin
from roundel.ir.equal import structural_equal
from roundel.ir.errors import OptionError, ScheduleError
from roundel.schedule import Schedule
from roundel.schedule.trace import Trace
from roundel.script import tir as T
from roundel.strategy import Program
from roundel.strategy.generation import generated
from roundel.strategy.generation_rules import auto_inline, cache_write, multi_level_tiling, packed_operand, partial_sums, tensorized
from roundel.strategy.records import Timing
from roundel.strategy.refine import refined
from roundel.strategy.replay import record_of, replay
from roundel.target import Target
from roundel.tune.measure.plan import packed

TARGET = Target.host()


def product(m=24, n=32, k=40, epilogue=True):
    a, b, r = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B"), te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] * 2 + 1, "D")] if epilogue else [a, b, c])


def convolution():
    x, w = te.placeholder((1, 8, 14, 14), "float32", "X"), te.placeholder((8, 8, 3, 3), "float32", "W")
    c, p, q = te.reduce_axis((0, 8)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    return te.create_prim_func([x, w, te.compute((1, 8, 12, 12), lambda n, o, i, j: te.sum(x[n, c, i + p, j + q] * w[o, c, p, q], axis=(c, p, q)))])


def largest():
    x, r = te.placeholder((12, 60), "float32", "X"), te.reduce_axis((0, 60), "r")
    return te.create_prim_func([x, te.compute((12,), lambda i: te.max(x[i, r], axis=r), "Y")])


def results(func):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([n.value for n in b.shape]).astype("float32") for b in func.buffer_params]
    rd.build(func.with_attr("global_symbol", "main"))(*arrays)
    return arrays[-1]


def candidates(rule, func, count, seed=0):
    """Sketches with random candidates of each, and the one that is expected to be the fastest."""
    for sketch in rule(Program(func, TARGET)):
        rng = np.random.default_rng(seed)
        for k in [*rng.integers(max(len(sketch.candidates), 1), size=count)] if len(sketch.candidates) else []:
            yield sketch, sketch.candidates.decisions(int(k))
        yield sketch, sketch.best()


@pytest.mark.parametrize("rules", [
    [auto_inline, multi_level_tiling()], [multi_level_tiling("SSRS", write=False)], [auto_inline, partial_sums()], [partial_sums(lanes=8)],
    [packed_operand(1, 8)], [cache_write()], [packed_operand(0, 4, axis=0), multi_level_tiling("SSSRRS", most_innermost=16)]])
@pytest.mark.parametrize("make", [product, convolution, largest])
def test_every_candidate_computes_the_same(rules, make):
    func = make()
    wanted, found = results(strategy.schedule_program(func, TARGET)[0]), 0
    for sketch, choice in candidates(generated("mine", rules), func, 2):
        np.testing.assert_allclose(results(sketch.schedule(choice).func), wanted, rtol=1e-3, atol=1e-4)
        found += 1
    assert found or (make is largest and len(rules) == 1)  # it has one operand alone


def test_a_hundred_thousand_candidates_have_an_expected_time_before_any_is_scheduled():
    (sketch,) = generated("tiled", [auto_inline, multi_level_tiling()])(Program(product(128, 128, 256), TARGET))
    assert len(sketch.candidates) > 90_000 and len(np.unique(sketch.candidates.cycles)) > 1000
    best, worst = sketch.candidates.ranking()[[0, -1]]
    assert sketch.candidates.cycles[worst] > 20 * sketch.candidates.cycles[best]


def test_what_is_generated_is_scheduled_in_other_processes():
    assert all(packed(s) for s in generated("tiled", [auto_inline, multi_level_tiling(), partial_sums()])(Program(product(), TARGET)))


@pytest.mark.parametrize("structure", ["", "S", "RS", "SSR", "SSRX"])
def test_structures_that_tiling_cannot_have(structure):
    with pytest.raises(OptionError, match="structure"):
        multi_level_tiling(structure)


@T.prim_func
def four_by_four(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[T.int64(), T.int64()])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[T.int64(), T.int64()])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[T.int64(), T.int64()])
    with T.block("root"):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@pytest.fixture
def intrinsic():
    name = "test_four_by_four"
    if name not in TensorIntrin.names():
        TensorIntrin.register(name, four_by_four, four_by_four)
    return name


def test_an_intrinsic_of_ones_own_is_in_the_space(intrinsic):
    func = product(epilogue=False)
    (sketch,) = generated("mine", [tensorized(intrinsic)])(Program(func, TARGET))
    np.testing.assert_allclose(results(sketch.schedule().func), results(strategy.schedule_program(func, TARGET)[0]), rtol=1e-3)
    with pytest.raises(Exception, match="no_such"):
        tensorized("no_such_intrinsic")


# --- postprocessors and mutators


def unrolled(sch):
    sch.unroll(sch.get_loops(sch.get_block("C_update"))[-2])


def refuses_tall(sch):
    return sch.get(sch.get_loops(sch.get_block("C_update"))[-2]).extent.value < 4


def test_a_postprocessor_has_the_last_word():
    rule = generated("mine", [multi_level_tiling("SSRS", write=False, unroll=False)], postprocessors=[unrolled, refuses_tall])
    outcomes = set()
    for sketch, choice in candidates(rule, product(epilogue=False), 12):
        try:
            applied = sketch.schedule(choice)
        except ScheduleError as error:
            assert "refuses_tall" in str(error)
            outcomes.add("refused")
        else:
            kinds = [i.kind for i in applied.schedule.trace]
            assert kinds.index("enter_postproc") < len(kinds) - 1 and "unroll" in kinds[kinds.index("enter_postproc") :]
            outcomes.add("taken")
    assert outcomes == {"taken", "refused"}


def test_postprocessors_go_behind_any_rule_and_into_records():
    program = Program(product(epilogue=False), TARGET)
    rule = next(r for r in strategy.rules.rules_in_order() if r.name == "generic")

    def marked(sch):
        sch.annotate(sch.get_block("root"), "note", 1)

    (sketch,) = refined(rule, [marked], name="marked")(program)
    applied = sketch.schedule()
    assert sketch.name == "marked" and applied.func.root_block.annotations["note"] == 1
    record = record_of(program, "marked", applied, threads=1, timings=[Timing((), 1e-3)])
    assert structural_equal(replay(program, record).func, applied.func)


TUNED = '''
b0 = sch.get_block(name="C", func_name="main")
b1 = sch.get_block(name="root", func_name="main")
sch.annotate(block_or_loop=b0, ann_key="meta_schedule.tiling_structure", ann_val="SSRSRS")
l2, l3, l4 = sch.get_loops(block=b0)
v5, v6, v7, v8 = sch.sample_perfect_tile(loop=l2, n=4, max_innermost_factor=64, decision=[4, 2, 1, 3])
l9, l10, l11, l12 = sch.split(loop=l2, factors=[v5, v6, v7, v8], preserve_unit_iters=True)
v13, v14, v15, v16 = sch.sample_perfect_tile(loop=l3, n=4, max_innermost_factor=64, decision=[2, 1, 1, 16])
l17, l18, l19, l20 = sch.split(loop=l3, factors=[v13, v14, v15, v16], preserve_unit_iters=True)
v21, v22 = sch.sample_perfect_tile(loop=l4, n=2, max_innermost_factor=64, decision=[10, 4])
l23, l24 = sch.split(loop=l4, factors=[v21, v22], preserve_unit_iters=True)
sch.reorder(l9, l17, l10, l18, l23, l11, l19, l24, l12, l20)
b25 = sch.cache_write(block=b0, write_buffer_index=0, storage_scope="global")
sch.reverse_compute_at(block=b25, loop=l18, preserve_unit_loops=True, index=-1)
sch.annotate(block_or_loop=b1, ann_key="meta_schedule.parallel", ann_val=160)
sch.annotate(block_or_loop=b1, ann_key="meta_schedule.vectorize", ann_val=64)
v26 = sch.sample_categorical(candidates=[0, 16, 64, 512], probs=[0.25, 0.25, 0.25, 0.25], decision=2)
sch.annotate(block_or_loop=b1, ann_key="meta_schedule.unroll_explicit", ann_val=v26)
sch.enter_postproc()
b27 = sch.get_block(name="root", func_name="main")
sch.unannotate(block_or_loop=b27, ann_key="meta_schedule.parallel")
sch.unannotate(block_or_loop=b27, ann_key="meta_schedule.vectorize")
sch.unannotate(block_or_loop=b27, ann_key="meta_schedule.unroll_explicit")
b28, b29 = sch.get_child_blocks(b27)
l30, l31, l32, l33, l34, l35, l36, l37, l38, l39 = sch.get_loops(block=b28)
l40 = sch.fuse(l30, l31, l32, l33, preserve_unit_iters=True)
sch.parallel(loop=l40)
l41 = sch.fuse(l39, preserve_unit_iters=True)
sch.vectorize(loop=l41)
sch.annotate(block_or_loop=l40, ann_key="pragma_auto_unroll_max_step", ann_val=64)
sch.annotate(block_or_loop=l40, ann_key="pragma_unroll_explicit", ann_val=1)
l42, l43, l44 = sch.get_loops(block=b29)
l45 = sch.fuse(l44, preserve_unit_iters=True)
sch.vectorize(loop=l45)
b46 = sch.get_block(name="C", func_name="main")
l47, l48, l49, l50, l51, l52, l53 = sch.get_loops(block=b46)
b54 = sch.decompose_reduction(block=b46, loop=l48)
'''


def test_a_whole_trace_of_a_tutorial_replays_with_its_postprocessing():
    """As MetaSchedule prints the best schedule of a product."""
    func = product(epilogue=False)
    sch = Schedule(func)
    exec(TUNED, {"sch": sch})
    text = json.dumps(sch.trace.as_data())
    again = Schedule(func)
    Trace.from_data(json.loads(text)).apply_to(again)
    assert structural_equal(again.func, sch.func)
    np.testing.assert_allclose(results(again.func), results(strategy.schedule_program(func, TARGET)[0]), rtol=1e-3)
    program = Program(func, TARGET)
    record = record_of(program, "tutorial", strategy.Applied(sch), threads=1, timings=[Timing((), 1e-3)])
    assert structural_equal(replay(program, record).func, sch.func)
    without = Schedule(func)
    sch.trace.apply_to_schedule(without, remove_postproc=True)
    assert "T.parallel" not in without.func.script() and "T.parallel" in sch.func.script()
