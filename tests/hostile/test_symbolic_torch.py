# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators with symbolic sizes: a short run."""

import pytest

from . import symbolic_torch


def test_short_form():
    pytest.importorskip("torch")
    assert list(symbolic_torch.attack(6, seed=0)) == []
