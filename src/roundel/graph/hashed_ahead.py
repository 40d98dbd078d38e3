# SPDX-License-Identifier: Apache-2.0
"""Large constants are hashed by a thread while passes run: their keys, which the host function calls them by, take as long as their size asks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ..ir.module import IRModule
from .constant_bytes import constants_of

LARGE = 1 << 18  # bytes of a constant that takes longer to hash than to ask a thread for it


@contextmanager
def hashed_ahead(mod: IRModule) -> Iterator[None]:
    """Within, a thread hashes what the constants of the module's graph functions are made from."""
    leaves = {id(leaf): leaf for data in constants_of(mod) if data.nbytes >= LARGE for leaf in data.leaves()}
    threads = ThreadPoolExecutor(1, "roundel-keys")
    try:
        for leaf in leaves.values():
            leaf.hash_ahead(threads)
        yield
    finally:
        threads.shutdown(cancel_futures=True)
