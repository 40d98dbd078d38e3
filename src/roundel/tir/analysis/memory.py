# SPDX-License-Identifier: Apache-2.0
"""Memory that tensor programs allocate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...arith import Analyzer
from ...ir import tir
from ...ir.module import IRModule
from ...ir.visit import walk


def calculate_allocated_bytes(program: tir.PrimFunc | IRModule) -> dict[str, dict[str, int]]:
    """By function, then by scope: bytes of all buffers of constant size that it allocates, in blocks or by statements.

    A function that stands alone is called by its ``global_symbol``. Buffers of symbolic size are not counted.
    """
    functions = program.functions if isinstance(program, IRModule) else {program.__name__: program}
    return {name: _bytes_by_scope(f) for name, f in functions.items() if isinstance(f, tir.PrimFunc)}


def _bytes_by_scope(func: tir.PrimFunc) -> dict[str, int]:
    an, total = Analyzer(), Counter[str]()
    for b in allocated_buffers(func):
        count = an.value(an.simplify(tir.product_of(b.shape)))
        if count is not None:
            total[b.scope] += b.dtype.nbytes(count)
    return dict(total)


def allocated_buffers(func: tir.PrimFunc) -> Iterator[tir.Buffer]:
    """Buffers that a function allocates, in order of their declaration."""
    for n in walk(func.body):
        if isinstance(n, tir.Block):
            yield from n.alloc_buffers
        elif isinstance(n, tir.Allocate):
            yield n.buffer


def calculate_workspace_bytes(func: tir.PrimFunc, workspace_byte_alignment: int = 1) -> int:
    """Bytes of global memory that a function needs at one time, each buffer rounded up to the alignment: statements that follow one
    another share, what is declared around them does not."""
    return _needed(func.body, workspace_byte_alignment)


def _needed(s: tir.Stmt, align: int) -> int:
    own = s.alloc_buffers if isinstance(s, tir.Block) else (s.buffer,) if isinstance(s, tir.Allocate) else ()
    an, mine = Analyzer(), 0
    for b in own:
        count = an.value(an.simplify(tir.product_of(b.shape))) if b.scope == "global" else 0
        mine += -(-b.dtype.nbytes(count or 0) // align) * align
    return mine + max((_needed(c, align) for c in s._below() if isinstance(c, tir.Stmt)), default=0)
