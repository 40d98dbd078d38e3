# SPDX-License-Identifier: Apache-2.0
"""Data expressions (loads, casts, calls, floats, vectors): only what holds for every bit pattern.

Integers wrap, so ring identities hold; of floats ``x - 0.0``, ``x * 1.0`` and ``x / 1.0`` are ``x``, but ``x * 0.0``
and ``x + 0.0`` are not what they look like (NaN, infinities, -0.0). Order of operands is kept.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import tir
from ..ir.dtype import DType
from ..ir.tir import Expr, FloatImm, IntImm
from ..ir.tir.ops import wrap
from .compare import FALSE, TRUE
from .effects import has_effect

if TYPE_CHECKING:
    from .analyzer import Analyzer

Rule = Callable[["Analyzer", Any], Expr]
_ROUNDED = {"float32", "float64"}
_IEEE = {*_ROUNDED, "float16"}


def simplify(an: Analyzer, e: Expr) -> Expr:
    """The expression with simplified operands and safe folding."""
    rule = _RULES.get(type(e))
    return rule(an, e) if rule is not None else e


# --- arithmetic


def _operands(an: Analyzer, e: Expr) -> tuple[Expr, Expr]:
    return an.simplify(e.a), an.simplify(e.b)


def _arithmetic(kind: type, build: Callable, rules: list[Callable[[Expr, Expr], Expr | None]]) -> Rule:
    """Operands first, then the first rule that applies."""

    def apply(an: Analyzer, e: Expr) -> Expr:
        a, b = _operands(an, e)
        dtype = e.dtype
        if dtype.lanes != 1:
            joined = _vector(an, kind, a, b)
            if joined is not None:
                return joined
        elif dtype.is_float:
            if type(a) is FloatImm and type(b) is FloatImm:
                folded = _fold_float(kind, a, b, dtype)
                if folded is not None:
                    return folded
        elif type(a) is IntImm and type(b) is IntImm:
            return build(a, b)
        for rule in rules:
            out = rule(a, b)
            if out is not None:
                return out
        return e if a is e.a and b is e.b else kind(a, b)

    return apply


_FLOAT_OPS: dict[type, Callable] = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.Div: operator.truediv,
}


def _fold_float(kind: type, a: FloatImm, b: FloatImm, dtype: DType) -> Expr | None:
    """Constant arithmetic as the machine does it (one rounding); of float16, which is computed wider, only what needs none."""
    op = _FLOAT_OPS.get(kind)
    if op is None or dtype not in _IEEE:
        return None
    with np.errstate(all="ignore"):
        if dtype in _ROUNDED:
            value = float(op(dtype.numpy.type(a.value), dtype.numpy.type(b.value)))
        else:
            value = float(op(np.float64(a.value), np.float64(b.value)))
            if any(float(dtype.numpy.type(v)) != v for v in (a.value, b.value, value)):
                return None
    return None if math.isnan(value) else FloatImm(value, dtype)


def _float_is(e: Expr, value: float) -> bool:
    e = e.value if type(e) is tir.Broadcast else e
    return type(e) is FloatImm and e.value == value and math.copysign(1, e.value) == math.copysign(1, value)


def _int_is(e: Expr, value: int) -> bool:
    e = e.value if type(e) is tir.Broadcast else e
    return type(e) is IntImm and e.value == value


def _ring(e: Expr) -> bool:
    return e.dtype.is_int


def _never_minus_zero(e: Expr) -> bool:
    """Whether a number of floating point is a whole number's, so that adding 0.0 leaves it."""
    return type(e) is tir.Cast and (e.value.dtype.is_int or e.value.dtype.is_bool)


def _add_rules(a: Expr, b: Expr) -> Expr | None:
    for x, y in ((a, b), (b, a)):
        if _int_is(y, 0) or _float_is(y, -0.0) or (_float_is(y, 0.0) and _never_minus_zero(x)):
            return x
    if _ring(a):
        if type(a) is IntImm:
            a, b = b, a
            if type(a) is not tir.Add:
                return tir.Add(a, b)
        if type(b) is IntImm and type(a) is tir.Add and type(a.b) is IntImm:
            return tir.add(a.a, tir.add(a.b, b))
        if type(b) is IntImm and type(a) is tir.Sub and type(a.b) is IntImm:
            return tir.add(a.a, tir.sub(b, a.b))
        if type(a) is tir.Sub and a.b is b:
            return a.a
        if type(b) is tir.Sub and b.b is a:
            return b.a
    return None


def _sub_rules(a: Expr, b: Expr) -> Expr | None:
    if _int_is(b, 0) or _float_is(b, 0.0):
        return a
    if _ring(a):
        if a is b and not has_effect(a):
            return _zero(a.dtype)
        if type(b) is IntImm:
            return _add_rules(a, tir.sub(0, b))
        if type(a) is tir.Add and not has_effect(b) and (a.b is b or a.a is b):
            return a.a if a.b is b else a.b
    return None


def _mul_rules(a: Expr, b: Expr) -> Expr | None:
    if _int_is(b, 1) or _float_is(b, 1.0):
        return a
    if _int_is(a, 1) or _float_is(a, 1.0):
        return b
    if _ring(a):
        if (_int_is(b, 0) and not has_effect(a)) or (_int_is(a, 0) and not has_effect(b)):
            return _zero(a.dtype)
        if type(a) is IntImm:
            a, b = b, a
            if type(a) is not tir.Mul:
                return tir.Mul(a, b)
        if type(b) is IntImm and type(a) is tir.Mul and type(a.b) is IntImm:
            return tir.mul(a.a, tir.mul(a.b, b))
    return None


def _quotient_rules(a: Expr, b: Expr) -> Expr | None:
    return a if _int_is(b, 1) or _float_is(b, 1.0) else None


def _remainder_rules(a: Expr, b: Expr) -> Expr | None:
    return _zero(a.dtype) if _int_is(b, 1) and not has_effect(a) else None


def _extremum_rules(a: Expr, b: Expr) -> Expr | None:
    return a if a is b and not has_effect(a) else None


def _zero(dtype: DType) -> Expr:
    return tir.const(0, dtype)


# --- vectors of integers


def _vector(an: Analyzer, kind: type, a: Expr, b: Expr) -> Expr | None:
    """Ramps and broadcasts of integers stay ramps and broadcasts."""
    if type(a) is tir.Broadcast and type(b) is tir.Broadcast:
        return tir.Broadcast(an.simplify(kind(a.value, b.value)), a.lanes)
    rule = _VECTOR.get(kind)
    if rule is None or not a.dtype.is_int or {type(a), type(b)} - {tir.Broadcast, tir.Ramp}:
        return None
    return rule(an, a, b)


def _base(v: Expr) -> tuple[Expr, Expr]:
    """Base and stride of a ramp or broadcast."""
    return (v.base, v.stride) if type(v) is tir.Ramp else (v.value, _zero(v.value.dtype))


def _ramp(an: Analyzer, base: Expr, stride: Expr, lanes: int) -> Expr:
    base, stride = an.simplify(base), an.simplify(stride)
    return tir.Broadcast(base, lanes) if _int_is(stride, 0) else tir.Ramp(base, stride, lanes)


def _vector_add(an: Analyzer, a: Expr, b: Expr) -> Expr:
    (x, s), (y, t) = _base(a), _base(b)
    return _ramp(an, x + y, s + t, a.dtype.lanes)


def _vector_sub(an: Analyzer, a: Expr, b: Expr) -> Expr:
    (x, s), (y, t) = _base(a), _base(b)
    return _ramp(an, x - y, s - t, a.dtype.lanes)


def _vector_mul(an: Analyzer, a: Expr, b: Expr) -> Expr | None:
    if type(a) is tir.Broadcast:
        a, b = b, a
    return _ramp(an, a.base * b.value, a.stride * b.value, a.lanes) if type(b) is tir.Broadcast else None


def _lane_quotient(an: Analyzer, a: Expr, b: Expr) -> Expr | None:
    """The quotient (a scalar) that all lanes of ``a // b`` share."""
    if type(a) is not tir.Ramp or a.lanes < 0 or type(b) is not tir.Broadcast or not a.base.is_index or not b.value.is_index:
        return None
    first = an.simplify(tir.floordiv(a.base, b.value))
    last = an.simplify(tir.floordiv(a.base + a.stride * (a.lanes - 1), b.value))
    return first if first is last else None


def _steps_evenly(a: Expr, b: Expr) -> bool:
    """Whether ``a`` is a ramp of indices whose stride the number in all lanes of ``b`` divides."""
    return (
        type(a) is tir.Ramp
        and type(b) is tir.Broadcast
        and type(a.stride) is IntImm
        and type(b.value) is IntImm
        and b.value.value > 0
        and a.stride.value % b.value.value == 0
        and a.base.is_index
    )


def _vector_floordiv(an: Analyzer, a: Expr, b: Expr) -> Expr | None:
    if _steps_evenly(a, b):
        return _ramp(an, tir.floordiv(a.base, b.value), tir.floordiv(a.stride, b.value), a.lanes)
    q = _lane_quotient(an, a, b)
    return None if q is None else tir.Broadcast(q, a.dtype.lanes)


def _vector_floormod(an: Analyzer, a: Expr, b: Expr) -> Expr | None:
    if _steps_evenly(a, b):
        return tir.Broadcast(an.simplify(tir.floormod(a.base, b.value)), a.lanes)
    q = _lane_quotient(an, a, b)
    return None if q is None else _ramp(an, a.base - q * b.value, a.stride, a.dtype.lanes)


def _vector_compare(kind: type) -> Callable[[Any, Expr, Expr], Expr | None]:
    def apply(an: Analyzer, a: Expr, b: Expr) -> Expr | None:
        (x, s), (y, t) = _base(a), _base(b)
        lanes = a.dtype.lanes
        if lanes < 0:
            return None
        ends = [an.simplify(kind(x, y)), an.simplify(kind(x + s * (lanes - 1), y + t * (lanes - 1)))]
        if type(ends[0]) is IntImm and ends[0] is ends[1] and (kind not in (tir.EQ, tir.NE)):
            return tir.Broadcast(ends[0], lanes)
        return None

    return apply


_VECTOR: dict[type, Callable[[Any, Expr, Expr], Expr | None]] = {
    tir.Add: _vector_add,
    tir.Sub: _vector_sub,
    tir.Mul: _vector_mul,
    tir.FloorDiv: _vector_floordiv,
    tir.FloorMod: _vector_floormod,
    **{k: _vector_compare(k) for k in (tir.LT, tir.LE, tir.GT, tir.GE)},
}


# --- the rest


def _condition(kind: type, build: Callable) -> Rule:
    """Comparisons of floats and of vectors."""

    def apply(an: Analyzer, e: Expr) -> Expr:
        a, b = _operands(an, e)
        if e.dtype.lanes != 1:
            joined = _vector(an, kind, a, b)
            if joined is not None:
                return joined
        if type(a) is FloatImm and type(b) is FloatImm:
            return TRUE if _FLOAT_COMPARE[kind](a.value, b.value) else FALSE
        if type(a) is IntImm and type(b) is IntImm:
            return build(a, b)
        if a is b and a.dtype.is_bool and a.dtype.lanes == 1 and kind in (tir.EQ, tir.NE):
            return TRUE if kind is tir.EQ else FALSE
        return e if a is e.a and b is e.b else kind(a, b)

    return apply


_FLOAT_COMPARE = {
    tir.EQ: operator.eq,
    tir.NE: operator.ne,
    tir.LT: operator.lt,
    tir.LE: operator.le,
    tir.GT: operator.gt,
    tir.GE: operator.ge,
}


def _logic(kind: type) -> Rule:
    """And/or of vectors of bools."""

    def apply(an: Analyzer, e: Expr) -> Expr:
        a, b = _operands(an, e)
        neutral = 1 if kind is tir.And else 0
        for x, y in ((a, b), (b, a)):
            if type(x) is tir.Broadcast and type(x.value) is IntImm:
                return y if x.value.value == neutral else x
        joined = _vector(an, kind, a, b)
        return joined if joined is not None else a if a is b else e if a is e.a and b is e.b else kind(a, b)

    return apply


def _not(an: Analyzer, e: Expr) -> Expr:
    a = an.simplify(e.a)
    if type(a) is tir.Broadcast:
        return tir.Broadcast(an.simplify(tir.Not(a.value)), a.lanes)
    return a.a if type(a) is tir.Not else e.replace(a=a)


def _choice(an: Analyzer, e: Expr) -> Expr:
    condition = an.simplify(e.condition)
    single = condition.value if type(condition) is tir.Broadcast else condition
    if type(single) is IntImm:
        return an.simplify(e.true_value if single.value else e.false_value)
    if condition.dtype.lanes != 1:
        yes, no = an.simplify(e.true_value), an.simplify(e.false_value)
    else:
        with an.constraint(condition):
            yes = an.simplify(e.true_value)
        with an.constraint(tir.logical_not(condition)):
            no = an.simplify(e.false_value)
    return (
        yes
        if yes is no and not has_effect(condition)
        else e.replace(condition=condition, true_value=yes, false_value=no)
    )


def _cast(an: Analyzer, e: Expr) -> Expr:
    value = an.simplify(e.value)
    if type(value) is tir.Cast and _lossless(value.value.dtype.element, value.dtype.element):
        if value.value.dtype is e.dtype:
            return value.value  # there and back
        if value.dtype.is_int and e.dtype.is_int:
            return tir.cast(value.value, e.dtype)
    if type(value) in (IntImm, FloatImm, tir.Broadcast):
        return _cast_constant(value, e)
    return e.replace(value=value)


def _cast_constant(value: Expr, e: Expr) -> Expr:
    if type(value) is FloatImm:
        made = _cast_float(value, e.dtype)
        return e.replace(value=value) if made is None else made
    if type(value) is IntImm and e.dtype.is_float and abs(value.value) > 2048:
        return (
            e.replace(value=value)
            if e.dtype.element not in _ROUNDED
            else FloatImm(float(e.dtype.numpy.type(value.value)), e.dtype)
        )
    return tir.cast(value, e.dtype)


def _cast_float(value: FloatImm, to: DType) -> Expr | None:
    """A number of floating point that its type holds exactly as another type has it; whole numbers are cut off and saturated."""
    if value.dtype not in _IEEE or to.lanes != 1:
        return None
    with np.errstate(all="ignore"):
        if value.dtype not in _ROUNDED and float(value.dtype.numpy.type(value.value)) != value.value:
            return None
        if to in _IEEE:
            return FloatImm(float(to.numpy.type(value.dtype.numpy.type(value.value))), to)
    if not math.isfinite(value.value) or not (to.is_int or to.is_bool):
        return None
    low, high = to.limits
    return IntImm(value.value != 0 if to.is_bool else min(max(int(value.value), low), high), to)


def _lossless(a: DType, b: DType) -> bool:
    """Whether every value of type ``a`` is one of type ``b``."""
    if a.kind == b.kind == "float":
        return b == "float64" or (b == "float32" and a.bits <= 16)
    if a.is_int and b.is_int:
        return a.bits <= b.bits if a.kind == b.kind else a.kind == "uint" and a.bits < b.bits
    return a.is_bool and (b.is_int or b.is_float)


def _call(an: Analyzer, e: Expr) -> Expr:
    args = tuple(map(an.simplify, e.args))
    if all(type(a) is IntImm for a in args) and isinstance(e.op, str) and e.op in _CONSTANT_CALLS and e.dtype.lanes == 1:
        folded = _CONSTANT_CALLS[e.op](args[0].dtype.bits, *(a.value for a in args))
        if folded is not None:
            return wrap(folded, e.dtype)
    return e if all(a is b for a, b in zip(args, e.args)) else tir.Call(e.op, args, e.dtype)


def _shift(by: Callable[[int, int], int]) -> Callable[[int, int, int], int | None]:
    return lambda bits, a, n: by(a, n) if 0 <= n < bits else None


def _unsigned(bits: int, a: int) -> int:
    return a & ((1 << bits) - 1)


_CONSTANT_CALLS: dict[str, Callable[..., int | None]] = {  # of the operand's width and the constants
    "likely": lambda bits, a: a,
    "bitwise_and": lambda bits, a, b: a & b,
    "bitwise_or": lambda bits, a, b: a | b,
    "bitwise_xor": lambda bits, a, b: a ^ b,
    "bitwise_not": lambda bits, a: ~a,
    "shift_left": _shift(operator.lshift),
    "shift_right": _shift(operator.rshift),
    "abs": lambda bits, a: abs(a),
    "popcount": lambda bits, a: _unsigned(bits, a).bit_count(),
    "clz": lambda bits, a: bits - _unsigned(bits, a).bit_length(),
}


def _load(an: Analyzer, e: Expr) -> Expr:
    indices = tuple(map(an.simplify, e.indices))
    predicate = None if e.predicate is None else an.simplify(e.predicate)
    if type(predicate) is tir.Broadcast and predicate.value is TRUE:
        predicate = None
    same = predicate is e.predicate and indices == e.indices
    return e if same else tir.BufferLoad(e.buffer, indices, predicate)


def _shuffle(an: Analyzer, e: Expr) -> Expr:
    return e.replace(vectors=tuple(map(an.simplify, e.vectors)))


_RULES: dict[type, Rule] = {
    tir.Add: _arithmetic(tir.Add, tir.add, [_add_rules]),
    tir.Sub: _arithmetic(tir.Sub, tir.sub, [_sub_rules]),
    tir.Mul: _arithmetic(tir.Mul, tir.mul, [_mul_rules]),
    tir.Div: _arithmetic(tir.Div, tir.truncdiv, [_quotient_rules]),
    tir.Mod: _arithmetic(tir.Mod, tir.truncmod, [_remainder_rules]),
    tir.FloorDiv: _arithmetic(tir.FloorDiv, tir.floordiv, [_quotient_rules]),
    tir.FloorMod: _arithmetic(tir.FloorMod, tir.floormod, [_remainder_rules]),
    tir.Min: _arithmetic(tir.Min, tir.min_, [_extremum_rules]),
    tir.Max: _arithmetic(tir.Max, tir.max_, [_extremum_rules]),
    tir.EQ: _condition(tir.EQ, tir.eq),
    tir.NE: _condition(tir.NE, tir.ne),
    tir.LT: _condition(tir.LT, tir.lt),
    tir.LE: _condition(tir.LE, tir.le),
    tir.GT: _condition(tir.GT, tir.gt),
    tir.GE: _condition(tir.GE, tir.ge),
    tir.And: _logic(tir.And),
    tir.Or: _logic(tir.Or),
    tir.Not: _not,
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Cast: _cast,
    tir.Call: _call,
    tir.BufferLoad: _load,
    tir.Shuffle: _shuffle,
    tir.Ramp: lambda an, e: _ramp(an, e.base, e.stride, e.lanes),
    tir.Broadcast: lambda an, e: tir.Broadcast(an.simplify(e.value), e.lanes),
}
