# SPDX-License-Identifier: Apache-2.0
"""Indices are checked when a model runs, unless something proves that they are inside."""

import numpy as np
import pytest

import roundel as rd
from roundel.builder import BlockBuilder
from roundel.driver import LOWER, OPTIMIZE, prepare
from roundel.graph.checks.bounds_checks import bounds_checks
from roundel.graph.checks.index_ranges import IndexRanges
from roundel.ir import graph, options, tir
from roundel.ir.dtype import INT64
from roundel.ir.errors import InterpretError, RunError
from roundel.ir.node import Span
from roundel.ops import make
from roundel.passes import run

N = tir.Var("n", INT64, True)
UP_TO_CHECKS = [*OPTIMIZE, *LOWER[: LOWER.index(bounds_checks) + 1]]


def build(body, *infos):
    """A module of one function; ``body(bb, *params)`` emits it, as the node ``Gather /embed``."""
    bb = BlockBuilder()
    params = [graph.Var(f"x{k}", graph.TensorInfo(shape, dtype)) for k, (shape, dtype) in enumerate(infos)]
    with bb.function("main", params):
        bb.span = Span("Gather /embed")
        bb.emit_func_output(bb.emit(body(bb, *params)))
    return bb.get()


def take(bb, x, i):
    return make("take", x, i, axis=0)


ROWS, KEYS = ((N, 4), "float32"), ((tir.Var("k", INT64, True),), "int64")
TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)


@pytest.mark.parametrize(("indices", "wrong"), [
    ([0, 12], "index 12 at position 1 is not in [-10, 10)"), ([-11], "index -11 at position 0 is not in [-10, 10)"),
    ([2**40], "index 1099511627776 at position 0"), ([-(2**63)], "index -9223372036854775808 at position 0"), ([0] * 99 + [10], "index 10 at position 99"),
    ([1] * 4099 + [2**63 - 1], "index 9223372036854775807 at position 4099"),
])
def test_an_index_out_of_range_is_an_error_that_names_node_value_position_and_limit(indices, wrong):
    mod, i = build(take, ROWS, KEYS), np.array(indices)
    for call, kind in ((rd.compile(mod), RunError), (rd.interpret(mod)["main"], InterpretError), (rd.interpret(prepare(mod))["main"], InterpretError)):
        with pytest.raises(kind) as error:
            call(TABLE, i)
        assert f"Gather /embed: {wrong}" in str(error.value)


@pytest.mark.parametrize("count", [0, 1, 7, 16, 17, 1000])
def test_what_is_in_range_is_the_result_for_few_and_many(count):
    i = np.random.default_rng(count).integers(-10, 10, count)
    np.testing.assert_array_equal(rd.compile(build(take, ROWS, KEYS))(TABLE, i), TABLE[i])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"])
def test_indices_of_every_type_are_checked_without_wrapping(dtype):
    model = rd.compile(build(take, ROWS, (KEYS[0], dtype)))
    good, info = np.arange(10).repeat(3).astype(dtype), np.iinfo(dtype)
    np.testing.assert_array_equal(model(TABLE, good), TABLE[good.astype(int)])
    for bad in (10, info.max, info.min if info.min else 11):
        with pytest.raises(RunError):
            model(TABLE, np.append(good, np.array(bad, dtype)))


def test_constant_indices_into_a_tensor_whose_size_is_an_input_are_compared_once():
    mod = build(lambda bb, x: take(bb, x, graph.Constant.of(np.array([0, 5, -7]))), ROWS)
    model = rd.compile(mod)
    np.testing.assert_array_equal(model(TABLE), TABLE[[0, 5, -7]])
    with pytest.raises(RunError, match=r"index 5 at position 1 is not in \[-3, 3\)"):
        model(TABLE[:3])
    assert "index_flag" not in run(mod, UP_TO_CHECKS).script()


def test_constant_indices_that_are_out_of_range_are_told_by_the_run_not_read():
    mod = build(lambda bb, x: take(bb, graph.Constant.of(TABLE), graph.Constant.of(np.array([12]))), ROWS)
    with pytest.raises(RunError, match="index 12"):
        rd.compile(mod)(TABLE)


def test_every_operator_with_positions_is_checked():
    f, grid = "float32", (N, tir.Var("m", INT64, True))
    k = KEYS[0][0]
    x, i, u = TABLE, np.array([[0, 1], [9, 4]]), np.ones(2, np.float32)
    cases = [
        ("gather_nd", {}, (grid, (k, 2)), (x, i)), ("scatter_nd", {}, (grid, (k, 2), (k,)), (x, i, u)),
        ("gather_elements", {"axis": 0}, (grid, (k, 2)), (x, np.array([[0, 1], [2, 10]]))),
        ("scatter_elements", {"axis": 0}, (grid, (k, 2), (k, 2)), (x, np.array([[0, 1], [2, 10]]), np.ones((2, 2), np.float32))),
    ]
    for name, attrs, shapes, values in cases:
        infos = [(s, "int64" if j == 1 else f) for j, s in enumerate(shapes)]
        with pytest.raises(RunError, match=r"at position \(1, 1\)"):
            rd.compile(build(lambda bb, *args, name=name, attrs=attrs: make(name, *args, **attrs), *infos))(*values)


def test_without_the_option_there_is_no_check():
    mod = build(take, ROWS, KEYS)
    with options.override(bounds_checks=False):
        assert "check_indices" not in run(mod, UP_TO_CHECKS).script()
    assert "check_indices" in run(mod, UP_TO_CHECKS).script()
    np.testing.assert_array_equal(rd.compile(mod, bounds_checks=False)(TABLE, np.array([3])), TABLE[[3]])
    assert any(name == "bounds_checks" for name, _ in options.shaping_code())


ZERO = tir.index_const(0)


def clip(x, high, low=ZERO):
    return make("clip", x, graph.PrimValue(low), graph.PrimValue(tir.as_index(high)))


def number(value):
    return graph.Constant.of(np.int64(value))


PROVEN = {
    "argmax": lambda bb, x, i: bb.emit(make("argmax", bb.emit(make("permute_dims", graph.Constant.of(TABLE))), axis=1)),
    "range": lambda bb, x, i: bb.emit(make("arange", graph.PrimValue(N))),
    "remainder": lambda bb, x, i: bb.emit(make("floor_mod", i, graph.Constant.of(np.int64(4)))),
    "clip": lambda bb, x, i: bb.emit(clip(i, 9)),
    "minimum and maximum": lambda bb, x, i: bb.emit(make("minimum", bb.emit(make("maximum", i, number(0))), number(3))),
    "sorted places": lambda bb, x, i: bb.emit(make("argsort", bb.emit(make("sum", x, axis=1)), dtype="int64")),
    "constant": lambda bb, x, i: graph.Constant.of(np.array([3, -4])),
    "widened": lambda bb, x, i: bb.emit(make("astype", bb.emit(make("astype", bb.emit(clip(i, 3)), dtype="int8")), dtype="int64")),
}


@pytest.mark.parametrize("name", PROVEN)
def test_what_is_proven_costs_nothing(name):
    fixed = name not in ("range", "sorted places")
    mod = build(lambda bb, x, i: take(bb, x, PROVEN[name](bb, x, i)), ((10 if fixed else N, 4), "float32"), KEYS)
    assert "check_indices" not in run(mod, UP_TO_CHECKS).script()
    rd.compile(mod)(TABLE, np.array([1, 2**40, -5]))


@pytest.mark.parametrize("body", [
    lambda bb, x, i: bb.emit(clip(i, 10)),
    lambda bb, x, i: bb.emit(make("add", bb.emit(make("floor_mod", i, number(10))), number(1))),
    lambda bb, x, i: bb.emit(make("astype", bb.emit(clip(i, 300)), dtype="int8")),
    lambda bb, x, i: bb.emit(make("maximum", i, number(0))),
])
def test_what_may_be_outside_is_not_taken_for_proven(body):
    mod = build(lambda bb, x, i: take(bb, x, body(bb, x, i)), ((10, 4), "float32"), KEYS)
    assert "check_indices" in run(mod, UP_TO_CHECKS).script()


def test_a_check_is_made_of_the_smaller_tensor():
    def body(bb, x, i):
        wide = bb.emit(make("astype", i, dtype="int64"))
        return take(bb, x, bb.emit(make("broadcast_to", bb.emit(make("expand_dims", wide, axis=(0,))), graph.ShapeExpr((tir.index_const(50), KEYS[0][0])))))

    mod = build(body, ROWS, (KEYS[0], "int32"))
    checks = [line for line in run(mod, UP_TO_CHECKS).script().splitlines() if "R.check_indices" in line]
    assert len(checks) == 1 and '"int32"' in checks[0] and "50" not in checks[0]


def test_ranges_of_sums_that_wrap_are_not_known():
    x = graph.Var("x", graph.TensorInfo((4,), "int8"))
    ranges = IndexRanges({}.get)
    big = make("add", graph.Constant.of(np.array([100], np.int8)), graph.Constant.of(np.array([100], np.int8)))
    y = graph.Var("y", big.sinfo)
    assert IndexRanges({y: big}.get).of(y) is None and ranges.of(x) is None


def test_checked_modules_print_and_parse_to_equal_modules():
    from roundel.ir.equal import structural_equal
    from roundel.script.parser.entry import parse

    mod = prepare(build(take, ROWS, KEYS))
    assert structural_equal(parse(mod.script(), constants=mod.constants), mod)


def test_a_name_with_braces_and_line_ends_stays_one_line():
    bb = BlockBuilder()
    params = [graph.Var("x", graph.TensorInfo(*ROWS)), graph.Var("i", graph.TensorInfo(*KEYS))]
    with bb.function("main", params):
        bb.span = Span("evil {0} {1}\n%s" + "x" * 5000)
        bb.emit_func_output(bb.emit(take(bb, *params)))
    for call in (rd.compile(bb.get()), rd.interpret(bb.get())["main"]):
        with pytest.raises(rd.RoundelError, match="index 10 at position 0") as error:
            call(TABLE, np.array([10]))
        text = str(error.value)
        assert r"evil (0) (1)\n%s" in text and "(5015 characters)" in text and "\n" not in text and len(text) < 600
