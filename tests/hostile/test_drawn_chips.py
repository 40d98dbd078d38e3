# SPDX-License-Identifier: Apache-2.0
"""Models on drawn accelerators, the short form."""

from __future__ import annotations

import numpy as np
import pytest

from .drawn_chips import attack, drawn


@pytest.mark.parametrize("seed", range(2))
def test_models_on_drawn_chips_give_what_the_processor_gives(seed):
    assert not list(attack(4, seed))


def test_chips_of_many_kinds_are_drawn():
    chips = [drawn(np.random.default_rng([0, k])) for k in range(60)]
    assert len({c.types for c in chips}) == 5
    assert {len(c.memories) for c in chips} == {1, 2, 3}
    assert any(c.layouts[0].endswith("m") for c in chips)
    assert any("p" in c.axes or "q" in c.axes for c in chips)
