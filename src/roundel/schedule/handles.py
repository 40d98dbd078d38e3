# SPDX-License-Identifier: Apache-2.0
"""Handles of a schedule: names for loops, blocks and sampled values that stay valid while the program changes."""

from __future__ import annotations

from roundel.ir import Var


class BlockRV:
    """A block of a schedule; stays valid until a primitive removes the block."""

    __slots__ = ()


class LoopRV:
    """A loop of a schedule; stays valid until a primitive removes the loop."""

    __slots__ = ()


ExprRV = Var  # a sampled integer is a variable: arithmetic on it gives expressions that primitives take
