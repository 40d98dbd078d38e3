# SPDX-License-Identifier: Apache-2.0
"""Linear layers of awkward sizes, scheduled for named machines and lowered: one to 17 columns, one to 20,000 inputs, a few rows or any number."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from roundel.driver import prepare
from roundel.target import Target
from roundel.target.machines import MACHINES
from tests.strategy.test_choose import linear

from .attempts import attempts
from .schedules import failures, lowered

INPUTS, COLUMNS, ROWS = (1, 2, 7, 64, 511, 512, 768, 1280, 2048, 20000), (*range(1, 18), 1000), (1, 2, 3, 8, None)
LAYERS = [(k, n, rows) for k, n, rows in itertools.product(INPUTS, COLUMNS, ROWS) if k * n <= 2_100_000]


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """``count`` layers in random order, all of them before one comes again, each on the next machine."""
    rng = np.random.default_rng(seed)
    order = list(rng.permutation(len(LAYERS)))
    for k in attempts(range(count), start):
        layer, name = LAYERS[order[k % len(order)]], list(MACHINES)[(k + seed) % len(MACHINES)]
        target = Target(name)
        with failures() as noted:
            try:
                mod = prepare(linear(*layer), target=target)
                for _, f in mod.items():
                    if f.attrs.get("kind") == "kernel":
                        lowered(f, target)
            except Exception as error:
                noted.append(f"{type(error).__name__}: {error}".split("\n")[0])
        yield from (f"{layer} on {name}: {text}" for text in noted)
