# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor program has effects that its caller can see."""

from __future__ import annotations

from ...ir import tir
from ...ir.errors import BuildError
from ...ir.purity import effects


def is_pure_function(func: tir.PrimFunc) -> bool:
    """Whether the function has no effect that its caller can see."""
    return not effects(func)


def assert_pure_function(func: tir.PrimFunc) -> bool:
    """True for a pure function; raises ImpureFunction, which says what the function does."""
    found = effects(func)
    if found:
        raise ImpureFunction(f"function {func.__name__} is not pure", why="; ".join(dict.fromkeys(found)))
    return True


class ImpureFunction(BuildError, AssertionError):
    """A function that was said to be pure has effects."""
