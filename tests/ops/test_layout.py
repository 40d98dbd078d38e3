# SPDX-License-Identifier: Apache-2.0
"""Named layouts: blocks of every size, of 1 too (which is what a machine with vectors of one lane asks for)."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.arith import Analyzer
from roundel.ir import tir
from roundel.ops.layout import Position, named_layout

SIZES = {"N": 2, "C": 12, "H": 3, "W": 4}


def number(e):
    return int(e) if isinstance(e, int) else Analyzer().simplify(tir.as_index(e)).value


@pytest.mark.parametrize("block", [None, 1, 2, 4, 12])
@pytest.mark.parametrize("form", ["NC{}HW", "NCHW{}", "CHW{}N", "HWNC{}"])
def test_an_index_finds_the_element(form, block):
    """``index`` of a logical position is where ``from_logical`` puts its element; ``positions`` is the way back, ``to_logical`` of the array."""
    layout = named_layout(form.format("" if block is None else f"{block}c"))
    logical = np.arange(np.prod(list(SIZES.values()))).reshape(*SIZES.values())
    physical = layout.from_logical(logical, "NCHW")
    assert physical.shape == tuple(number(n) for n in layout.shape({c: tir.index_const(n) for c, n in SIZES.items()}))
    np.testing.assert_array_equal(layout.to_logical(physical, "NCHW"), logical)
    assert {c: number(n) for c, n in layout.extents(physical.shape).items()} == SIZES
    for at in np.ndindex(*logical.shape):
        index = tuple(map(number, layout.index({c: Position(tir.index_const(k)) for c, k in zip(SIZES, at, strict=True)})))
        assert physical[index] == logical[at]
        back = layout.positions([tir.index_const(k) for k in index])
        assert tuple(number(back[c].value) for c in SIZES) == at
        again = tuple(map(number, layout.index(back)))
        assert again == index


@pytest.mark.parametrize("given", [1, 2, 4])
@pytest.mark.parametrize("wanted", [1, 2, 4])
def test_a_position_in_blocks_of_one_size_splits_into_another(given, wanted):
    for value in range(12):
        outer, inner = Position(tir.index_const(value // given), tir.index_const(value % given), given).split(wanted)
        assert (number(outer), number(inner)) == divmod(value, wanted)
