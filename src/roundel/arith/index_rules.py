# SPDX-License-Identifier: Apache-2.0
"""Index expressions to linear forms: one rule per node type, found by ``dict[type]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir import tir
from ..ir.dtype import DType
from ..ir.tir import Expr, IntImm, Var
from . import bounds, divide
from .effects import has_effect
from .linear import ZERO, Sum, factors, multiply, order_key

if TYPE_CHECKING:
    from .analyzer import Analyzer


def linear(an: Analyzer, e: Expr) -> Sum:
    """The canonical form of a scalar integer expression (data that may wrap is an atom)."""
    rule = _RULES.get(type(e))
    if rule is None or (not e.is_index and not _safe(an, e)):
        return _opaque(an, e)
    out = rule(an, e)
    return divide.merge(an, out, e.dtype) if len(out.terms) > 1 or an.facts.remainders else out


def _safe(an: Analyzer, e: Expr) -> bool:
    """Whether the rules, which negate operands, hold for data: only -(smallest value) could wrap, at divisions."""
    if has_effect(e):
        return False
    return type(e) not in _DIVISIONS or (type(e) in (tir.FloorDiv, tir.FloorMod) and an.bounds(e.b)[0] >= 0)


def gather(an: Analyzer, e: Expr, k: int, acc: dict[Expr, int]) -> int:
    """Adds k * e to the terms in ``acc``; returns what goes to the constant."""
    kind = type(e)
    if kind is IntImm:
        return k * e.value
    if kind is Var:
        bound = an.facts.values.get(e)  # type: ignore[call-overload]
        if bound is None:
            acc[e] = acc.get(e, 0) + k
            return 0
        part = bound
    elif kind is tir.Add and (e.is_index or exact(an, e)):
        return gather(an, e.a, k, acc) + gather(an, e.b, k, acc)
    elif kind is tir.Sub and (e.is_index or exact(an, e)):
        return gather(an, e.a, k, acc) + gather(an, e.b, -k, acc)
    elif kind is tir.Mul and type(e.b) is IntImm and (e.is_index or exact(an, e)):
        return gather(an, e.a, k * e.b.value, acc) if e.b.value else 0
    else:
        part = an.sum(e)
    for atom, c in part.terms.items():
        acc[atom] = acc.get(atom, 0) + k * c
    return k * part.const


def exact(an: Analyzer, e: Expr) -> bool:
    """Whether integer data arithmetic cannot wrap, with a margin that lets its terms be put in another order."""
    if e.dtype.kind != "int" or e.dtype.bits < 32 or has_effect(e):
        return False
    margin = 1 << (e.dtype.bits - 2)
    low, high = bounds._EXACT[type(e)](an.bounds(e.a), an.bounds(e.b))
    return -margin <= low and high < margin


def _sum(an: Analyzer, e: Any) -> Sum:
    if not e.is_index and not exact(an, e):
        return _opaque(an, e)
    acc: dict[Expr, int] = {}
    const = gather(an, e, 1, acc)
    if 0 in acc.values():
        acc = {a: k for a, k in acc.items() if k}
    return Sum(acc, const)


def _opaque(an: Analyzer, e: Any) -> Sum:
    new = an.simplify_data(e)
    return Sum({}, new.value) if type(new) is IntImm else Sum({new: 1})


def _product(an: Analyzer, e: Any) -> Sum:
    if not e.is_index and not exact(an, e):
        return _opaque(an, e)
    a, b = an.sum(e.a), an.sum(e.b)
    out = multiply(a, b)
    if out is not None:
        return out
    x, y = sorted((an.expr(a, e.dtype), an.expr(b, e.dtype)), key=order_key)
    parts = sorted(factors(x) + factors(y), key=order_key)
    made = parts[0]
    for p in parts[1:]:
        made = tir.Mul(made, p)
    return an.atom(made)


def _variable(an: Analyzer, v: Var) -> Sum:
    bound = an.facts.values.get(v)
    return Sum({v: 1}) if bound is None else bound


def _floordiv(an: Analyzer, e: Any) -> Sum:
    by = an.sum(e.b)
    return divide.floordiv(an, an.sum(e.a), by, e.dtype) if by.terms or by.const else _by_zero(an, e)


def _floormod(an: Analyzer, e: Any) -> Sum:
    by = an.sum(e.b)
    return divide.floormod(an, an.sum(e.a), by, e.dtype) if by.terms or by.const else _by_zero(an, e)


def _by_zero(an: Analyzer, e: Any) -> Sum:
    return an.atom(type(e)(an.simplify(e.a), IntImm(0, e.dtype)))


def _trunc(rule: Callable) -> Callable[[Analyzer, Any], Sum]:
    def apply(an: Analyzer, e: Any) -> Sum:
        a, b = an.sum(e.a), an.sum(e.b)
        out = rule(an, a, b, e.dtype) if b.terms or b.const else None
        return out if out is not None else an.atom(type(e)(an.expr(a, e.dtype), an.expr(b, e.dtype)))

    return apply


# --- minimum and maximum


def _flat(an: Analyzer, e: Expr, kind: type, out: list[Sum]) -> None:
    if type(e) is kind:
        _flat(an, e.a, kind, out)
        _flat(an, e.b, kind, out)
        return
    s = an.sum(e)
    only = s.only()
    if only is not None and s.const == 0 and only[1] == 1 and type(only[0]) is kind:
        _flat(an, only[0].a, kind, out)
        _flat(an, only[0].b, kind, out)
    else:
        out.append(s)


def _extremum(kind: type) -> Callable[[Analyzer, Any], Sum]:
    def apply(an: Analyzer, e: Any) -> Sum:
        sides: list[Sum] = []
        _flat(an, e, kind, sides)
        kept: list[Sum] = []
        for s in sides:
            if any(_wins(an, o, s, kind) for o in kept):
                continue
            kept = [o for o in kept if not _wins(an, s, o, kind)]
            kept.append(s)
        return kept[0] if len(kept) == 1 else _build_extremum(an, kept, kind, e.dtype)

    return apply


def _wins(an: Analyzer, a: Sum, b: Sum, kind: type) -> bool:
    """Whether min (or max) of both is always ``a``."""
    return an.is_le(a - b) if kind is tir.Min else an.is_le(b - a)


def _build_extremum(an: Analyzer, sides: list[Sum], kind: type, dtype: DType) -> Sum:
    constants = [s.const for s in sides if s.terms]
    shift = constants[0] if len(constants) < len(sides) else min(constants)
    common = dict(sides[0].terms)
    for s in sides[1:]:
        common = {a: k for a, k in common.items() if s.terms.get(a) == k}
    base = Sum(common, shift)
    exprs = sorted((an.expr(s - base, dtype) for s in sides), key=_constant_last)
    out = exprs[0]
    for x in exprs[1:]:
        out = kind(out, x)
    return an.atom(out) + base


def _constant_last(e: Expr) -> tuple:
    return type(e) is IntImm, order_key(e)


# --- choices and widening


def _choice(an: Analyzer, e: Any) -> Sum:
    condition = an.simplify(e.condition)
    if type(condition) is IntImm:
        return an.sum(e.true_value if condition.value else e.false_value)
    with an.constraint(condition):
        yes = an.sum(e.true_value)
        yes_expr = an.expr(yes, e.dtype)
    with an.constraint(tir.logical_not(condition)):
        no = an.sum(e.false_value)
        no_expr = an.expr(no, e.dtype)
    if yes.same(no):
        return yes
    return an.atom(type(e)(condition, yes_expr, no_expr))


def _cast(an: Analyzer, e: Any) -> Sum:
    if not e.is_index:
        return _opaque(an, e)
    inner = an.sum(e.value)
    out = Sum({}, inner.const)
    for atom, k in inner.terms.items():
        out = out.plus(_widen(an, atom, e.dtype), k)
    return out


def _widen(an: Analyzer, atom: Any, dtype: DType) -> Sum:
    if type(atom) in _ARITHMETIC:
        return an.sum(type(atom)(tir.cast(atom.a, dtype), tir.cast(atom.b, dtype)))
    if type(atom) is tir.Cast:
        atom = atom.value
    return an.atom(tir.Cast(dtype, atom))


_DIVISIONS = {tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod}
_ARITHMETIC = {tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod, tir.Min, tir.Max}
_RULES: dict[type, Callable[[Analyzer, Any], Sum]] = {
    IntImm: lambda an, e: Sum({}, e.value) if e.value else ZERO,
    Var: _variable,
    tir.Add: _sum,
    tir.Sub: _sum,
    tir.Mul: _product,
    tir.FloorDiv: _floordiv,
    tir.FloorMod: _floormod,
    tir.Div: _trunc(divide.truncdiv),
    tir.Mod: _trunc(divide.truncmod),
    tir.Min: _extremum(tir.Min),
    tir.Max: _extremum(tir.Max),
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.Cast: _cast,
}
