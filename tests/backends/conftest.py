# SPDX-License-Identifier: Apache-2.0
"""What tests of backends share."""

import pytest

from roundel import backends


@pytest.fixture
def registered():
    """Backends that are forgotten after the test."""
    made = []
    yield lambda backend: made.append(backends.register(backend))
    for backend in made:
        backends.unregister(backend)
