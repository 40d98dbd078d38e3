# SPDX-License-Identifier: Apache-2.0
"""What depends on parameters only, as a function of its own: the two together are the function that there was."""

import numpy as np
import pytest

from roundel.driver import build_module
from roundel.graph.tidy.lift_params import bundle_params, lift_params
from roundel.interp import interpret
from roundel.ir import assert_structural_equal
from roundel.ir.errors import RoundelError
from roundel.passes.well_formed import well_formed
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R
from roundel.script import tir as T

RNG = np.random.default_rng(0)
FLOATS = lambda *shape: RNG.standard_normal(shape).astype("float32")


@I.ir_module
class Lora:
    @R.function
    def main(x: R.Tensor(("batch", 6), "float32"), w: R.Tensor((6, 5), "float32"), a: R.Tensor((6, "rank"), "float32"),
             b: R.Tensor(("rank", 5), "float32"), bias: R.Tensor((5,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            folded = R.add(w, R.matmul(a, b))
            scale = R.full((5,), R.const(2.0), dtype="float32")
            y = R.matmul(x, folded)
            z = R.multiply(R.add(y, bias), scale)
            R.output(z)
        return z


@I.ir_module
class Sized:
    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            s = R.sum(w, axis=[0])
            y = R.add(R.full((n,), R.const(1.0), dtype="float32"), R.sum(R.multiply(x, s)))
            R.output(y)
        return y


@I.ir_module
class Branch:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), v: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 3), "float32"), flag: R.Tensor((), "bool")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            pair = (v, R.permute_dims(w))
            first = pair[0]
            second = pair[1]
            R.output(first, second)
        if flag:
            chosen = first
        else:
            chosen = second
        y = R.matmul(x, chosen)
        return y


CASES = {
    "lora": (Lora, (FLOATS(2, 6),), (FLOATS(6, 5), FLOATS(6, 3), FLOATS(3, 5), FLOATS(5))),
    "sizes that only parameters tell": (Sized, (FLOATS(3),), (FLOATS(4, 3),)),
    "branches": (Branch, (FLOATS(2, 3),), (FLOATS(3, 4), FLOATS(4, 3), np.array(False))),
}


@pytest.mark.parametrize("kind", CASES)
def test_both_functions_are_the_one_there_was(kind):
    before, inputs, weights = CASES[kind]
    after = lift_params(before)
    assert_structural_equal(parse(after.script()), after)
    assert not well_formed(after)
    want = interpret(before)["main"](*inputs, *weights)
    for run in (interpret(after), build_module(after)):
        np.testing.assert_allclose(run["main"](*inputs, *run["main_transform_params"](weights)), want, rtol=1e-4, atol=1e-5)
    again = lift_params(after)
    assert len(again.functions) == 2
    run = interpret(again)
    np.testing.assert_allclose(run["main"](*inputs, *run["main_transform_params"](weights)), want, rtol=1e-4, atol=1e-5)


def test_what_is_taken_stands_in_order_and_nothing_is_computed_twice():
    after = lift_params(Lora)
    assert [p.name for p in after["main"].params] == ["x", "bias", "folded"]
    assert "folded" not in {b.var.name for b in after["main"].body.bindings}
    assert "full" not in after["main_transform_params"].script()
    assert [p.name for p in lift_params(Sized)["main"].params] == ["x", "sizes_of_params", "s"]


@I.ir_module
class Two:
    @R.function
    def prefill(x: R.Tensor(("m", 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w)
            vt = R.exp(R.permute_dims(v))
            y = R.matmul(R.matmul(x, wt), R.sin(vt))
            R.output(y)
        return y

    @R.function
    def decode(x: R.Tensor((1, 4), "float32"), a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            bt = R.permute_dims(b)
            be = R.exp(bt)
            y = R.matmul(R.add(x, R.sum(be, axis=0, keepdims=True)), R.cos(a))
            R.output(y)
        return y


@pytest.mark.parametrize("shared", [True, ["decode", "prefill"]])
def test_several_functions_share_what_they_have_in_common(shared):
    after = lift_params(Two, shared)
    assert not well_formed(after) and set(after.functions) == {"prefill", "decode", "transform_params"}
    weights = FLOATS(4, 4), FLOATS(4, 4)
    run = interpret(after)
    made = run["transform_params"](weights)
    for name, x in (("prefill", FLOATS(3, 4)), ("decode", FLOATS(1, 4))):
        np.testing.assert_allclose(run[name](x, *made), interpret(Two)[name](x, *weights), rtol=1e-5)
    assert "cos" in after["decode"].script() and "exp" not in after["decode"].script() + after["prefill"].script()


def test_functions_of_other_models_do_not_share():
    with pytest.raises(RoundelError, match="other parameters"):
        lift_params(Two.with_functions({"decode": Lora["main"]}), True)
    with pytest.raises(RoundelError, match="num_input"):
        lift_params(Two, ["nothing"])


def test_parameters_in_one_tuple():
    before, inputs, weights = CASES["branches"]
    after = bundle_params(before)
    assert [p.name for p in after["main"].params] == ["x", "model_params"] and not well_formed(after)
    np.testing.assert_allclose(build_module(after)["main"](*inputs, weights), interpret(before)["main"](*inputs, *weights), rtol=1e-5)
    assert len(bundle_params(Sized)["main"].params[1].sinfo.fields) == 1
