# SPDX-License-Identifier: Apache-2.0
"""What a model's kernels are expected to do where sizes are symbolic."""

from __future__ import annotations

import numpy as np

from roundel import driver
from roundel.builder import BlockBuilder
from roundel.ir import graph, tir
from roundel.ir.constants import ConstData
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.strategy.explain import explain_module, predicted_seconds
from roundel.strategy.roofline import rates
from roundel.strategy.schedule_module import schedule_module
from roundel.target import Target


def test_sizes_tell_what_runs_and_how_large_it_is():
    """A product that runs by Strassen's algorithm from some number of rows on, in tiles whose number follows from the rows."""
    n, width, target = tir.Var("n", INT64, True), 1024, Target("znver4")
    weight = graph.Constant(ConstData(np.ones((width, width), np.float32)), graph.TensorInfo((width, width), "float32"))
    builder = BlockBuilder()
    x = graph.Var("x", graph.TensorInfo((n, width), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(make("matmul", x, weight))
        builder.emit_func_output(y)
    mod = driver.prepare(builder.get(), target=target, pipeline=driver.DEFAULT[: driver.DEFAULT.index(schedule_module)])
    few, many = (explain_module(mod, target, {"n": rows}) for rows in (4, 512))
    assert [e.rule for e in few] == ["contraction"] and few[0].cost.flops == 2 * 4 * width * width
    assert "bilinear" in [e.rule for e in many] and "contraction" not in [e.rule for e in many]
    products = next(e.cost.flops for e in many if e.rule == "bilinear")
    seconds = [sum(predicted_seconds(e, target, rates(target)) for e in rows) for rows in (few, many)]
    assert 0 < 30 * seconds[0] < seconds[1]  # at the sizes asked about, not at those that the table of candidates assumes
    assert 0.875 < products / (2 * 512 * width * width) < 0.92  # an eighth less, and sums
