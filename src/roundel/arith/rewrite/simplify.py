# SPDX-License-Identifier: Apache-2.0
"""Simplification that keeps what is written: rules of the tables, applied from the leaves up, until none applies.

``Analyzer.simplify`` gives one canonical form (a sum of atoms, sorted); this keeps the order of operands and undoes what is written too
complicated, as ``rewrite_simplify`` of TVM does. It knows more of minima, maxima, choices and truncating division, and takes longer: the passes
of the compiler use the canonical form.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ...ir import tir
from ...ir.errors import ArithError, ConstantError
from ...ir.tir import Expr, IntImm, Var
from .. import data_rules
from . import conditions, extrema, quotients, steps, sums, vectors
from .pattern import BUILD, DIVIDES, Rule, Table, build, holds, make, match

if TYPE_CHECKING:
    from ..analyzer import Analyzer

ROUNDS = 2  # what a rule made at the end of one round is simplified in the next
DEEPEST = 60  # results that are simplified again, one inside the other
INDEX = Table(
    sums.ADD, sums.SUBTRACT, sums.MULTIPLY, quotients.TRUNCATED_QUOTIENT, quotients.TRUNCATED_REMAINDER, quotients.FLOOR_QUOTIENT,
    quotients.FLOOR_REMAINDER, extrema.MINIMUM, extrema.MAXIMUM, conditions.EQUAL, conditions.LESS, conditions.NOT, conditions.AND,
    conditions.OR, conditions.CHOICE,
)  # fmt: skip
VECTOR, WRAPPING = Table(vectors.EXACT), Table(vectors.WRAPPING)


class Rewriter:
    """Rewrites under the facts of an analyzer. To the rules for data it is the analyzer, so that operands are rewritten alike."""

    def __init__(self, an: Analyzer) -> None:
        self.an = an
        self.done: dict[Expr, Expr] = {}
        self.active: set[Expr] = set()  # expressions whose rewriting has begun: a rule that leads back to one ends there

    def simplify(self, e: Any) -> Expr:
        """The rewritten expression."""
        if not isinstance(e, Expr):
            return tir.as_index(e)
        hit = self.done.get(e)
        if hit is None:
            if e in self.active or len(self.active) > DEEPEST:
                return e
            self.active.add(e)
            hit = self.done[e] = self.visit(e)
            self.active.discard(e)
        return hit

    def constraint(self, condition: Any) -> AbstractContextManager:
        """A condition holds inside."""
        return _Under(self, condition)

    def visit(self, e: Expr) -> Expr:
        """An expression with its operands rewritten first."""
        if type(e) is Var:
            known = self.an.facts.values.get(e)
            return e if known is None else self.an.expr(known, e.dtype)
        if type(e) in DIVIDES and _is_zero(e.b):
            raise ArithError("division by zero", why=f"in {e!r}")
        if not e.is_index:
            return self.data(e)
        if type(e) in (tir.Select, tir.IfThenElse):
            return self.apply(self.choice(e))
        if type(e) not in BUILD:
            return e.replace(value=self.simplify(e.value)) if type(e) is tir.Cast else e
        parts = [self.simplify(getattr(e, f)) for f in e._fields]
        try:
            return self.apply(make(type(e), *parts))
        except ConstantError:  # two constants whose exact sum the type does not hold
            return type(e)(*parts)

    def data(self, e: Expr) -> Expr:
        """Data and vectors: the tables of vectors first, which keep more of what is written, then safe folding."""
        if e.dtype.lanes != 1 and isinstance(e, tir.BinaryOp):
            e = type(e)(self.simplify(e.a), self.simplify(e.b))
            new = self.apply(e)
            if new is not e:
                return new
        return data_rules.simplify(self, e)  # type: ignore[arg-type]

    def choice(self, e: Expr) -> Expr:
        """A choice whose values are rewritten where its condition holds, and where it does not."""
        condition = self.simplify(e.condition)
        with self.constraint(condition):
            yes = self.simplify(e.true_value)
        with self.constraint(tir.logical_not(condition)):
            no = self.simplify(e.false_value)
        return (tir.select if type(e) is tir.Select else tir.if_then_else)(condition, yes, no)

    def apply(self, e: Expr) -> Expr:
        """The first step or rule that applies to an expression whose operands are rewritten."""
        vector = e.dtype.lanes != 1
        if type(e) is IntImm or not (vector or e.is_index):
            return e
        new = self.by_rules(e, VECTOR, True) if vector else self.by_steps(e, steps.BEFORE)
        if new is None:
            new = self.by_rules(e, WRAPPING if vector else INDEX, False)
        if new is None and not vector:
            new = self.by_steps(e, steps.AFTER)
        return e if new is None else new

    def by_steps(self, e: Expr, table: dict[type, tuple[steps.Step, ...]]) -> Expr | None:
        """What the first step that applies makes of ``e``, simplified again."""
        for step in table.get(type(e), ()):
            try:
                new = step(self, e)
            except ConstantError:
                continue
            if new is not None and new is not e:
                return self.simplify(new) if step not in _FINAL else new
        return None

    def by_rules(self, e: Expr, table: Table, exact: bool) -> Expr | None:
        """What the first rule that applies makes of ``e``; with ``exact`` its names stand for indices only."""
        for rule in table.of(e):
            new = self.rewritten(e, rule, exact)
            if new is not None and new is not e:
                return self.simplify(new) if rule.again else new
        return None

    def rewritten(self, e: Expr, rule: Rule, exact: bool) -> Expr | None:
        """What a rule makes of ``e``; None where its form or its condition does not fit, or a constant would not fit its type."""
        found: dict[str, Any] = {}
        if not match(rule.form, e, found):
            return None
        if exact and not all(v.is_index for v in found.values() if isinstance(v, Expr)):
            return None
        if not exact and e.dtype.lanes != 1 and not e.dtype.is_int:
            return None
        dtype = self.operand_type(e, found)
        try:
            if rule.condition is not None and not holds(rule.condition, found, dtype, self.an.prove):
                return None
            return build(rule.result, found, dtype)
        except (ConstantError, ZeroDivisionError):
            return None

    def operand_type(self, e: Expr, found: dict[str, Any]) -> Any:
        """The type of constants that a rule makes: that of the numbers in ``e``."""
        if not e.dtype.is_bool:
            return e.dtype.element
        return next((v.dtype.element for v in found.values() if isinstance(v, Expr) and not v.dtype.is_bool), e.dtype.element)


class _Under:
    """Rewriting under one more condition: what was found outside is not kept inside, nor the other way round."""

    def __init__(self, r: Rewriter, condition: Any) -> None:
        self.r, self.scope, self.outer = r, r.an.constraint(condition), r.done

    def __enter__(self) -> None:
        self.scope.__enter__()
        self.r.done = {}

    def __exit__(self, *error: Any) -> None:
        self.r.done = self.outer
        self.scope.__exit__(*error)


def _is_zero(e: Expr) -> bool:
    e = e.value if type(e) is tir.Broadcast else e
    return type(e) is IntImm and e.value == 0


_FINAL = {steps.constant, steps.smaller, steps.quotient_of_multiple, steps.known_remainder, steps.at_most, steps.unequal}


def rewrite_simplify(an: Analyzer, e: Expr) -> Expr:
    """``e`` with the rules applied until none applies (at most ``ROUNDS`` times from the leaves up). Raises ArithError for a division by zero."""
    for _ in range(ROUNDS):
        new = Rewriter(an).simplify(e)
        if new is e:
            break
        e = new
    if e.is_index and e.dtype.lanes == 1 and type(e) is not IntImm:
        known = an.simplify(e)
        return known if type(known) is IntImm else e
    return e


__all__ = ["INDEX", "VECTOR", "WRAPPING", "Rewriter", "rewrite_simplify"]
