# SPDX-License-Identifier: Apache-2.0
"""What LLVM intrinsics of single processors compute, as functions of NumPy arrays, for the interpreter.

Each is entered where its instruction is defined (``roundel/intrinsics``). An operand has the lanes of its vector as its last axis; what is before
that are lanes of the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..ir import above

Meaning = Callable[..., np.ndarray]

_meanings: dict[str, Meaning] = {}


def define_meaning(name: str, meaning: Meaning) -> None:
    """Enter what the LLVM intrinsic ``name`` (its full name) computes, a pure function of its operands."""
    _meanings[name] = meaning


def meaning_of(name: str) -> Meaning | None:
    """What an LLVM intrinsic computes; None where nobody told."""
    if name not in _meanings:
        above.define_instructions()
    return _meanings.get(name)
