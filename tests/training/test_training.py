# SPDX-License-Identifier: Apache-2.0
"""Losses, optimizers and steps of training give what PyTorch's give."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from roundel import training
from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir import IRModule, assert_structural_equal, graph
from roundel.ir.errors import CallError, OptionError, RoundelError
from roundel.passes.well_formed import well_formed
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R

RNG = np.random.default_rng(0)
FLOATS = lambda *shape: RNG.standard_normal(shape).astype("float32")
CLASSES = np.array([2, 0, 1, 2])

LOSSES = {
    "l1": (training.L1Loss, F.l1_loss, (FLOATS(4, 3), FLOATS(4, 3))),
    "mse": (training.MSELoss, F.mse_loss, (FLOATS(4, 3), FLOATS(4, 3))),
    "classes": (training.CrossEntropyLoss, F.cross_entropy, (FLOATS(4, 3), CLASSES)),
    "pictures": (training.CrossEntropyLoss, F.cross_entropy, (FLOATS(2, 3, 5, 4), RNG.integers(0, 3, (2, 5, 4)))),
    "weighted": (training.CrossEntropyLoss, F.cross_entropy, (FLOATS(4, 3), CLASSES, np.abs(FLOATS(3)))),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", LOSSES)
def test_losses_are_those_of_pytorch(kind, reduction):
    make, want, args = LOSSES[kind]
    loss = make(reduction)(*(graph.TensorInfo(a.shape, str(a.dtype)) for a in args))
    got = interpret(IRModule({"main": loss}))["main"](*args)
    np.testing.assert_allclose(got, want(*map(torch.from_numpy, args), reduction=reduction), rtol=1e-5)


@pytest.mark.parametrize("ignored", [-100, 2])
def test_classes_as_vectors(ignored):
    x, hot = FLOATS(4, 3), np.eye(3, dtype="int64")[CLASSES]
    loss = training.CategoricalCrossEntropyLoss("sum", ignored)(graph.TensorInfo((4, 3), "float32"), graph.TensorInfo((4, 3), "int64"))
    want = F.cross_entropy(torch.from_numpy(x), torch.from_numpy(CLASSES), reduction="sum", ignore_index=ignored)
    np.testing.assert_allclose(interpret(IRModule({"main": loss}))["main"](x, hot), want, rtol=1e-5)


OPTIMIZERS = {
    "sgd": (training.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "decay": (training.SGD(0.1, 0.3), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.3)),
    "momentum": (training.MomentumSGD(0.1, 0.9, 0, 0.1), lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.1)),
    "nesterov": (training.MomentumSGD(0.1, 0.7, nesterov=True), lambda p: torch.optim.SGD(p, 0.1, 0.7, nesterov=True)),
    "adam": (training.Adam(0.02), lambda p: torch.optim.Adam(p, 0.02)),
    "adam with decay": (training.Adam(0.02, (0.8, 0.95), 1e-6, 0.1), lambda p: torch.optim.Adam(p, 0.02, (0.8, 0.95), 1e-6, 0.1)),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimizers_move_as_those_of_pytorch(kind):
    optimizer, theirs = OPTIMIZERS[kind]
    start = FLOATS(2, 3), FLOATS(5)
    optimizer.init([graph.Var(n, graph.TensorInfo(v.shape, "float32")) for n, v in zip("wb", start, strict=True)])
    mod = IRModule({"step": optimizer.get_function()})
    assert_structural_equal(parse(mod.script()), mod)
    assert not well_formed(mod)
    step = interpret(mod)["step"]
    tensors = [torch.from_numpy(v.copy()).requires_grad_() for v in start]
    other, params, state = theirs(tensors), start, optimizer.state
    for k in range(1, 4):
        gradients = FLOATS(2, 3), FLOATS(5)
        params, state = step(tuple(params), gradients, tuple(state))
        assert int(state[0]) == k
        for t, g in zip(tensors, gradients, strict=True):
            t.grad = torch.from_numpy(g)
        other.step()
        for p, t in zip(params, tensors, strict=True):
            np.testing.assert_allclose(p, t.detach(), rtol=1e-4, atol=1e-6)


def test_dampened_velocity():
    optimizer = training.MomentumSGD(0.1, 0.5, dampening=0.9).init(graph.Var("x", graph.TensorInfo((2,), "float64")))
    x, g, v = np.array([1.0, 2.0]), np.array([3.0, -1.0]), np.array([0.5, 0.25])
    (moved,), (_, velocity) = interpret(IRModule({"f": optimizer.get_function()}))["f"]((x,), (g,), (np.zeros((), "int64"), v))
    np.testing.assert_allclose(velocity, 0.5 * v + 0.1 * g, rtol=1e-15)
    np.testing.assert_allclose(moved, x - 0.1 * velocity, rtol=1e-15)


@I.ir_module
class Net:
    I.module_attrs({"param_num": 4, "state_num": 2})

    @R.function
    def backbone(x: R.Tensor((8, 3), "float32"), w: R.Tensor((3, 5), "float32"), gamma: R.Tensor((5,), "float32"), beta: R.Tensor((5,), "float32"),
                 v: R.Tensor((5, 2), "float32"), mean: R.Tensor((5,), "float32"), var: R.Tensor((5,), "float32")):
        with R.dataflow():
            normal = R.nn.batch_norm(R.matmul(x, w), gamma, beta, mean, var, axis=1)
            y = R.matmul(R.nn.relu(normal[0]), v)
            new_mean = normal[1]
            new_var = normal[2]
            R.output(y, new_mean, new_var)
        return y, new_mean, new_var


def test_a_network_learns_as_in_pytorch():
    info = graph.TensorInfo((8, 2), "float32")
    mod = training.setup(Net, training.MSELoss("sum"), training.Adam(0.05), [info, info])
    assert not well_formed(mod)
    x, target, w, v = FLOATS(8, 3), FLOATS(8, 2), FLOATS(3, 5), FLOATS(5, 2)
    values = [torch.from_numpy(a.copy()).requires_grad_() for a in (w, np.ones(5, "float32"), np.zeros(5, "float32"), v)]
    mean, var, theirs, want = torch.zeros(5), torch.ones(5), torch.optim.Adam(values, 0.05), []
    forward = lambda train: F.relu(F.batch_norm(torch.from_numpy(x) @ values[0], mean, var, values[1], values[2], train)) @ values[3]
    for _ in range(3):
        theirs.zero_grad()
        loss = ((forward(True) - torch.from_numpy(target)) ** 2).sum()
        loss.backward()
        theirs.step()
        want.append(float(loss))
    for run in (interpret(mod), build_module(mod)):
        trainer = training.Trainer(mod, run)
        trainer.load_params({"w": w, "gamma": np.ones(5, "float32"), "v": v})
        trainer.load_states([np.zeros(5, "float32"), np.ones(5, "float32")])
        got = [float(trainer.update(x, target)) for _ in range(3)]
        np.testing.assert_allclose(got, want, rtol=1e-4)
        np.testing.assert_allclose(trainer.export_params()["w"], values[0].detach(), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(trainer.export_states()["mean"], mean, rtol=1e-4, atol=1e-6)


def test_what_is_missing_or_does_not_fit_is_named():
    info = graph.TensorInfo((8, 2), "float32")
    mod = training.setup(Net, training.MSELoss(), training.SGD(0.1), [info, info])
    trainer = training.Trainer(mod, interpret(mod), False)
    with pytest.raises(CallError, match="w, gamma, beta, v, mean, var"):
        trainer.predict(FLOATS(8, 3))
    with pytest.raises(CallError, match="no parameter q"):
        trainer.load_params({"q": FLOATS(2)})
    with pytest.raises(RoundelError, match="the loss takes"):
        training.append_loss(Net, "backbone", training.MSELoss()(graph.TensorInfo((8,), "float32"), graph.TensorInfo((8,), "float32")))
    with pytest.raises(RoundelError, match="how many parameters"):
        training.setup(Net.replace(attrs={}), training.MSELoss(), training.SGD(0.1), [info, info])
    with pytest.raises(OptionError, match="tensors of floats"):
        training.SGD(0.1).init(graph.Var("k", graph.TensorInfo((2,), "int64")))
    with pytest.raises(OptionError, match="reduction"):
        training.L1Loss("median")
