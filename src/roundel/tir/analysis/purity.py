# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor program has effects that its caller can see."""

from __future__ import annotations

from ...ir import tir
from ...ir.errors import BuildError
from ...ir.node import Node
from ...ir.tir import Effect
from ...ir.visit import walk


def effects(func: tir.PrimFunc) -> list[str]:
    """What it does beside computing the value that it returns, in words; nothing for a pure function.

    Stores to memory that it allocates itself are its own business; stores to anything else and calls of what is not known to be pure
    are not.
    """
    own = {n.buffer.data for n in walk(func.body) if isinstance(n, tir.Allocate)}
    own |= {b.data for n in walk(func.body) if isinstance(n, tir.Block) for b in n.alloc_buffers}
    return [text for n in walk(func.body) if (text := _effect(n, own)) is not None]


def _effect(n: Node, own: set[tir.Var]) -> str | None:
    if isinstance(n, tir.BufferStore) and n.buffer.data not in own:
        return f"it writes buffer {n.buffer.name}"
    if isinstance(n, tir.Call) and n.op != "ret" and tir.effect(n) is Effect.OPAQUE:
        return f"it calls {n.script()}"
    return None


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
