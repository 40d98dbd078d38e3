# SPDX-License-Identifier: Apache-2.0
"""The pattern language: single values, graphs of values, rewriting; results are checked by running both functions."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import relax
from roundel.ir import IRModule, structural_equal
from roundel.ir.errors import RoundelError
from roundel.relax.dpl import (
    PatternContext,
    get_var2val,
    has_dtype,
    is_call_dps_packed,
    is_const,
    is_dfv,
    is_gv,
    is_op,
    is_tuple,
    is_var,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from roundel.script import parse


def function(*lines, result="y"):
    body = "\n".join(f"        {line}" for line in (*lines, f"R.output({result})"))
    params = ", ".join(f'{n}: R.Tensor((4, 4), "float32")' for n in "xw")
    return parse(f"@R.function\ndef main({params}):\n    with R.dataflow():\n{body}\n    return {result}")


def results(func):
    x, w = np.random.default_rng(0).random((2, 4, 4), "float32")
    return rd.interpret(IRModule({"main": func}))["main"](x, w)


def values(func):
    return [b.value for b in func.body.bindings]


def test_values_are_matched_through_variables():
    f = function("a = R.add(x, R.const(1.0))", "y = R.nn.relu(a)")
    x = wildcard()
    relu = is_op("relax.nn.relu")(is_op("relax.add")(is_const(), x))
    found = relu.extract_matched_expr(values(f)[1], get_var2val(f))
    assert found is not None and found[x] is f.params[0]
    assert not relu.match(values(f)[1])  # what a is, is not told
    assert not is_op("relax.nn.gelu")(wildcard()).match(values(f)[1])


def test_one_pattern_is_one_value():
    x = wildcard()
    twice = is_op("relax.add")(x, x)
    assert twice.match(values(function("y = R.add(x, x)"))[0])
    assert not twice.match(values(function("y = R.add(x, w)"))[0])


def test_alternatives_and_restrictions():
    v = relax.Var("v", relax.TensorStructInfo((2, 3)))
    for pattern, holds in (
        (wildcard().has_shape((2, 3)) & has_dtype("float32"), True),
        (wildcard().has_shape((3, 2)), False),
        (~wildcard().has_shape((3, 2)), True),
        (is_gv("v") | is_var("v"), True),
        (is_dfv(), False),
        (is_var("w"), False),
    ):
        assert pattern.match(v) is holds
    pair = relax.Tuple([v, relax.const(1.0)])
    assert is_tuple([is_var(), is_const()]).match(pair)
    assert not is_tuple([is_const(), is_var()]).match(pair)
    assert is_tuple([is_const(), is_var()], unordered=True).match(pair)
    with pytest.raises(IndexError):
        is_tuple([is_var()])[1]


def packed(name, *args):
    return f'R.call_dps_packed("{name}", ({", ".join(args)},), R.Tensor((4, 4), "float32"))'


DIAMOND = function(f"a = {packed('f', 'x')}", f"b = {packed('g', 'a')}", f"c = {packed('h', 'a')}", f"y = {packed('k', 'b', 'c')}")


@pytest.mark.parametrize("only", [False, True])
def test_graphs_of_values(only):
    with PatternContext() as ctx:
        f, g, h, k = (is_call_dps_packed(n) for n in "fghk")
        (f.only_used_by if only else f.used_by)(g)
        f ^ h
        g >> k
        h >> k
        found = ctx.match_dfb(DIAMOND.body.blocks[0])
    assert (found is None) is only  # f is used twice
    if found is not None:
        assert [found[p].name for p in (f, g, h, k)] == ["a", "b", "c", "y"]


def test_sequences_stand_for_different_values():
    line = [f"a = {packed('f', 'x')}", f"b = {packed('g', 'a')}", f"c = {packed('f', 'x')}", f"d = {packed('g', 'c')}", "y = R.add(b, d)"]
    for lines, holds in ((line, True), ([*line[:2], "y = R.add(b, b)"], False)):
        with PatternContext() as ctx:
            one = is_call_dps_packed("f") >> is_call_dps_packed("g")
            two = one.dup()
            is_var("x").fork_to(one, two)
            assert (ctx.match_dfb(function(*lines).body.blocks[0]) is not None) is holds


def test_uses_are_told_in_a_context():
    with pytest.raises(RoundelError, match="pattern context"):
        wildcard() >> wildcard()


def test_calls_are_rewritten_until_nothing_matches():
    f = function("a = R.add(x, x)", "y = R.add(a, a)")
    x = wildcard()
    new = rewrite_call(is_op("relax.add")(x, x), lambda _, found: found[x] * relax.const(2.0), f)
    assert [v.op.name for v in values(new)] == ["multiply", "multiply"]
    np.testing.assert_array_equal(results(new), results(f))
    assert rewrite_call(is_op("relax.add")(x, x), lambda value, _: value, f) is f


def test_what_is_not_used_any_more_goes():
    f = function("a = R.permute_dims(x)", "b = R.permute_dims(a)", "y = R.nn.relu(b)")
    x = wildcard()
    twice = is_op("relax.permute_dims")(is_op("relax.permute_dims")(x))
    new = rewrite_call(twice, lambda _, found: found[x], f)
    assert structural_equal(new, function("y = R.nn.relu(x)"))


def test_values_of_a_graph_are_rewritten_together():
    f = function("c = R.permute_dims(w)", "a = R.matmul(x, w)", "b = R.matmul(x, c)", "y = R.add(a, b)")
    with PatternContext() as ctx:
        x, v, w = wildcard(), wildcard(), wildcard()
        one, two = is_op("relax.matmul")(x, v), is_op("relax.matmul")(x, w)

    def joined(found, _):
        both = relax.op.matmul(found[x], relax.op.concat([found[v], found[w]], axis=1))
        parts = relax.op.split(both, 2, axis=1)
        return {found[one]: parts[0], found[two]: parts[1]}

    new = rewrite_bindings(ctx, joined, f)
    assert [v.op.name for v in values(new) if hasattr(v, "op")] == ["permute_dims", "concat", "matmul", "split", "add"]
    np.testing.assert_allclose(results(new), results(f), rtol=1e-6)
    alone = function("a = R.matmul(x, w)", "y = R.add(a, a)")  # one product is not two
    assert rewrite_bindings(ctx, joined, alone) is alone
