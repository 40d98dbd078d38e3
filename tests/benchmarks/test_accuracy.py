# SPDX-License-Identifier: Apache-2.0
"""The accuracy benchmark: what it compares with is in double precision throughout, and errors of whole modules are near PyTorch's own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

from benchmarks.accuracy import errors, everything_in_double, ratio  # noqa: E402

from benchmarks import zoo  # noqa: E402


class Normalised(torch.nn.Module):
    """Normalises in float32 whatever its input's precision is, as modules of ``transformers`` do."""

    def forward(self, x):
        wide = x.to(torch.float32)
        return (wide * torch.rsqrt(wide.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * torch.ones(1, dtype=torch.float32)


class Classifier(torch.nn.Module):
    """A convolution, a normalisation, attention and a projection; the class beside its scores."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = torch.nn.Conv2d(3, 32, 4, 4), torch.nn.LayerNorm(32)
        self.attention, self.head = torch.nn.MultiheadAttention(32, 4, batch_first=True), torch.nn.Linear(32, 10)

    def forward(self, x):
        x = self.norm(self.patches(x).flatten(2).transpose(1, 2))
        x = x + self.attention(x, x, x, need_weights=False)[0]
        scores = self.head(torch.nn.functional.gelu(x).mean(1))
        return scores, scores.argmax(-1)


def test_double_where_the_module_asks_for_single():
    x = torch.randn(4, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = x.numpy() / np.sqrt((x.numpy() ** 2).mean(-1, keepdims=True) + 1e-6)
    with everything_in_double():
        got = Normalised()(x)
    np.testing.assert_allclose(got.numpy(), exact, rtol=1e-14)
    assert torch.get_default_dtype() is torch.float32
    assert np.abs(Normalised()(x).numpy() - exact).max() > 1e-9


def test_errors_of_a_module_are_near_those_of_pytorch():
    torch.manual_seed(0)
    found = errors(Classifier().eval().requires_grad_(False), [zoo.picture(32, 32)])
    assert len(found) == 1, "the class is an integer and has no error"
    assert 0 < found[0][0] < 1e-5 and ratio(*found[0]) <= 8


def test_an_exact_result_of_pytorch_is_no_division_by_zero():
    assert ratio(0.0, 0.0) == 0 and ratio(0.0, 2.0**-25) == 1


def test_the_zoo_has_thirty_architectures_of_many_kinds():
    kinds = {s.kind for s in zoo.ZOO.values()}
    assert {"benchmark", "convolutions", "text", "speech", "recommendation", "detection, segmentation"} <= kinds
    assert len(zoo.chosen("all")) - len(zoo.chosen("benchmark")) >= 30
    assert zoo.chosen("dlrm; text")[-1] == "dlrm"
    with pytest.raises(ValueError, match="'resnet9000'"):
        zoo.chosen("resnet9000")


def test_inputs_look_like_real_ones():
    photo = zoo.picture(64, 48, 2)
    assert photo.shape == (2, 3, 64, 48) and photo.dtype == np.float32
    assert np.abs(np.diff(photo, axis=-1)).mean() < 0.6 * photo.std(), "neighbours are alike"
    assert zoo.sound(1600).shape == (1, 1600) and zoo.mel(80, 100).shape == (1, 80, 100)
    ids = zoo.tokens(100, 500)
    assert ids.min() >= 0 and ids.max() < 100


def test_mixtures_of_experts_have_a_reference_in_double_precision():
    rows, weights, offs = torch.randn(10, 8), torch.randn(3, 8, 4), torch.tensor([3, 3, 10], dtype=torch.int32)
    wanted = torch.cat([rows[:3] @ weights[0], rows[3:] @ weights[2]])
    with everything_in_double():
        found = torch._grouped_mm(rows.double(), weights.double(), offs=offs)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), wanted)
