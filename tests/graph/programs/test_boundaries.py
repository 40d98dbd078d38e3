# SPDX-License-Identifier: Apache-2.0
"""Which nodes become one kernel is recorded for each node, and a kernel of its own is had where it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, compile_module, prepare
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.errors import OptionError
from roundel.ir.node import Span
from roundel.ops import make
from roundel.strategy import schedule_module
from roundel.strategy.pack_constants import calls_of
from roundel.target import Target

PIPELINE = DEFAULT[: DEFAULT.index(schedule_module)]


def block():
    """relu(x @ W) and, of its own, the sum over a row."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((24, 40), "float32"))
    weight = graph.Constant.of(np.random.default_rng(0).standard_normal((40, 48)).astype(np.float32))
    with bb.function("main", [x]):
        with bb.dataflow():
            bb.span = Span("MatMul /fc", name="/fc")
            y = bb.emit(make("matmul", x, weight))
            bb.span = Span("Relu /act", name="/act")
            y = bb.emit_output(make("nn.relu", y))
            bb.span = Span("Sort /sort", name="/sort")
            z = bb.emit_output(make("sort", x))
        bb.emit_func_output(graph.Tuple((y, z)))
    return bb.get()


def prepared(choices=None):
    return prepare(block(), target=Target("x86-64-v4"), pipeline=PIPELINE, choices=choices)


def kernels(mod):
    return [call.args[0].name for _, call in calls_of(mod)]


def made(mod):
    return {c.site: c for c in mod.choices.made if c.kind == "kernel"}


def test_what_is_fused_is_recorded_for_every_node():
    found = made(prepared())
    assert {site: c.taken for site, c in found.items()} == {"/fc": "fused", "/act": "fused", "/sort": "separate"}
    assert set(found["/act"].possible) == {"fused", "separate"} and "matmul" in found["/act"].subject
    assert set(found["/sort"].possible) == {"separate"}


@pytest.mark.parametrize("site", ["/fc", "/act", "/*"])
def test_a_kernel_of_its_own_is_had_where_it_is_asked_for(site):
    mod = prepared({site: "separate"})
    assert len(kernels(mod)) == len(kernels(prepared())) + 1
    assert made(mod)["/fc"].taken == "separate"
    x = np.random.default_rng(1).standard_normal((24, 40)).astype(np.float32)
    got, want = compile_module(block(), choices={site: "separate"}).load()["main"](x), interpret(block())["main"](x)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-4)


def test_what_cannot_be_fused_is_an_error():
    assert len(kernels(prepared({"/fc": "fused"}))) == len(kernels(prepared()))
    with pytest.raises(OptionError, match="/sort.*fused cannot be had(.|\n)*nothing around it"):
        prepared({"/sort": "fused"})
