# SPDX-License-Identifier: Apache-2.0
"""The notation of rewrite rules, and matching: ``min(x, y + c1) + c2 -> min(x + c2, y) if c1 == 0 - c2``.

Names that begin with ``c`` stand for integer constants, ``n`` for the number of lanes, all other names for any expression; a name that
occurs twice stands for the same thing. ``//`` and ``%`` round down, ``div`` and ``mod`` round toward zero; ``quot`` and ``rem`` make one rule of
either division. ``->`` gives the result, ``=>`` a result that is simplified again. Forms before the arrow are separated by ``;``; after ``~``
sums, products, minima, maxima, and, or, == are matched with their operands in any order. What follows ``if`` is compared where it is made of
constants, and proved where it has expressions in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from ...ir import tir
from ...ir.dataclass import dataclass
from ...ir.dtype import BOOL, DType
from ...ir.tir import Expr, IntImm
from ...ir.tir.ops import INT_FOLD

Found = dict[str, Any]  # what the names of a pattern stand for: expressions, and ints for constants


@dataclass(frozen=True)
class Anything:
    """Any expression."""

    name: str


@dataclass(frozen=True)
class Constant:
    """Any integer constant."""

    name: str


@dataclass(frozen=True)
class Number:
    """One integer, or a truth value."""

    value: int | bool


@dataclass(frozen=True)
class Operation:
    """A node of class ``kind``; ``fixed``: arithmetic of nothing but constants and numbers, so that it has a value."""

    kind: type[Expr]
    parts: tuple[Pattern, ...]
    fixed: bool


Pattern = Anything | Constant | Number | Operation

_BINARY: dict[type, type[Expr]] = {
    ast.Add: tir.Add, ast.Sub: tir.Sub, ast.Mult: tir.Mul, ast.FloorDiv: tir.FloorDiv, ast.Mod: tir.FloorMod, ast.Lt: tir.LT, ast.LtE: tir.LE,
    ast.Gt: tir.GT, ast.GtE: tir.GE, ast.Eq: tir.EQ, ast.NotEq: tir.NE, ast.And: tir.And, ast.Or: tir.Or,
}  # fmt: skip
_CALLS: dict[str, type[Expr]] = {
    "min": tir.Min, "max": tir.Max, "div": tir.Div, "mod": tir.Mod, "select": tir.Select, "if_then_else": tir.IfThenElse,
    "ramp": tir.Ramp, "broadcast": tir.Broadcast,
}  # fmt: skip
_COMMUTES = {tir.Add, tir.Mul, tir.Min, tir.Max, tir.And, tir.Or, tir.EQ, tir.NE}
DIVIDES = (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod)
_CONDITIONS = {tir.And, tir.Or, tir.Not}
BUILD: dict[type, Callable[..., Expr]] = {
    tir.Add: tir.add, tir.Sub: tir.sub, tir.Mul: tir.mul, tir.FloorDiv: tir.floordiv, tir.FloorMod: tir.floormod, tir.Div: tir.truncdiv,
    tir.Mod: tir.truncmod, tir.Min: tir.min_, tir.Max: tir.max_, tir.LT: tir.lt, tir.LE: tir.le, tir.GT: tir.gt, tir.GE: tir.ge, tir.EQ: tir.eq,
    tir.NE: tir.ne, tir.And: tir.logical_and, tir.Or: tir.logical_or, tir.Not: tir.logical_not, tir.Select: tir.select,
    tir.IfThenElse: tir.if_then_else, tir.Ramp: tir.Ramp, tir.Broadcast: tir.Broadcast,
}  # fmt: skip


def parse(text: str) -> Pattern:
    """A pattern of its notation; raises SyntaxError for what is none."""
    try:
        return _parse(ast.parse(text.strip(), mode="eval").body)
    except KeyError as e:
        raise SyntaxError(f"no pattern of rewrite rules: {text.strip()!r} has the operator {e}") from None


def _parse(n: Any) -> Pattern:
    if isinstance(n, ast.Name):
        return Constant(n.id) if n.id[0] in "cn" else Anything(n.id)
    if isinstance(n, ast.Constant):
        return Number(n.value)
    if isinstance(n, ast.BinOp):
        return _operation(_BINARY[type(n.op)], n.left, n.right)
    if isinstance(n, ast.Compare) and len(n.ops) == 1:
        return _operation(_BINARY[type(n.ops[0])], n.left, n.comparators[0])
    if isinstance(n, ast.BoolOp):
        left: Any = n.values[0] if len(n.values) == 2 else ast.BoolOp(n.op, n.values[:-1])
        return _operation(_BINARY[type(n.op)], left, n.values[-1])
    if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not):
        return _operation(tir.Not, n.operand)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Name):
        return _operation(_CALLS[n.func.id], *n.args)
    raise SyntaxError(f"no pattern of rewrite rules: {ast.unparse(n)}")


def _operation(kind: type[Expr], *parts: Any) -> Operation:
    below = tuple(map(_parse, parts))
    fixed = kind in INT_FOLD or kind in _CONDITIONS
    return Operation(kind, below, fixed and all(p.fixed if isinstance(p, Operation) else not isinstance(p, Anything) for p in below))


def orders(p: Pattern) -> Iterator[Pattern]:
    """The pattern with the operands of what commutes in every order, as it stands first."""
    if not isinstance(p, Operation):
        yield p
        return
    forms = [Operation(p.kind, parts, p.fixed) for parts in product(*(tuple(orders(q)) for q in p.parts))]
    yield from forms
    if p.kind in _COMMUTES:
        yield from (Operation(f.kind, f.parts[::-1], f.fixed) for f in forms)


def names(p: Pattern | None) -> dict[str, None]:
    """The names in a pattern, in order of occurrence."""
    if isinstance(p, Anything | Constant):
        return {p.name: None}
    return {k: None for q in p.parts for k in names(q)} if isinstance(p, Operation) else {}


def match(p: Pattern, e: Any, found: Found) -> bool:
    """Whether ``e`` is of the pattern's form; ``found`` gets what its names stand for."""
    if isinstance(p, Operation):
        if type(e) is not p.kind:
            return False
        fields = e._fields
        for i, part in enumerate(p.parts):
            if not match(part, getattr(e, fields[i]), found):
                return False
        return True
    if isinstance(p, Anything):
        return found.setdefault(p.name, e) is e
    value = e.value if type(e) is IntImm else e if type(e) is int else None
    if value is None:
        return False
    return value == p.value if isinstance(p, Number) else found.setdefault(p.name, value) == value


def value(p: Pattern, found: Found) -> Any:
    """The number (or truth value) of a pattern of constants; raises ZeroDivisionError."""
    if isinstance(p, Operation):
        if p.kind is tir.And:
            return value(p.parts[0], found) and value(p.parts[1], found)
        if p.kind is tir.Or:
            return value(p.parts[0], found) or value(p.parts[1], found)
        if p.kind is tir.Not:
            return not value(p.parts[0], found)
        return INT_FOLD[p.kind](*(value(q, found) for q in p.parts))
    return found[p.name] if isinstance(p, Constant) else p.value  # type: ignore[union-attr]


def make(kind: type[Expr], *operands: Expr) -> Expr:
    """A node of exact operands, folded where they are constants; raises ConstantError where the type does not hold the exact value."""
    fold = INT_FOLD.get(kind)
    if fold is not None and all(type(o) is IntImm for o in operands) and not (kind in DIVIDES and operands[1].value == 0):  # type: ignore[attr-defined]
        exact = fold(*(o.value for o in operands))  # type: ignore[attr-defined]
        return IntImm(exact, BOOL if isinstance(exact, bool) else operands[0].dtype)
    return BUILD[kind](*operands)


def build(p: Pattern, found: Found, dtype: DType) -> Any:
    """The expression that a pattern makes of what was found; raises ConstantError where ``dtype`` does not hold a constant."""
    if isinstance(p, Anything):
        return found[p.name]
    if not isinstance(p, Operation) or p.fixed:
        v = value(p, found)
        return IntImm(v, BOOL if isinstance(v, bool) else dtype)
    if p.kind in (tir.Ramp, tir.Broadcast):  # the last part is the number of lanes
        return p.kind(*(build(q, found, dtype) for q in p.parts[:-1]), value(p.parts[-1], found))
    return make(p.kind, *(build(q, found, dtype) for q in p.parts))


def holds(p: Pattern, found: Found, dtype: DType, prove: Callable[[Expr], bool]) -> bool:
    """Whether a condition holds of what was found: computed of constants, proved of expressions."""
    if not isinstance(p, Operation):
        return bool(value(p, found))
    if p.fixed:
        return bool(value(p, found))
    if p.kind is tir.And:
        return all(holds(q, found, dtype, prove) for q in p.parts)
    condition = build(p, found, dtype)
    return bool(condition.value) if type(condition) is IntImm else prove(condition)


@dataclass(frozen=True)
class Rule:
    """One form, what becomes of it, and the condition under which it does; ``text`` is the line that says so."""

    form: Operation
    result: Pattern
    again: bool
    condition: Pattern | None
    text: str


def rules(text: str) -> tuple[Rule, ...]:
    """The rules of a table, a line each (empty lines and comments between)."""
    out: list[Rule] = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            both = [line.replace("quot(", q).replace("rem(", r) for q, r in (("div(", "mod("), ("floor_quotient(", "floor_remainder("))]
            for one in dict.fromkeys(both):
                out += _rule(one)
    return tuple(out)


_CALLS |= {"floor_quotient": tir.FloorDiv, "floor_remainder": tir.FloorMod}


def _rule(text: str) -> Iterator[Rule]:
    again = "=>" in text
    left, right = text.split("=>" if again else "->")
    right, _, condition = right.partition(" if ")
    result, guard = parse(right), parse(condition) if condition else None
    forms = [parse(f) for f in left.lstrip("~ ").split(";")]
    if left.startswith("~"):
        forms = [f for form in forms for f in orders(form)]
    for form in dict.fromkeys(forms):
        assert isinstance(form, Operation)
        yield Rule(form, result, again, guard, text)


def mirrored(text: str) -> str:
    """A table of minima as one of maxima, and the other way round."""
    return text.replace("min(", "\0").replace("max(", "min(").replace("\0", "max(")


class Table:
    """Rules by the class of the node and of its operands."""

    def __init__(self, *groups: Sequence[Rule]) -> None:
        self.rules = tuple(r for g in groups for r in g)
        self._by_kind: dict[type, tuple[Rule, ...]] = {}
        for r in self.rules:
            self._by_kind[r.form.kind] = (*self._by_kind.get(r.form.kind, ()), r)
        self.candidates = lru_cache(maxsize=None)(self._candidates)

    def _candidates(self, kind: type, parts: tuple[type, ...]) -> tuple[Rule, ...]:
        return tuple(r for r in self._by_kind.get(kind, ()) if all(map(_may_be, r.form.parts, parts)))

    def of(self, e: Expr) -> tuple[Rule, ...]:
        """The rules whose form ``e`` can be, judged by itself and its operands."""
        kind = type(e)
        if kind not in self._by_kind:
            return ()
        return self.candidates(kind, tuple([type(getattr(e, f)) for f in e._fields]))


def _may_be(p: Pattern, kind: type) -> bool:
    return kind is p.kind if isinstance(p, Operation) else isinstance(p, Anything) or kind in (IntImm, int)
