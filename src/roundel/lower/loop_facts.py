# SPDX-License-Identifier: Apache-2.0
"""What an analyzer may assume inside of a loop, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from roundel.arith import Analyzer
from roundel.ir import tir


@contextmanager
def inside(an: Analyzer, loop: tir.For) -> Iterator[None]:
    """The loop variable is in its range.

    That a loop of symbolic extent runs at all says something about the extent, which is forgotten behind the loop.
    """
    if type(loop.extent) is tir.IntImm and loop.extent.value > 0:
        an.bind(loop.loop_var, tir.Range(loop.min, loop.extent))
        yield
        return
    with an.scope():
        an.bind(loop.loop_var, tir.Range(loop.min, loop.extent))
        yield
