# SPDX-License-Identifier: Apache-2.0
"""Vectorized loops that are too long for one vector, or of symbolic extent, become a loop over vectors.

    for i in T.vectorized(n):          for i_o in range(ceildiv(n, 16)):
        B[i] = A[i]             ->         for i_i in T.vectorized(16):
                                               if i_o * 16 + i_i < n:
                                                   B[i_o * 16 + i_i] = A[i_o * 16 + i_i]

``partition_loops`` then makes a main loop without the condition and one predicated step of it.
"""

from __future__ import annotations

from roundel.ir import Var, on, tir
from roundel.ir.visit import substitute

from .kernel_pass import kernel_pass
from .statements import StatementRewriter

MAX_LANES = 256  # longer vectors are cut
CUT_LANES = 16  # into these


class _Split(StatementRewriter):
    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        if loop.kind is not tir.ForKind.VECTORIZED or (
            type(loop.extent) is tir.IntImm and loop.extent.value <= MAX_LANES
        ):
            return loop
        outer, inner = (
            Var(loop.loop_var.name + "_o", loop.loop_var.dtype),
            Var(loop.loop_var.name + "_i", loop.loop_var.dtype),
        )
        place = outer * CUT_LANES + inner
        body = substitute(loop.body, {loop.loop_var: loop.min + place})
        if type(loop.extent) is not tir.IntImm or loop.extent.value % CUT_LANES:
            body = tir.If(place < loop.extent, body)
        zero = tir.const(0, loop.loop_var.dtype)
        lanes = tir.For(inner, zero, tir.const(CUT_LANES, loop.loop_var.dtype), tir.ForKind.VECTORIZED, body)
        return tir.For(outer, zero, tir.ceildiv(loop.extent, CUT_LANES), tir.ForKind.SERIAL, lanes)


@kernel_pass("split_vectors")
def split_vectors(func: tir.PrimFunc) -> tir.PrimFunc:
    """Vectorized loops of a length that vectors have."""
    return func.replace(body=_Split().rewrite(func.body))
