# SPDX-License-Identifier: Apache-2.0
"""Descriptions of targets with mistakes: a short run."""

from . import targets


def test_short_form():
    assert list(targets.attack(500, seed=0)) == []
