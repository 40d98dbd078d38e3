# SPDX-License-Identifier: Apache-2.0
"""How many vectors of a row are summed side by side."""

from __future__ import annotations

import pytest

from roundel import te
from roundel.ir import tir
from roundel.strategy.explain import explain_program
from roundel.target import Target


@pytest.mark.parametrize("length", [77, 225])
def test_sums_of_what_waits_for_itself_take_several_vectors_at_a_time(length):
    """Also where the last ones side by side are not all full."""
    x, k = te.placeholder((40, length), "float32", "X"), te.reduce_axis((0, length), "k")
    y = te.compute((40,), lambda i: te.sum(tir.call("tanh", tir.call("erf", x[i, k])), axis=k), "Y")
    assert explain_program(te.create_prim_func([x, y]), Target("sapphirerapids")).decisions["chains"] >= 4
