# SPDX-License-Identifier: Apache-2.0
"""Counts that become floating-point numbers are computed in 32 bits where they are known to fit.

    B[i, j] = S[i, j] / T.Cast("float32", n64(i, j))  ->  B[i, j] = S[i, j] / T.Cast("float32", n32(i, j))

How many elements a window has at a border follows from loop variables, which have 64 bits. A vector holds half as many of these, and AVX2 and NEON have no
instruction that converts or multiplies them: each lane would be taken out of its vector.
"""

from __future__ import annotations

from roundel.ir import Rewriter, on, tir
from roundel.ir.dtype import INT32, INT64

from .kernel_pass import kernel_pass
from .narrow_indices import HIGH, LOW, Narrow


class _Counts(Rewriter):
    """``narrow`` knows the ranges of the variables around, which stay as they are: in a count stands what is left of one in 32 bits."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow = Narrow()

    def known(self, v: tir.Var, low: float, high: float) -> None:
        """The range of a variable."""
        self.narrow.forget(v)
        if v.dtype is INT64 and LOW <= low and high <= HIGH:
            self.narrow.bind(v, low, high)
            self.narrow.vars[v] = tir.cast(v, INT32)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        (low, _), (_, end) = self.narrow.ranges.bounds(loop.min), self.narrow.ranges.bounds(tir.Add(loop.min, loop.extent))
        self.known(loop.loop_var, low, end - 1)
        return self.generic(loop)

    @on(tir.Let)
    def _let(self, s: tir.Let) -> tir.Stmt:
        self.known(s.var, *self.narrow.ranges.bounds(s.value)) if s.var.dtype is INT64 else None
        return self.generic(s)

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> tir.Expr:
        narrow = self.narrow.narrowed(e.value) if e.value.dtype.element is INT64 and e.dtype.element.is_float else None
        return self.generic(e) if narrow is None else tir.cast(narrow, e.dtype)


@kernel_pass("narrow_counts")
def narrow_counts(func: tir.PrimFunc) -> tir.PrimFunc:
    """Integers of known range are computed in 32 bits where a floating-point number is made of them."""
    return func.replace(body=_Counts().rewrite(func.body))
