# SPDX-License-Identifier: Apache-2.0
"""Constants are laid out as a schedule wants them, padding included."""

from __future__ import annotations

import numpy as np
import pytest

from roundel import te
from roundel.ir import tir
from roundel.strategy.pack_constants import relayout
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

PANELS = tir.IndexMap.from_func(lambda i, j: (i // 16, j, i % 16), 2)


@pytest.mark.parametrize("count", [13, 16, 35])
def test_panels_are_padded_as_the_schedule_pads_its_buffer(count):
    array = np.arange(count * 5).reshape(count, 5)
    x, r = te.placeholder((7, 5), "float32", "X"), te.reduce_axis((0, 5), "r")
    w = te.placeholder((count, 5), "float32", "W")
    func = te.create_prim_func([x, w, te.compute((7, count), lambda i, j: te.sum(x[i, r] * w[j, r], axis=r), "Y")])
    made, layouts = schedule_program(func, Target("znver5"), (1,), {"sketch": "generic", "turned": 1, "vectors": 1, "lanes": 16})
    shape = [n.value for n in made.buffer_params[1].shape]
    packed = relayout(array, layouts[1], shape)
    panels, _, width = shape
    assert packed.shape == (panels, 5, width) and panels * width >= count
    for i in range(count):
        assert np.array_equal(packed[i // 16, :, i % 16], array[i])


def test_an_axis_that_fills_no_panel_stays_as_short_as_it_is():
    array = np.arange(13 * 5).reshape(13, 5)
    assert np.array_equal(relayout(array, PANELS, (1, 5, 13))[0], array.T)
