# SPDX-License-Identifier: Apache-2.0
"""What LLVM intrinsics of single processors compute, as functions of NumPy arrays, for the interpreter.

Each is entered where its instruction is defined (``roundel/intrinsics``). Most compute a value of their operands (`Meaning`): an operand has the
lanes of its vector as its last axis; what is before that are lanes of the interpreter. Others change memory or registers that the processor has
beside its vectors (`Action`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import above
from ..ir.dataclass import dataclass

Meaning = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Place:
    """Where a pointer points: the elements of its memory from there on, which take so many bytes each in the program."""

    elements: np.ndarray
    element_bytes: int


Action = Callable[..., Any]
"""Of operands as they are, a pointer to an element of a buffer as its Place."""

_meanings: dict[str, Meaning] = {}
_actions: dict[str, Action] = {}


def define_meaning(name: str, meaning: Meaning) -> None:
    """Enter what the LLVM intrinsic ``name`` (its full name) computes, a pure function of its operands."""
    _meanings[name] = meaning


def define_action(name: str, action: Action) -> None:
    """Enter what the LLVM intrinsic ``name`` (its full name) does."""
    _actions[name] = action


def action_of(name: str) -> Action | None:
    """What an LLVM intrinsic does beside computing a value; None where nobody told."""
    if name not in _actions:
        above.define_instructions()
    return _actions.get(name)


def meaning_of(name: str) -> Meaning | None:
    """What an LLVM intrinsic computes; None where nobody told."""
    if name not in _meanings:
        above.define_instructions()
    return _meanings.get(name)
