# SPDX-License-Identifier: Apache-2.0
"""Machines that add vectors elsewhere than they multiply and add them: where a sum is added to others, half of the additions are written as multiply-adds
with one, which round alike.

Sums of absolute differences take a fifth less time so on Zen 4. Other sums stay as they are: they wait for memory, or each for the one before, and a
multiply-add takes longer.
"""

from __future__ import annotations

from typing import Any

from ...ir import tir
from ...ir.dtype import DType
from .emitter import Emitter
from .types import llvm_type, splat, suffix

_SUMS = (tir.Add, tir.Sub)


def count(em: Emitter, e: Any) -> None:
    """Note where an operation is done that is being written."""
    if e.dtype.lanes > 1 and type(e) in _SUMS:
        em.added += 1
    elif e.dtype.lanes > 1:
        em.multiplied += 1


def is_better_multiplied(em: Emitter, e: Any) -> bool:
    """Whether a sum of vectors, of which one is a sum itself, waits less as a multiply-add: while more was added than multiplied."""
    if not em.platform.adds_apart or em.platform.lacks_multiply_add or not em.contract or e.dtype.lanes == 1 or em.added <= em.multiplied:
        return False
    better = _has_sums(e.a) or _has_sums(e.b)
    em.multiplied += better
    return better


def _has_sums(e: tir.Expr) -> bool:
    if type(e) is tir.BufferLoad:
        return False
    return (type(e) in _SUMS and e.dtype.is_float) or any(map(_has_sums, e._below()))


def ones(em: Emitter, dtype: DType) -> str:
    """A vector of ones of which LLVM does not know that they are: it makes sums of multiply-adds with one."""
    if dtype not in em.ones:
        t, full = llvm_type(dtype), f"llvm.arithmetic.fence.{suffix(dtype)}"
        em.declares[full] = f"declare {t} @{full}({t})"
        register = em.ones[dtype] = "%" + em.name("ones")
        em.entry.append(f"  {register} = call {t} @{full}({t} {splat('1.0', dtype)})")
    return em.ones[dtype]
