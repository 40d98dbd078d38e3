# SPDX-License-Identifier: Apache-2.0
"""Brute force: evaluate index expressions on all points of small domains, and random expressions to try it on."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from roundel.ir import tir
from roundel.ir.dtype import INT64
from roundel.ir.tir import Expr, Range, Var


def _trunc_div(a, b):
    q = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), q, -q)


OPS = {
    tir.Add: np.add,
    tir.Sub: np.subtract,
    tir.Mul: np.multiply,
    tir.FloorDiv: np.floor_divide,
    tir.FloorMod: np.mod,
    tir.Div: _trunc_div,
    tir.Mod: np.fmod,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
    tir.EQ: np.equal,
    tir.NE: np.not_equal,
    tir.LT: np.less,
    tir.LE: np.less_equal,
    tir.GT: np.greater,
    tir.GE: np.greater_equal,
    tir.And: np.logical_and,
    tir.Or: np.logical_or,
}


def evaluate(e: Expr, env: dict[Var, np.ndarray]) -> np.ndarray:
    """The values of ``e`` at all points of ``env``."""
    kind = type(e)
    if kind is Var:
        return env[e]
    if kind is tir.IntImm:
        return np.asarray(e.value)
    if kind is tir.Not:
        return np.logical_not(evaluate(e.a, env))
    if kind is tir.Cast:
        return evaluate(e.value, env)
    if kind in (tir.Select, tir.IfThenElse):
        return np.where(evaluate(e.condition, env), evaluate(e.true_value, env), evaluate(e.false_value, env))
    with np.errstate(all="ignore"):
        return OPS[kind](evaluate(e.a, env), evaluate(e.b, env))


def grid(domains: dict[Var, range]) -> dict[Var, np.ndarray]:
    """All points of a box."""
    points = list(itertools.product(*domains.values()))
    columns = np.array(points, dtype=np.int64).reshape(len(points), len(domains)).T
    return dict(zip(domains, columns, strict=True))


VARS = [Var(name, INT64) for name in ("i", "j", "k")]
SIZE = Var("n", INT64, True)
DOMAINS = {VARS[0]: range(-3, 6), VARS[1]: range(0, 8), VARS[2]: range(0, 4), SIZE: range(0, 6)}
ENV = grid(DOMAINS)


def as_range(r: range) -> Range:
    """A Python range as a Range."""
    return Range(tir.index_const(r.start), tir.index_const(len(r)))


def bind_all(an) -> None:
    """The domains of the variables; the size variable is left to what it is by nature."""
    for v, r in DOMAINS.items():
        if not v.size:
            an.bind(v, as_range(r))


_leaf = st.one_of(st.sampled_from([*VARS, SIZE]), st.integers(-9, 9).map(tir.index_const))
_divisor = st.one_of(
    st.sampled_from([1, 2, 3, 4, 6, 8, 12, -1, -2, -4]).map(tir.index_const),
    st.just(SIZE + 1),
    st.just(VARS[2] + 2),
    st.just((SIZE + 1) * 4),
    st.just((SIZE + 1) * (VARS[2] + 1)),
)


def _grow(inner):
    scaled = st.builds(
        lambda a, k: tir.Mul(a, tir.index_const(k)), inner, st.sampled_from([-4, -3, -2, -1, 2, 3, 4, 6, 8, 12])
    )
    plain = st.builds(
        lambda op, a, b: op(a, b), st.sampled_from([tir.Add, tir.Sub, tir.Min, tir.Max, tir.Add]), inner, inner
    )
    product = st.builds(lambda a, b: tir.Mul(a, b), inner, _leaf)
    divided = st.builds(
        lambda op, a, b: op(a, b),
        st.sampled_from([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod]),
        inner,
        _divisor,
    )
    choice = st.builds(
        lambda op, c, a, b: op(c, a, b), st.sampled_from([tir.Select, tir.IfThenElse]), compare(inner), inner, inner
    )
    return st.one_of(scaled, plain, divided, divided, scaled, plain, product, choice)


def compare(inner):
    """Comparisons of two expressions."""
    return st.builds(
        lambda op, a, b: op(a, b), st.sampled_from([tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE]), inner, inner
    )


indices = st.recursive(_leaf, _grow, max_leaves=8)
conditions = st.recursive(
    compare(st.recursive(_leaf, _grow, max_leaves=4)),
    lambda c: st.one_of(st.builds(tir.And, c, c), st.builds(tir.Or, c, c), st.builds(tir.Not, c)),
    max_leaves=4,
)
