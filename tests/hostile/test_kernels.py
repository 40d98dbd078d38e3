# SPDX-License-Identifier: Apache-2.0
"""Kernels of models, one by one under AddressSanitizer: a short run."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.ir.errors import BuildError

from . import kernels, object_models, objects


@pytest.mark.slow
def test_short_form():
    try:
        objects.sanitizer()
    except BuildError as error:
        pytest.skip(str(error))
    assert list(kernels.attack(28, seed=0)) == []


def test_kernels_that_are_called_one_by_one_compute_what_the_model_computes(monkeypatch):
    """Without the sanitizer, one array's poison is another array's memory."""
    kind = next(k for k in object_models.kinds() if k.name == "normalisation")
    whole = kind.build()
    monkeypatch.setattr("roundel.compile", kernels.compiled_apart)
    monkeypatch.setattr(kernels.checked_accesses, "copy", np.array)
    arguments = kind.arguments(np.random.default_rng(0))
    np.testing.assert_allclose(kind.build()(*arguments), whole(*arguments), rtol=1e-6)
