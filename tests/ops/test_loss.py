# SPDX-License-Identifier: Apache-2.0
"""Losses and their gradients against PyTorch; the other operators of training and of TVM's table."""

from __future__ import annotations

import numpy as np
import pytest
from opcheck import T, opcheck

from roundel.ir.errors import RoundelError, TypeInferenceError
from roundel.ops import make
from roundel.script import relax as R

RNG = np.random.default_rng(3)
SHAPES = [((5,), ()), ((4, 5), (4,)), ((2, 5, 3, 2), (2, 3, 2))]


def _targets(shape, ignored):
    values = RNG.integers(0, 5, shape)
    if ignored and values.size:
        values = np.where(RNG.random(shape) < 0.3, 2, values)
    return values


def _torch_loss(predictions, targets, weights, reduction, ignore):
    torch = pytest.importorskip("torch")
    p = torch.tensor(predictions, dtype=torch.float64, requires_grad=True)
    w = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    loss = torch.nn.functional.nll_loss(p, torch.tensor(targets), w, reduction=reduction, ignore_index=ignore)
    return p, loss


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape, targets", SHAPES)
def test_nll_loss_and_its_gradient(shape, targets, weighted, reduction):
    predictions = RNG.standard_normal(shape).astype("float32")
    chosen = _targets(targets, True)
    weights = RNG.random(5).astype("float32") + 0.5 if weighted else None
    ignore = 2 if targets else -100
    p, loss = _torch_loss(predictions, chosen, weights, reduction, ignore)
    operands = [T(values=predictions), T(values=chosen, dtype="int64"), *([T(values=weights)] if weighted else [])]
    opcheck("nn.nll_loss", *operands, reduction=reduction, ignore_index=ignore, expected=loss.detach().numpy().astype("float32"))
    given = RNG.standard_normal(tuple(loss.shape)).astype("float32")
    loss.backward(gradient=p.new_tensor(given))
    opcheck("grad.nll_loss_backward", T(values=given), *operands, reduction=reduction, ignore_index=ignore, expected=p.grad.numpy().astype("float32"))


def test_symbolic_sizes():
    sizes = {"n": 3, "c": 4}
    opcheck("nn.nll_loss", T("n", "c"), T("n", dtype="int64", low=0, high=0.9), dims=sizes)
    opcheck("nn.cross_entropy_with_logits", T("n", "c"), T("n", "c"), dims=sizes)
    opcheck("ewise_fma", T("n", "c"), T("n", "c"), T("n", "c"), dims=sizes)
    opcheck("collapse_sum_like", T(2, "n", "c"), T("n", "c"), dims=sizes)


def test_cross_entropy():
    predictions, labels = RNG.standard_normal((2, 4, 3)).astype("float32")
    opcheck("nn.cross_entropy_with_logits", T(values=predictions), T(values=labels), expected=np.float32(-(predictions * labels).sum() / 4))
    opcheck("nn.cross_entropy_with_logits", T(values=predictions[0]), T(values=labels[0]), expected=np.float32(-(predictions[0] * labels[0]).sum()))


@pytest.mark.parametrize("x, wanted", [((3, 4, 5), (4, 5)), ((3, 4, 5), (1, 5)), ((3, 4), (3, 1)), ((3, 4), ()), ((3, 4), (3, 4))])
def test_collapse(x, wanted):
    opcheck("collapse_sum_to", T(*x), wanted)
    opcheck("collapse_sum_like", T(*x), T(*wanted))


@pytest.mark.parametrize("axis", [None, 0, -1, [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_median(axis, keepdims):
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((3, 4, 5)).astype("float32")
    found = opcheck("median", T(values=x), axis=axis, keepdims=keepdims)
    if axis is None:
        assert found == torch.tensor(x).median().item()
    else:
        at = axis[0] if isinstance(axis, list) else axis
        want = torch.tensor(x).median(dim=at, keepdim=keepdims)
        np.testing.assert_array_equal(found[0], want.values.numpy())
        np.testing.assert_array_equal(found[1], want.indices.numpy())


@pytest.mark.parametrize("make_it, said", [
    (lambda x, t: make("nn.nll_loss", x, t, reduction="avg"), "none, sum, mean"),
    (lambda x, t: make("nn.nll_loss", x, x), "integer"),
    (lambda x, t: make("nn.nll_loss", t, t), "one more, that of the classes"),
    (lambda x, t: make("nn.nll_loss", x, t, T_weights(3)), "one weight for each class"),
    (lambda x, t: make("collapse_sum_to", x, (3, 5)), "dimension 0"),
    (lambda x, t: make("median", x, axis=[0, 1]), "one axis"),
    (lambda x, t: make("nn.cross_entropy_with_logits", x, t), "shape of predictions"),
])  # fmt: skip
def test_operands_that_do_not_fit(make_it, said):
    from roundel import relax

    x, t = relax.Var("x", R.Tensor((4, 5), "float32")), relax.Var("t", R.Tensor((4,), "int64"))
    with pytest.raises((TypeInferenceError, RoundelError), match=said):
        make_it(x, t)


def T_weights(n):
    from roundel import relax

    return relax.Var("w", R.Tensor((n,), "float32"))
