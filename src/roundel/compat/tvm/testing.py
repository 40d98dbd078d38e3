# SPDX-License-Identifier: Apache-2.0
"""``tvm.testing``: comparison of results."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """Raises AssertionError where two arrays differ, in shape too, by more than ``atol + rtol * |desired|``."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    np.testing.assert_equal(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


__all__ = ["assert_allclose"]
