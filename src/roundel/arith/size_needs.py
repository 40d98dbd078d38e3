# SPDX-License-Identifier: Apache-2.0
"""What has to hold of sizes so that an inequality holds in every iteration of the loops around it.

    for i in range(m): i < n                        ->    m <= n
    for i in range(m): max(min(i, n - 1), 0) < n    ->    1 <= n
    for i in range(m): (i + 3) // k < n             ->    m + 2 < k * n

It is a search for a proof that goes on where only sizes are left: what it could not show of these is what is needed. Each way of eliminating
the variables of the loops gives a condition that suffices, so one of them has to hold (Fourier-Motzkin elimination).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from ..ir import free_vars, tir, walk
from ..ir.tir import Expr
from . import bounds, compare
from .linear import Sum, factors, order_key
from .prove import LONGEST, RANK, STRUCTURE, Search, by_facts, factor_ends

if TYPE_CHECKING:
    from .analyzer import Analyzer

FUEL = 60  # steps of a search


class SizeNeeds(Search):
    """A search whose ends are conditions on sizes; ``is_size`` tells which variables are, ``is_data`` which depend on data and so may never
    reach their bounds."""

    def __init__(self, an: Analyzer, is_size: Callable[[tir.Var], bool], is_data: Callable[[tir.Var], bool], fuel: int = FUEL) -> None:
        super().__init__(an, fuel)
        self.is_size, self.is_data = is_size, is_data
        self.found: dict[tuple, Expr | None] = {}

    def runs(self, e: Expr) -> bool:
        """Whether a value may differ between iterations."""
        return not all(map(self.is_size, free_vars(e)))

    def of(self, s: Sum) -> Expr | None:
        """As ``needed``; true where a proof is found that takes sizes apart as well."""
        out = self.needed(s)
        if out is compare.FALSE and any(type(e) in (tir.Min, tir.Max) for atom in s.terms for e in walk(atom)):
            out = None  # of the two sides of a minimum now one, now the other may be the one
        return compare.TRUE if out is not compare.TRUE and Search(self.an, 2 * FUEL).at_most_zero(s) else out

    def needed(self, s: Sum) -> Expr | None:
        """A condition on sizes under which s <= 0; None where none was found."""
        g = s.gcd
        if g > 1:
            s = Sum({a: k // g for a, k in s.terms.items()}, -(-s.const // g))
        if bounds.of_sum(self.an, s)[1] <= 0:
            return compare.TRUE
        running = {a for a in s.terms if self.runs(a)}
        if not running:
            return self.of_sizes(s)
        key = frozenset(s.terms.items()), s.const
        if key in self.found or self.fuel <= 0 or len(s.terms) > LONGEST:
            return self.found.get(key)
        if any(sum(map(self.runs, _multiplied(a))) > 1 for a in running):  # of these, ends are only estimates
            self.found[key] = compare.TRUE if Search(self.an, FUEL).at_most_zero(s) else None
            return self.found[key]
        self.found[key] = None
        self.fuel -= 1
        ways: dict[Expr, None] = {}
        for goals in self.eliminations(s, running):
            parts = [g if isinstance(g, Expr) or g is None else self.needed(g) for g in goals]
            if all(p is not None for p in parts):
                ways[tir.logical_and(*dict.fromkeys(parts))] = None
            if compare.TRUE in ways:
                break
        if ways:
            self.found[key] = tir.logical_or(*ways)
        return self.found[key]

    def of_sizes(self, s: Sum) -> Expr:
        """The condition s <= 0, or true where the facts of this place prove it."""
        holds = compare.at_most_zero(self.an, s, tir.index_const(0).dtype)
        return compare.TRUE if type(holds) is not tir.IntImm and Search(self.an, FUEL).at_most_zero(s) else holds

    def eliminations(self, s: Sum, running: set[Expr]) -> Iterator[tuple[Sum | Expr | None, ...]]:
        """Ways to get rid of an atom that runs, the most compound atoms first: goals, or what is needed."""
        terms = sorted(((a, s.terms[a]) for a in running), key=lambda t: (-RANK.get(type(t[0]), 0), -len(order_key(t[0]))))
        for atom, k in terms:
            rule = STRUCTURE.get(type(atom))
            if isinstance(atom, tir.Select | tir.IfThenElse):
                yield self.of_choice(s, atom, k)
            elif rule is not None:
                yield from rule(self.an, s, atom, k)
        for goal in by_facts(self.an, s):
            if not running <= goal.terms.keys():
                yield (goal,)
        for atom, k in terms:
            end = bounds.of_atom(self.an, atom)[1 if k > 0 else 0]
            if end not in (inf, -inf) and self.is_reached(atom):
                yield (s.plus(Sum({atom: 1}), -k) + k * int(end),)
            if type(atom) is tir.Mul:
                yield from factor_ends(self.an, s, atom, k)

    def of_choice(self, s: Sum, atom: Any, k: int) -> tuple[Expr | None, ...]:
        """What is needed of each side of a choice, where it is the one that is chosen."""
        needed = []
        for holds, side in ((atom.condition, atom.true_value), (tir.logical_not(atom.condition), atom.false_value)):
            with self.an.constraint(holds):
                rest = s.plus(Sum({atom: 1}), -k).plus(self.an.sum(side), k)
                needed.append(SizeNeeds(self.an, self.is_size, self.is_data, self.fuel // 2).of(rest))
        return tuple(needed)

    def is_reached(self, atom: Expr) -> bool:
        """Whether the bounds of an expression are what it can be, not only what its type can hold."""
        plain = all(type(e) in _ARITHMETIC for e in walk(atom))
        return plain and all((v in self.an.facts.atoms or self.is_size(v)) and not self.is_data(v) for v in free_vars(atom))


_ARITHMETIC = {tir.Var, tir.IntImm, tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max}


def _multiplied(atom: Expr) -> list[Expr]:
    """What a product multiplies, of data too."""
    return [atom.a, atom.b] if type(atom) is tir.Mul and not atom.is_index else factors(atom)
