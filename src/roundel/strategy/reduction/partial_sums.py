# SPDX-License-Identifier: Apache-2.0
"""Long sums in parts of about the square root of their length, so that rounding errors do not grow with the length.

    for k in range(1024): y += x[k]          ->          for k0 in range(32):
                                                             part = 0
                                                             for k1 in range(32): part += x[32 * k0 + k1]
                                                             y += part

When numbers of one sign and similar magnitude are added, such as pixels after a normalisation, many consecutive additions round in the same direction:
the error of a sequential sum of n of them is proportional to n. In parts it is proportional to the square root of n (Higham, Accuracy and Stability of
Numerical Algorithms, chapter 4). Sums along the contiguous axis come in parts by themselves, the lanes of vectors.
"""

from __future__ import annotations

import math
from typing import Any

from ...ir import tir
from ...schedule import Schedule
from ..match.accesses import BlockInfo, extent_of
from ..partial import partial_results

LONG = 128      # additions
ASSUMED = 1024  # steps of an axis whose extent is not a number


def is_long_sum(info: BlockInfo) -> bool:
    """Whether a block adds up many floating-point numbers."""
    if not info.reduce or not info.stores[0].buffer.dtype.is_float:
        return False
    total, own = info.block.body.value, info.stores[0].buffer
    adds = type(total) is tir.Add and any(type(e) is tir.BufferLoad and e.buffer is own for e in (total.a, total.b))
    return adds and math.prod(extent_of(i) or ASSUMED for i in info.reduce) >= LONG


def sum_in_parts(sch: Schedule, info: BlockInfo) -> Any:
    """Make a long sum a sum of sums (before its loops are scheduled); the block of the latter, whose first axis counts the parts."""
    extents = [extent_of(i) or ASSUMED for i in info.reduce]
    longest = max(range(len(extents)), key=extents.__getitem__)
    beside = math.prod(extents) // extents[longest]
    block = sch.get_block(info.name)
    loops = dict(zip((i.var for i in info.block.iter_vars), sch.get_loops(block), strict=True))
    loop, length = loops[info.reduce[longest].var], _length(extents[longest], math.isqrt(math.prod(extents)) // beside)
    if length > 1:
        loop, _ = sch.split(loop, [None, length])
    return partial_results(sch, block, loop)


def _length(extent: int, wanted: int) -> int:
    """A length close to this one, which divides the extent where such a number is near."""
    near = [n for n in range(max(wanted // 2, 1), 2 * wanted + 1) if extent % n == 0]
    return min(near, key=lambda n: abs(n - wanted), default=wanted)
