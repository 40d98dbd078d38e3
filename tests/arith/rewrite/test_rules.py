# SPDX-License-Identifier: Apache-2.0
"""Every rule of the tables, at every point of a small box: where its condition holds, its result is the form's value."""

import itertools

import numpy as np
import pytest

from roundel.arith.rewrite import pattern
from roundel.arith.rewrite.simplify import INDEX, VECTOR, WRAPPING
from roundel.ir import tir
from roundel.ir.dtype import INT64

LANES = (2, 4)
TRUTH = ("p", "q", "b")  # names that stand for conditions


def truncated(a, b):
    q = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), q, -q)


OPERATORS = {
    tir.Add: np.add, tir.Sub: np.subtract, tir.Mul: np.multiply, tir.Min: np.minimum, tir.Max: np.maximum, tir.FloorDiv: np.floor_divide,
    tir.FloorMod: np.mod, tir.Div: truncated, tir.Mod: np.fmod, tir.EQ: np.equal, tir.NE: np.not_equal, tir.LT: np.less, tir.LE: np.less_equal,
    tir.GT: np.greater, tir.GE: np.greater_equal, tir.And: np.logical_and, tir.Or: np.logical_or, tir.Not: np.logical_not, tir.Select: np.where,
    tir.IfThenElse: np.where,
}  # fmt: skip


class Values:
    """A pattern at all points; names are columns, so that vectors have their lanes along the rows."""

    def __init__(self, points):
        self.points, self.defined = points, True

    def of(self, p):
        if isinstance(p, pattern.Number):
            return np.asarray(p.value)
        if not isinstance(p, pattern.Operation):
            return self.points[p.name]
        if p.kind is tir.Ramp:
            base, stride = self.of(p.parts[0]), self.of(p.parts[1])
            return base + stride * np.arange(self.points["n"])
        if p.kind is tir.Broadcast:
            return self.of(p.parts[0]) + np.zeros(self.points["n"], dtype=np.int64)
        values = [self.of(q) for q in p.parts]
        if p.kind in (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod):
            self.defined = np.logical_and(self.defined, values[1] != 0)
            values[1] = np.where(values[1] == 0, 1, values[1])
        return OPERATORS[p.kind](*values)


def box(rule, lanes):
    """All points for the names of a rule; fewer values where there are many names."""
    names = [n for n in {**pattern.names(rule.form), **pattern.names(rule.condition)} if n != "n"]
    numbers = sum(n not in TRUTH for n in names)
    span = {1: 24, 2: 14, 3: 8, 4: 5, 5: 4}[max(numbers, 1)]
    domains = [(False, True) if n in TRUTH else range(-span, span + 1) for n in names]
    columns = np.array(list(itertools.product(*domains)), dtype=np.int64).T
    points = {n: c[:, None].astype(bool) if n in TRUTH else c[:, None] for n, c in zip(names, columns, strict=True)}
    return points | {"n": lanes}


def at_points(rule, lanes):
    points = box(rule, lanes)
    before, after, guard = Values(points), Values(points), Values(points)
    values = before.of(rule.form)
    where = np.logical_and(before.defined, np.logical_and(guard.of(rule.condition), guard.defined) if rule.condition else True)
    where = np.broadcast_to(np.all(where, axis=-1, keepdims=True) if np.ndim(where) else where, values.shape)
    found = np.broadcast_to(after.of(rule.result), values.shape)
    wrong = where & ~((values == found) & after.defined)
    return points, where, wrong


def named(tables):
    rules = [r for t in tables for r in t.rules]
    return [pytest.param(r, id=f"{i}: {r.text}") for i, r in enumerate(rules)]


@pytest.mark.parametrize("rule", named([INDEX]))
def test_rules_keep_values(rule):
    points, where, wrong = at_points(rule, 1)
    assert where.any(), "the rule applies nowhere"
    if wrong.any():
        at = int(np.flatnonzero(wrong.any(axis=-1))[0])
        raise AssertionError({n: c[at, 0] for n, c in points.items() if n != "n"})


@pytest.mark.parametrize("rule", named([VECTOR, WRAPPING]))
@pytest.mark.parametrize("lanes", LANES)
def test_rules_of_vectors_keep_values(rule, lanes):
    _, where, wrong = at_points(rule, lanes)
    assert where.any(), "the rule applies nowhere"
    assert not wrong.any(), rule.text


def test_a_pattern_is_what_it_matches():
    x, y = tir.Var("x", INT64), tir.Var("y", INT64)
    p = pattern.parse("min(x, y + c1) + c2")
    found = {}
    assert pattern.match(p, tir.min_(x, y + 3) + 5, found)
    assert found == {"x": x, "y": y, "c1": 3, "c2": 5}
    assert pattern.build(p, found, INT64) is tir.min_(x, y + 3) + 5
    assert not pattern.match(p, tir.min_(x, y - 3) + 5, {})


def test_a_name_stands_for_one_thing():
    x, y = tir.Var("x", INT64), tir.Var("y", INT64)
    p = pattern.parse("x * c1 < x + c1")
    assert pattern.match(p, x * 3 < x + 3, {})
    assert not pattern.match(p, x * 3 < y + 3, {})
    assert not pattern.match(p, x * 3 < x + 4, {})


def test_operands_in_every_order():
    assert len(list(pattern.orders(pattern.parse("x * y + z")))) == 4
    assert len(list(pattern.orders(pattern.parse("x - y")))) == 1


def test_what_is_no_pattern_is_an_error():
    with pytest.raises(SyntaxError, match="no pattern"):
        pattern.parse("x ** y")
