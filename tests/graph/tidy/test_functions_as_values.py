# SPDX-License-Identifier: Apache-2.0
"""Functions inside of functions, functions of the module by the name under which they are exported: interpreted and compiled alike."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import ir
from roundel.ir.errors import RoundelError, ScriptError
from roundel.passes.well_formed import well_formed
from roundel.script import parse

X = np.arange(6, dtype="float32").reshape(2, 3)

CAPTURING = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "n"), "float32"), y: R.Tensor((2, "n"), "float32")):
        n = T.int64()
        @R.function
        def add_to(c: R.Tensor((2, n), "float32")) -> R.Callable((R.Tensor((2, n), "float32"),), R.Tensor((2, n), "float32")):
            @R.function
            def inner(x1: R.Tensor((2, n), "float32")):
                s = R.add(x1, c)
                return s
            return inner
        @R.function
        def total(z: R.Tensor((2, "k"), "float32")):
            return R.sum(z, axis=[1], keepdims=True) + R.sum(x, axis=[1], keepdims=True)
        f = add_to(x)
        t = total(y)
        u = total(R.concat([y, y], axis=1))
        return f(y) + t + u
"""


def test_a_function_sees_the_variables_around_it():
    mod = parse(CAPTURING)
    assert well_formed(mod) == []
    y = X * 10
    want = X + y + 3 * y.sum(1, keepdims=True) + 2 * X.sum(1, keepdims=True)
    for run in (rd.interpret(mod), rd.compile(mod)):
        np.testing.assert_allclose(run(X, y), want, rtol=1e-6)


def test_functions_inside_print_and_are_saved():
    mod = parse(CAPTURING)
    for again in (parse(mod.script()), ir.load_json(ir.save_json(mod))):
        ir.assert_structural_equal(again, mod)


@pytest.mark.parametrize("captured", ["x", "y"])
def test_what_a_function_captures_counts(captured):
    text = """
@R.function
def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
    @R.function
    def f(z: R.Tensor((2,), "float32")):
        return R.add(z, {})
    return f(x)
"""
    assert ir.structural_equal(parse(text.format(captured)), parse(text.format("x"))) == (captured == "x")


@pytest.mark.parametrize("body, said", [
    ("@R.function\n    def f(z: R.Tensor((2,), 'float32')) -> R.Tensor((2,), 'float32'):\n        return f(z)\n    return f(x)", "calls itself"),
    ("@R.function\n    def f(z: R.Tensor((2,), 'float32')):\n        return z\n    return f(x, x)", "takes 1 arguments, 2 were given"),
    ("@T.prim_func\n    def f(a: T.Buffer((2,), 'float32')):\n        T.evaluate(0)\n    return x", "beside the function"),
])  # fmt: skip
def test_mistakes_are_named(body, said):
    with pytest.raises(ScriptError, match=said):
        parse(f"@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    {body}\n")


def test_compiled_code_returns_no_functions():
    text = "@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    @R.function\n    def f(z: R.Tensor((2,), 'float32')):\n        return z\n    return f\n"
    func = parse(text)
    with pytest.raises(RoundelError, match="main returns a function"):
        rd.compile(rd.IRModule({"main": func}))


OWN = """
@I.ir_module
class Module:
    @T.prim_func
    def linear0(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] + T.float32(1)
    @R.function
    def twice(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.add(x, x)
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        y = {}
        return y
"""


@pytest.mark.parametrize("call, want", [
    ('R.call_dps_packed("linear0", x, out_sinfo=R.Tensor((2, 3), "float32"))', X + 1),
    ('R.call_packed("twice", x, sinfo_args=R.Tensor((2, 3), "float32"))', 2 * X),
    ("Module.twice(x)", 2 * X),
])  # fmt: skip
def test_the_module_is_asked_before_foreign_functions(call, want):
    mod = parse(OWN.format(call))
    for run in (rd.interpret(mod)["main"], rd.compile(mod), rd.build(mod)["main"]):
        np.testing.assert_array_equal(run(X), want)


def test_a_tensor_program_is_no_graph_function():
    with pytest.raises(RoundelError, match=r"linear0 is a tensor program.*\n.*\n?.*call_tir"):
        rd.compile(parse(OWN.format('R.call_packed("linear0", x, sinfo_args=R.Tensor((2, 3), "float32"))')))


def test_a_foreign_function_may_return_nothing():
    seen = []
    rd.register_func("test.seen", lambda x: seen.append(x.shape))
    text = "@R.function(pure=False)\ndef main(x: R.Tensor((2, 3), 'float32')):\n    _ = R.call_packed('test.seen', x, sinfo_args=R.Tuple())\n    return x\n"
    mod = rd.IRModule({"main": parse(text)})
    for run in (rd.interpret(mod), rd.compile(mod)):
        np.testing.assert_array_equal(run(X), X)
    assert seen == [(2, 3)] * 2
