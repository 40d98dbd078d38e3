# SPDX-License-Identifier: Apache-2.0
"""Composite functions that are neighbours become regions, which values do not leave to come back."""

import numpy as np

import roundel as rd
from roundel.graph.partition.inline_composites import inline_composites
from roundel.ir import graph, structural_equal
from roundel.relax.dpl import is_op, wildcard
from roundel.relax.fuse_by_pattern import fuse_by_pattern
from roundel.relax.merge_composites import merge_composites
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R


def unary(name):
    return is_op(f"relax.{name}")(wildcard())


def binary(name):
    return is_op(f"relax.{name}")(wildcard(), wildcard())


def regions(mod):
    """The composite functions of each region, by its name."""
    found = {name: f for name, f in mod.items() if "Codegen" in f.attrs}
    return {name: [b.value.attrs["Composite"] for b in f.body.bindings if isinstance(b.value, graph.Function)] for name, f in found.items()}


def check(mod, patterns, expected):
    merged = merge_composites(fuse_by_pattern(mod, patterns))
    assert regions(merged) == expected, merged.script()
    assert structural_equal(parse(merged.script()), merged)
    assert not any("Composite" in f.attrs for _, f in merged.items()), "composite functions are inside of their regions"
    x = np.random.default_rng(0).standard_normal((4, 4), dtype=np.float32)
    want = rd.interpret(mod)["main"](x)
    for got in (rd.interpret(merged)["main"](x), rd.interpret(inline_composites(merged))["main"](x), rd.build(merged)["main"](x)):
        for a, b in zip(got if isinstance(got, list | tuple) else [got], want if isinstance(want, list | tuple) else [want], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return merged


def test_a_diamond_of_one_code_generator_is_one_region():
    @I.ir_module
    class Diamond:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                a = R.abs(x)
                b, c = R.nn.relu(a), R.tanh(a)
                d = R.add(b, c)
                R.output(d)
            return d

    patterns = [(f"A.{n}", unary(n)) for n in ("abs", "nn.relu", "tanh")] + [("A.add", binary("add"))]
    check(Diamond, patterns, {"fused_abs_nn_relu_tanh_add_A": ["A.abs", "A.nn.relu", "A.tanh", "A.add"]})


def test_what_would_come_back_into_a_region_parts_it():
    @I.ir_module
    class Around:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.abs(x)
                b = R.tanh(a)  # not for A
                c = R.nn.relu(a)
                d = R.add(b, c)
                R.output(d)
            return d

    patterns = [("A.abs", unary("abs")), ("A.relu", unary("nn.relu")), ("A.add", binary("add"))]
    merged = check(Around, patterns, {"fused_abs_nn_relu_A": ["A.abs", "A.relu"], "fused_add1_A": ["A.add"]})
    assert isinstance(merged["fused_abs_nn_relu_A"].ret_sinfo, graph.TupleInfo), "two of its values are used outside"


def test_a_region_that_later_gets_another_operand_is_not_joined_with_what_that_comes_from():
    @I.ir_module
    class Later:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.abs(x)
                b = R.tanh(a)
                other = R.exp(x)
                c = R.add(a, other)  # the region of `a` waits for `other` from here on
                d = R.multiply(b, other)  # so that `b` and `other` cannot be one
                e = R.subtract(c, d)
                R.output(e)
            return e

    patterns = [("A.abs", unary("abs")), ("A.add", binary("add")), ("B.tanh", unary("tanh")), ("B.exp", unary("exp")), ("B.mul", binary("multiply"))]
    check(Later, patterns, {"fused_exp1_B": ["B.exp"], "fused_abs_add_A": ["A.abs", "A.add"], "fused_tanh_multiply_B": ["B.tanh", "B.mul"]})


def test_tuples_whose_fields_alone_are_used_are_inside_and_branches_are_left_alone():
    @I.ir_module
    class Parts:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                parts = R.split(x, 2, axis=1)
                a, b = parts[0], parts[1]
                c = R.add(a, b)
                R.output(c)
            flag = R.less(R.sum(c), R.const(0.0))
            if flag:
                d = R.nn.relu(c)
                out = R.add(d, c)
            else:
                out = R.abs(c)
            return out

    merged = check(Parts, [("A.split", unary("split")), ("A.add", binary("add")), ("A.relu", unary("nn.relu"))], {"fused_split_add_A": ["A.split", "A.add"]})
    assert "R.nn.relu" in merged["main"].script()


def test_equal_regions_are_one_function_and_functions_that_nothing_calls_are_gone():
    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.tanh(a)
                c = R.nn.relu(b)
                R.output(c)
            return c

    check(Twice, [("A.relu", unary("nn.relu"))], {"fused_nn_relu1_A": ["A.relu"]})


def test_a_value_that_a_match_cast_uses_does_not_go_into_a_function():
    @I.ir_module
    class Cast:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                a = R.abs(x)
                b = R.match_cast(a, R.Tensor((4, 4), "float32"))
                c = R.nn.relu(a)
                R.output(b, c)
            return (b, c)

    mod = fuse_by_pattern(Cast, [("A.both", is_op("relax.nn.relu")(unary("abs")))])
    assert structural_equal(mod, Cast)


def test_sizes_that_no_parameter_tells_leave_a_match_where_it_is():
    @I.ir_module
    class Double:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                a = R.concat([x, x], axis=0)
                b = R.nn.relu(a)
                R.output(b)
            return b

    assert structural_equal(fuse_by_pattern(Double, [("A.relu", unary("nn.relu"))]), Double), "a parameter of 2 * n rows does not tell n"


def test_composites_alone_are_put_back_and_other_functions_stay():
    @I.ir_module
    class Calls:
        @R.function(private=True)
        def helper(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return a

        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            cls = Calls
            with R.dataflow():
                a = cls.helper(x)
                b = R.tanh(a)
                R.output(b)
            return b

    fused = fuse_by_pattern(Calls, [("A.tanh", unary("tanh"))], annotate_codegen=True)
    back = inline_composites(fused)
    assert list(back) == ["helper", "main"] and "cls.helper(x)" in back.script() and "R.tanh" in back.script()
    assert inline_composites(Calls) is Calls
