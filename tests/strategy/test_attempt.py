# SPDX-License-Identifier: Apache-2.0
"""A rule that fails is passed over, said so, and the program is scheduled by the next; the rules do not fail on products of any size."""

import itertools
import logging
import sys

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, prepare
from roundel.ir import graph, tir
from roundel.ir.dtype import INT64
from roundel.ops import make
from roundel.strategy import explain, rules, schedule_module
from roundel.target import Target
from roundel.target.machines import MACHINES


def linear(k, n, rows):
    """x @ w + b for constant w and b; ``rows`` None: any number."""
    count = tir.Var("rows", INT64, True) if rows is None else tir.index_const(rows)
    x = graph.Var("x", graph.TensorInfo((count, tir.index_const(k)), "float32"))
    w, b = (graph.Constant.of(np.ones(shape, np.float32)) for shape in ((k, n), (n,)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(make("add", bb.emit(make("matmul", x, w)), b)))
    return bb.get()


def _failing(sch, target):
    raise IndexError("list index out of range")


@pytest.mark.rules_may_fail
def test_a_rule_that_fails_is_passed_over(monkeypatch, caplog):
    monkeypatch.setattr(sys.modules["roundel.strategy.schedule_module"], "RULES", [_failing, *rules.RULES])
    monkeypatch.setattr(explain, "RULES", [_failing, *rules.RULES])
    with caplog.at_level(logging.WARNING, "roundel.schedule"):
        mod = prepare(linear(64, 16, 1))
    kernels = [f for _, f in mod.items() if f.attrs.get("kind") == "kernel"]
    assert "_failing: failed: IndexError: list index out of range" in kernels[0].attrs["schedule_notes"]
    assert "rule _failing failed" in caplog.text
    before = prepare(linear(64, 16, 1), pipeline=DEFAULT[: DEFAULT.index(schedule_module)])
    found = explain.explain_module(before, Target.host())
    assert found[0].passed_over["_failing"] == "failed: IndexError: list index out of range"


def test_something_is_left_when_all_rules_fail(monkeypatch):
    monkeypatch.setattr(sys.modules["roundel.strategy.schedule_module"], "RULES", [rules.as_written])
    assert all(f.attrs.get("scheduled") == "as_written" for _, f in prepare(linear(8, 3, 2)).items() if f.attrs.get("kind") == "kernel")


SOME = [(k, n, rows) for k, n, rows in itertools.product((1, 7, 512, 2048), (1, 2, 3, 4, 5, 8, 16, 17), (1, 3, None)) if k in (512, 2048) or n in (1, 5, 16)]


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "apple-m1", "wasm32-simd"])
def test_products_of_all_sizes_have_a_schedule(target):
    assert target in MACHINES
    for size in SOME:
        prepare(linear(*size), target=Target(target))


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_one_row_and_few_columns(columns):
    import torch

    import roundel as rd

    layer, x = torch.nn.Linear(512, columns), torch.randn(1, 512, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(rd.compile(layer, [x])(x.numpy()), layer(x).detach().numpy(), rtol=1e-5, atol=1e-5)
