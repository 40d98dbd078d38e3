# SPDX-License-Identifier: Apache-2.0
"""The passes that choose between algorithms record what they do, with what is expected of the others, and take what is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, compile_module, prepare
from roundel.interp import interpret
from roundel.ir import graph, options, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import OptionError, ScheduleError
from roundel.ir.node import Span
from roundel.ops import make
from roundel.strategy import schedule_module
from roundel.target import Target

F32, TARGET = "float32", Target("x86-64-v4")
PIPELINE = DEFAULT[: DEFAULT.index(schedule_module)]
draw = np.random.default_rng(0)


def _module(inputs, *nodes):
    """``nodes``: name, operator, input and constant operands, attributes; each reads the parameter of its number."""
    bb = BlockBuilder()
    params = [graph.Var(f"x{k}", graph.TensorInfo(shape, F32)) for k, shape in enumerate(inputs)]
    with bb.function("main", params):
        with bb.dataflow():
            out = []
            for name, op, param, shape, attrs in nodes:
                bb.span = Span(f"{op} {name}", name=name)
                weight = graph.Constant.of(draw.standard_normal(shape).astype(F32))
                out.append(bb.emit_output(make(op, params[param], weight, **attrs)))
        bb.emit_func_output(graph.Tuple(tuple(out)))
    return bb.get()


def _convolutions():
    return _module([(1, 64, 28, 28)], ("/a/Conv", "nn.conv2d", 0, (64, 64, 3, 3), {"padding": 1}),
                   ("/b/Conv", "nn.conv2d", 0, (64, 64, 3, 3), {"padding": 1}), ("/c/Conv", "nn.conv2d", 0, (64, 64, 1, 1), {}))


def _product(rows=512, columns=1024):
    return _module([(rows, 1024)], ("/d/MatMul", "matmul", 0, (1024, columns), {}))


def _prepared(mod, choices=None):
    return prepare(mod, target=TARGET, pipeline=PIPELINE, choices=choices)


def _made(mod, choices=None, kinds=("algorithm", "weights")):
    return [c for c in _prepared(mod, choices).choices.made if c.kind in kinds]


def _taken(mod, choices=None):
    return {(c.site, c.subject.split()[0]): c.taken for c in _made(mod, choices)}


def test_the_fastest_is_taken_and_recorded():
    made = _prepared(_convolutions())
    a, b, c = (x for x in made.choices.made if x.kind == "algorithm")
    assert [x.site for x in (a, b, c)] == ["/a/Conv", "/b/Conv", "/c/Conv"] and a.subject == "conv2d 1x64x28x28 by 64x64x3x3"
    assert a.taken == b.taken == min(a.possible, key=a.possible.__getitem__) != "direct" == c.taken
    assert c.possible == {"direct": None} and "1x1" in c.alternatives["winograd4"]
    assert any("winograd" in name for name in made)


@pytest.mark.parametrize("algorithm", ["direct", "winograd2", "winograd4"])
def test_convolutions_run_as_asked(algorithm):
    mod = _convolutions()
    taken = _taken(mod, {"/a/Conv": algorithm, "/b/Conv": "direct"})
    assert taken["/a/Conv", "conv2d"] == algorithm and taken["/b/Conv", "conv2d"] == "direct"
    made = _prepared(mod, {"*": algorithm})
    assert any("winograd" in name for name in made) == (algorithm != "direct")


@pytest.mark.parametrize("rows, columns", [(512, 1024), (5, 128), (tir.Var("n", INT64, True), 1024), (tir.Var("n", INT64, True), 128)])
@pytest.mark.parametrize("algorithm", ["plain", "strassen"])
def test_products_run_as_asked(rows, columns, algorithm):
    """However many rows there are, also where the model expects no gain."""
    made = _prepared(_product(rows, columns), {"/d/*": algorithm})
    (choice,) = (c for c in made.choices.made if c.kind == "algorithm")
    assert choice.taken == algorithm and set(choice.possible) == {"plain", "strassen"}
    assert any("strassen_matmul" in name for name in made) == (algorithm == "strassen")
    assert choice.condition == ("n >= 2" if algorithm == "strassen" and not isinstance(rows, int) else "")


@pytest.mark.parametrize("rows", [1, 2, 3, 37])
def test_products_asked_for_are_right(rows):
    mod = _product(tir.Var("n", INT64, True), 128)
    x = draw.standard_normal((rows, 1024)).astype(F32)
    got = compile_module(mod, choices={"*": "strassen"}).load()["main"](x)
    want = interpret(mod)["main"](x)
    np.testing.assert_allclose(np.asarray(got[0] if isinstance(got, tuple | list) else got), want[0], rtol=1e-3, atol=1e-3)


def test_symbolic_rows_say_when():
    mod = _product(tir.Var("n", INT64, True), 3072)
    weights, choice = (c for c in prepare(mod, target=Target("znver4"), pipeline=PIPELINE).choices.made if c.kind in ("algorithm", "weights"))
    assert choice.taken == "strassen" and choice.condition.startswith("n >= ") and choice.possible["strassen"] < choice.possible["plain"]
    assert (weights.site, weights.taken) == ("/d/MatMul", "float32")


def test_weights_of_one_node():
    mod = _module([(8, 256)], ("/d/MatMul", "matmul", 0, (256, 256), {}), ("/e/MatMul", "matmul", 0, (256, 256), {}))
    taken = _taken(mod, {"/d/MatMul": "bfloat16"})
    assert taken["/d/MatMul", "weights"] == "bfloat16" and taken["/e/MatMul", "weights"] == "float32"
    with options.override(weights="float16"):
        taken = _taken(mod, {"/d/MatMul": ["float32", "plain"]})
    assert taken["/d/MatMul", "weights"] == "float32" and taken["/e/MatMul", "weights"] == "float16"


def test_options_are_reasons():
    with options.override(accuracy="strict"):
        assert {c.alternatives.get("winograd4") for c in _made(_convolutions())} == {"the option accuracy is strict"}
        with pytest.raises(OptionError, match="accuracy is strict"):
            _prepared(_product(), {"/d/MatMul": "strassen"})
    with options.override(weight_growth=1.0), pytest.raises(OptionError, match="weight_growth allows 1"):
        _prepared(_convolutions(), {"/a/Conv": "winograd2"})


@pytest.mark.parametrize("choices, message", [
    ({"/c/Conv": "winograd4"}, "node '/c/Conv'.*winograd4 cannot be had(.|\n)*1x1(.|\n)*may be direct"),
    ({"/a/Conv": "strassen"}, "node '/a/Conv'.*no algorithm 'strassen'(.|\n)*direct, winograd2, winograd4"),
    ({"/z/Pool": "direct"}, "'/z/Pool'(.|\n)*/a/Conv"),
])
def test_what_cannot_be_had_is_an_error(choices, message):
    with pytest.raises(OptionError, match=message):
        _prepared(_convolutions(), choices)


@pytest.mark.parametrize("value", [np.inf, np.nan, 2.0**127])
def test_weights_that_might_overflow_are_a_reason(value):
    weight = np.ones((64, 64, 3, 3), F32)
    weight[0, 0, 0, 0] = value
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, 64, 28, 28), F32))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(make("nn.conv2d", x, graph.Constant.of(weight), padding=1), "y")
        bb.emit_func_output(out)
    with pytest.raises(OptionError, match="overflow"):
        _prepared(bb.get(), {"*": "winograd4"})


def test_a_folded_scale_leaves_the_name_of_the_convolution():
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, 64, 28, 28), F32))
    with bb.function("main", [x]):
        with bb.dataflow():
            bb.span = Span("Conv /conv", name="/conv")
            y = bb.emit(make("nn.conv2d", x, graph.Constant.of(draw.standard_normal((64, 64, 3, 3)).astype(F32)), padding=1))
            bb.span = Span("Mul /scale", name="/scale")
            out = bb.emit_output(make("multiply", y, graph.Constant.of(np.full((1, 64, 1, 1), 2, F32))))
        bb.emit_func_output(out)
    assert _taken(bb.get(), {"/conv": "direct"}) == {("/conv", "conv2d"): "direct"}


def test_decisions_of_programs_go_through_the_same_door():
    mod = _product(48, 64)
    (name,) = (n for n in _prepared(mod) if "matmul" in n)
    made = prepare(mod, target=TARGET, choices={"*matmul*": {"sketch": "contraction", "rows": 3}, "/d/MatMul": "plain"})
    assert made[name].attrs["scheduled"] == "contraction" and made[name].attrs["decisions"]["rows"] == 3
    with pytest.raises(OptionError, match="no tensor program 'pool'"):
        prepare(mod, target=TARGET, choices={"pool": {"rows": 3}})
    with pytest.raises(ScheduleError, match="rows=1000"):
        prepare(mod, target=TARGET, choices={name: {"sketch": "contraction", "rows": 1000}})
