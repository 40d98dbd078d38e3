# SPDX-License-Identifier: Apache-2.0
"""Random einsums and convolutions on instructions: the mappings that are enumerated are just those that trying everything finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roundel.intrinsics import TensorIntrin
from roundel.strategy.match.accesses import blocks_of
from tests.strategy.match.test_mappings import INTRINS, convolution, einsum, enumerated, tried


def attack(count: int, seed: int) -> Iterator[str]:
    """Each attempt is a program, and one of six instructions in turn."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        intrin = TensorIntrin.get(INTRINS[k % len(INTRINS)])
        types = tuple(str(b.dtype) for b in intrin.desc.buffer_params)
        program = (einsum if rng.random() < 0.7 else convolution)(rng, types)
        info = blocks_of(program)[0]
        if (made := enumerated(info, intrin)) != (found := tried(info, intrin)):
            yield f"{intrin.name}: {sorted(made ^ found)} of\n{program.script()}"
