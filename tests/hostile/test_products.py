# SPDX-License-Identifier: Apache-2.0
"""Matrix products of extreme numbers, the short form: Strassen's products in each form, the kinds of rows one beside the other."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.ir.dtype import DType

from .products import FINITE, NOT_FINITE, compiled, problem, rows


@pytest.mark.parametrize("form, size", [("float32", (131, 512, 768)), ("float32 batch", (260, 512, 768)), ("float32 symbolic", (128, 512, 768)),
                                        ("bfloat16", (256, 1024, 1024))])
def test_bounds_hold(form, size):
    rng, (_, k, n) = np.random.default_rng(0), size
    weight = rng.standard_normal((k, n)) * 2.0 ** rng.integers(-5, 6, n)
    weight[:, ::50], weight[:, 7::60] = 0, FINITE["one number"](rng, k)[:, None]
    weight[:, 9::60] = 0.7
    product = compiled(form, size, weight.astype(DType(form.split()[0]).numpy), choices={"*": "strassen"})
    assert product.mixes_rows
    for shape in product.shapes:
        for share in (0, 0.3):
            found = problem(product, rows(rng, shape, FINITE), rows(rng, shape, NOT_FINITE), rng.random(shape[:-1]) < share)
            assert found is None, (shape, found)
