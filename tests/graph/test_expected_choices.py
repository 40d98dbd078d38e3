# SPDX-License-Identifier: Apache-2.0
"""Choices that passes record without comparing times (boundaries of kernels, packing, weights and factors of 16 bits) tell what each alternative is
expected to take, and that is worked out only when somebody asks."""

from __future__ import annotations

import numpy as np
import pytest

import roundel.graph.expectations as expectations
import roundel.graph.programs.boundaries as boundaries
from roundel.builder import BlockBuilder
from roundel.driver import prepare
from roundel.ir import graph, options, tir
from roundel.ir.attrs import Attrs
from roundel.ir.choice import Choice, Later
from roundel.ir.dtype import INT64
from roundel.ir.node import Span
from roundel.ops import make
from roundel.strategy.expected import expected
from roundel.target import Target

TARGET = Target("znver4", cores=1)
KINDS = {"kernel": {"fused", "separate"}, "packing": {"packed", "unpacked"}, "weights": {"float32", "float16", "bfloat16"},
         "precision": {"float32_products", "bfloat16_products"}}


def model(rows, table=True):
    """relu(x @ W + b), the sort of it, and rows of a table."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((rows, 256), "float32"))
    places = graph.Var("places", graph.TensorInfo((rows,), "int64"))
    draw = lambda *shape: graph.Constant.of(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    with bb.function("main", [x, places]):
        with bb.dataflow():
            bb.span = Span("MatMul /fc", name="/fc")
            y = bb.emit(make("matmul", x, draw(256, 512)))
            bb.span = Span("Add /bias", name="/bias")
            y = bb.emit(make("add", y, draw(512)))
            bb.span = Span("Relu /act", name="/act")
            y = bb.emit_output(make("nn.relu", y))
            bb.span = Span("Sort /sort", name="/sort")
            z = bb.emit_output(make("sort", y))
            bb.span = Span("Gather /table", name="/table")
            t = bb.emit_output(make("take", draw(1000, 64), places, axis=0))
        bb.emit_func_output(graph.Tuple((y, z, t)))
    return bb.get()


def made(rows, **given):
    with options.override(**given):
        return prepare(model(rows), target=TARGET).choices.made


@pytest.mark.parametrize("rows", [96, tir.Var("n", INT64, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_all_alternatives_have_expected_times(kind, rows):
    found = [c for c in made(rows, **({"precision": "bfloat16"} if kind == "precision" else {})) if c.kind == kind and len(c.names) > 1]
    assert found
    for c in found:
        assert set(c.possible) == KINDS[kind] and all(cycles is not None and cycles > 0 for cycles in c.possible.values()), c.subject


def test_fused_kernels_are_compared_with_the_sum_of_their_parts():
    kernels = {c.site: c.possible for c in made(96) if c.kind == "kernel"}
    assert kernels["/fc"] == kernels["/bias"] == kernels["/act"]  # one kernel, or three
    assert kernels["/fc"]["fused"] < kernels["/fc"]["separate"]
    assert set(kernels["/sort"]) == {"separate"}


def test_half_the_bytes_are_expected_to_take_less_time_where_memory_is_waited_for():
    weights = {c.site: c.possible for c in made(1) if c.kind == "weights"}
    assert weights["/fc"]["bfloat16"] < weights["/fc"]["float32"]
    factors = {c.site: c.possible for c in made(512, precision="bfloat16") if c.kind == "precision"}
    assert factors["/fc"]["bfloat16_products"] < factors["/fc"]["float32_products"]


def test_nothing_is_worked_out_that_nobody_asks_for(monkeypatch):
    asked = []
    for module, name in ((boundaries, "expected_of_all"), (expectations, "expected")):
        monkeypatch.setattr(module, name, lambda *given, **named: asked.append(given) or expected(*given, **named))
    prepare(model(7), target=TARGET, choices={"/fc": "plain"})
    assert len(asked) <= 4  # the product, plain and as the three kernels of Strassen's algorithm, between which a pass chooses by their times


def test_what_is_asked_for_later_is_worked_out_once():
    runs = []
    later = Later(lambda: runs.append(1) or 5.0)
    choice = Choice("/a", "something", "one", {"one": later, "two": 3.0, "three": "it does not fit"})
    assert choice.names == ["one", "two"] and not runs
    assert choice.possible == choice.possible == {"one": 5.0, "two": 3.0} and len(runs) == 1
    again = [Choice("/a", "something", "one", Attrs({"one": Later(lambda: 1.0)})) for _ in range(2)]
    assert len(set(again)) == 1  # a choice is kept once, whatever is expected
