# SPDX-License-Identifier: Apache-2.0
"""Rules of the simplifier against evaluation: every form of two operators, of every kind of integer, at all values.

Indices are exact; data (here loads of 8-bit integers) wraps at its width, INT_MIN and all. An attempt is one expression: simplified, bounded,
its remainders and, of a condition, what is proved of it, all compared with what evaluation gives at every point. Forms are numbered, so
that an attack on all of them (``count`` of ``FORMS`` and more) leaves none out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from roundel.arith import Analyzer
from roundel.ir import decl_buffer, tir
from roundel.ir.dtype import INT64, DType
from roundel.ir.errors import ArithError
from roundel.ir.tir import Expr, IntImm, Range, Var

from .attempts import attempts

DIVIDES = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)
ARITHMETIC = (tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max, *DIVIDES)
COMPARE = (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def _divided(floor: bool, quotient: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Division of exact integers (by zero anything)."""

    def apply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        by = np.where(b == 0, 1, b)
        q = a // by if floor else np.abs(a) // np.abs(by) * np.where((a < 0) == (by < 0), 1, -1)
        return q if quotient else a - q * by

    return apply


_APPLY: dict[Any, Callable[..., np.ndarray]] = {
    tir.Add: np.add, tir.Sub: np.subtract, tir.Mul: np.multiply, tir.Min: np.minimum, tir.Max: np.maximum,
    tir.FloorDiv: _divided(True, True), tir.FloorMod: _divided(True, False), tir.Div: _divided(False, True), tir.Mod: _divided(False, False),
    tir.EQ: np.equal, tir.NE: np.not_equal, tir.LT: np.less, tir.LE: np.less_equal, tir.GT: np.greater, tir.GE: np.greater_equal,
    tir.And: np.logical_and, tir.Or: np.logical_or,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert, "shift_left": np.left_shift, "shift_right": np.right_shift,
}  # fmt: skip


class Evaluation:
    """Values at all points: of an index exact, of data wrapped to its type."""

    def __init__(self, leaves: dict[Expr, np.ndarray]) -> None:
        self.leaves = leaves
        self.defined: Any = True  # where nothing is divided by zero

    def typed(self, e: Expr) -> np.ndarray:
        """The value of ``e`` where it is data."""
        value = self.of(e)
        if e.is_index and e.dtype.is_int:  # an index that meets data fits its type
            self.defined = np.logical_and(self.defined, wrapped(value, e.dtype) == value)
        return wrapped(value, e.dtype) if e.dtype.is_int else value

    def of(self, e: Expr) -> np.ndarray:
        """The value of ``e``."""
        if e in self.leaves:
            return self.leaves[e]
        if isinstance(e, IntImm):
            return np.asarray(e.value)
        if isinstance(e, tir.Cast):
            value = self.of(e.value)
            return value if e.is_index else (value != 0 if e.dtype.is_bool else wrapped(value.astype(np.int64), e.dtype))
        if isinstance(e, tir.Not):
            return np.logical_not(self.of(e.a))
        if isinstance(e, tir.Select | tir.IfThenElse):
            part = self.of if e.is_index else self.typed
            return np.where(self.of(e.condition), part(e.true_value), part(e.false_value))
        if isinstance(e, tir.Call):
            return wrapped(_APPLY[e.op](*map(self.typed, e.args)), e.dtype)
        exact = e.a.is_index and e.b.is_index
        a, b = (self.of(e.a), self.of(e.b)) if exact else (self.typed(e.a), self.typed(e.b))
        if type(e) in DIVIDES:
            self.defined = np.logical_and(self.defined, b != 0)
        value = _APPLY[type(e)](a, b)
        return value if exact or e.dtype.is_bool else wrapped(value, e.dtype)


def wrapped(value: np.ndarray, dtype: DType) -> np.ndarray:
    """Integers as a type of at most 32 bits holds them."""
    low, high = dtype.limits
    return value if dtype.bits >= 64 else (np.asarray(value) - low) % (high - low + 1) + low


@cache
def subject(kind: str) -> tuple[Expr, Expr, tuple[int, ...], dict[Expr, np.ndarray], tuple[tuple[Var, Range], ...]]:
    """Two leaves, constants, the leaves' values at all points, and the ranges of variables that are told."""
    if kind.startswith("index"):
        x, y = Var("x", INT64), Var("y", INT64, kind == "index size")
        xs, ys = range(-9, 10), range(0, 7) if kind != "index" else range(-4, 5)
        told = tuple((v, Range(tir.index_const(r.start), tir.index_const(len(r)))) for v, r in ((x, xs), (y, ys))) if kind == "index bound" else ()
        constants = (-8, -3, -2, -1, 0, 1, 2, 3, 4, 6)
    else:
        dtype = DType(kind.split()[-1])
        low, high = dtype.limits
        at = Var("i", INT64)
        x, y = (
            (Var("x", dtype), Var("y", dtype)) if kind.startswith("narrow") else (decl_buffer((8,), dtype, n)[at] for n in ("X", "Y"))
        )
        xs, ys = range(low, high + 1), sorted({low, low + 1, -7, -1, 0, 1, 2, 5, 100, high - 1, high} & set(range(low, high + 1)))
        constants, told = tuple(c for c in (low, -3, -1, 0, 1, 2, 3, 7, 8, high) if low <= c <= high), ()
    points = np.array([(a, b) for a in xs for b in ys]).T
    return x, y, constants, {x: points[0], y: points[1]}, told


KINDS = ("index", "index bound", "index size", "data int8", "data uint8", "narrow int8", "narrow uint8")
CASTS = ("", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
INNER = (*ARITHMETIC, *BITS, "bitwise_not", "shift_left", "shift_right", *(f"cast {c}" for c in CASTS[1:]), "select", "negated")
OUTER = (*ARITHMETIC, *COMPARE, *BITS, "min of both", "select on both", "and", "or")
LEAVES = 12  # of constants, and the two leaves
FORMS = len(KINDS) * len(INNER) * len(OUTER) * LEAVES * LEAVES * 2


def made(op: Any, a: Expr, b: Expr) -> Expr:
    """An operator of the table on two operands of one type."""
    if isinstance(op, type):
        return op(a, b)
    if op.startswith("cast"):
        return tir.Cast(DType(op.split()[1]), a)
    if op.startswith("shift"):
        return tir.Call(op, (a, IntImm(abs(b.value) % 7 if isinstance(b, IntImm) else 3, a.dtype)), a.dtype)
    if op == "bitwise_not":
        return tir.Call(op, (a,), a.dtype)
    if op in BITS:
        return tir.Call(op, (a, b), a.dtype)
    if op == "negated":
        return tir.Sub(IntImm(0, a.dtype), tir.Add(a, b))
    if op == "select":
        return tir.Select(tir.LT(a, b), a, b)
    if op == "min of both":
        return tir.Min(tir.Add(a, b), a)
    if op == "select on both":
        return tir.Select(tir.LE(a, b), tir.Sub(b, a), tir.Sub(a, b))
    return {"and": tir.And, "or": tir.Or}[op](tir.LT(a, b), tir.LE(b, tir.Add(a, a)))


def form(number: int) -> tuple[str, Expr]:
    """The kind and the expression of a number below ``FORMS``."""
    number, kind = divmod(number, len(KINDS))
    number, inner = divmod(number, len(INNER))
    number, outer = divmod(number, len(OUTER))
    number, first = divmod(number, LEAVES)
    number, second = divmod(number, LEAVES)
    x, y, constants, _, _ = subject(KINDS[kind])
    below = made(INNER[inner], x, _leaf(first, x, y, constants, x.dtype))
    beside = _leaf(second, x, y, constants, below.dtype)
    return KINDS[kind], made(OUTER[outer], beside, below) if number else made(OUTER[outer], below, beside)


def _leaf(k: int, x: Expr, y: Expr, constants: tuple[int, ...], dtype: DType) -> Expr:
    if k >= LEAVES - 2:
        leaf = x if k == LEAVES - 1 else y
        return leaf if leaf.dtype is dtype else tir.Cast(dtype, leaf)
    low, high = dtype.limits
    return IntImm(min(max(constants[k % len(constants)], low), high), dtype)


def _rewritten(an: Analyzer) -> Callable[[Expr], Expr]:
    """``rewrite_simplify``, with a division by zero left as it stands."""

    def apply(e: Expr) -> Expr:
        try:
            return an.rewrite_simplify(e)
        except ArithError:
            return e

    return apply


def findings(kind: str, e: Expr) -> Iterator[str]:
    """What the analyzer says of an expression and evaluation does not."""
    _, _, _, leaves, told = subject(kind)
    before = Evaluation(leaves)
    an = Analyzer()
    for v, r in told:
        an.bind(v, r)
    values = before.of(e)
    where = np.broadcast_to(before.defined, leaves[next(iter(leaves))].shape)
    if not where.any():
        return
    values = np.broadcast_to(values, where.shape)[where]
    for how, simplify in (("simplified", an.simplify), ("rewritten", _rewritten(an))):
        simple = simplify(e)
        after = Evaluation(leaves)
        found = np.broadcast_to(after.of(simple), where.shape)[where]
        if not np.array_equal(values, found):
            at = int(np.flatnonzero(values != found)[0])
            place = [int(v[where][at]) for v in leaves.values()]
            yield f"{kind}: {e!r} is {values[at]} at {place}, {how} {simple!r} is {found[at]}"
    if e.dtype.is_bool:
        if an.prove(e) and not values.all():
            yield f"{kind}: {e!r} is proved and does not hold"
        if an.prove(tir.Not(e)) and values.any():
            yield f"{kind}: the contrary of {e!r} is proved and does not hold"
        return
    low, high = an.bounds(e)
    if values.min() < low or values.max() > high:
        yield f"{kind}: {e!r} is from {values.min()} to {values.max()}, bounded by {low} and {high}"
    if e.is_index:
        coefficient, base = an.modular(e)
        if np.any((values - base) % coefficient if coefficient else values != base):
            yield f"{kind}: {e!r} is not {base} plus a multiple of {coefficient}"


def attack(count: int, seed: int, start: int = 0) -> Iterator[str]:
    """Of ``count`` forms, all different: what is wrong of them."""
    for number in attempts(random.Random(seed).sample(range(FORMS), min(count, FORMS)), start):
        yield from findings(*form(number))
