# SPDX-License-Identifier: Apache-2.0
"""The rule takes Winograd convolutions of every size, for every width of vectors: what it leaves to the fallback is a hundred times slower."""

from __future__ import annotations

import numpy as np
import pytest

from roundel.builder import BlockBuilder
from roundel.driver import DEFAULT, prepare
from roundel.host.lower_host import lower_host
from roundel.ir import graph, tir
from roundel.ops import make
from roundel.target import Target

TARGETS = {16: Target("znver5", cores=2, vector_bytes=16, vector_registers=16), 32: Target("znver5", cores=2, vector_bytes=32, vector_registers=16),
           64: Target("znver5", cores=2)}


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("width", TARGETS)
@pytest.mark.parametrize("size", [28, 52, 56, 60])  # rows of tiles that no register tile divides are among them
def test_every_size_is_taken(size, width, tile):
    bb, x = BlockBuilder(), graph.Var("x", graph.TensorInfo((1, 64, size, size), "float32"))
    weight = graph.Constant.of(np.full((64, 64, 3, 3), 0.3, np.float32))  # (whole numbers stay exact, and keep the direct algorithm)
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(make("nn.conv2d", x, weight, padding=1))
        bb.emit_func_output(out)
    mod = prepare(bb.get(), target=TARGETS[width], pipeline=DEFAULT[: DEFAULT.index(lower_host)], choices={"*": f"winograd{tile}"})
    rules = [f.attrs["scheduled"] for name, f in mod.items() if isinstance(f, tir.PrimFunc) and "winograd" in name]
    assert rules == ["winograd"]
