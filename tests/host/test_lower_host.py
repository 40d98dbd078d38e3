# SPDX-License-Identifier: Apache-2.0
"""Host functions: parameters and results of every kind, aliases, calls between functions, packed functions, errors."""

import numpy as np
import pytest

import roundel as rd
from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir.errors import LowerError, RoundelError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

from ..graph.running import agree, lowered

RNG = np.random.default_rng(3)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def test_results_that_are_inputs_constants_and_the_same_twice():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor((2,), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                R.output(a)
            return (x, a, a, y, R.const([1.0, 2.0], "float32"), x)

    out = agree(Mod, (_x(3, 2), _x(2)), (_x(0, 2), _x(2)))
    assert not any(np.shares_memory(p, q) for k, p in enumerate(out) for q in out[:k])


def test_views_of_results():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.exp(x)
                b = R.reshape(a, R.shape([n * 2, 3]))
                c = R.nn.relu(b)
                R.output(a, b, c)
            return (b, a, c)

    agree(Mod, (_x(4, 6),))


def test_tuples_shapes_and_numbers_as_parameters():
    @I.ir_module
    class Mod:
        @R.function
        def main(pair: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")), s: R.Shape(["a", "b"]), k: R.Prim("int64")):
            a = T.int64()
            b = T.int64()
            with R.dataflow():
                x = R.add(pair[0], pair[1])
                y = R.full(R.shape([a, b]), R.const(2.0, "float32"), dtype="float32")
                R.output(x, y)
            return (x, (y, x))

    out = agree(Mod, ((_x(3), _x(3)), (2, 5), 7), ((_x(1), _x(1)), (0, 5), 7))
    assert isinstance(out[1], tuple) and out[1][0].shape == (0, 5)


def test_a_shape_that_contradicts_a_tensor_is_an_error():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), s: R.Shape(["n"])):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return y

    agree(Mod, (_x(3), (3,)))
    with pytest.raises(Exception, match=r"is 4, not 3|4.*expected 3"):
        build_module(Mod)["main"](_x(3), (4,))


def test_functions_call_each_other():
    @I.ir_module
    class Mod:
        @R.function
        def layer(x: R.Tensor(("m", 4), "float32"), w: R.Tensor((4, 4), "float32")) -> R.Tensor(("m", 4), "float32"):
            m = T.int64()
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.add(y, R.zeros(R.shape([m, 4]), dtype="float32"))
                R.output(z)
            return z

        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
            cls = Mod
            with R.dataflow():
                a = cls.layer(x, w)
                b = cls.layer(a, w)
                c = R.nn.relu(b)
                R.output(c)
            return c

    x, w = _x(3, 4), _x(4, 4)
    agree(Mod, (x, w), want=lambda x, w: np.maximum(x @ w @ w, 0))
    agree(Mod, (x, w), name="layer")


def test_recursion_is_refused():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Mod
            y: R.Tensor((4,), "float32") = cls.main(x)
            return y

    with pytest.raises(RoundelError, match=r"main.*calls itself"):
        lowered(Mod)


def test_packed_functions():
    @rd.register_func("tests.graph.scale", override=True)
    def scale(x, factor):
        return np.asarray(x) * np.float32(factor)

    @rd.register_func("tests.graph.total", override=True)
    def total(x):
        return int(np.asarray(x).sum())

    @rd.register_func("tests.graph.into", override=True)
    def into(x, out):
        np.asarray(out)[...] = np.asarray(x)[::-1]

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            n = T.int64()
            a = R.call_packed("tests.graph.scale", x, R.prim_value(3), sinfo_args=R.Tensor((n,), "float32"))
            b = R.call_dps_packed("tests.graph.into", (a,), out_sinfo=R.Tensor((n,), "float32"))
            c = R.add(a, b)
            return c

    agree(Mod, (np.arange(5, dtype="float32"),), want=lambda x: 3 * (x + x[::-1]))


def test_what_cannot_be_lowered_says_so():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")):
            y = R.add(x, x)
            return y

    with pytest.raises((LowerError, RoundelError), match=r"x"):
        lowered(Mod)


def test_host_functions_print_and_parse():
    from roundel.ir import structural_equal
    from roundel.script import parse

    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                y = R.sum(R.exp(x), axis=1)
                R.output(y)
            return y

    mod = lowered(Mod)
    assert structural_equal(parse(mod.script()), mod)
    interpret(parse(mod.script()))["main"](_x(2, 4))
