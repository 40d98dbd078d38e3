# SPDX-License-Identifier: Apache-2.0
"""The benchmark's models through both frontends, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.models import BUILDERS, LENGTHS, Case, data, load, onnx_file

import roundel as rd

pytestmark = [pytest.mark.slow, pytest.mark.peers]


def exported(name):
    """The model by torch.export, its length dynamic where the benchmark says so."""
    module, inputs = load(Case(name))
    axes = {0: torch.export.Dim.STATIC, 1: torch.export.Dim("seq", min=2, max=512)}
    with torch.no_grad():
        return torch.export.export(module, tuple(map(torch.from_numpy, inputs.values())),
                                   dynamic_shapes=(tuple(axes for _ in inputs),) if name in LENGTHS else None)


@pytest.mark.parametrize("frontend", ["onnx", "torch"])
@pytest.mark.parametrize("name", BUILDERS)
def test_agrees_with_pytorch(name, frontend):
    artifact = rd.compile(onnx_file(Case(name)) if frontend == "onnx" else exported(name))
    for length in LENGTHS.get(name, (None,)):
        inputs, expected = data(Case(name, length=length))
        np.testing.assert_allclose(artifact(*inputs.values()), expected, rtol=1e-3, atol=1e-4)


def test_torch_compile_of_a_model():
    from roundel.embed.torch.backend import roundel

    module, inputs = load(Case("resnet18"))
    tensors = tuple(map(torch.from_numpy, inputs.values()))
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(module, backend=roundel)(*tensors), module(*tensors), rtol=1e-3, atol=1e-4)
