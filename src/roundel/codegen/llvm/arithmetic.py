# SPDX-License-Identifier: Apache-2.0
"""Operators: arithmetic, comparisons, logic, selection, vectors.

Nothing traps: an integer divided by zero is 0 (quotient and remainder alike), INT_MIN / -1 wraps. Multiply-adds of
floats contract where the function allows it. Index arithmetic carries ``nsw`` since it is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ir import tir
from ...ir.dtype import DType
from ...ir.visit import walk
from ..expand.convert import narrow, widen
from ..expand.remainder import float_floordiv, float_floormod
from ..writes import writes
from . import ports
from .convert import moved_bytes
from .emitter import EXPR, Emitter, hoistable
from .types import computes_in_float32, float_text, llvm_type, splat

_INT_OP = {tir.Add: "add", tir.Sub: "sub", tir.Mul: "mul"}
_FLOAT_OP = {tir.Add: "fadd", tir.Sub: "fsub", tir.Mul: "fmul", tir.Div: "fdiv", tir.Mod: "frem"}
_PREDICATES = {
    tir.EQ: ("eq", "eq", "oeq"),
    tir.NE: ("ne", "ne", "une"),
    tir.LT: ("slt", "ult", "olt"),
    tir.LE: ("sle", "ule", "ole"),
    tir.GT: ("sgt", "ugt", "ogt"),
    tir.GE: ("sge", "uge", "oge"),
}


@writes(EXPR, tir.Add, tir.Sub, tir.Mul)
def _ring(em: Emitter, e: Any) -> str:
    if e.dtype.is_float:
        return moved_bytes(em, e) or _float_binary(em, e)
    if e.dtype.is_bool:
        return em.op(
            f"{'and' if type(e) is tir.Mul else 'or' if type(e) is tir.Add else 'xor'} {em.typed(e.a)}, {em.value(e.b)}"
        )
    flags = " nsw" if e.is_index or (e.dtype.lanes > 1 and _exact(e)) else ""
    if type(e) is tir.Mul and type(e.b) is tir.IntImm and e.b.value > 0 and e.b.value & (e.b.value - 1) == 0 and flags:
        return em.op(f"shl{flags} {em.typed(e.a)}, {e.b.value.bit_length() - 1}")
    return em.op(f"{_INT_OP[type(e)]}{flags} {em.typed(e.a)}, {em.value(e.b)}")


def _exact(e: tir.Expr) -> bool:
    """A vector of exact integers: ramps and broadcasts of index expressions, and their sums."""
    kind = type(e)
    if kind is tir.Ramp:
        return e.base.is_index and e.stride.is_index
    if kind is tir.Broadcast:
        return e.value.is_index
    return kind in _INT_OP and _exact(e.a) and _exact(e.b)


def _float_binary(em: Emitter, e: Any) -> str:
    if computes_in_float32(e.dtype):
        return em.value(narrow(type(e)(_wide_operand(em, e, e.a), _wide_operand(em, e, e.b)), e.dtype))
    if em.contract:
        fused = _multiply_add(em, e)
        if fused is not None:
            return fused
    a, b = em.value(e.a), em.value(e.b)
    if type(e) in (tir.Add, tir.Sub) and ports.is_better_multiplied(em, e):
        return em.intrinsic("fma", e.dtype, a, ports.ones(em, e.dtype), b if type(e) is tir.Add else em.op(f"fneg {llvm_type(e.dtype)} {b}"))
    ports.count(em, e)
    return em.op(f"{_FLOAT_OP[type(e)]} {llvm_type(e.dtype)} {a}, {b}")


def _wide_operand(em: Emitter, e: Any, operand: tir.Expr) -> tir.Expr:
    """An operand in float32; a product that may contract keeps its unrounded value."""
    if em.contract and type(operand) is tir.Mul and type(e) in (tir.Add, tir.Sub):
        return tir.Mul(widen(operand.a), widen(operand.b))
    return widen(operand)


def _multiply_add(em: Emitter, e: Any) -> str | None:
    """a * b + c, a * b - c and c - a * b as one instruction."""
    kind = type(e)
    if kind not in (tir.Add, tir.Sub):
        return None
    t = llvm_type(e.dtype)
    a, b = e.a, e.b
    if type(b) is tir.Mul:
        other, x, y = em.value(a), em.value(b.a), em.value(b.b)
        x = x if kind is tir.Add else em.op(f"fneg {t} {x}")
        return multiply_add(em, e.dtype, x, y, other)
    if type(a) is tir.Mul:
        x, y, other = em.value(a.a), em.value(a.b), em.value(b)
        other = other if kind is tir.Add else em.op(f"fneg {t} {other}")
        return multiply_add(em, e.dtype, x, y, other)
    return None


def multiply_add(em: Emitter, dtype: DType, *operands: str) -> str:
    """``x * y + z`` as one instruction. What a machine without one makes a whole number of goes through float64, whose products of float32 are exact: a sum
    at the edge between two numbers then becomes the same one everywhere."""
    em.multiplied += dtype.lanes > 1
    if not em.rounds_once or dtype.element != "float32":
        return em.intrinsic("fmuladd", dtype, *operands)
    if not em.platform.lacks_multiply_add:
        return em.intrinsic("fma", dtype, *operands)
    wide = llvm_type(DType("float64").with_lanes(dtype.lanes))
    x, y, z = (em.op(f"fpext {llvm_type(dtype)} {v} to {wide}") for v in operands)
    total = em.op(f"fadd {wide} {em.op(f'fmul {wide} {x}, {y}')}, {z}")
    return em.op(f"fptrunc {wide} {total} to {llvm_type(dtype)}")


# ---- division ----------------------------------------------------------------------------------------------


@writes(EXPR, tir.Div)
def _div(em: Emitter, e: tir.Div) -> str:
    return _float_binary(em, e) if e.dtype.is_float else _divide(em, e, "div")


@writes(EXPR, tir.Mod)
def _mod(em: Emitter, e: tir.Mod) -> str:
    if e.dtype.is_float:
        return em.value(tir.Call("fmod", (e.a, e.b), e.dtype)) if e.dtype.bits <= 32 else _float_binary(em, e)
    return _divide(em, e, "rem")


@writes(EXPR, tir.FloorDiv)
def _floordiv(em: Emitter, e: tir.FloorDiv) -> str:
    if e.dtype.is_float:
        return em.value(float_floordiv(e.a, e.b))
    return _floor(em, e, "div")


@writes(EXPR, tir.FloorMod)
def _floormod(em: Emitter, e: tir.FloorMod) -> str:
    if e.dtype.is_float:
        return em.value(float_floormod(e.a, e.b))
    return _floor(em, e, "rem")


def _divisor(e: tir.Expr) -> int | None:
    """The divisor's value when it is a constant."""
    e = e.value if type(e) is tir.Broadcast else e
    return e.value if type(e) is tir.IntImm else None


def _divide(em: Emitter, e: Any, op: str) -> str:
    """Truncating division; ``op`` is ``div`` or ``rem``."""
    t, a, c = llvm_type(e.dtype), em.value(e.a), _divisor(e.b)
    unsigned = e.dtype.kind == "uint" or (em.nonneg(e.a) and em.nonneg(e.b))
    prefix = "u" if unsigned else "s"
    if c is not None and c not in (0, -1):
        return em.op(f"{prefix}{op} {t} {a}, {splat(str(c), e.dtype)}")
    b = em.value(e.b)
    zero, one = splat("0", e.dtype), splat("1", e.dtype)
    flags = _bools(e.dtype)
    is_zero = em.op(f"icmp eq {t} {b}, {zero}")
    if unsigned:
        safe = em.op(f"select {flags} {is_zero}, {t} {one}, {t} {b}")
        q = em.op(f"u{op} {t} {a}, {safe}")
    else:
        # dividing by -1 is negation (and leaves no remainder), which spares INT_MIN / -1
        is_minus = em.op(f"icmp eq {t} {b}, {splat('-1', e.dtype)}")
        unsafe = em.op(f"or {flags} {is_zero}, {is_minus}")
        safe = em.op(f"select {flags} {unsafe}, {t} {one}, {t} {b}")
        q = em.op(f"s{op} {t} {a}, {safe}")
        if op == "div":
            q = em.op(f"select {flags} {is_minus}, {t} {em.op(f'sub {t} {zero}, {a}')}, {t} {q}")
    return em.op(f"select {flags} {is_zero}, {t} {zero}, {t} {q}")


def _bools(dtype: DType) -> str:
    return "i1" if dtype.lanes == 1 else f"<{dtype.lanes} x i1>"


def _floor(em: Emitter, e: Any, op: str) -> str:
    """Floor division (``div``) or its remainder (``rem``)."""
    c, t = _divisor(e.b), llvm_type(e.dtype)
    if e.dtype.kind == "uint" or (em.nonneg(e.a) and em.nonneg(e.b)):
        return _divide(em, e, op)
    if c is not None and c > 0:
        if c & (c - 1) == 0:
            a, by = em.value(e.a), splat(str(c.bit_length() - 1 if op == "div" else c - 1), e.dtype)
            return em.op(f"{'ashr' if op == 'div' else 'and'} {t} {a}, {by}")
        remainder = em.value(tir.Mod(e.a, e.b))
        sign = em.op(f"ashr {t} {remainder}, {splat(str(e.dtype.bits - 1), e.dtype)}")
        if op == "div":
            return em.op(f"add {t} {em.value(tir.Div(e.a, e.b))}, {sign}")
        return em.op(f"add {t} {remainder}, {em.op(f'and {t} {sign}, {splat(str(c), e.dtype)}')}")
    remainder, b, zero = em.value(tir.Mod(e.a, e.b)), em.value(e.b), splat("0", e.dtype)
    inexact = em.op(f"icmp ne {t} {remainder}, {zero}")
    differ = em.op(f"icmp slt {t} {em.op(f'xor {t} {remainder}, {b}')}, {zero}")
    fix = em.op(f"and {_bools(e.dtype)} {inexact}, {differ}")
    if op == "div":
        q = em.value(tir.Div(e.a, e.b))
        return em.op(f"add {t} {q}, {em.op(f'sext {_bools(e.dtype)} {fix} to {t}')}")
    return em.op(f"add {t} {remainder}, {em.op(f'select {_bools(e.dtype)} {fix}, {t} {b}, {t} {zero}')}")


# ---- comparisons, minimum, maximum -------------------------------------------------------------------------


@writes(EXPR, *_PREDICATES)
def _compare(em: Emitter, e: Any) -> str:
    signed, unsigned, floating = _PREDICATES[type(e)]
    kind = e.a.dtype
    if kind.is_float:
        if computes_in_float32(kind):
            return em.value(type(e)(widen(e.a), widen(e.b)))
        return em.op(f"fcmp {floating} {em.typed(e.a)}, {em.value(e.b)}")
    predicate = signed if kind.kind == "int" else unsigned
    return em.op(f"icmp {predicate} {em.typed(e.a)}, {em.value(e.b)}")


@writes(EXPR, tir.Min, tir.Max)
def _min_max(em: Emitter, e: Any) -> str:
    name, dtype = "min" if type(e) is tir.Min else "max", e.dtype
    if dtype.is_float:
        if computes_in_float32(dtype):
            return em.value(narrow(type(e)(widen(e.a), widen(e.b)), dtype))
        return _float_min_max(em, e, name)
    if dtype.is_bool:
        return em.op(f"{'and' if name == 'min' else 'or'} {em.typed(e.a)}, {em.value(e.b)}")
    return em.intrinsic(("s" if dtype.kind == "int" else "u") + name, dtype, em.value(e.a), em.value(e.b))


def _known_number(e: tir.Expr) -> bool:
    e = e.value if type(e) is tir.Broadcast else e
    return type(e) is tir.FloatImm and e.value == e.value


def _float_min_max(em: Emitter, e: Any, name: str) -> str:
    return float_min_max(em, e.dtype, name, em.value(e.a), em.value(e.b), _known_number(e.a), _known_number(e.b))


def float_min_max(
    em: Emitter, dtype: DType, name: str, a: str, b: str, a_number: bool = False, b_number: bool = False
) -> str:
    """NaN when either is NaN. x86's instruction yields its second operand then, so one or two more are added."""
    if not em.platform.is_x86:
        return em.intrinsic("minimum" if name == "min" else "maximum", dtype, a, b)
    t, flags = llvm_type(dtype), _bools(dtype)
    if b_number or not a_number:  # an accumulator stands first: it should wait for as little as possible
        a, b, a_number = b, a, b_number
    if not a_number and "avx512f" in em.platform.features and dtype.lanes * dtype.bits == 512:
        is_number = em.op(f"fcmp ord {t} {a}, {a}")  # the instruction's mask: where it is not set, ``a`` is left as it is
        return em.op(f"select {flags} {is_number}, {t} {_instruction_of_512_bits(em, dtype, name, a, b)}, {t} {a}")
    better = em.op(f"fcmp {'olt' if name == 'min' else 'ogt'} {t} {a}, {b}")
    picked = em.op(f"select {flags} {better}, {t} {a}, {t} {b}")  # b when unordered
    if a_number:
        return picked
    is_nan = em.op(f"fcmp uno {t} {a}, {a}")  # of one value, not ``a`` again: LLVM would make the two choices one, without the instruction
    return em.op(f"select {flags} {is_nan}, {t} {splat(float_text(float('nan'), dtype), dtype)}, {t} {picked}")


def _instruction_of_512_bits(em: Emitter, dtype: DType, name: str, a: str, b: str) -> str:
    """The instruction by name, ``b`` where either is NaN: LLVM sees no choice in it that it could make one with another."""
    t, full = llvm_type(dtype), f"llvm.x86.avx512.{name}.{'ps' if dtype.element == 'float32' else 'pd'}.512"
    em.declares[full] = f"declare {t} @{full}({t}, {t}, i32)"
    return em.op(f"call {t} @{full}({t} {a}, {t} {b}, i32 4)")


# ---- logic and selection -----------------------------------------------------------------------------------


@writes(EXPR, tir.And, tir.Or)
def _logic(em: Emitter, e: Any) -> str:
    return em.op(f"{'and' if type(e) is tir.And else 'or'} {em.typed(e.a)}, {em.value(e.b)}")


@writes(EXPR, tir.Not)
def _not(em: Emitter, e: tir.Not) -> str:
    return em.op(f"xor {em.typed(e.a)}, {splat('true', e.dtype)}")


@writes(EXPR, tir.Select)
def _select(em: Emitter, e: tir.Select) -> str:
    return em.op(f"select {em.typed(e.condition)}, {em.typed(e.true_value)}, {em.typed(e.false_value)}")


def _eager_safe(e: tir.Expr) -> bool:
    """Whether evaluating this when it is not chosen is harmless and cheap: no loads, no calls."""
    return hoistable(e) or not any(type(n) in (tir.BufferLoad, tir.Call) for n in walk(e))


@writes(EXPR, tir.IfThenElse)
def _if_then_else(em: Emitter, e: tir.IfThenElse) -> str:
    if e.condition.dtype.lanes > 1 or (_eager_safe(e.true_value) and _eager_safe(e.false_value)):
        return _select(em, tir.Select(e.condition, e.true_value, e.false_value))
    yes, no, done = em.name("then"), em.name("else"), em.name("done")
    em.branch(em.value(e.condition), yes, no)
    incoming = []
    for label, side in ((yes, e.true_value), (no, e.false_value)):
        em.start(label)
        with em.branch_values():
            incoming.append((em.value(side), em.block))
        em.jump(done)
    em.start(done)
    return em.op(f"phi {llvm_type(e.dtype)} " + ", ".join(f"[ {v}, %{b} ]" for v, b in incoming))


# ---- vectors -----------------------------------------------------------------------------------------------


def broadcast(em: Emitter, operand: str, dtype: DType) -> str:
    """A register or constant in all lanes of ``dtype``."""
    if not operand.startswith("%"):
        return splat(operand, dtype)
    t, element = llvm_type(dtype), llvm_type(dtype.element)
    one = em.op(f"insertelement {t} poison, {element} {operand}, i64 0")
    return em.op(f"shufflevector {t} {one}, {t} poison, <{dtype.lanes} x i32> zeroinitializer")


@writes(EXPR, tir.Broadcast)
def _broadcast(em: Emitter, e: tir.Broadcast) -> str:
    inner = e.value.dtype.lanes
    if inner > 1:
        return shuffle(em, em.value(e.value), e.value.dtype, [i % inner for i in range(e.dtype.lanes)])
    return broadcast(em, em.value(e.value), e.dtype)


@writes(EXPR, tir.Ramp)
def _ramp(em: Emitter, e: tir.Ramp) -> str:
    t, element = llvm_type(e.dtype), llvm_type(e.dtype.element)
    base = broadcast(em, em.value(e.base), e.dtype)
    if type(e.stride) is tir.IntImm:
        steps = "<" + ", ".join(f"{element} {i * e.stride.value}" for i in range(e.lanes)) + ">"
        return em.op(f"add {t} {base}, {steps}") if base != splat("0", e.dtype) else steps
    counts = "<" + ", ".join(f"{element} {i}" for i in range(e.lanes)) + ">"
    return em.op(f"add {t} {base}, {em.op(f'mul {t} {broadcast(em, em.value(e.stride), e.dtype)}, {counts}')}")


def pick_lanes(em: Emitter, e: tir.Shuffle) -> str:
    """Lanes of vectors, or scalars, as a vector."""
    element = e.vectors[0].dtype.element
    if all(v.dtype.lanes == 1 for v in e.vectors):
        if len(e.indices) == 1:
            return em.value(e.vectors[e.indices[0]])
        return build_vector(em, [em.value(e.vectors[i]) for i in e.indices], e.dtype)
    if len(e.indices) == 1:
        vector, lane = e.vectors[0], e.indices[0]
        for vector in e.vectors:
            if lane < vector.dtype.lanes:
                break
            lane -= vector.dtype.lanes
        return em.op(f"extractelement {em.typed(vector)}, i64 {lane}")
    if len(e.vectors) == 2 and e.vectors[0].dtype is e.vectors[1].dtype:
        return shuffle(em, em.value(e.vectors[0]), e.vectors[0].dtype, e.indices, em.value(e.vectors[1]))
    joined, count = em.value(e.vectors[0]), e.vectors[0].dtype.lanes
    for v in e.vectors[1:]:
        joined, count = concat(em, joined, count, em.value(v), v.dtype.lanes, element)
    return shuffle(em, joined, element.with_lanes(count), e.indices)


def concat(em: Emitter, a: str, n: int, b: str, m: int, element: DType) -> tuple[str, int]:
    """Two vectors of n and m lanes joined; the result and its number of lanes."""
    if n != m:  # shufflevector wants equal operands
        wide = max(n, m)
        a, b = (x if k == wide else extend(em, x, k, wide, element) for x, k in ((a, n), (b, m)))
    else:
        wide = n
    picks = [*range(n), *range(wide, wide + m)]
    return shuffle(em, a, element.with_lanes(wide), picks, b), n + m


def shuffle(em: Emitter, vector: str, dtype: DType, picks: Iterable[int], other: str = "poison") -> str:
    """These lanes of a vector, or of two vectors of one type joined; -1 is any value."""
    t, chosen = llvm_type(dtype), [f"i32 {i}" if i >= 0 else "i32 poison" for i in picks]
    return em.op(f"shufflevector {t} {vector}, {t} {other}, <{len(chosen)} x i32> <{', '.join(chosen)}>")


def extend(em: Emitter, vector: str, lanes: int, wide: int, element: DType) -> str:
    """A vector with undefined lanes appended (a scalar becomes a vector)."""
    if lanes == 1:
        t = llvm_type(element.with_lanes(wide))
        return em.op(f"insertelement {t} poison, {llvm_type(element)} {vector}, i64 0")
    return shuffle(em, vector, element.with_lanes(lanes), [i if i < lanes else -1 for i in range(wide)])


def build_vector(em: Emitter, lanes: list[str], dtype: DType) -> str:
    """A vector from scalars."""
    t, element = llvm_type(dtype), llvm_type(dtype.element)
    vector = "poison"
    for k, lane in enumerate(lanes):
        vector = em.op(f"insertelement {t} {vector}, {element} {lane}, i64 {k}")
    return vector


def extract_lanes(em: Emitter, vector: str, dtype: DType) -> list[str]:
    """The scalars of a vector."""
    t = llvm_type(dtype)
    return [em.op(f"extractelement {t} {vector}, i64 {k}") for k in range(dtype.lanes)]
