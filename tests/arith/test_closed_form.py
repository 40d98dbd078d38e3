# SPDX-License-Identifier: Apache-2.0
"""Closed forms evaluated over columns."""

import numpy as np
import pytest
from arith_brute import DOMAINS, ENV, conditions, evaluate, indices
from hypothesis import given, settings

from roundel.arith import numpy_function
from roundel.ir import decl_buffer
from roundel.ir.errors import ArithError


@settings(max_examples=200, deadline=None)
@given(indices, conditions)
def test_as_by_brute_force(e, c):
    variables = list(DOMAINS)
    value, holds = numpy_function([e, c], variables)(*(ENV[v] for v in variables))
    assert np.array_equal(np.broadcast_to(value, 1728), np.broadcast_to(evaluate(e, ENV), 1728))
    assert np.array_equal(
        np.broadcast_to(holds, 1728).astype(bool), np.broadcast_to(evaluate(c, ENV), 1728).astype(bool)
    )


def test_loads_are_refused():
    with pytest.raises(ArithError, match="closed form"):
        numpy_function([decl_buffer((4,), "int64")[0]], [])
