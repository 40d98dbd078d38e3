# SPDX-License-Identifier: Apache-2.0
"""Names and parameters are those that TVM documents; illegal uses raise with a picture of the program."""

from __future__ import annotations

import inspect

import pytest

from roundel.ir import IRModule
from roundel.ir.errors import ScheduleError
from roundel.schedule import Schedule

from .programs import check, conv2d, elementwise, matmul, matmul_relu, softmax_like

DOCUMENTED = {
    "get_block": "name func_name",
    "get_sblock": "name func_name",
    "get_loops": "block",
    "get_child_blocks": "block_or_loop",
    "get_producers": "block",
    "get_consumers": "block",
    "get_output_blocks": "scope_block",
    "sample_categorical": "candidates probs decision",
    "sample_perfect_tile": "loop n max_innermost_factor decision",
    "sample_compute_location": "block decision",
    "merge": "loops",
    "fuse": "loops preserve_unit_iters",
    "split": "loop factors preserve_unit_iters disable_predication",
    "loop_partition": "loop factors preserve_unit_iters",
    "reorder": "ordered_loops",
    "reorder_block_iter_var": "block new_order",
    "add_unit_loop": "block_or_loop",
    "parallel": "loop",
    "vectorize": "loop",
    "bind": "loop thread_axis",
    "unroll": "loop",
    "cache_read": "block read_buffer_index storage_scope consumer_blocks",
    "cache_write": "block write_buffer_index storage_scope consumer_blocks",
    "reindex": "block buffer",
    "compute_at": "block loop preserve_unit_loops index",
    "reverse_compute_at": "block loop preserve_unit_loops index",
    "compute_inline": "block",
    "reverse_compute_inline": "block",
    "decompose_reduction": "block loop",
    "rfactor": "loop factor_axis",
    "storage_align": "block buffer_index axis factor offset",
    "set_scope": "block buffer_index storage_scope",
    "blockize": "target preserve_unit_iters",
    "tensorize": "block_or_loop tensor_intrin preserve_unit_iters",
    "annotate": "block_or_loop ann_key ann_val",
    "unannotate": "block_or_loop ann_key",
    "transform_layout": "block buffer index_map pad_value assume_injective_transform",
    "transform_block_layout": "block index_map",
    "decompose_padding": "block loop",
    "fuse_reduction_epilogue": "reduction_block epilogue_block",
    "pad_einsum": "block padding",
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_parameters(name):
    documented = DOCUMENTED[name].split()
    own = list(inspect.signature(getattr(Schedule, name)).parameters)[1:]
    assert own[: len(documented)] == documented


def test_the_schedule_itself():
    sch = Schedule(IRModule({"main": matmul_relu(), "other": elementwise()}), seed=1, debug_mask="all", error_render_level="fast", enable_check=True)
    sch.work_on("main")
    assert sch.func_working_on == "main" and set(sch.mod.functions) == {"main", "other"}
    sch.seed(7)
    loop = sch.get_loops("C")[0]
    first = [sch.get(f).value for f in sch.sample_perfect_tile(loop, n=2, max_innermost_factor=4)]
    sch.seed(7)
    assert [sch.get(f).value for f in sch.sample_perfect_tile(loop, n=2, max_innermost_factor=4)] == first
    assert isinstance(sch.fork_seed(), int) and sch.copy().mod is sch.mod
    assert [i.kind for i in sch.trace.insts][-1] == "sample_perfect_tile" and sch.trace.get_decision(sch.trace.insts[-1]) == first
    again = Schedule(sch.mod)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    sch.remove_rv(loop)
    with pytest.raises(ScheduleError, match="another schedule"):
        sch.unroll(loop)


def test_consumers_by_name_and_none():
    func = matmul_relu()
    sch = Schedule(func)
    sch.cache_read("E", 0, "global", ["E"])
    sch.cache_read(block="C", read_buffer_index=0, storage_scope="local", consumer_blocks=None)
    sch.cache_write("C", 0, "local", consumer_blocks=["C_global"])
    check(sch, func)


ILLEGAL = {
    "split by too little": (matmul, lambda s: s.split(s.get_loops("C")[0], [2, 2])),
    "split twice unknown": (matmul, lambda s: s.split(s.get_loops("C")[0], [None, None])),
    "fuse apart": (matmul, lambda s: s.fuse(s.get_loops("C")[0], s.get_loops("C")[2])),
    "reorder across blocks": (elementwise, lambda s: s.reorder(s.get_loops("B")[0], s.get_loops("C")[0])),
    "loop_partition too far": (matmul, lambda s: s.loop_partition(s.get_loops("C")[0], [20, None])),
    "merge apart": (matmul_relu, lambda s: s.merge(s.get_loops("C")[0], s.get_loops("F")[0])),
    "parallel reduction": (matmul, lambda s: s.parallel(s.get_loops("C")[2])),
    "vectorize reduction": (matmul, lambda s: s.vectorize(s.get_loops("C")[2])),
    "bind reduction": (matmul, lambda s: s.bind(s.get_loops("C")[2], "blockIdx.x")),
    "bind to nothing": (matmul, lambda s: s.bind(s.get_loops("C")[0], "thread.x")),
    "cache_read no such buffer": (matmul, lambda s: s.cache_read("C", 5, "local")),
    "cache_write no such buffer": (matmul, lambda s: s.cache_write("C", 5, "local")),
    "reindex no such buffer": (matmul, lambda s: s.reindex("C", ("read", 7))),
    "compute_at no consumer": (matmul, lambda s: s.compute_at("C", s.get_loops("C")[0])),
    "compute_at not under": (matmul_relu, lambda s: s.compute_at("C", s.get_loops("F")[0])),
    "reverse_compute_at still reducing": (softmax_like, lambda s: s.reverse_compute_at("C", s.get_loops("S")[1])),
    "inline an output": (elementwise, lambda s: s.compute_inline("C")),
    "inline a reduction": (matmul_relu, lambda s: s.compute_inline("C")),
    "reverse inline into a reduction": (matmul_relu, lambda s: s.reverse_compute_inline("E")),
    "decompose inside": (matmul, lambda s: (lambda l: (s.reorder(l[2], l[0], l[1]), s.decompose_reduction("C", l[0])))(s.get_loops("C"))),
    "rfactor a spatial loop": (matmul, lambda s: s.rfactor(s.get_loops("C")[0], 0)),
    "blockize two blocks": (elementwise, lambda s: (s.compute_at("B", s.get_loops("C")[0]), s.blockize(s.get_loops("C")[0]))),
    "layout that loses elements": (matmul_relu, lambda s: s.transform_layout("C", ("write", 0), lambda i, j: (i // 2, j))),
    "layout with padding": (matmul_relu, lambda s: s.transform_layout("C", ("write", 0), lambda i, j: (i // 5, j, i % 5))),
    "block layout that loses points": (elementwise, lambda s: s.transform_block_layout("C", lambda i, j: (i,))),
    "pad_einsum short": (matmul, lambda s: s.pad_einsum("C", [1, 1])),
    "unannotate nothing": (matmul, lambda s: s.unannotate(s.get_loops("C")[0], "pragma")),
    "scope of a parameter": (matmul, lambda s: s.set_scope("C", 0, "local")),
    "align an axis too far": (matmul_relu, lambda s: s.storage_align("C", 0, 5, 8, 1)),
    "sample a tile of no number": (lambda: matmul(12), lambda s: s.sample_perfect_tile(s.get_loops("C")[0], 2, decision=[1, 2, 3])),
    "decompose no padding": (conv2d, lambda s: s.decompose_padding("Y", s.get_loops("Y")[0])),
}
SHORT = {"sample a tile of no number"}  # about the arguments alone


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal_uses_show_the_program(case):
    make, use = ILLEGAL[case]
    sch = Schedule(make())
    with pytest.raises(ScheduleError) as caught:
        use(sch)
    text = str(caught.value)
    assert case in SHORT or ("for " in text and "with T.sblock(" in text), text
