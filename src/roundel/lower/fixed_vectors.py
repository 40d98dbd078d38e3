# SPDX-License-Identifier: Apache-2.0
"""Scalable vectors get the length of the machine's; ``break`` and ``continue`` become conditions."""

from __future__ import annotations

from roundel.ir import PrimFunc
from roundel.ir.jumps import without_jumps
from roundel.ir.scalable import fix_vectors
from roundel.target import Target

from .kernel_pass import kernel_pass

_UNIT = 16  # bytes of a vector register for each unit of vscale


@kernel_pass("fixed_vectors", for_target=True)
def fixed_vectors(func: PrimFunc, target: Target) -> PrimFunc:
    """The program for the vectors of the target, without jumps."""
    return without_jumps(fix_vectors(func, max(target.vector_bytes // _UNIT, 1)))
