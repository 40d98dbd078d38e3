# SPDX-License-Identifier: Apache-2.0
"""A short run of the C runtime under sanitizers."""

from __future__ import annotations

import pytest

from . import sanitizers


@pytest.mark.slow
def test_short_form():
    assert list(sanitizers.attack(2000, seed=1)) == []
