# SPDX-License-Identifier: Apache-2.0
"""Rewriting told by two graph functions."""

import numpy as np
import pytest

import roundel as rd
from roundel.ir.errors import RoundelError
from roundel.relax.dpl import PatternRewriter
from roundel.script import ir as I
from roundel.script import relax as R


@R.rewriter
class Squares:
    @R.function
    def pattern(x: R.Tensor((4,), "float32")):
        return R.multiply(x, x)

    @R.function
    def replacement(x: R.Tensor((4,), "float32")):
        return R.square(x)


@R.rewriter
class Softened:
    @R.function
    def pattern(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        total = R.add(x, y)
        return R.nn.relu(total)

    @R.function
    def replacement(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        total = R.subtract(x, y)
        twice = R.add(total, total)
        return R.nn.gelu(twice)


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32"), c: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            s = R.multiply(a, a)
            t = R.nn.relu(R.add(s, b))
            u = R.nn.relu(R.add(t, s))
            v = R.add(R.multiply(c, c), u)
            R.output(v)
        return v


def test_a_rule_holds_everywhere_where_sizes_fit():
    text = Squares(Module)["main"].script()
    assert text.count("R.square(a)") == 1 and "R.multiply(c, c)" in text, "a matrix is no vector"
    assert Squares(Module["main"]).script() == text


def test_rules_one_after_another():
    mod = (Squares | Softened)(Module)
    text = mod["main"].script()
    assert text.count("R.nn.gelu") == 2 and "relu" not in text and "R.square" in text
    a, b, c = np.float32([1, -2, 3, 4]), np.float32([0, 1, 2, 9]), np.ones((2, 4), np.float32)
    gelu = lambda x: rd.interpret(Gelu)["main"](x)
    t = gelu(2 * (a * a - b))
    np.testing.assert_allclose(rd.build(mod)["main"](a, b, c), c * c + gelu(2 * (t - a * a)), rtol=1e-5, atol=1e-6)


@I.ir_module
class Gelu:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return R.nn.gelu(x)


def test_a_module_without_a_match_is_the_same():
    assert Softened(Gelu) is Gelu


def test_functions_that_do_not_fit_are_refused():
    with pytest.raises(RoundelError, match="parameters"):
        PatternRewriter([(Module["main"], Gelu["main"])])
    with pytest.raises(KeyError, match="replacement"):
        PatternRewriter.from_module(Gelu.with_functions({"pattern": Gelu["main"]}))
