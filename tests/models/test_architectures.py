# SPDX-License-Identifier: Apache-2.0
"""Architectures of ``transformers``, small and with random weights, through both frontends at two shapes from one artifact."""

import pytest
from architectures import ARCHITECTURES, TOLERANCE, error

pytestmark = [pytest.mark.slow, pytest.mark.peers]


@pytest.mark.parametrize("via", ["torch", "onnx"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name, via):
    assert error(name, via) < TOLERANCE
