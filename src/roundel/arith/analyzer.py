# SPDX-License-Identifier: Apache-2.0
"""The analyzer: simplification, bounds, remainders and proofs about integers, under facts that hold in a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from ..ir import free_vars, tir
from ..ir.dtype import INT64, DType
from ..ir.errors import ConstantError
from ..ir.tir import Expr, IntImm, Range, Var
from ..ir.tir.ops import wrap
from . import bounds, compare, data_rules, facts, index_rules, int_set, modular, prove, size_needs
from .effects import reads_memory
from .linear import Sum, to_expr

QUICK, THOROUGH = 10, 120  # steps of a proof: inside simplification, and when a proof is asked for


class Analyzer:
    """Cheap to make. Facts come from ``bind``, ``assume`` and ``with an.constraint(cond)``; shape variables are >= 0.

    Results are memoised per scope. One analyzer gives one canonical form: equal polynomials simplify to one object.
    """

    def __init__(self, bindings: Mapping[Var, Any] | None = None) -> None:
        self.facts = facts.Facts()
        self._moves: tuple | None = None  # what proofs prepare of the inequalities
        self._named: tuple | None = None  # ... and the variables in these
        self._proving = False
        self.forget()
        for v, value in (bindings or {}).items():
            self.bind(v, value)

    def __repr__(self) -> str:
        known = [f"{v!r} in [{low}, {high}]" for v, (low, high) in self.facts.atoms.items()]
        return f"Analyzer({', '.join([*known, *(f'{v!r} = {to_expr(s, INT64)!r}' for v, s in self.facts.values.items())])})"

    def forget(self) -> None:
        """Drop memoised results (after a change of facts)."""
        self._inner: dict[Expr, tuple] = {}  # by condition: the state where it holds too
        self._sums: dict[Expr, Sum] = {}
        self._simple: dict[Expr, Expr] = {}
        self._bounds: dict[Expr, bounds.Bounds] = {}
        self._signs: dict[Expr, bool] = {}
        self._limits: dict[frozenset, tuple[float, float]] = {}

    # --- facts

    def bind(self, var: Var, value: Range | Expr | int) -> None:
        """``var`` lies in a Range, or stands for an expression (which replaces it in simplified results)."""
        if not isinstance(var, Var):
            raise TypeError(f"what is bound is a variable, not {var!r}")
        if var in self._sums or var in self._bounds or var in self._simple:
            self.forget()
        self._inner = {}
        self.facts.values.pop(var, None)
        self.facts.atoms.pop(var, None)
        if not isinstance(value, Range):
            value = tir.as_index(value)
            if reads_memory(value):
                self.facts.atoms[var] = self.bounds(value)
            else:
                self.facts.values[var] = self.sum(value)
            return
        if type(value.min) is IntImm and type(value.extent) is IntImm and value.extent.value != 1:
            self.facts.atoms[var] = (value.min.value, value.min.value + value.extent.value - 1)
            return
        low = self.sum(value.min)
        extent = self.sum(value.extent)
        if not extent.terms and extent.const == 1:
            self.facts.values[var] = low
            return
        high = low + extent - 1
        self.facts.atoms[var] = (bounds.of_sum(self, low)[0], bounds.of_sum(self, high)[1])
        me = Sum({var: 1})
        if low.terms:
            self.facts.inequalities += (low - me,)
        if high.terms:
            self.facts.inequalities += (me - high,)

    def assume(self, condition: Any) -> None:
        """Take a condition as true for the rest of this scope."""
        self.learn(self.simplify(tir.const(condition)))

    def learn(self, condition: Expr) -> None:
        """As ``assume``, for a canonical condition."""
        facts.learn(self, condition)
        self.forget()

    @contextmanager
    def scope(self) -> Iterator[Analyzer]:
        """What is bound or assumed inside is forgotten at the end."""
        saved = self._state()
        self.facts = self.facts.copy()
        self.forget()
        try:
            yield self
        finally:
            self._enter(saved)

    @contextmanager
    def constraint(self, condition: Any) -> Iterator[Analyzer]:
        """A condition holds inside (one that reads memory is not kept, since stores may change it).

        What was found out inside is kept for the next time that the condition holds here, unless facts were added there.
        """
        condition = self.simplify(tir.const(condition))
        outer = self._state()
        known = self._inner.pop(condition, None)
        if known is None:
            self.facts = self.facts.copy()
            self.learn(condition)
        else:
            self._enter(known)
        inner = self._state()
        try:
            yield self
        finally:
            if self._inner is inner[-1]:
                outer[-1][condition] = inner
            self._enter(outer)

    def _state(self) -> tuple:
        """The facts and what was found out from them."""
        return self.facts, self._sums, self._simple, self._bounds, self._signs, self._limits, self._inner

    def _enter(self, state: tuple) -> None:
        self.facts, self._sums, self._simple, self._bounds, self._signs, self._limits, self._inner = state

    # --- questions

    def simplify(self, e: Any) -> Expr:
        """The canonical form of an index expression or condition; data expressions get safe folding only. A division by the constant 0 stays.

        Raises NotAnIndexError, an ArithError, for what is neither a number nor an expression.
        """
        if type(e) is IntImm:
            return e
        if not isinstance(e, Expr):
            return tir.as_index(e)
        hit = self._simple.get(e)
        if hit is None:
            try:
                hit = self._simplify(e)
            except ConstantError:  # the canonical form has a constant that the type does not hold: the expression stays as it is
                hit = e
            self._simple[e] = hit
            self._simple.setdefault(hit, hit)
        return hit

    __call__ = simplify

    def rewrite_simplify(self, e: Any) -> Expr:
        """``e`` simplified by rules that keep the order of its operands (``rewrite``), stronger and slower than ``simplify``.

        Raises ArithError for a division by the constant 0.
        """
        from .rewrite import rewrite_simplify

        return rewrite_simplify(self, tir.as_index(e))

    def _simplify(self, e: Expr) -> Expr:
        dtype = e.dtype
        if dtype.lanes == 1:
            if dtype.is_int and (e.is_index or type(e) in _INTEGER_DATA):
                form = self.sum(e)
                return self.expr(form, dtype) if form.terms or e.is_index else wrap(form.const, dtype)
            if dtype.is_bool:
                rule = compare.CONDITIONS.get(type(e))
                return rule(self, e) if rule is not None else self.known(self.simplify_data(e))
        return self.simplify_data(e)

    def prove(self, condition: Any) -> bool:
        """Whether the condition could be shown to hold always (False: it may or may not)."""
        c = self.simplify(tir.const(condition))
        if type(c) is IntImm:
            return bool(c.value)
        rule = _PROVE.get(type(c))
        return rule is not None and rule(self, c)

    def prove_equal(self, a: Any, b: Any) -> bool:
        """Whether two integer expressions could be shown to be always equal."""
        a, b = tir.as_index(a), tir.as_index(b)
        if a is b:
            return True
        if not (a.dtype.is_int and b.dtype.is_int and a.dtype.lanes == b.dtype.lanes == 1):
            return self.simplify(a) is self.simplify(b)
        if a.dtype is not b.dtype:  # widened, so that the terms of both have one type
            a, b = tir.cast(a, INT64), tir.cast(b, INT64)
        return self._is_zero(self.sum(a) - self.sum(b))

    def bounds(self, e: Expr) -> bounds.Bounds:
        """(min, max) as ints or +-inf."""
        if type(e) is IntImm:
            return e.value, e.value
        if e.dtype.lanes != 1:
            return bounds.of_atom(self, self.simplify(e))
        if e.dtype.is_bool:
            known = self.simplify(e)
            return (known.value, known.value) if type(known) is IntImm else (0, 1)
        if e.is_index:
            return bounds.of_sum(self, self.sum(e))
        return bounds.of_data(self, e) if e.dtype.is_int else bounds.of_dtype(e.dtype)

    def modular(self, e: Expr) -> modular.Modular:
        """(coeff, base): the value is base plus a multiple of coeff; coeff 0 means exactly base."""
        return modular.of_sum(self, self.sum(e))

    def value(self, e: Any) -> int | None:
        """The one integer that the expression always is, or None."""
        s = self.sum(tir.as_index(e))
        return None if s.terms else s.const

    def int_set(self, e: Expr, dom: Mapping[Var, Range], predicate: Expr | None = None) -> int_set.Interval:
        """The symbolic interval of ``e`` while the variables of ``dom`` run (where ``predicate`` holds)."""
        return int_set.interval(self, e, dom, () if predicate is None else (self.simplify(predicate),))

    # --- linear forms (for the rules)

    def sum(self, e: Expr) -> Sum:
        """The linear form of a scalar integer expression."""
        hit = self._sums.get(e)
        if hit is None:
            try:
                hit = index_rules.linear(self, e)
            except ConstantError:
                hit = Sum({e: 1})
            self._sums[e] = hit
        return hit

    def expr(self, s: Sum, dtype: DType = INT64) -> Expr:
        """A linear form as an expression."""
        out = to_expr(s, dtype)
        self._sums.setdefault(out, s)
        return out

    def atom(self, e: Expr) -> Sum:
        """The form of an expression that is canonical and not a sum (a constant where facts leave one value)."""
        low, high = bounds.of_atom(self, e)
        out = Sum({}, low) if low == high else Sum({e: 1})
        self._sums[e] = out
        return out

    def known(self, condition: Expr) -> Expr:
        """A canonical condition, or true or false where it was learnt."""
        truth = self.facts.truths.get(condition)
        return condition if truth is None else compare.TRUE if truth else compare.FALSE

    def simplify_data(self, e: Expr) -> Expr:
        """Safe folding."""
        return data_rules.simplify(self, e)

    def is_le(self, s: Sum) -> bool:
        """Quick test of s <= 0."""
        low, high = bounds.of_sum(self, s)
        if high <= 0 or low > 0 or self._proving or not self._may_prove(s):
            return high <= 0
        terms = frozenset(s.terms.items())
        shown, failed = self._limits.get(terms, (-inf, inf))  # constants with which it could be shown, could not
        if not shown < s.const < failed:
            return s.const <= shown
        found = self._search(s, QUICK)
        self._limits[terms] = (s.const, failed) if found else (shown, s.const)
        return found

    def _search(self, s: Sum, fuel: int) -> bool:
        """A proof of s <= 0; forms that it needs on the way are simplified by bounds alone."""
        outer, self._proving = self._proving, True
        try:
            return prove.at_most_zero(self, s, fuel)
        finally:
            self._proving = outer

    def _may_prove(self, s: Sum) -> bool:
        """Whether a search could find more than bounds do: not where the terms are about variables that nothing connects."""
        names: set[Var] = set()
        for atom in s.terms:
            v = atom if type(atom) is Var else atom.a if type(atom) in _DIVIDED and type(atom.b) is IntImm else None
            if type(v) is not Var or v in names:
                return len(s.terms) > 1
            names.add(v)
        return len(s.terms) > 1 and not names.isdisjoint(prove.in_facts(self))

    def in_range(self, s: Sum, end: Sum) -> bool:
        """Whether 0 <= s < end, quickly."""
        return self.is_le(s * -1) and self.is_le(s - end + 1)

    def at_most_zero(self, s: Sum) -> bool:
        """Thorough test of s <= 0."""
        return self._search(s, THOROUGH)

    def size_needs(self, s: Sum, is_size: Callable[[Var], bool], is_data: Callable[[Var], bool] = lambda v: False) -> Expr | None:
        """A condition on sizes alone under which s <= 0 (``size_needs``); None where none was found. Variables that depend on data
        (``is_data``) need not reach their bounds."""
        outer, self._proving = self._proving, True
        try:
            return size_needs.SizeNeeds(self, is_size, is_data).of(s)
        finally:
            self._proving = outer

    def _is_zero(self, s: Sum) -> bool:
        if not s.terms:
            return s.const == 0
        low, high = bounds.of_sum(self, s)
        if not low <= 0 <= high:
            return False
        reduced = prove.reduce_divisions(self, s)
        if not reduced.terms:
            return reduced.const == 0
        return self.at_most_zero(s) and self.at_most_zero(s * -1)

    def shares(self, e: Expr, others: list[Expr]) -> bool:
        """Whether some variable occurs in ``e`` and in one of the others."""
        mine = free_vars(e)
        return any(not mine.isdisjoint(free_vars(o)) for o in others)


def _prove_order(an: Analyzer, c: Expr) -> bool:
    return an.at_most_zero(compare.difference(an, c)) if c.a.dtype.is_int and c.a.dtype.lanes == 1 else False


def _prove_equality(an: Analyzer, c: Expr) -> bool:
    return c.a.dtype.is_int and c.a.dtype.lanes == 1 and an._is_zero(compare.difference(an, c))


def _prove_inequation(an: Analyzer, c: Expr) -> bool:
    if not (c.a.dtype.is_int and c.a.dtype.lanes == 1):
        return False
    d = compare.difference(an, c)
    return an.at_most_zero(d + 1) or an.at_most_zero(d * -1 + 1)


def _prove_both(an: Analyzer, c: Expr) -> bool:
    return an.prove(c.a) and an.prove(c.b)


def _prove_either(an: Analyzer, c: Expr) -> bool:
    if an.prove(c.a) or an.prove(c.b):
        return True
    with an.constraint(tir.logical_not(c.a)):
        return an.prove(c.b)


_PROVE = {
    tir.LT: _prove_order,
    tir.LE: _prove_order,
    tir.EQ: _prove_equality,
    tir.NE: _prove_inequation,
    tir.And: _prove_both,
    tir.Or: _prove_either,
}
_DIVIDED = {tir.FloorDiv, tir.FloorMod}
_INTEGER_DATA = {tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max}
