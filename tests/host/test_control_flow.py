# SPDX-License-Identifier: Apache-2.0
"""Branches and loops through the whole pipeline: interpreted, lowered, compiled."""

import numpy as np
import pytest

from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

from ..graph.running import agree

RNG = np.random.default_rng(0)


def _x(*shape):
    return RNG.standard_normal(shape).astype("float32")


def test_a_branch_is_chosen_and_uses_what_is_outside():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            if c:
                a = R.multiply(y, R.const(2.0, "float32"))
                r = R.add(a, x)
            else:
                b = R.nn.relu(y)
                r = R.subtract(b, x)
            z = R.add(r, y)
            return z

    def want(x, c):
        y = np.exp(x)
        return (y * 2 + x if c else y - x) + y

    agree(Mod, (_x(3, 4), np.array(True)), (_x(5, 4), np.array(False)), (_x(0, 4), np.array(True)), want=want)


def test_nested_branches_and_constants():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32"), a: R.Tensor((), "bool"), b: R.Tensor((), "bool")):
            if a:
                if b:
                    q = R.add(x, R.const([1.0, 2.0, 3.0], "float32"))
                else:
                    q = x
                r = q
            else:
                r = R.const([7.0, 8.0, 9.0], "float32")
            return r

    for a in (True, False):
        for b in (True, False):
            agree(Mod, (_x(3), np.array(a), np.array(b)))


def test_branches_of_different_shape():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m", 2), "float32"), c: R.Tensor((), "bool")):
            if c:
                r: R.Tensor(ndim=2, dtype="float32") = R.concat((x, y), axis=0)
            else:
                r: R.Tensor(ndim=2, dtype="float32") = R.add(x, x)
            k = T.int64()
            s = R.match_cast(r, R.Tensor((k, 2), "float32"))
            t = R.multiply(s, R.const(3.0, "float32"))
            u = R.sum(t, axis=0)
            return (t, u)

    def want(x, y, c):
        s = 3 * (np.concatenate([x, y]) if c else x + x)
        return s, s.sum(0)

    agree(Mod, (_x(3, 2), _x(4, 2), np.array(True)), (_x(3, 2), _x(1, 2), np.array(False)), want=want)


def test_a_loop_counts_and_carries_tensors():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), count: R.Tensor((), "int64")):
            n = T.int64()

            def cond(i: R.Tensor((), "int64"), a: R.Tensor((n,), "float32"), b: R.Tensor((n,), "float32")):
                return R.less(i, count)

            def body(i: R.Tensor((), "int64"), a: R.Tensor((n,), "float32"), b: R.Tensor((n,), "float32")):
                nxt = R.add(i, R.const(1, "int64"))
                c = R.add(a, b)
                return (nxt, b, c)

            out = R.while_loop(cond, body, (R.const(0, "int64"), x, x))
            fib = out[2]
            return fib

    def want(x, count):
        a, b = x, x
        for _ in range(int(count)):
            a, b = b, a + b
        return b

    agree(Mod, (_x(5), np.array(6)), (_x(2), np.array(0)), (_x(3), np.array(1)), want=want)


def test_a_loop_swaps_its_variables():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32"), count: R.Tensor((), "int64")):
            def cond(i: R.Tensor((), "int64"), a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
                return R.less(i, count)

            def body(i: R.Tensor((), "int64"), a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
                nxt = R.add(i, R.const(1, "int64"))
                return (nxt, b, a)

            out = R.while_loop(cond, body, (R.const(0, "int64"), x, y))
            return out

    agree(Mod, (_x(3), _x(3), np.array(3)), (_x(3), _x(3), np.array(2)))


def test_a_loop_whose_result_grows():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((1, 2), "float32"), count: R.Tensor((), "int64")):
            def cond(i: R.Tensor((), "int64"), acc: R.Tensor(ndim=2, dtype="float32")):
                return R.less(i, count)

            def body(i: R.Tensor((), "int64"), acc: R.Tensor(ndim=2, dtype="float32")):
                k = T.int64()
                nxt = R.add(i, R.const(1, "int64"))
                a = R.match_cast(acc, R.Tensor((k, 2), "float32"))
                row = R.multiply(x, R.astype(nxt, dtype="float32"))
                grown = R.concat((a, row), axis=0)
                return (nxt, grown)

            out = R.while_loop(cond, body, (R.const(0, "int64"), x))
            rows = out[1]
            m = T.int64()
            r = R.match_cast(rows, R.Tensor((m, 2), "float32"))
            doubled = R.add(r, r)
            return doubled

    def want(x, count):
        return 2 * np.concatenate([x] + [x * np.float32(k + 1) for k in range(int(count))])

    agree(Mod, (_x(1, 2), np.array(4)), (_x(1, 2), np.array(0)), want=want)


@pytest.mark.parametrize("flag", [True, False])
def test_shapes_and_numbers_leave_a_branch(flag):
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32"), c: R.Tensor((), "bool")):
            n = T.int64()
            if c:
                s: R.Shape(ndim=2) = R.shape([n * 2, 3])
            else:
                s: R.Shape(ndim=2) = R.shape([n, 6])
            a = T.int64()
            b = T.int64()
            q = R.match_cast(s, R.Shape([a, b]))
            z = R.zeros(q, dtype="float32")
            return z

    agree(Mod, (_x(4, 6), np.array(flag)))
