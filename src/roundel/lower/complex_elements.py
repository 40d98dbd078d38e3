# SPDX-License-Identifier: Apache-2.0
"""Complex numbers are elements that programs move, select and put together, bit for bit; nothing is computed with them.

    B[i] = A[n - 1 - i]             # complex64: a copy
    B[i] = A[i] + A[i]              # refused: the bits would be added as those of an integer
"""

from __future__ import annotations

from roundel.ir import IRModule, tir
from roundel.ir.errors import LowerError
from roundel.ir.visit import walk
from roundel.passes import pass_

MOVES = (tir.Var, tir.BufferLoad, tir.Select, tir.IfThenElse, tir.Broadcast)


def computed(func: tir.PrimFunc) -> tir.Expr | None:
    """The first expression of a program that computes with complex numbers, if there is one."""
    if not any(buffer.dtype.kind == "complex" for buffer in func.buffer_params):
        return None
    return next((e for e in walk(func.body) if isinstance(e, tir.Expr) and _computes(e)), None)


def _computes(e: tir.Expr) -> bool:
    if isinstance(e, MOVES) or (isinstance(e, tir.IntImm) and not e.value):  # all bits of zero are 0
        return False
    parts = (getattr(e, name) for name in e._children)
    return e.dtype.kind == "complex" or any(isinstance(p, tir.Expr) and p.dtype.kind == "complex" for p in parts)


@pass_("complex_elements")
def complex_elements(mod: IRModule) -> IRModule:
    """The module as it is. Raises LowerError for a program that computes with complex numbers."""
    for name, func in mod.items():
        found = computed(func) if isinstance(func, tir.PrimFunc) else None
        if found is not None:
            raise LowerError(refusal(found), where=name)
    return mod


def refusal(found: tir.Expr) -> str:
    """The message."""
    kinds = {e.dtype for e in walk(found) if isinstance(e, tir.Expr) and e.dtype.kind == "complex"}
    return f"programs move and select {', '.join(sorted(map(str, kinds)))} numbers, they do not compute with them: {found.script()}"
