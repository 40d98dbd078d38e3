# SPDX-License-Identifier: Apache-2.0
"""Expressions as NumPy functions: closed forms over decision variables, evaluated for columns of candidates at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import tir
from ..ir.errors import ArithError
from ..ir.tir import Expr, Var


def _trunc_div(a: Any, b: Any) -> Any:
    q = np.abs(a) // np.abs(b)
    return np.where((a < 0) == (b < 0), q, -q)


_BINARY: dict[type, str] = {
    tir.Add: "{} + {}",
    tir.Sub: "{} - {}",
    tir.Mul: "{} * {}",
    tir.FloorDiv: "{} // {}",
    tir.FloorMod: "{} % {}",
    tir.Div: "trunc_div({}, {})",
    tir.Mod: "np.fmod({}, {})",
    tir.Min: "np.minimum({}, {})",
    tir.Max: "np.maximum({}, {})",
    tir.EQ: "{} == {}",
    tir.NE: "{} != {}",
    tir.LT: "{} < {}",
    tir.LE: "{} <= {}",
    tir.GT: "{} > {}",
    tir.GE: "{} >= {}",
    tir.And: "np.logical_and({}, {})",
    tir.Or: "np.logical_or({}, {})",
}


class _Source:
    """Straight-line code, one assignment per distinct subexpression."""

    def __init__(self, variables: Sequence[Var]) -> None:
        self.names: dict[Expr, str] = {v: f"v{k}" for k, v in enumerate(variables)}
        self.lines: list[str] = []

    def of(self, e: Expr) -> str:
        """The name (or literal) that holds an expression's value."""
        name = self.names.get(e)
        if name is None:
            rule = _RULES.get(type(e))
            if rule is None:
                raise ArithError("this is no closed form of the variables", why=f"in {e!r}")
            text = rule(self, e)
            name = f"t{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
            self.names[e] = name
        return name


def _binary(s: _Source, e: Any) -> str:
    return _BINARY[type(e)].format(s.of(e.a), s.of(e.b))


def _choice(s: _Source, e: Any) -> str:
    return f"np.where({s.of(e.condition)}, {s.of(e.true_value)}, {s.of(e.false_value)})"


_RULES: dict[type, Callable[[_Source, Any], str]] = {
    **dict.fromkeys(_BINARY, _binary),
    tir.Select: _choice,
    tir.IfThenElse: _choice,
    tir.IntImm: lambda s, e: repr(e.value),
    tir.FloatImm: lambda s, e: f"float({e.value!r})" if np.isfinite(e.value) else f"float('{e.value}')",
    tir.Not: lambda s, e: f"np.logical_not({s.of(e.a)})",
    tir.Cast: lambda s, e: f"np.asarray({s.of(e.value)}).astype('{e.dtype.numpy.name}')",
}


def numpy_function(exprs: Sequence[Expr], variables: Sequence[Var]) -> Callable[..., tuple[Any, ...]]:
    """A function of one array (or number) per variable that gives the value of every expression, element by element.

    Divisions by 0 give 0, as in NumPy, in the lanes of a choice that is not taken. Raises ArithError for expressions
    with loads, calls or other variables.
    """
    source = _Source(variables)
    results = "".join(source.of(e) + ", " for e in exprs)
    body = "\n    ".join([*source.lines, f"return ({results})"])
    env: dict[str, Any] = {"np": np, "trunc_div": _trunc_div}
    exec(f"def f({', '.join(f'v{k}' for k in range(len(variables)))}):\n    {body}\n", env)
    made = env["f"]

    def evaluate(*columns: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return made(*(np.asarray(c) for c in columns))

    return evaluate
