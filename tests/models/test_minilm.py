# SPDX-License-Identifier: Apache-2.0
"""A trained sentence encoder on real sentences, ten batch sizes and lengths from one artifact, against PyTorch."""

from __future__ import annotations

import minilm
import numpy as np
import pytest
import torch

import roundel as rd

pytestmark = [pytest.mark.slow, pytest.mark.peers, pytest.mark.skipif(minilm.folder() is None, reason="MiniLM's weights are not installed")]


@pytest.fixture(scope="module")
def module():
    return minilm.load()


@pytest.mark.parametrize("frontend", ["onnx", "torch"])
def test_sentences(module, frontend, tmp_path):
    artifact = rd.compile(minilm.onnx_file(module, tmp_path / "minilm.onnx") if frontend == "onnx" else minilm.program(module))
    shapes = set()
    for batch in minilm.BATCHES:
        ids, mask = minilm.encode(batch)
        shapes.add(ids.shape)
        with torch.no_grad():
            expected = module(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
        np.testing.assert_allclose(artifact(ids, mask), expected, rtol=1e-3, atol=1e-5)
    assert len(shapes) == 10
    vectors = artifact(*minilm.encode(range(4)))
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.5 > alike[0, 2] and alike[2, 3] > 0.4
