# SPDX-License-Identifier: Apache-2.0
"""A function as a module, imported or compiled, against what PyTorch gives."""

from __future__ import annotations

import numpy as np
import torch

import roundel as rd
from roundel.frontend.torch import from_torch


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def leaves(value):
    return [v for part in value for v in leaves(part)] if isinstance(value, tuple | list) else [value]


def check(function, *inputs, dynamic=None, again=(), tolerance=1e-4, strict=True):
    """``function`` imported once agrees with PyTorch on ``inputs`` and on every set of inputs of ``again``."""
    program = Module(function) if strict else torch.export.export(Module(function), inputs, strict=False)
    main = rd.interpret(from_torch(program, inputs, dynamic_shapes=dynamic))["main"]
    for arguments in (inputs, *again):
        expected, found = leaves(function(*arguments)), leaves(main(*arguments))
        assert len(expected) == len(found)
        for e, f in zip(expected, found):
            f = np.asarray(f)
            assert (f.shape, f.dtype) == (tuple(e.shape), e.numpy().dtype)
            np.testing.assert_allclose(f, e.numpy(), rtol=tolerance, atol=tolerance)


def draw(*shape, dtype=torch.float32, low=-3.0, high=3.0):
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    values = torch.rand(shape, generator=generator) * (high - low) + low
    return values.to(dtype)
