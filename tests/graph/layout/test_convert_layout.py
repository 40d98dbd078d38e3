# SPDX-License-Identifier: Apache-2.0
"""Convolutions and what follows them in the layouts that are asked for: the same results, and transpositions at the ends only."""

import numpy as np
import pytest

from roundel.graph.layout.convert_layout import convert_layout
from roundel.interp import interpret
from roundel.ir import assert_structural_equal, get_op
from roundel.ir.errors import OptionError
from roundel.ir.graph import Call
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R

NHWC = {"nn.conv2d": ["NHWC", "OHWI"]}


def calls(mod, name):
    return [b.value for b in mod["main"].body.bindings if isinstance(b.value, Call) and b.value.op is get_op(name)]


def module_of(lines, result="y"):
    """A convolution ``c`` of x and w, and what these lines make of it and of z (of its shape), b (5, 1, 1) and s (5,)."""
    body = "\n            ".join(lines)
    return parse(f"""
from roundel.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3, 7, 9), "float32"), w: R.Tensor((5, 3, 3, 3), "float32"), z: R.Tensor((2, 5, 5, 7), "float32"),
             b: R.Tensor((5, 1, 1), "float32"), s: R.Tensor((5,), "float32")):
        with R.dataflow():
            c = R.nn.conv2d(x, w)
            {body}
            R.output({result})
        return {result}
""")


RNG = np.random.default_rng(0)
INPUTS = [RNG.uniform(0.1, 1, s).astype("float32") for s in ((2, 3, 7, 9), (5, 3, 3, 3), (2, 5, 5, 7), (5, 1, 1), (5,))]

FOLLOWED = {
    "unary": ["y = R.tanh(R.nn.relu(c))"],
    "binary": ["y = R.add(R.multiply(z, c), b)"],
    "scalar": ["y = R.maximum(c, R.const(0.5, 'float32'))"],
    "two": ["y = R.nn.conv2d(R.add(c, z), c, padding=2)"],
    "pool": ["y = R.nn.max_pool2d(c, pool_size=(2, 3), strides=2)"],
    "resize": ["y = R.image.resize2d(c, (4, 11))"],
    "softmax": ["y = R.nn.softmax(c, axis=1)"],
    "layer_norm": ["y = R.nn.layer_norm(c, s, s, axes=[1])"],
    "batch_norm": ["t = R.nn.batch_norm(c, s, s, s, s, axis=1)", "y = t[0]"],
    "reduced": ["y = R.sum(R.exp(c), axis=[1, -1])"],
    "kept": ["y = R.divide(c, R.max(c, axis=-3, keepdims=True))"],
    "all": ["y = R.mean(c)"],
    "argmax": ["y = R.argmax(c, axis=1)"],
    "flat": ["y = R.argmax(c)"],
    "joined": ["t = R.split(R.concat([c, z], axis=1), [4], axis=1)", "y = R.nn.relu(t[0])"],
    "prelu": ["y = R.nn.prelu(c, s, axis=1)"],
    "plain": ["y = R.add(R.reshape(c, (10, 35)), R.reshape(z, (10, 35)))"],
    "sliced": ["y = R.strided_slice(c, axes=[1], begin=[1], end=[4])"],
}


@pytest.mark.parametrize("kind", FOLLOWED)
def test_results_stay_the_same(kind):
    before = module_of(FOLLOWED[kind])
    after = convert_layout(before, NHWC)
    assert_structural_equal(parse(after.script()), after)
    assert {c.attrs["data_layout"] for c in calls(after, "nn.conv2d")} == {"NHWC"}
    np.testing.assert_allclose(interpret(after)["main"](*INPUTS), interpret(before)["main"](*INPUTS), rtol=1e-5)
    back = convert_layout(after, {"relax.nn.conv2d": ["NCHW", "OIHW"]})
    assert {c.attrs["data_layout"] for c in calls(back, "nn.conv2d")} == {"NCHW"}
    np.testing.assert_allclose(interpret(back)["main"](*INPUTS), interpret(before)["main"](*INPUTS), rtol=1e-5)


def test_transpositions_are_at_the_ends_only():
    """One for each of data and kernel, one for the operand that joins, one for the result."""
    after = convert_layout(module_of(["d = R.nn.avg_pool2d(R.nn.relu(R.add(c, z)), pool_size=2)", "y = R.nn.log_softmax(d, axis=1)"]), NHWC)
    assert len(calls(after, "permute_dims")) == 4
    assert [c.attrs["layout"] for c in calls(after, "nn.avg_pool2d")] == ["NHWC"] and calls(after, "nn.log_softmax")[0].attrs["axis"] == 3


def test_symbolic_sizes_and_a_function_that_chooses():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4, "h", "w"), "float32"), k: R.Tensor((4, 4, 3, 3), "float32")):
            with R.dataflow():
                first = R.nn.conv2d(x, k, padding=1)
                y = R.nn.conv2d(R.nn.relu(first), k, padding=1, strides=2)
                R.output(y)
            return y

    after = convert_layout(Before, lambda call: NHWC if call.attrs["strides"] == 1 else {})
    assert [c.attrs["data_layout"] for c in calls(after, "nn.conv2d")] == ["NHWC", "NCHW"]
    args = RNG.standard_normal((2, 4, 5, 6)).astype("float32"), RNG.standard_normal((4, 4, 3, 3)).astype("float32")
    np.testing.assert_allclose(interpret(after)["main"](*args), interpret(Before)["main"](*args), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("layouts", "what"), [
    ({"nn.relu": ["NHWC"]}, "has no layout"), ({"nn.conv2d": ["NHWC"]}, "data and kernel"), ({"nn.conv2d": ["NCHW4c", "OIHW4o"]}, "cannot be converted"),
])
def test_what_cannot_be_asked_for(layouts, what):
    with pytest.raises(OptionError, match=what):
        convert_layout(module_of(["y = c"]), layouts)
