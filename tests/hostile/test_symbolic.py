# SPDX-License-Identifier: Apache-2.0
"""Nodes of symbolic sizes: a short run."""

from . import symbolic


def test_short_form():
    assert list(symbolic.attack(300, seed=0)) == []
