# SPDX-License-Identifier: Apache-2.0
"""An index map lays out an array as it lays out a buffer."""

import numpy as np
import pytest

from roundel import tir
from roundel.ir.errors import ArithError


@pytest.mark.parametrize(("mapping", "shape"), [
    (lambda i: (i // 4, i % 4), (14,)),
    (lambda i, j, k: (k, i, j), (2, 3, 5)),
    (lambda i, j: (j // 16, i // 2, i % 2, j % 16), (6, 32)),
    (lambda i, j: (9 - i, tir.max(j, 1) - tir.min(j, 1)), (10, 1)),
])  # fmt: skip
def test_elements_stand_where_the_map_leads(mapping, shape):
    values = np.random.default_rng(0).standard_normal(shape)
    made = tir.IndexMap.from_func(mapping).map_tensor(values)
    for at in np.ndindex(*shape):
        there = tuple(e.value for e in tir.IndexMap.from_func(mapping).map_indices(at))
        assert made[there] == values[at]
    assert np.count_nonzero(made) == values.size


def test_other_maps_are_refused():
    with pytest.raises(ArithError, match="2 dimensions"):
        tir.IndexMap.from_func(lambda i: (i,)).map_tensor(np.zeros((2, 2)))
    with pytest.raises(ArithError, match="no number for every element"):
        tir.IndexMap.from_func(lambda i: (tir.truncdiv(i, 2),)).map_tensor(np.zeros(4))
