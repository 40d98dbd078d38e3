# SPDX-License-Identifier: Apache-2.0
"""Constant bounds: an interval of integers (ends may be +-inf) that holds every value of an expression."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from ..ir import tir
from ..ir.dtype import DType
from ..ir.tir import Expr, Var
from .linear import Sum, factors

if TYPE_CHECKING:
    from .analyzer import Analyzer

Number = Any  # int, inf or -inf
Bounds = tuple[Number, Number]
EVERYTHING: Bounds = (-inf, inf)
NARROW = 16  # bits: of variables of these types the type's limits are worth knowing
EXACT_FLOATS = {"float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53}  # whole numbers up to these convert without rounding


def of_sum(an: Analyzer, s: Sum) -> Bounds:
    """Bounds of a linear form: from its atoms, tightened by the facts about just this combination."""
    low = high = s.const
    memo = an._bounds
    for atom, k in s.terms.items():
        b = memo.get(atom)
        l, h = b if b is not None else of_atom(an, atom)
        if k > 0:
            low += k * l
            high += k * h
        else:
            low += k * h
            high += k * l
    if an.facts.linear and len(s.terms) > 1:
        l, h = an.facts.linear_bounds(s)
        low, high = max(low, l), min(high, h)
    return low, high


def of_atom(an: Analyzer, atom: Expr) -> Bounds:
    """Bounds of an expression that is not a sum (memoised in the analyzer's scope)."""
    hit = an._bounds.get(atom)
    if hit is None:
        rule = _RULES.get(type(atom))
        low, high = _held(atom, rule(an, atom)) if rule is not None else EVERYTHING if atom.is_index else of_dtype(atom.dtype)
        known = an.facts.atoms.get(atom)
        if known is not None:
            low, high = max(low, known[0]), min(high, known[1])
        if high == inf and type(atom) is tir.FloorDiv and atom.is_index:
            high = _most_times(an, atom)
        hit = an._bounds[atom] = (low, high)
    return hit


def _held(e: Expr, found: Bounds) -> Bounds:
    """Bounds of an exact result as those of the expression: data that may not fit its type wraps, as -128 // -1 of int8 does."""
    if e.is_index or not e.dtype.is_int:
        return found
    low, high = of_dtype(e.dtype)
    return found if low <= found[0] and found[1] <= high else (low, high)


def of_dtype(dtype: DType) -> Bounds:
    """What a value of this type can be."""
    element = dtype.element
    if element.is_bool:
        return 0, 1
    if element.kind == "uint":
        return 0, (1 << element.bits) - 1
    return (-(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1) if element.kind == "int" else EVERYTHING


def _var(an: Analyzer, v: Var) -> Bounds:
    if v.dtype.bits <= NARROW:
        low, high = of_dtype(v.dtype)
        return (0, high) if v.size else (low, high)
    return (0, inf) if v.size or v.dtype.kind == "uint" else EVERYTHING


def times(a: Number, b: Number) -> Number:
    """Product in which 0 * inf is 0."""
    return 0 if a == 0 or b == 0 else a * b


def product(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of x * y."""
    ends = [times(x, y) for x in a for y in b]
    return min(ends), max(ends)


def _mul(an: Analyzer, e: Expr) -> Bounds:
    if not e.is_index:
        return product(an.bounds(e.a), an.bounds(e.b))
    out: Bounds = (1, 1)
    seen: dict[Expr, int] = {}
    for f in factors(e):
        seen[f] = seen.get(f, 0) + 1
    for f, power in seen.items():
        l, h = an.bounds(f)
        p: Bounds = (1, 1)
        for _ in range(power):
            p = product(p, (l, h))
        if power % 2 == 0 and l < 0:
            p = (0 if h >= 0 else min(abs(l), abs(h)) ** power, max(abs(l), abs(h)) ** power)
        out = product(out, p)
    return out


def floor_quotient(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of x // y; y is never 0."""
    (l, h), (m, n) = a, b
    if m <= 0 <= n:
        if m == 0:
            m = 1
        elif n == 0:
            n = -1
        else:
            big = max(abs(l), abs(h))
            return -big, big
    if n < 0:
        l, h, m, n = -h, -l, -n, -m
    if m > n:
        return EVERYTHING
    return _floor(l, n if l >= 0 else m), _floor(h, m if h >= 0 else n)


def _floor(x: Number, y: Number) -> Number:
    if x in (inf, -inf):
        return x if y not in (inf, -inf) else (0 if x > 0 else -inf)
    if y in (inf, -inf):
        return 0 if x >= 0 else -1
    return x // y


def _floordiv(an: Analyzer, e: Expr) -> Bounds:
    return floor_quotient(an.bounds(e.a), an.bounds(e.b))


def _most_times(an: Analyzer, e: Expr) -> Number:
    """The greatest value of a quotient whose divisor is no number, where a fact says that the dividend is below so many times the divisor, as it does of
    the variable of a loop over both."""
    dividend, divisor, least = an.sum(e.a), an.sum(e.b), an.bounds(e.b)[0]
    if least < 0 or not divisor.terms:
        return inf
    atom, k = next(iter(divisor.terms.items()))
    found: Number = inf
    for fact in an.facts.inequalities:  # is not positive
        most = dividend - fact
        times, rest = divmod(most.terms.get(atom, 0), k)
        left = most - divisor * times
        if not rest and not left.terms:
            found = min(found, times + left.const // max(least, 1) if left.const >= 0 else times - 1)
    return found


def _floormod(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.a), an.bounds(e.b)
    if m >= 0:
        m = max(m, 1)
        if l >= 0:
            return (l, h) if h < m else (0, min(h, n - 1))
        return 0, n - 1
    return (m + 1, 0) if n <= 0 else (m + 1, n - 1)


def _truncdiv(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.a), an.bounds(e.b)
    if m <= 0 <= n:  # a divisor is not 0: what is below and what is above
        parts = ([(m, -1)] if m < 0 else []) + ([(1, n)] if n > 0 else [])
    else:
        parts = [(m, n)]
    ends = [_trunc(x, y) for part in parts for y in part for x in (l, h)]
    return (min(ends), max(ends)) if ends else EVERYTHING


def _trunc(x: Number, y: Number) -> Number:
    """The quotient of two ends toward zero."""
    if x in (inf, -inf):
        return 0 if y in (inf, -inf) else x if y > 0 else -x
    if y in (inf, -inf):
        return 0
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def _truncmod(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.a), an.bounds(e.b)
    big = max(abs(m), abs(n)) - 1
    return (0 if l >= 0 else max(l, -big)), (0 if h <= 0 else min(h, big))


def _min(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.a), an.bounds(e.b)
    return min(l, m), min(h, n)


def _max(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.a), an.bounds(e.b)
    return max(l, m), max(h, n)


def _choice(an: Analyzer, e: Expr) -> Bounds:
    (l, h), (m, n) = an.bounds(e.true_value), an.bounds(e.false_value)
    return min(l, m), max(h, n)


def _cast(an: Analyzer, e: Expr) -> Bounds:
    inner = _before_cast(an, e.value)
    if inner is None or e.is_index:
        return of_dtype(e.dtype) if inner is None else inner
    low, high = of_dtype(e.dtype)
    return inner if low <= inner[0] and inner[1] <= high else (low, high)


def _before_cast(an: Analyzer, value: Expr) -> Bounds | None:
    """What a converted value lies in: whole numbers, truth values, and whole numbers that went through floating point unrounded."""
    if value.dtype.is_int or value.dtype.is_bool:
        return an.bounds(value)
    if type(value) is not tir.Cast or value.value.dtype.is_float:
        return None
    limit, found = EXACT_FLOATS.get(value.dtype.element, 0), _before_cast(an, value.value)
    return found if found is not None and -limit <= found[0] and found[1] <= limit else None


def _call(an: Analyzer, e: Expr) -> Bounds:
    rule = _CALLS.get(e.op) if isinstance(e.op, str) else None
    low, high = of_dtype(e.dtype)
    if rule is None or not e.dtype.is_int:
        return low, high
    found = [an.bounds(a) for a in e.args]
    if e.op in _SHIFTS and not (0 <= found[1][0] and found[1][1] < e.dtype.bits):  # the amount is taken modulo the width
        found[1] = (0, e.dtype.bits - 1)
    l, h = rule(found)
    if e.op in _WRAP and (l < low or h > high):
        return low, high
    return max(low, l), min(high, h)


def _bits_and(args: list[Bounds]) -> Bounds:
    tops = [h for l, h in args if l >= 0]
    return (0, min(tops)) if tops else EVERYTHING


def _shift_left(args: list[Bounds]) -> Bounds:
    (l, h), (m, n) = args
    return (l << m, h << n) if 0 <= l and h != inf and 0 <= m <= n < 64 else EVERYTHING


def _shift_right(args: list[Bounds]) -> Bounds:
    (l, h), (m, n) = args
    if l == -inf or h == inf or not 0 <= m <= n < 64:
        return (0, h) if l >= 0 else EVERYTHING
    ends = [l >> m, l >> n, h >> m, h >> n]
    return min(ends), max(ends)


def _bits_or(args: list[Bounds]) -> Bounds:
    (l, h), (m, n) = args
    if l < 0 or m < 0 or h == inf or n == inf:
        return EVERYTHING
    return max(l, m), (1 << max(h, n).bit_length()) - 1


def _bits_xor(args: list[Bounds]) -> Bounds:
    low, high = _bits_or(args)
    return (0, high) if low >= 0 else EVERYTHING


_CALLS: dict[str, Callable[[list[Bounds]], Bounds]] = {
    "bitwise_and": _bits_and,
    "bitwise_or": _bits_or,
    "bitwise_xor": _bits_xor,
    "bitwise_not": lambda args: (-1 - args[0][1], -1 - args[0][0]),
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "abs": lambda args: (0, max(abs(args[0][0]), abs(args[0][1]))),
    "popcount": lambda args: (0, 64),
    "clz": lambda args: (0, 64),
    "ctz": lambda args: (0, 64),
    "likely": lambda args: args[0],
    "vscale": lambda args: (1, inf),
}


_WRAP = ("shift_left", "abs", "bitwise_not")
_SHIFTS = ("shift_left", "shift_right")


def _ramp(an: Analyzer, e: Expr) -> Bounds:
    last = e.lanes - 1 if e.lanes > 0 else inf  # scalable vectors end where the machine says
    (l, h), (m, n) = an.bounds(e.base), product(an.bounds(e.stride), (0, last))
    return l + m, h + n


def _imm(an: Analyzer, e: Expr) -> Bounds:
    return e.value, e.value


_RULES: dict[type, Callable[[Analyzer, Any], Bounds]] = {
    tir.Var: _var,
    tir.IntImm: _imm,
    tir.Mul: _mul,
    tir.FloorDiv: _floordiv,
    tir.FloorMod: _floormod,
    tir.Div: _truncdiv,
    tir.Mod: _truncmod,
    tir.Min: _min,
    tir.Max: _max,
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Cast: _cast,
    tir.Call: _call,
    tir.Ramp: _ramp,
    tir.Broadcast: lambda an, e: an.bounds(e.value),
}


def of_data(an: Analyzer, e: Expr) -> Bounds:
    """Bounds of an integer expression that wraps: those of exact arithmetic where they fit the type."""
    limits = of_dtype(e.dtype)
    rule = _EXACT.get(type(e))
    if rule is None:
        return of_atom(an, e)
    low, high = rule(an.bounds(e.a), an.bounds(e.b))
    return (low, high) if limits[0] <= low and high <= limits[1] else limits


_EXACT: dict[type, Callable[[Bounds, Bounds], Bounds]] = {
    tir.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    tir.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    tir.Mul: product,
}


def from_parts(an: Any, e: Expr) -> Bounds:
    """Bounds of an integer expression from those of its parts, without simplification; of ``an`` only ``bounds`` is used."""
    exact = _EXACT.get(type(e))
    if exact is None:
        rule = _RULES.get(type(e))
        return of_dtype(e.dtype) if rule is None else _held(e, rule(an, e))
    low, high = exact(an.bounds(e.a), an.bounds(e.b))  # type: ignore[attr-defined]
    limits = EVERYTHING if e.is_index else of_dtype(e.dtype)
    return (low, high) if limits[0] <= low and high <= limits[1] else limits
