# SPDX-License-Identifier: Apache-2.0
"""Functions inside of functions as functions of the module: what they capture are parameters."""

import numpy as np
import pytest

import roundel as rd
from roundel.graph.tidy.lift_functions import lift_functions
from roundel.ir import graph
from roundel.passes.well_formed import well_formed
from roundel.script import parse

X = np.arange(6, dtype="float32").reshape(2, 3)
HEAD = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "n"), "float32"), y: R.Tensor((2, "n"), "float32")):
        n = T.int64()
"""
NESTED = HEAD + """
        @R.function
        def outer(c: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
            @R.function
            def inner(a: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
                return R.multiply(R.add(a, c), y)
            return inner(c)
        return R.add(outer(x), outer(y))
"""
SIBLINGS = HEAD + """
        @R.function
        def first(a: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
            return R.subtract(a, y)
        @R.function
        def second(a: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
            return R.multiply(first(a), a)
        return second(x)
"""
BRANCH = HEAD + """
        @R.function
        def double(a: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
            return R.add(a, x)
        if R.less(R.sum(x), R.const(3.0, "float32")):
            z = double(y)
        else:
            z = double(x)
        return z
"""


def _functions_inside(mod):
    return [n for f in mod.functions.values() for n in rd.ir.walk(f.body) if isinstance(n, graph.Function)]


@pytest.mark.parametrize("text, count", [(NESTED, 3), (SIBLINGS, 3), (BRANCH, 2)], ids=["nested", "siblings", "branch"])
def test_results_are_the_same_and_nothing_is_left_inside(text, count):
    mod = parse(text)
    lifted = lift_functions(mod)
    assert len(lifted.functions) == count and not _functions_inside(lifted) and well_formed(lifted) == []
    for run in (rd.interpret(lifted), rd.build(lifted)):
        np.testing.assert_allclose(run["main"](X, X + 1), rd.interpret(mod)["main"](X, X + 1))


def test_a_function_that_is_a_value_stays_and_what_has_none_inside_is_the_same_object():
    value = parse(HEAD + """
        @R.function
        def maker(c: R.Tensor((2, n), "float32")) -> R.Callable((R.Tensor((2, n), "float32"),), R.Tensor((2, n), "float32")):
            @R.function
            def made(a: R.Tensor((2, n), "float32")) -> R.Tensor((2, n), "float32"):
                return R.add(a, c)
            return made
        f = maker(x)
        return f(y)
""")
    lifted = lift_functions(value)
    assert list(lifted.functions) == ["main", "main_maker"] and len(_functions_inside(lifted)) == 1
    np.testing.assert_allclose(rd.interpret(lifted)["main"](X, X), 2 * X)
    plain = parse(HEAD + "        return R.add(x, y)\n")
    assert lift_functions(plain) is plain
