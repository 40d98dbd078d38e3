# SPDX-License-Identifier: Apache-2.0
"""Gradients of whole functions: against PyTorch's on random graphs, parameters and targets of every kind, what is refused."""

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.graph.gradient import gradient, register_te_gradient
from roundel.ir.errors import RoundelError, UnsupportedError
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T

from .random_graphs import findings


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_have_the_gradients_of_pytorch(seed):
    pytest.importorskip("torch")
    assert list(findings(seed)) == []


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 5), "float32"), labels: R.Tensor((3,), "int64")):
        with R.dataflow():
            scores = R.nn.log_softmax(R.matmul(x, w))
            loss = R.nn.nll_loss(scores, labels)
            R.output(scores, loss)
        return scores, loss


def test_the_target_is_a_field_of_the_result_and_the_parameters_are_chosen():
    mod = gradient(Layer, "main", require_grads=[Layer["main"].params[1]], target_index=1)
    rng = np.random.default_rng(0)
    x, w, labels = rng.standard_normal((3, 4)).astype("float32"), rng.standard_normal((4, 5)).astype("float32"), np.array([0, 4, 2])
    (scores, loss), (by_w,) = rd.build(mod)["main_adjoint"](x, w, labels)
    picked = np.exp(scores)
    picked[range(3), labels] -= 1
    np.testing.assert_allclose(by_w, x.T @ picked / 3, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(loss, -scores[range(3), labels].mean(), rtol=1e-5)
    assert mod["main"] is Layer["main"]


def test_a_parameter_that_is_not_used_has_zeros_and_a_tuple_has_a_tuple():
    @I.ir_module
    class Mod:
        @R.function
        def main(p: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32")), unused: R.Tensor((4,), "float32")):
            with R.dataflow():
                s = R.sum(R.multiply(p[1], p[1]))
                R.output(s)
            return s

    _, ((first, second), rest) = rd.interpret(gradient(Mod, "main"))["main_adjoint"]((np.ones(2, "f4"), np.arange(3, dtype="f4")), np.ones(4, "f4"))
    assert first.tolist() == [0, 0] and second.tolist() == [0, 2, 4] and rest.tolist() == [0, 0, 0, 0]


def test_sizes_may_be_symbolic_and_functions_may_be_called():
    @I.ir_module
    class Mod:
        @R.function(private=True)
        def square(x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            return R.multiply(x, x)

        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor((1,), "float32")):
            cls = Mod
            a = cls.square(R.add(x, y))
            return R.mean(a)

    x = np.arange(5, dtype="float32")
    mod = gradient(Mod, "main")
    for run in (rd.interpret(mod), rd.build(mod)):
        _, (by_x, by_y) = run["main_adjoint"](x, np.ones(1, "float32"))
        np.testing.assert_allclose(by_x, 2 * (x + 1) / 5)
        np.testing.assert_allclose(by_y, [(2 * (x + 1) / 5).sum()])


def test_a_tensor_program_names_its_gradient():
    @register_te_gradient("times_by")
    def times_by(output_grad, x, k):
        return [te.compute(x.shape, lambda *i: output_grad(*i) * k, "by_x")]

    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def times(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("b"):
                    vi = T.axis.spatial(4, i)
                    b[vi] = a[vi] * T.float32(3)

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            with R.dataflow():
                y = R.call_tir_with_grad(cls.times, (x,), out_sinfo=R.Tensor((4,), "float32"), te_grad_name="times_by", te_grad_kwargs={"k": T.float32(3)})
                s = R.sum(y)
                R.output(s)
            return s

    value, (by_x,) = rd.interpret(gradient(Mod, "main"))["main_adjoint"](np.ones(4, "float32"))
    assert value == 12 and by_x.tolist() == [3, 3, 3, 3]


def test_what_has_no_gradient_is_named():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3, 4), "float32"), n: R.Tensor((3,), "int64")):
            with R.dataflow():
                y = R.cumprod(x, axis=1)
                s = R.sum(y)
                R.output(y, s)
            return y, s

    with pytest.raises(UnsupportedError, match="R.cumprod has no gradient"):
        gradient(Mod, "main", require_grads="x", target_index=1)
    with pytest.raises(RoundelError, match="no float scalar"):
        gradient(Mod, "main", require_grads="x")
    with pytest.raises(RoundelError, match="parameter n of main"):
        gradient(Mod, "main", target_index=1)
    with pytest.raises(RoundelError, match="no parameter of main"):
        gradient(Mod, "main", require_grads="z", target_index=1)
    with pytest.raises(RoundelError, match="no graph function train"):
        gradient(Mod, "train")
