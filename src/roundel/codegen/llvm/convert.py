# SPDX-License-Identifier: Apache-2.0
"""Casts: integers wrap, floats to integers truncate and saturate (NaN gives 0), narrow floats go through float32 (float16 too, by integer
arithmetic where the machine does not convert it)."""

from __future__ import annotations

from ...ir import tir
from ...ir.dtype import DType
from ..expand.convert import decode, encode, half_of_double, widen
from ..writes import writes
from .emitter import CALLS, EXPR, Emitter
from .types import float_text, is_storage_float, llvm_type, splat, suffix, zero

_ONES = 3 << 22  # a float32 of this size, plus or minus some millions, has no fraction


@writes(EXPR, tir.Cast)
def _cast(em: Emitter, e: tir.Cast) -> str:
    source, target = e.value.dtype, e.dtype
    if source is target:
        return em.value(e.value)
    if _by_integers(em, source):
        return em.value(tir.cast(decode(e.value), target))
    if target.element == "float16" and source.is_float and source.bits == 64:
        return em.value(half_of_double(e.value))
    if _by_integers(em, target):
        return em.value(encode(widen(e.value), target))
    if source.element == "float32" and target.is_int and target.bits == 8:
        return _bytes(em, e.value, target)
    if target.element == "float32" and source.is_int and source.bits == 8 and type(e.value) is tir.Cast and e.value.value.dtype is target:
        return _whole(em, e.value)
    return convert(em, em.value(e.value), source, target)


def _by_integers(em: Emitter, dtype: DType) -> bool:
    """Whether values of this type are converted by integer arithmetic."""
    return is_storage_float(dtype) or (dtype.element == "float16" and not em.platform.converts_float16)


def convert(em: Emitter, v: str, source: DType, target: DType) -> str:
    """A register of one type as another, by instructions that the machine has (so no storage floats)."""
    s, t = llvm_type(source), llvm_type(target)
    if target.is_bool:
        return em.op(f"fcmp une {s} {v}, {zero(source)}" if source.is_float else f"icmp ne {s} {v}, {zero(source)}")
    if source.is_float and target.is_float:
        op = "fpext" if target.bits > source.bits else "fptrunc"
        return em.op(f"{op} {s} {v} to {t}")
    if source.is_float:
        return _float_to_int(em, v, source, target)
    if target.is_float:
        if target.bits == 16:  # integers that float32 rounds overflow float16 anyway
            wide = DType("float32").with_lanes(target.lanes)
            return convert(em, convert(em, v, source, wide), wide, target)
        return em.op(f"{'sitofp' if source.kind == 'int' else 'uitofp'} {s} {v} to {t}")
    if source.is_handle or target.is_handle:
        return em.op(f"{'ptrtoint' if source.is_handle else 'inttoptr'} {s} {v} to {t}")
    if s == t:
        return v
    if target.bits < source.bits:
        return em.op(f"trunc {s} {v} to {t}")
    return em.op(f"{'sext' if source.kind == 'int' else 'zext'} {s} {v} to {t}")


def _float_to_int(em: Emitter, v: str, source: DType, target: DType) -> str:
    name = "fptosi" if target.kind == "int" else "fptoui"
    if source.bits == 16:
        single = DType("float32").with_lanes(source.lanes)
        v, source = convert(em, v, source, single), single
    s, t = llvm_type(source), llvm_type(target)
    if target.bits < 32:
        return _through_int32(em, v, source, target)
    if source.lanes > 1 and target.kind == "int":
        return _vector_to_int(em, v, source, target)
    full = em.declare(f"llvm.{name}.sat.{suffix(target)}.{suffix(source)}", t, s)
    return em.op(f"call {t} {full}({s} {v})")


def _through_int32(em: Emitter, v: str, source: DType, target: DType) -> str:
    """Clamped first: then the conversion that every vector unit has gives no number that does not fit."""
    wide = DType("int32").with_lanes(source.lanes)
    v = em.op(f"fptosi {llvm_type(source)} {_clamped(em, v, source, target)} to {llvm_type(wide)}")
    return em.op(f"trunc {llvm_type(wide)} {v} to {llvm_type(target)}")


def _clamped(em: Emitter, v: str, source: DType, target: DType, offset: int = 0) -> str:
    """A float that is within the limits of an integer type once ``offset`` is added, and 0 then where it is NaN."""
    low, high = _limits(target)
    bottom, top = _splat_float(low - offset, source), _splat_float(high - offset, source)
    if low == 0:
        v = _where(em, f"ogt {v}, {bottom}", source, v, bottom)  # not NaN either
    else:
        v = _where(em, f"uno {v}, {v}", source, _splat_float(-offset, source), v)
        v = _where(em, f"olt {v}, {bottom}", source, bottom, v)
    return _where(em, f"ogt {v}, {top}", source, top, v)


def _limits(dtype: DType) -> tuple[int, int]:
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


def _bytes(em: Emitter, e: tir.Expr, target: DType) -> str:
    """A float32 as an integer of 8 bits. What was rounded before is rounded after its limits instead, by an addition: beyond 2**23 a float's last bit
    counts 1, and those bits are the integer."""
    inside, offset = _before_limits(e, target)
    if not _is_rounded(inside):
        return _through_int32(em, em.value(e), e.dtype, target)
    bits = DType("int32").with_lanes(e.dtype.lanes)
    within = 0 if offset % 2 else offset  # an even number leaves halves between the same neighbours
    v = em.op(f"bitcast {llvm_type(e.dtype)} {_rounded(em, inside, offset, target, within)} to {llvm_type(bits)}")
    v = em.op(f"add {llvm_type(bits)} {v}, {splat(str(offset), bits)}") if offset != within else v
    return em.op(f"trunc {llvm_type(bits)} {v} to {llvm_type(target)}")


def _whole(em: Emitter, cast: tir.Cast) -> str:
    """A float32 as an integer of 8 bits and back: it stays a float."""
    return _moved(em, cast, 0) or convert(em, em.value(cast), cast.dtype, cast.value.dtype)


def moved_bytes(em: Emitter, e: tir.Add | tir.Sub | tir.Mul) -> str | None:
    """A float32 that was rounded to an integer of 8 bits, and a whole number added to it: all sums in between are exact, so one addition does."""
    if type(e) is tir.Mul or type(e.a) is not tir.Cast or type(e.a.value) is not tir.Cast or e.dtype.element != "float32":
        return None
    inside, n = e.a.value, _number(e.b)
    if not (inside.dtype.is_int and inside.dtype.bits == 8 and inside.value.dtype is e.dtype) or n is None or abs(n) >= _ONES >> 4 or n != int(n):
        return None
    return _moved(em, inside, int(n) if type(e) is tir.Add else -int(n))


def _moved(em: Emitter, cast: tir.Cast, added: int) -> str | None:
    """A float32 as an integer of 8 bits and back, moved; None where it was not rounded before."""
    source = cast.value.dtype
    inside, offset = _before_limits(cast.value, cast.dtype)
    if not _is_rounded(inside):
        return None
    return em.op(f"fsub {llvm_type(source)} {_rounded(em, inside, offset, cast.dtype)}, {_splat_float(_ONES - offset - added, source)}")


def _before_limits(e: tir.Expr, target: DType) -> tuple[tir.Expr, int]:
    """What becomes a value by adding a whole number, also returned, and by limits that are the type's own, which need not be asked for twice."""
    low, high = _limits(target)
    offset = 0
    while type(e) in (tir.Max, tir.Min, tir.Add, tir.Sub):
        n = _number(e.b)
        if n is None or (type(e) is tir.Max and n + offset > low) or (type(e) is tir.Min and n + offset < high):
            break
        if type(e) in (tir.Add, tir.Sub):
            if abs(n) >= _ONES >> 4 or n != int(n):
                break
            offset += int(n) if type(e) is tir.Add else -int(n)
        e = e.a
    return (e, offset) if abs(offset) < _ONES >> 3 else (e, 0)


def _is_rounded(e: tir.Expr) -> bool:
    return isinstance(e, tir.Call) and e.op == "nearbyint"


def _rounded(em: Emitter, e: tir.Call, offset: int, target: DType, added: int = 0) -> str:
    """``_ONES`` and ``added``, an even number, more than a rounded number that is within the type's limits once ``offset`` is added, and then 0 where it
    is NaN."""
    source = e.dtype
    return em.op(f"fadd {llvm_type(source)} {_clamped(em, em.before_rounding(e.args[0]), source, target, offset)}, {_splat_float(_ONES + added, source)}")


def _number(e: tir.Expr) -> float | None:
    """That an expression is, in all lanes."""
    e = e.value if type(e) is tir.Broadcast else e
    return e.value if type(e) is tir.FloatImm else None


def _vector_to_int(em: Emitter, v: str, source: DType, target: DType) -> str:
    """What does not fit is taken out before the conversion (LLVM saturates one lane after the other)."""
    half = 1 << (target.bits - 1)
    least, beyond = _splat_float(-half, source), _splat_float(half, source)
    v = _where(em, f"uno {v}, {v}", source, zero(source), v)
    v = _where(em, f"olt {v}, {least}", source, least, v)
    inside = _where(em, f"oge {v}, {beyond}", source, zero(source), v)
    whole = em.op(f"fptosi {llvm_type(source)} {inside} to {llvm_type(target)}")
    return _where(em, f"oge {v}, {beyond}", source, splat(str(half - 1), target), whole, target)


def _splat_float(value: int, dtype: DType) -> str:
    return splat(float_text(float(value), dtype.element), dtype)


def _where(em: Emitter, comparison: str, source: DType, yes: str, no: str, dtype: DType | None = None) -> str:
    """``yes`` in the lanes where a comparison of floats of type ``source`` holds, else ``no``."""
    order, rest = comparison.split(" ", 1)
    flags = em.op(f"fcmp {order} {llvm_type(source)} {rest}")
    t, bools = llvm_type(dtype or source), "i1" if source.lanes == 1 else f"<{source.lanes} x i1>"
    return em.op(f"select {bools} {flags}, {t} {yes}, {t} {no}")


@writes(CALLS, "reinterpret")
def _reinterpret(em: Emitter, e: tir.Call) -> str:
    s, t = llvm_type(e.args[0].dtype), llvm_type(e.dtype)
    v = em.value(e.args[0])
    return v if s == t else em.op(f"bitcast {s} {v} to {t}")
