# SPDX-License-Identifier: Apache-2.0
"""Unrolled loops of constant extent become their iterations, one after another.

Loops that index a buffer of scope ``local`` are unrolled too while they stay small, so that it can live in registers.
"""

from __future__ import annotations

from roundel.ir import Rewriter, free_vars, on, tir
from roundel.ir.visit import walk

from .copies import fresh_copy
from .kernel_pass import kernel_pass

MAX_COPIES = 4096  # statements that explicit unrolling may make of one loop
MAX_TILE_COPIES = 256  # ... that unrolling for the sake of a local buffer may make


class _Unroll(Rewriter):
    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        body = self.rewrite(loop.body)
        loop = loop.replace(body=body)
        constant = type(loop.extent) is tir.IntImm and type(loop.min) is tir.IntImm and loop.step is None
        if loop.kind is tir.ForKind.UNROLLED:
            if not constant or loop.extent.value * _statements(body) > MAX_COPIES:
                return loop.replace(kind=tir.ForKind.SERIAL)
            return unrolled(loop)
        if (
            constant
            and loop.kind is tir.ForKind.SERIAL
            and loop.extent.value * _statements(body) <= MAX_TILE_COPIES
            and _indexes_local(loop)
        ):
            return unrolled(loop)
        return loop


def unrolled(loop: tir.For) -> tir.Stmt:
    """All iterations of a loop of constant bounds."""
    start, count = loop.min.value, loop.extent.value
    return tir.seq(
        *(
            fresh_copy(loop.body, {loop.loop_var: tir.const(k, loop.loop_var.dtype)})
            for k in range(start, start + count)
        )
    )


def _statements(stmt: tir.Stmt) -> int:
    return sum(1 for n in walk(stmt) if type(n) in (tir.BufferStore, tir.Evaluate))


def _indexes_local(loop: tir.For) -> bool:
    return any(
        type(n) in (tir.BufferStore, tir.BufferLoad)
        and n.buffer.scope == "local"
        and any(loop.loop_var in free_vars(i) for i in n.indices)
        for n in walk(loop.body)
    )


@kernel_pass("unroll")
def unroll(func: tir.PrimFunc) -> tir.PrimFunc:
    """Explicitly unrolled loops and small loops over register tiles become straight code."""
    return func.replace(body=_Unroll().rewrite(func.body))
