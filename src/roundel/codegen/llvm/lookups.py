# SPDX-License-Identifier: Apache-2.0
"""Vectors of bytes looked up in a table of 256 bytes, in registers (AVX512-VBMI; Intel SDM, VPERMI2B)."""

from __future__ import annotations

from ...ir import tir
from .emitter import Emitter
from .types import memory_type

BYTES = 256
_LANES = 64  # of a register; two of them are looked up in by an instruction


def looked_up(em: Emitter, e: tir.BufferLoad) -> str | None:
    """The value of a load at a vector of unsigned bytes, in a constant vector of 256 bytes; None for other loads, and on other machines."""
    index = _bytes(e)
    if index is None or "avx512vbmi" not in em.platform.features or e.buffer.data not in em.readonly or index.dtype.lanes > _LANES:
        return None
    t, lanes = f"<{_LANES} x i8>", index.dtype.lanes
    at = _filled(em, em.value(index), index)
    name = em.declare("llvm.x86.avx512.vpermi2var.qi.512", t, t, t, t)
    parts = [em.value(tir.BufferLoad(e.buffer, (tir.Ramp(tir.index_const(k), tir.index_const(1), _LANES),))) for k in range(0, BYTES, _LANES)]
    low, high = (em.op(f"call {t} {name}({t} {a}, {t} {at}, {t} {b})") for a, b in (parts[:2], parts[2:]))
    beyond = em.op(f"icmp slt {t} {at}, zeroinitializer")
    found = em.op(f"select <{_LANES} x i1> {beyond}, {t} {high}, {t} {low}")
    found = found if lanes == _LANES else _first(em, found, lanes)
    if e.predicate is None:
        return found
    return em.op(f"select <{lanes} x i1> {em.value(e.predicate)}, <{lanes} x i8> {found}, <{lanes} x i8> zeroinitializer")


def _bytes(e: tir.BufferLoad) -> tir.Expr | None:
    """The vector of unsigned bytes that is the index."""
    index = e.indices[0] if len(e.indices) == 1 else None
    shape = e.buffer.shape
    if not isinstance(index, tir.Cast) or e.buffer.dtype not in ("uint8", "int8") or shape[0] is not tir.index_const(BYTES):
        return None
    return index.value if index.value.dtype.element == "uint8" and index.dtype.lanes > 1 else None


def _filled(em: Emitter, value: str, like: tir.Expr) -> str:
    """A vector in the first lanes of a register."""
    t = memory_type(like.dtype)
    lanes = like.dtype.lanes
    if lanes == _LANES:
        return value
    chosen = ", ".join(f"i32 {k}" if k < lanes else "i32 poison" for k in range(_LANES))
    return em.op(f"shufflevector {t} {value}, {t} poison, <{_LANES} x i32> <{chosen}>")


def _first(em: Emitter, value: str, lanes: int) -> str:
    """The first lanes of a register."""
    chosen = ", ".join(f"i32 {k}" for k in range(lanes))
    return em.op(f"shufflevector <{_LANES} x i8> {value}, <{_LANES} x i8> poison, <{lanes} x i32> <{chosen}>")
