# SPDX-License-Identifier: Apache-2.0
"""Exact integers that vary over lanes: what loop variables and indices are while many iterations run at once.

A loop that runs as *lanes* gets an axis. An index value is a Python int (equal in all lanes), a ``Lin`` (affine in the
axes) or an int64 array. Arrays keep axis ``k`` at dimension ``-1 - k``, so that values from shallower loops broadcast;
axis 0 is the lane of explicit vector values. ``Lin`` keeps addresses affine, so that loads and stores become views.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Lin:
    """``base + sum(coefficient * axis)``; ``terms`` maps an axis to (coefficient, extent), coefficients are not 0."""

    __slots__ = ("base", "terms")

    def __init__(self, base: int, terms: dict[int, tuple[int, int]]) -> None:
        self.base, self.terms = base, terms

    def __repr__(self) -> str:
        return " + ".join([str(self.base), *(f"{c}*axis{a}[{n}]" for a, (c, n) in self.terms.items())])


def lane(axis: int, extent: int, base: int = 0, step: int = 1) -> Any:
    """The values ``base + step * [0, extent)`` along ``axis``."""
    return Lin(base, {axis: (step, extent)}) if extent != 1 and step else base



def bounds(v: Any) -> tuple[int, int]:
    """Smallest and largest value over the lanes (ints, inclusive); an empty array gives (0, -1)."""
    if type(v) is Lin:
        lo = hi = v.base
        for c, n in v.terms.values():
            lo, hi = (lo + c * (n - 1), hi) if c < 0 else (lo, hi + c * (n - 1))
        return lo, hi
    if isinstance(v, np.ndarray):
        return (int(v.min()), int(v.max())) if v.size else (0, -1)
    return int(v), int(v)


def dense(v: Any) -> Any:
    """``v`` as an int64 array (a uniform value stays a Python int)."""
    if type(v) is not Lin:
        return v
    out: Any = v.base
    for axis, (c, n) in v.terms.items():
        out = out + (np.arange(n, dtype=np.int64) * c).reshape((n,) + (1,) * axis)
    return out


def _lin(base: int, terms: dict[int, tuple[int, int]]) -> Any:
    kept = {a: t for a, t in terms.items() if t[0]}
    return Lin(base, kept) if kept else base


def add(a: Any, b: Any) -> Any:
    """a + b"""
    ta, tb = type(a), type(b)
    if ta is int and tb is int:
        return a + b
    if ta is Lin and tb is int:
        return Lin(a.base + b, a.terms)
    if ta is int and tb is Lin:
        return Lin(a + b.base, b.terms)
    if ta is Lin and tb is Lin:
        terms = dict(a.terms)
        for axis, (c, n) in b.terms.items():
            terms[axis] = (terms[axis][0] + c, n) if axis in terms else (c, n)
        return _lin(a.base + b.base, terms)
    return dense(a) + dense(b)


def mul(a: Any, b: Any) -> Any:
    """a * b"""
    ta, tb = type(a), type(b)
    if ta is int and tb is int:
        return a * b
    if ta is int and tb is Lin:
        a, b, ta, tb = b, a, tb, ta
    if ta is Lin and tb is int:
        return Lin(a.base * b, {k: (c * b, n) for k, (c, n) in a.terms.items()}) if b else 0
    return dense(a) * dense(b)


def sub(a: Any, b: Any) -> Any:
    """a - b"""
    return a - b if type(a) is int and type(b) is int else add(a, mul(b, -1))


def _divide(a: Lin, d: int) -> tuple[Any, Any] | None:
    """(quotient, remainder) of floor division by a constant when both stay affine."""
    if d <= 0:
        return None
    whole = {k: (c // d, n) for k, (c, n) in a.terms.items() if c % d == 0}
    rest = _lin(a.base, {k: t for k, t in a.terms.items() if k not in whole})
    lo, hi = bounds(rest)
    if lo // d != hi // d:
        return None
    return _lin(lo // d, whole), add(rest, -(lo // d) * d)


def floordiv(a: Any, b: Any) -> Any:
    """a // b, rounded down; ``b`` is not 0 anywhere."""
    if type(a) is Lin and type(b) is int and (parts := _divide(a, b)):
        return parts[0]
    return dense(a) // dense(b)


def floormod(a: Any, b: Any) -> Any:
    """a % b with the sign of b; ``b`` is not 0 anywhere."""
    if type(a) is Lin and type(b) is int and (parts := _divide(a, b)):
        return parts[1]
    return dense(a) % dense(b)


def truncdiv(a: Any, b: Any) -> Any:
    """a / b rounded toward zero; ``b`` is not 0 anywhere."""
    if bounds(a)[0] >= 0 and bounds(b)[0] > 0:
        return floordiv(a, b)
    a, b = dense(a), dense(b)
    q = abs(a) // abs(b)
    if type(q) is int:
        return q if (a < 0) == (b < 0) else -q
    return np.where((a < 0) == (b < 0), q, -q)


def truncmod(a: Any, b: Any) -> Any:
    """Remainder with the sign of a; ``b`` is not 0 anywhere."""
    return sub(a, mul(truncdiv(a, b), b))


def minimum(a: Any, b: Any) -> Any:
    """The smaller in each lane."""
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    return a if ahi <= blo else b if bhi <= alo else np.minimum(dense(a), dense(b))


def maximum(a: Any, b: Any) -> Any:
    """The larger in each lane."""
    (alo, ahi), (blo, bhi) = bounds(a), bounds(b)
    return a if alo >= bhi else b if blo >= ahi else np.maximum(dense(a), dense(b))


def less(a: Any, b: Any) -> Any:
    """a < b: a bool when it is equal in all lanes, else a bool array."""
    if type(a) is int and type(b) is int:
        return a < b
    d = sub(a, b)
    lo, hi = bounds(d)
    return True if hi < 0 else False if lo >= 0 else dense(d) < 0


def equal(a: Any, b: Any) -> Any:
    """a == b: a bool when it is equal in all lanes, else a bool array."""
    if type(a) is int and type(b) is int:
        return a == b
    d = sub(a, b)
    lo, hi = bounds(d)
    return False if lo > 0 or hi < 0 else True if lo == hi == 0 else dense(d) == 0


def invert(c: Any) -> Any:
    """Logical negation of a bool or bool array."""
    return not c if isinstance(c, bool | np.bool_) else ~c


BINARY = {
    "Add": add,
    "Sub": sub,
    "Mul": mul,
    "FloorDiv": floordiv,
    "FloorMod": floormod,
    "Div": truncdiv,
    "Mod": truncmod,
    "Min": minimum,
    "Max": maximum,
}
COMPARE = {
    "LT": less,
    "GT": lambda a, b: less(b, a),
    "LE": lambda a, b: invert(less(b, a)),
    "GE": lambda a, b: invert(less(a, b)),
    "EQ": equal,
    "NE": lambda a, b: invert(equal(a, b)),
}
