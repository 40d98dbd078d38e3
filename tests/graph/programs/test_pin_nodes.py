# SPDX-License-Identifier: Apache-2.0
"""Decisions of schedules are pinned by the names of nodes: the kernel that computes the node has them, or an error names those that fit."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import compile_module, prepare
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.errors import OptionError, ScheduleError
from roundel.ir.node import Span
from roundel.ops import make
from roundel.target import Target

TARGET = Target("x86-64-v4")


def layers(product="fc"):
    """Two equal layers, x @ W and a ReLU each."""
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((48, 64), "float32"))
    draw = np.random.default_rng(0)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for name in ("a", "b"):
                bb.span = Span(f"MatMul /{name}/fc", name=f"/{name}/fc" if product == "fc" else product)
                y = bb.emit(make("matmul", y, graph.Constant.of(draw.standard_normal((64, 64)).astype(np.float32) / 8)))
                bb.span = Span(f"Relu /{name}/act", name=f"/{name}/act")
                y = bb.emit(make("nn.relu", y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def decisions(choices, product="fc"):
    """Of the kernels, by name."""
    made = prepare(layers(product), target=TARGET, choices=choices)
    return {n: dict(f.attrs["decisions"]) for n, f in made.items() if "matmul" in n and "decisions" in f.attrs}


def test_equal_layers_share_a_kernel_until_one_is_pinned():
    assert len({n for n, f in prepare(layers(), target=TARGET).items() if "matmul" in n}) == 1
    found = decisions({"/a/fc": {"sketch": "contraction", "rows": 3}})
    assert [d["rows"] for d in found.values()] == [3]
    assert len({n for n, f in prepare(layers(), target=TARGET, choices={"/a/fc": {"rows": 3}}).items() if "matmul" in n}) == 2


@pytest.mark.parametrize("pattern", ["/*", "/?/fc", "/*/act"])
def test_patterns_pin_all_kernels_of_their_nodes(pattern):
    """That of what was fused into a kernel too."""
    found = decisions({pattern: {"rows": 4, "vectors": 1}})
    assert [(d["rows"], d["vectors"]) for d in found.values()] == [(4, 1)]


def test_a_very_name_goes_before_a_pattern():
    found = decisions({"/b/fc": {"rows": 3}, "/*": {"rows": 4}})
    assert sorted(d["rows"] for d in found.values()) == [3, 4]


@pytest.mark.parametrize(("wanted", "message"), [
    ({"rows": 1000}, "node '/a/fc'(.|\n)*rows=1000(.|\n)*rows can be 1"),
    ({"hight": 3}, "node '/a/fc'(.|\n)*no decision 'hight'(.|\n)*rows"),
    ({"sketch": "winograd"}, "node '/a/fc'(.|\n)*no sketch 'winograd'(.|\n)*contraction"),
])
def test_what_does_not_fit_is_an_error_that_names_what_fits(wanted, message):
    with pytest.raises(ScheduleError, match=message):
        decisions({"/a/fc": wanted})


def test_a_node_may_have_the_name_of_a_program_that_was_fused():
    assert [d["rows"] for d in decisions({"matmul": {"rows": 3}}, "matmul").values()] == [3]


def test_names_that_are_nothing_are_an_error():
    with pytest.raises(OptionError, match="/c/fc"):
        decisions({"/c/fc": {"rows": 3}})


def test_algorithm_and_decisions_of_one_node():
    found = decisions({"/a/fc": ["plain", {"rows": 3}]})
    assert [d["rows"] for d in found.values()] == [3]


def test_pins_and_packing_are_recorded_and_right():
    asked = {"/a/fc": [{"rows": 3}, "unpacked"]}
    made = prepare(layers(), target=TARGET, choices=asked)
    found = {(c.site, c.kind): c.taken for c in made.choices.made if c.kind in ("pin", "packing")}
    assert found == {("/a/fc", "pin"): "rows=3", ("/a/fc", "packing"): "unpacked", ("/b/fc", "packing"): "packed"}
    x = np.random.default_rng(1).standard_normal((48, 64)).astype(np.float32)
    np.testing.assert_allclose(compile_module(layers(), choices=asked).load()["main"](x), interpret(layers())["main"](x), rtol=1e-4, atol=1e-5)
