# SPDX-License-Identifier: Apache-2.0
"""``kill -9`` again and again: sessions of tuning that go on with one database, each ended at a random moment, lose no record that was committed.

    python -m tests.hostile tuning_kills --count 20
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .tuning import kill


def attack(count: int, seed: int) -> Iterator[str]:
    """End ``count`` sessions, one after another."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for k in range(count):
            yield from map(f"kill {k}: {{}}".format, kill(Path(folder) / "db", rng))
