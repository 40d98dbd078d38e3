# SPDX-License-Identifier: Apache-2.0
"""Partial results of a reduction for the families that make them."""

from __future__ import annotations

from typing import Any

from ..schedule import Schedule


def partial_results(sch: Schedule, block: Any, loop: Any) -> Any:
    """``rfactor`` of a block's loop; in the block that combines the results the loop's variable comes last, and with it its loop where the
    block is moved (loops of a moved block are in the order of its variables)."""
    part = sch.rfactor(loop, 0)
    count = len(sch.get(block).iter_vars)
    sch.reorder_block_iter_var(block, [*range(1, count), 0])
    return part
