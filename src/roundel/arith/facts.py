# SPDX-License-Identifier: Apache-2.0
"""What an analyzer knows in its scope: values, bounds and remainders of atoms, inequalities, true conditions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from ..ir import free_vars, tir
from ..ir.errors import ConstantError
from ..ir.tir import Expr, IntImm, Var
from . import bounds, compare, modular
from .effects import reads_memory
from .linear import Sum

if TYPE_CHECKING:
    from .analyzer import Analyzer


class Facts:
    """The facts of one scope; copied when a scope opens.

    ``values``: a variable stands for this form. ``atoms``: constant bounds. ``modular``: (coeff, base) of atoms.
    ``linear``: normalised linear part -> upper bound. ``inequalities``: forms (of several atoms) known to be <= 0.
    ``truths``: canonical conditions that hold (True) or do not (False). ``remainders``: some remainder is known.
    """

    __slots__ = ("atoms", "inequalities", "linear", "modular", "remainders", "truths", "values")

    def __init__(self) -> None:
        self.values: dict[Var, Sum] = {}
        self.atoms: dict[Expr, bounds.Bounds] = {}
        self.modular: dict[Expr, modular.Modular] = {}
        self.linear: dict[frozenset, int] = {}
        self.inequalities: tuple[Sum, ...] = ()
        self.truths: dict[Expr, bool] = {}
        self.remainders = False

    def copy(self) -> Facts:
        """An independent copy."""
        out = Facts()
        out.values, out.atoms, out.modular = dict(self.values), dict(self.atoms), dict(self.modular)
        out.linear, out.inequalities, out.truths = dict(self.linear), self.inequalities, dict(self.truths)
        out.remainders = self.remainders
        return out

    def linear_bounds(self, s: Sum) -> bounds.Bounds:
        """Bounds that inequalities over exactly this combination of atoms give."""
        g = s.gcd
        up = self.linear.get(frozenset((a, k // g) for a, k in s.terms.items()))
        down = self.linear.get(frozenset((a, -k // g) for a, k in s.terms.items()))
        return (-inf if down is None else s.const - g * down), (inf if up is None else s.const + g * up)


def learn(an: Analyzer, condition: Expr) -> None:
    """Take a canonical condition as true from here on (conditions on memory are not kept)."""
    rule = _LEARN.get(type(condition))
    if type(condition) is tir.And:
        learn(an, condition.a)
        learn(an, condition.b)
        return
    if reads_memory(condition):  # a store may make it false
        return
    if type(condition) is not IntImm:
        an.facts.truths[condition] = True
        opposite = _opposite(an, condition)
        if opposite is not None and type(opposite) is not IntImm:
            an.facts.truths[opposite] = False
    if rule is not None:
        rule(an, condition)


def _opposite(an: Analyzer, condition: Expr) -> Expr | None:
    """The contrary of a canonical condition; None where its type does not hold the constant that it needs."""
    try:
        return compare.negation(an, condition) if type(condition) in _NEGATABLE else None
    except ConstantError:
        return None


def _learn_inequality(an: Analyzer, e: Expr) -> None:
    if e.a.dtype.is_int and e.a.dtype.lanes == 1:
        at_most_zero(an, compare.difference(an, e))


def _learn_equality(an: Analyzer, e: Expr) -> None:
    if not e.a.dtype.is_int or e.a.dtype.lanes > 1:
        return
    d = compare.difference(an, e)
    at_most_zero(an, d)
    at_most_zero(an, d * -1)
    _learn_remainder(an, d)
    _learn_value(an, d)
    an.forget()


def _learn_inequation(an: Analyzer, e: Expr) -> None:
    """d != 0 moves a bound that is 0."""
    if not e.a.dtype.is_int or e.a.dtype.lanes > 1:
        return
    d = compare.difference(an, e)
    low, high = bounds.of_sum(an, d)
    if low == 0:
        at_most_zero(an, d * -1 + 1)
    elif high == 0:
        at_most_zero(an, d + 1)


def _learn_remainder(an: Analyzer, d: Sum) -> None:
    only = d.only()
    if only is None or type(only[0]) not in (tir.FloorMod, tir.Mod):
        return
    an.facts.remainders = True
    inner = only[0].a
    if d.const == 0 and type(inner) is tir.FloorDiv and an.value(tir.floormod(inner.a, inner.b)) == 0:
        learn(an, an.simplify(tir.eq(tir.floormod(inner.a, inner.b * only[0].b), 0)))  # t | x and u | x / t
    if type(only[0].b) is not IntImm or d.const % only[1]:
        return
    x, r = an.sum(only[0].a), -d.const // only[1]
    part = x.only()
    if part is not None and part[1] == 1:
        new = modular.normal(abs(only[0].b.value), r - x.const)
        an.facts.modular[part[0]] = modular.meet(an.facts.modular.get(part[0], modular.ANY), new) or new


def _learn_value(an: Analyzer, d: Sum) -> None:
    for atom, k in d.terms.items():
        if type(atom) is not Var or abs(k) != 1:
            continue
        rest = Sum({a: -k * c for a, c in d.terms.items() if a is not atom}, -k * d.const)
        if any(atom in free_vars(a) for a in rest.terms):
            continue
        low, high = bounds.of_atom(an, atom)
        an.forget()
        an.facts.values[atom] = rest
        for v, s in list(an.facts.values.items()):
            if atom in s.terms:
                an.facts.values[v] = s.plus(Sum({atom: 1}), -s.terms[atom]).plus(rest, s.terms[atom])
        an.facts.inequalities = tuple(
            f.plus(Sum({atom: 1}), -f.terms[atom]).plus(rest, f.terms[atom]) if atom in f.terms else f
            for f in an.facts.inequalities
        )
        if rest.terms and low != -inf:
            at_most_zero(an, rest * -1 + low)
        if rest.terms and high != inf:
            at_most_zero(an, rest - high)
        return


def at_most_zero(an: Analyzer, d: Sum) -> None:
    """Learn d <= 0: tighten each atom's bounds by the others', keep it as an inequality where it says more."""
    d = compare.tighten(an, d)
    if not d.terms:
        return
    atoms = an.facts.atoms
    for atom, k in d.terms.items():
        low, _ = bounds.of_sum(an, Sum({a: c for a, c in d.terms.items() if a is not atom}, d.const))
        if low == -inf:
            continue
        l, h = bounds.of_atom(an, atom)
        new = (l, min(h, -low // k)) if k > 0 else (max(l, -(low // k)), h)
        if new != (l, h):
            atoms[atom] = new
            an.forget()
    if len(d.terms) > 1:
        key = frozenset(d.terms.items())
        an.facts.linear[key] = min(an.facts.linear.get(key, inf), -d.const)
        an.facts.inequalities += (d,)
        an.forget()


_NEGATABLE = {tir.LT, tir.LE, tir.EQ, tir.NE, tir.Not, tir.Or}
_LEARN: dict[type, Callable[[Analyzer, Any], None]] = {
    tir.LT: _learn_inequality,
    tir.LE: _learn_inequality,
    tir.GT: _learn_inequality,
    tir.GE: _learn_inequality,
    tir.EQ: _learn_equality,
    tir.NE: _learn_inequation,
}
