# SPDX-License-Identifier: Apache-2.0
"""Products of operands in any order between guarded pages, the short form."""

from __future__ import annotations

import numpy as np
import pytest

from .guarded import Pool
from .operand_orders import tried


@pytest.mark.parametrize(("order", "is_constant"), [("NN", True), ("NT", False), ("TN", True), ("TT", False)])
def test_sums_are_exact_and_nothing_outside_is_touched(order, is_constant):
    types = ("uint8", "int8", "int32") if is_constant else ("int8", "int8", "int32")
    assert not list(tried(types, order, is_constant, np.random.default_rng(0), Pool(16), rows=range(1, 71, 23)))
