# SPDX-License-Identifier: Apache-2.0
"""Models as C source called wrongly here; ``python -m tests.hostile boards`` tries more, and emulated boards."""

from __future__ import annotations

import shutil

import pytest

from .boards import HERE, attack, installed


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_c_source_here():
    assert list(attack(60, seed=1, machines=(HERE,), least=False)) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_least_memory_here():
    assert list(attack(60, seed=3, machines=(HERE,))) == []


@pytest.mark.slow
@pytest.mark.parametrize("board", installed()[1:])
def test_on_boards(board):
    assert list(attack(60, seed=2, machines=(board,))) == []
