# SPDX-License-Identifier: Apache-2.0
"""Primitives that copy, on programs of further forms, the short form."""

from __future__ import annotations

import pytest

from .copies import attack


@pytest.mark.parametrize("seed", [0, 1000])
def test_copies_hold_what_was_copied(seed):
    assert list(attack(8, seed)) == []
