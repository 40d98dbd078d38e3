# SPDX-License-Identifier: Apache-2.0
"""Effects of tensor programs that their callers can see."""

from __future__ import annotations

from . import tir
from .node import Node
from .tir import Effect
from .visit import walk


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
