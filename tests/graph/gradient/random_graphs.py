# SPDX-License-Identifier: Apache-2.0
"""Random functions of two matrices in PyTorch, whose gradients PyTorch knows."""

from collections.abc import Iterator

import numpy as np

import roundel as rd
from roundel.frontend.torch import from_exported_program
from roundel.graph.gradient import gradient


def _unary(torch):
    f = torch.nn.functional
    return [torch.sin, torch.tanh, torch.sigmoid, f.gelu, f.silu, f.softplus, torch.relu, torch.exp, torch.erf, torch.square, f.hardswish, f.mish, f.elu,
            lambda x: torch.sqrt(x * x + 1), lambda x: torch.log(x * x + 0.5), lambda x: f.softmax(x, -1), lambda x: f.log_softmax(x, 0),
            lambda x: x - x.mean(0, keepdim=True), lambda x: x / (1 + x.abs()), lambda x: x.t().reshape(x.shape), lambda x: f.layer_norm(x, x.shape[1:]),
            lambda x: torch.flip(x, [0]), lambda x: torch.roll(x, 1, 1), lambda x: torch.cumsum(x, 1), lambda x: torch.clamp(x, -0.7, 0.9),
            lambda x: x * x.sum(1, keepdim=True), lambda x: x - torch.logsumexp(x, 1, keepdim=True), lambda x: torch.cat([x[:, 2:], x[:, :2]], 1),
            lambda x: x @ x.t() @ x, lambda x: torch.where(x > 0, x, 0.3 * x), lambda x: torch.sort(x, 1)[0], lambda x: torch.tril(x) + x[:, :1],
            lambda x: torch.stack([x, 2 * x]).amax(0), lambda x: f.avg_pool2d(x[None, None], 3, 1, 1)[0, 0], lambda x: f.pad(x, (1, 0))[:, 1:],
            lambda x: f.max_pool2d(x[None, None], 3, 1, 1)[0, 0], lambda x: torch.repeat_interleave(x, 2, 0)[::2], lambda x: torch.var(x, 1, keepdim=True) * x]


def _binary(torch):
    return [torch.add, torch.sub, torch.mul, lambda a, b: a / (1 + b * b), torch.maximum, torch.minimum, lambda a, b: a @ b.t() @ a / 5,
            lambda a, b: a * b[:1], torch.atan2, torch.logaddexp, lambda a, b: torch.einsum("ij,kj->ik", a, b) @ a / 5,
            lambda a, b: torch.where(a > b, a * 2, b), lambda a, b: torch.nn.functional.conv2d(a[None, None], b[:3, :3][None, None], padding=1)[0, 0]]


def random_function(torch, rng, steps):
    """A function of two matrices that chains random operators."""
    unary, binary = _unary(torch), _binary(torch)
    plan = [(int(rng.integers(2)), unary[rng.integers(len(unary))], binary[rng.integers(len(binary))], rng.integers(0, 99, 2)) for _ in range(steps)]

    class Net(torch.nn.Module):
        def forward(self, x, y):
            values = [x, y]
            for two, one, other, at in plan:
                a, b = (values[k % len(values)] for k in at)
                made = other(a, b) if two else one(a)
                values.append(torch.tanh(made / 3))
            return sum(v.sum() for v in values[2:])

    return Net()


def findings(seed: int, steps: int = 8) -> Iterator[str]:
    """What differs between the gradients of a random function and PyTorch's: nothing, if all is right."""
    import torch

    rng = np.random.default_rng(seed)
    net = random_function(torch, rng, steps)
    inputs = [torch.tensor(rng.standard_normal((5, 6)), requires_grad=True) for _ in range(2)]
    mod = from_exported_program(torch.export.export(net, tuple(i.detach() for i in inputs)))
    loss = net(*inputs)
    wanted = torch.autograd.grad(loss, inputs, allow_unused=True)
    value, found = rd.interpret(gradient(mod, "main"))["main_adjoint"](*(i.detach().numpy() for i in inputs))
    if not np.allclose(np.ravel(value)[0], loss.detach().numpy(), rtol=1e-9):
        yield f"seed {seed}: the loss is {value}, PyTorch's {loss}"
    for k, (g, w) in enumerate(zip(found, wanted, strict=True)):
        if not np.allclose(g, np.zeros_like(g) if w is None else w.numpy(), rtol=1e-7, atol=1e-9):
            yield f"seed {seed}: the gradient by operand {k} differs from PyTorch's"
