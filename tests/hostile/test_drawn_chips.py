# SPDX-License-Identifier: Apache-2.0
"""Models on drawn accelerators, the short form."""

from __future__ import annotations

import numpy as np
import pytest

from .drawn_chips import Chip, attack, drawn, tried


@pytest.mark.parametrize("seed", range(2))
def test_models_on_drawn_chips_give_what_the_processor_gives(seed):
    assert not list(attack(4, seed))


def test_chips_of_many_kinds_are_drawn():
    chips = [drawn(np.random.default_rng([0, k])) for k in range(60)]
    assert len({c.types for c in chips}) == 5
    assert {len(c.memories) for c in chips} == {1, 2, 3}
    assert any(c.layouts[0].endswith("m") for c in chips)
    assert any("p" in c.axes or "q" in c.axes for c in chips)


@pytest.mark.parametrize("sums", ["mn", "nm"])
@pytest.mark.parametrize("weights", ["kn", "nk"])
def test_square_tiles_lie_as_they_are_described(weights, sums):
    """All operands have one shape: which is which, and which axis comes first, is told by their indices alone."""
    memories = {"drawn.data": (900, 4, 1), "drawn.weights": (900, 4, 1), "drawn.sums": (3600, 4, 1)}
    chip = Chip({"m": 3, "n": 3, "k": 3}, ("mk", weights, sums), ("int8", "int8", "int32"), tuple(memories), memories, (0, 2, 1))
    assert not tried(chip, np.random.default_rng(20))
