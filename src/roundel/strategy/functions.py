# SPDX-License-Identifier: Apache-2.0
"""How many instructions a node of a value takes: of an elementary function those of the arithmetic that code generation writes for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..codegen.expand.math import expand_call
from ..ir import tir
from ..ir.dtype import DType
from ..schedule.operations import ELEMENTARY
from ..target import Target

ARITHMETIC = (tir.Add, tir.Sub, tir.Mul)
DIVISIONS = (tir.Div, tir.FloorDiv, tir.FloorMod)
CHOICES = (tir.IfThenElse, tir.Select)
ROOTS = {"sqrt": 1, "rsqrt": 2}
"""Functions that a machine computes itself, as slowly as so many divisions."""


def instructions(e: tir.Expr, target: Target) -> float:
    """Of one node of a value: what it takes a vector or a scalar, loads aside."""
    kind = type(e)
    if kind in ARITHMETIC:
        return 1.0
    if kind in (tir.Max, tir.Min):
        return target.ordered_instructions if e.dtype.is_float else 1.0
    if kind in DIVISIONS:
        return target.division_instructions
    if kind in CHOICES:
        return 2.0
    if kind in (tir.Cast, tir.Shuffle):
        return 1.0
    return _of_function(e.op, len(e.args), e.dtype.element, target) if kind is tir.Call and isinstance(e.op, str) else 0.0


@lru_cache(maxsize=512)
def _of_function(name: str, arguments: int, dtype: str, target: Target) -> float:
    """Of a call of a function with values of one type; about, where a library computes it."""
    if name in ROOTS:
        return ROOTS[name] * target.division_instructions
    given = DType(dtype)
    expanded = expand_call(tir.Call(name, tuple(tir.Var(f"x{k}", given) for k in range(arguments)), given), target.has("avx512f"))
    if expanded is None:
        return float(ELEMENTARY.get(name, 1))
    seen: set[tir.Expr] = set()
    left, total = [expanded], 0.0
    while left:
        e = left.pop()
        if e not in seen:
            seen.add(e)
            total += _of_part(e, target)
            left += _operands(e)
    return total


def _of_part(e: tir.Expr, target: Target) -> float:
    """Of a node of an expansion."""
    if type(e) is tir.Call:
        return ROOTS.get(str(e.op), 0) * target.division_instructions or float(e.op != "reinterpret")
    is_limit = type(e) is tir.Select and type(e.condition) in (tir.LT, tir.GT) and {e.true_value, e.false_value} == {e.condition.a, e.condition.b}
    return 1.0 if is_limit else instructions(e, target)  # a largest or smallest number is one instruction


def _operands(e: tir.Expr) -> Sequence[tir.Expr]:
    """The values that a node of an expansion is usually computed from."""
    if type(e) is tir.Call:
        return e.args[2:] if e.op == "rarely" else e.args
    if type(e) in CHOICES:
        return (e.true_value, e.false_value)
    return [v for n in e._children if isinstance(v := getattr(e, n), tir.Expr)]
