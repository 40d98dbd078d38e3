# SPDX-License-Identifier: Apache-2.0
"""C source of ONNX's test cases, the short form."""

import shutil

import pytest

from .c_source import attack


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_c_source_holds():
    assert list(attack(6, 3)) == []
