# SPDX-License-Identifier: Apache-2.0
"""The samples of the operator benchmark, small: what Roundel computes is what PyTorch or else ONNX Runtime does."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.peers

from benchmarks.samples import samples  # noqa: E402

SAMPLES = samples(0.03)


@pytest.mark.parametrize("part", range(4))
def test_samples(part, tmp_path):
    import roundel as rd

    for sample in SAMPLES[part::4]:
        path = tmp_path / "sample.onnx"
        sample.save(path)
        out = rd.compile(str(path))(*sample.inputs.values())
        out = np.asarray(out[0] if isinstance(out, tuple | list) else out)
        if sample.peer is not None:
            expected = sample.peer(*map(torch.from_numpy, sample.inputs.values()))
            expected = (expected.float() if expected.dtype is torch.bfloat16 else expected).numpy()
        else:
            expected = onnxruntime.InferenceSession(str(path)).run(None, dict(sample.inputs))[0]
        assert out.shape == expected.shape, sample.name
        np.testing.assert_allclose(out.astype(np.float64), expected.astype(np.float64), rtol=1e-4, atol=1e-4, err_msg=sample.name)


def test_one_name_each():
    assert len({s.name for s in samples()}) == len(SAMPLES)
