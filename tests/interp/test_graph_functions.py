# SPDX-License-Identifier: Apache-2.0
"""Graph functions: operators, tensor programs, foreign functions, control flow, symbolic dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.interp import interpret
from roundel.ir.errors import CallError, InterpretError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


def rand(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@I.ir_module
class Mixed:
    @T.prim_func
    def scale(a: T.handle, b: T.handle, k: T.int64):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n, m), "float32")
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.cast(k, "float32")

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 1), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Mixed
        with R.dataflow():
            h = R.add(x, y)
            s = R.call_tir(cls.scale, (h,), out_sinfo=R.Tensor((n, 4), "float32"), tir_vars=R.shape([n]))
            p = R.call_dps_packed("test.negate", (s,), out_sinfo=R.Tensor((n, 4), "float32"))
            out = R.nn.relu(p)
            R.output(out)
        return out


def negate(x, out):
    out[:] = -x


@pytest.mark.parametrize("n", [1, 3, 0, 8])
def test_operator_tensor_program_and_foreign_function(n):
    x, y = rand(n, 4), rand(n, 1, seed=1)
    got = interpret(Mixed, packed={"test.negate": negate})["main"](x, y)
    np.testing.assert_allclose(got, np.maximum(-(x + y) * n, 0), rtol=1e-6)


def test_arguments_are_checked():
    rt = interpret(Mixed, packed={"test.negate": negate})
    with pytest.raises(CallError, match="dimension 0 of argument y of main is 2, expected 3"):
        rt["main"](rand(3, 4), rand(2, 1))
    with pytest.raises(CallError, match="dimension 1 of argument x of main is 5, expected 4"):
        rt["main"](rand(3, 5), rand(3, 1))
    with pytest.raises(CallError, match="float32, got float64"):
        rt["main"](rand(3, 4, dtype="float64"), rand(3, 1))
    with pytest.raises(InterpretError, match=r"no foreign function 'test\.negate'"):
        interpret(Mixed)["main"](rand(3, 4), rand(3, 1))


def test_match_cast_binds_and_checks():
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=1):
        n, m = T.int64(), T.int64()
        y = R.match_cast(x, R.Tensor((n, 2 * m), "float32"))
        s = R.shape([n, m])
        return (y, s)

    y, shape = interpret(main)["main"](rand(3, 8))
    assert shape == (3, 4) and y.shape == (3, 8)


def test_tuples_constants_and_if():
    @R.function
    def main(x: R.Tensor((3,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((3,), "float32"):
        t = (x, R.const(2.0, "float32"))
        if c:
            r = R.add(t[0], t[1])
        else:
            r = R.multiply(t[0], t[1])
        return r

    x = rand(3)
    rt = interpret(main)
    np.testing.assert_array_equal(rt["main"](x, np.array(True)), x + 2)
    np.testing.assert_array_equal(rt["main"](x, np.array(False)), x * 2)


def test_calls_between_graph_functions():
    @I.ir_module
    class Module:
        @R.function
        def twice(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            return R.add(x, x)

        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            cls = Module
            y = cls.twice(x)
            z = cls.twice(y)
            return z

    x = rand(5)
    np.testing.assert_array_equal(interpret(Module)["main"](x), x * 4)


def test_failing_operator_names_itself():
    @R.function
    def main(x: R.Tensor((3,), "int32"), y: R.Tensor((4,), "int32")) -> R.Tensor(ndim=1, dtype="int32"):
        z = R.call_packed("test.broken", x, y, sinfo_args=R.Tensor((3,), "int32"))
        return z

    rt = interpret(main, packed={"test.broken": lambda x, y: y})
    with pytest.raises(InterpretError, match=r"test\.broken gave shape \(4,\), inferred was \(3,\)"):
        rt["main"](np.zeros(3, "int32"), np.zeros(4, "int32"))


def test_operators_without_numpy_follow_from_their_definition():
    from roundel.ir import graph
    from roundel.ir.attrs import Attrs
    from roundel.ir.module import IRModule
    from roundel.ir.op import OpDef
    from roundel.ops import make

    class Double(OpDef):
        name = "test.double"
        operands = ("x", "bias?")

        def compute(self, args, attrs):
            from roundel import te

            x = args[0]
            return te.compute(x.shape, lambda *i: x[i] * attrs["factor"])

    class Quadruple(OpDef):
        name = "test.quadruple"
        operands = ("x",)

        def decompose(self, builder, args, attrs):
            return builder.emit(make("add", args[0], builder.emit(make("multiply", args[0], 3.0))))

    info = graph.TensorInfo((2, 3), "float32")
    x, y, z = (graph.Var(n, info) for n in "xyz")
    block = graph.BindingBlock(
        (
            graph.VarBinding(y, graph.Call(Double(), (x,), Attrs(factor=2.0), sinfo=info)),
            graph.VarBinding(z, graph.Call(Quadruple(), (y,), sinfo=info)),
        )
    )
    mod = IRModule({"main": graph.Function((x,), graph.SeqExpr((block,), z), info)})
    a = rand(2, 3)
    np.testing.assert_allclose(interpret(mod)["main"](a), a * 8, rtol=1e-6)
