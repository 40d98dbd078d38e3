# SPDX-License-Identifier: Apache-2.0
"""What the tables cannot say: steps that ask for bounds and remainders, one function each; None where a step does not apply."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from ...ir import tir
from ...ir.tir import Expr, IntImm
from .pattern import make

if TYPE_CHECKING:
    from .simplify import Rewriter

Step = Callable[["Rewriter", Any], Expr | None]


def constant(r: Rewriter, e: Expr) -> Expr | None:
    """The one value that the expression has by the analyzer's bounds, remainders and facts."""
    found = r.an.simplify(e)
    return found if type(found) is IntImm else None


def smaller(r: Rewriter, e: Expr) -> Expr | None:
    """The operand of a minimum (maximum) that is never the larger (smaller) one; the whole where an operand is there already."""
    if _occurs(e.a, e.b, type(e)):
        return e.a
    if type(e.a) in _EXTREMA and type(e.b) in _EXTREMA:
        return None
    d = r.an.sum(e.a) - r.an.sum(e.b)
    if type(e) is tir.Max:
        d = d * -1
    return e.a if r.an.is_le(d) else e.b if r.an.is_le(d * -1) else None


def _occurs(e: Expr, operand: Expr, kind: type) -> bool:
    return type(e) is kind and (e.b is operand or e.a is operand or _occurs(e.a, operand, kind))


_EXTREMA = {tir.Min, tir.Max}


# --- quotients and remainders


def _multiple(e: Expr) -> tuple[Expr, int, Expr | None] | None:
    """(x, k, y) of x * k, x * k + y, y + x * k."""
    sides: tuple = (e.a, e.b) if type(e) is tir.Add else (e, None)
    for product, rest in (sides, sides[::-1]):
        if type(product) is tir.Mul and type(product.b) is IntImm:
            return product.a, product.b.value, rest
    return None


def quotient_of_multiple(r: Rewriter, e: Expr) -> Expr | None:
    """``(x * k + y) // c`` as ``x * (k // c) + y // c``, or ``x // (c // k) + y // c``, where what is left over makes no difference."""
    found = _multiple(e.a)
    if found is None or type(e.b) is not IntImm or e.b.value == 0:
        return None
    (x, k, y), c, dtype = found, e.b.value, e.dtype
    number = lambda value: IntImm(value, dtype)
    low = number(0) if y is None else make(tir.FloorMod, y, e.b)
    high = number(0) if y is None else r.simplify(make(tir.FloorDiv, y, e.b))
    if r.an.value(high) == 0:
        high = number(0)
    left = r.an.bounds(tir.FloorDiv(make(tir.Add, make(tir.Mul, x, number(k % c)), low), e.b))
    if left[0] == left[1]:
        return make(tir.Add, make(tir.Mul, x, number(k // c)), make(tir.Add, high, number(left[0])))
    if k > 0 and c > 0 and c % k == 0 and r.an.prove(tir.lt(low, number(k))):
        return make(tir.Add, make(tir.FloorDiv, x, number(c // k)), high)
    return None


def known_remainder(r: Rewriter, e: Expr) -> Expr | None:
    """The remainder that the modular set of the dividend leaves, or the dividend where it is less than the divisor."""
    if type(e.b) is not IntImm:
        return e.a if r.an.bounds(e.a)[0] >= 0 and r.an.prove(tir.lt(e.a, e.b)) else None
    if e.b.value <= 0:
        return None
    c = e.b.value
    coefficient, base = r.an.modular(e.a)
    if coefficient % c == 0 and (type(e) is tir.FloorMod or r.an.bounds(e.a)[0] >= 0):
        return IntImm(base % c, e.dtype)
    low, high = r.an.bounds(e.a)
    return e.a if low >= 0 and high < c else None


# --- comparisons


def swap(r: Rewriter, e: Expr) -> Expr:
    """``a > b`` is ``b < a``."""
    return (tir.lt if type(e) is tir.GT else tir.le)(e.b, e.a)


def at_most(r: Rewriter, e: Expr) -> Expr | None:
    """``a <= b`` by the rules of ``not b < a``; an equality where ``a >= b`` is known."""
    below = r.apply(tir.LT(e.b, e.a))
    out = r.apply(tir.logical_not(below))
    if type(out) is tir.LE and r.an.prove(tir.ge(out.a, out.b)):
        return r.apply(tir.eq(out.a, out.b))
    return None if out is e else out


def unequal(r: Rewriter, e: Expr) -> Expr | None:
    """``a != b`` by the rules of ``not a == b``; an order where one is known."""
    if r.an.prove(tir.ge(e.a, e.b)):
        return r.apply(tir.lt(e.b, e.a))
    if r.an.prove(tir.le(e.a, e.b)):
        return r.apply(tir.lt(e.a, e.b))
    out = r.apply(tir.logical_not(r.apply(tir.eq(e.a, e.b))))
    return None if out is e else out


def _offset(e: Expr) -> tuple[Expr, int]:
    """An expression without the constant that is added to it, and the constant."""
    if type(e) is tir.Add and type(e.b) is IntImm:
        return e.a, e.b.value
    return (e.a, -e.b.value) if type(e) is tir.Sub and type(e.b) is IntImm else (e, 0)


def constants_on_one_side(r: Rewriter, e: Expr) -> Expr | None:
    """``a + 2 < b + 3`` as ``a <= b``, ``a < b - 10`` as ``a + 10 < b``: at most one constant is left, and it is positive."""
    if type(e.a) is IntImm or type(e.b) is IntImm:
        return None
    (left, p), (right, q) = _offset(e.a), _offset(e.b)
    d = q - p
    if p == q == 0:
        return None
    if d == 0 or d == 1:
        return make(tir.LE if d else tir.LT, left, right)
    if d < 0 and q != 0:
        return make(tir.LT, make(tir.Add, left, IntImm(-d, left.dtype)), right)
    return make(tir.LT, left, make(tir.Add, right, IntImm(d, right.dtype))) if d > 0 and p != 0 else None


def common_factor(r: Rewriter, e: Expr) -> Expr | None:
    """Both sides divided by what divides both."""
    g = gcd(*r.an.modular(e.a), *r.an.modular(e.b))
    if g < 2:
        return None
    by = IntImm(g, e.a.dtype)
    return make(tir.LT, make(tir.FloorDiv, e.a, by), make(tir.FloorDiv, e.b, by))


BEFORE: dict[type, tuple[Step, ...]] = {  # asked before the rules of the tables
    tir.EQ: (constant,), tir.NE: (constant, unequal), tir.LT: (constant,), tir.LE: (constant, at_most), tir.GT: (swap,), tir.GE: (swap,),
    tir.And: (constant,), tir.Or: (constant,), tir.Min: (smaller,), tir.Max: (smaller,),
}  # fmt: skip
AFTER: dict[type, tuple[Step, ...]] = {  # and after them
    tir.FloorDiv: (quotient_of_multiple,), tir.FloorMod: (known_remainder,), tir.Mod: (known_remainder,),
    tir.LT: (constants_on_one_side, common_factor),
}  # fmt: skip
