# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators with symbolic sizes: a short run."""

import pytest

from . import symbolic_torch


def test_short_form(capsys):
    pytest.importorskip("torch")
    assert list(symbolic_torch.attack(6, seed=0)) == []
    assert "6 operators: " in capsys.readouterr().err  # and what became of them
