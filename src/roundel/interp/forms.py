# SPDX-License-Identifier: Apache-2.0
"""Linear forms of index expressions over loop variables, with ranges: what the dependence test reasons about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ..ir import tir
from ..ir.dataclass import dataclass

INF = float("inf")


class Atom:
    """A loop variable, or a part of an index that is not linear: its range, and the loop variables it depends on (None:
    anything).
    """

    __slots__ = ("hi", "lo", "uses")

    def __init__(self, lo: float, hi: float, uses: frozenset[Atom] | None = None) -> None:
        self.lo, self.hi, self.uses = lo, hi, uses if uses is not None else frozenset((self,))


@dataclass(slots=True)
class Form:
    """``base + sum(coefficient * atom)``."""

    base: int
    terms: dict[Atom, int] = field(default_factory=dict)

    @property
    def lo(self) -> float:
        """The least value it can take."""
        return self.base + sum(c * (a.lo if c > 0 else a.hi) for a, c in self.terms.items())

    @property
    def hi(self) -> float:
        """The largest value it can take."""
        return self.base + sum(c * (a.hi if c > 0 else a.lo) for a, c in self.terms.items())

    @property
    def uses(self) -> frozenset[Atom]:
        """The variables it depends on."""
        return frozenset().union(*(a.uses for a in self.terms))


def add(a: Form, b: Form, scale: int = 1) -> Form:
    """a + scale * b"""
    terms = dict(a.terms)
    for atom, c in b.terms.items():
        terms[atom] = terms.get(atom, 0) + c * scale
    return Form(a.base + b.base * scale, {k: c for k, c in terms.items() if c})


class Forms:
    """Translates expressions; ``env`` maps variables to forms. Equal parts of one scope give the same atom."""

    def __init__(self) -> None:
        self.env: dict[tir.Var, Form] = {}
        self.parts: dict[tuple, Atom] = {}
        self.divisors: dict[Atom, set[int]] = {}  # by what the values of a loop variable are divided
        self.scope: list[Atom] = []  # enclosing loops: what a value that nothing is known of may depend on

    def of(self, e: tir.Expr) -> Form:
        """The form of an integer expression."""
        handler = _FORMS.get(type(e))
        return handler(self, e) if handler is not None else self.unknown()

    def unknown(self) -> Form:
        """A value of which nothing is known but the loops around it."""
        return Form(0, {Atom(-INF, INF, frozenset(self.scope)): 1})

    def part(self, key: tuple, lo: float, hi: float, uses: frozenset[Atom]) -> Form:
        """A part that is not linear; equal keys give one atom."""
        if lo == hi:
            return Form(int(lo))
        atom = self.parts.get(key)
        if atom is None:
            atom = self.parts[key] = Atom(lo, hi, uses)
        return Form(0, {atom: 1})


def _key(f: Form) -> tuple:
    return f.base, frozenset(f.terms.items())


def _var(self: Forms, e: tir.Var) -> Form:
    if e not in self.env:
        self.env[e] = Form(0, {Atom(0 if e.size else -INF, INF, frozenset()): 1})
    return self.env[e]


def _mul(self: Forms, e: tir.Mul) -> Form:
    a, b = self.of(e.a), self.of(e.b)
    if not a.terms:
        a, b = b, a
    if b.terms:
        corners = [_times(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return self.part(("*", *sorted((_key(a), _key(b)), key=hash)), min(corners), max(corners), a.uses | b.uses)
    return add(Form(0), a, b.base)


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def _split(self: Forms, e: tir.BinaryOp) -> tuple[Form, Form]:
    """Floor quotient and remainder by a positive constant; unknown otherwise."""
    a, b = self.of(e.a), self.of(e.b)
    if b.terms or b.base <= 0:
        return self.unknown(), self.unknown()
    d = b.base
    whole = Form(0, {k: c // d for k, c in a.terms.items() if c % d == 0})
    rest = Form(a.base, {k: c for k, c in a.terms.items() if c % d})
    lo, hi = rest.lo, rest.hi
    if lo // d == hi // d and abs(lo) != INF:
        return add(whole, Form(int(lo // d))), add(rest, Form(int(lo // d) * -d))
    for atom, c in rest.terms.items():
        if d % c == 0 and c > 0:
            self.divisors.setdefault(atom, set()).add(d // c)
    quotient = self.part(("//", _key(rest), d), lo // d if lo != -INF else lo, hi // d if hi != INF else hi, rest.uses)
    key = ("%", _key(rest), d)
    remainder = self.part(key, 0, d - 1, rest.uses)
    for q in quotient.terms:
        for r in remainder.terms:
            self.parts[("pair", q, r)] = (rest, d)  # type: ignore[assignment]
    return add(whole, quotient), remainder


def _extreme(pick: Callable) -> Callable:
    def form(self: Forms, e: tir.BinaryOp) -> Form:
        a, b = self.of(e.a), self.of(e.b)
        return self.part((pick, _key(a), _key(b)), pick(a.lo, b.lo), pick(a.hi, b.hi), a.uses | b.uses)

    return form


def _choice(self: Forms, e: Any) -> Form:
    a, b = self.of(e.true_value), self.of(e.false_value)
    return Form(0, {Atom(min(a.lo, b.lo), max(a.hi, b.hi), frozenset(self.scope)): 1})


_FORMS: dict[type, Callable[[Forms, Any], Form]] = {
    tir.Var: _var,
    tir.IntImm: lambda self, e: Form(e.value),
    tir.Add: lambda self, e: add(self.of(e.a), self.of(e.b)),
    tir.Sub: lambda self, e: add(self.of(e.a), self.of(e.b), -1),
    tir.Mul: _mul,
    tir.FloorDiv: lambda self, e: _split(self, e)[0],
    tir.FloorMod: lambda self, e: _split(self, e)[1],
    tir.Div: lambda self, e: _split(self, e)[0] if self.of(e.a).lo >= 0 else self.unknown(),
    tir.Mod: lambda self, e: _split(self, e)[1] if self.of(e.a).lo >= 0 else self.unknown(),
    tir.Min: _extreme(min),
    tir.Max: _extreme(max),
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Cast: lambda self, e: (
        self.of(e.value) if e.value.dtype.is_int and e.dtype.bits >= e.value.dtype.bits else self.unknown()
    ),
    tir.Broadcast: lambda self, e: self.of(e.value),
}


def recombine(forms: Forms, f: Form) -> Form:
    """``k*d*(x // d) + k*(x % d)`` becomes ``k*x``: the address of a buffer walked by one fused loop."""
    changed = True
    while changed:
        changed = False
        for q, cq in list(f.terms.items()):
            for r, cr in list(f.terms.items()):
                pair: Any = forms.parts.get(("pair", q, r))
                if pair is not None and cq == cr * pair[1]:
                    rest, _ = pair
                    terms = {k: c for k, c in f.terms.items() if k is not q and k is not r}
                    f, changed = add(Form(f.base, terms), rest, cr), True
                    break
            if changed:
                break
    return f
