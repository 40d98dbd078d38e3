# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose reduction is cut into blocks: each leaves out the padding, and the sums of all are right."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.strategy import rules
from roundel.strategy.program import Program
from roundel.target import Target
from tests.strategy.test_contest import dilated


@pytest.mark.parametrize("dilation", (1, 2, 5))
@pytest.mark.parametrize("blocks", (1, 2, 4))
def test_convolutions_in_blocks(dilation, blocks):
    func = dilated(dilation, size=11, channels=32)
    sketch = next(iter(rules.contraction(Program(func, Target("host")))))
    made = sketch.schedule({"rows": 4, "vectors": 1, "lanes": 16, "order": 0, "inner": 3, "blocks": blocks, "unroll": 4}).func
    rng = np.random.default_rng(0)
    data = [rng.standard_normal([int(n.value) for n in b.shape]).astype("float32") for b in func.buffer_params]
    wanted, found = [a.copy() for a in data], [a.copy() for a in data]
    interpret(IRModule({"main": func}))["main"](*wanted)
    build_module(IRModule({"main": made}), target=Target("host"))["main"](*found)
    np.testing.assert_allclose(found[-1], wanted[-1], rtol=1e-4, atol=1e-4)


def test_large_weights_are_read_in_blocks():
    """A panel of 2048 channels does not stay in the second-level cache; it would come from the third for every tile of rows."""
    large, small = ((next(iter(rules.contraction(Program(dilated(12, channels=c), Target("x86-64-v4"), (1,))))).best()) for c in (2048, 64))
    assert large["blocks"] > 1 and small["blocks"] == 1
