# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of expressions; an elementary function counts as the polynomial that computes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..ir import tir
from ..ir.visit import walk

ELEMENTARY = {
    "exp": 14, "exp_flushed": 14, "exp2": 12, "log": 20, "log2": 20, "log10": 21, "log1p": 24, "expm1": 18, "tanh": 24, "erf": 24, "sigmoid": 18, "pow": 40,
    "sin": 20, "cos": 20, "tan": 30, "sinh": 24, "cosh": 22, "asin": 20, "acos": 20, "atan": 20, "sqrt": 4, "rsqrt": 5, "fma": 2,
}
"""Operations of the polynomial behind a function, about."""
_BITS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "reinterpret", "if_then_else"})
"""What moves and chooses bits, and computes nothing."""
_ARITHMETIC = frozenset({tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Max, tir.Min})


def operations(e: tir.Expr) -> int:
    """Operations per lane of one node."""
    if type(e) in _ARITHMETIC:
        return 1
    if type(e) is tir.Call and e.op in _BITS:
        return 0
    return ELEMENTARY.get(e.op, 1) if type(e) is tir.Call and isinstance(e.op, str) else 0


def data_nodes(value: tir.Expr) -> Iterator[tir.Expr]:
    """The distinct nodes of a stored value that are data: loads, arithmetic with them, loads in the indices of a gather; no conditions, and nothing that
    the loops around it decide."""
    stack: list[Any] = [value]
    seen: set[Any] = set()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if e is not value and not any(type(x) is tir.BufferLoad for x in walk(e)):
            continue
        yield e
        if type(e) is tir.BufferLoad:
            stack += [x for i in e.indices for x in walk(i) if type(x) is tir.BufferLoad]
        else:
            stack += [c for c in (e.a, e.b) if isinstance(c, tir.Expr)] if type(e) in _ARITHMETIC else _operands(e)


def _operands(e: tir.Expr) -> list[tir.Expr]:
    skipped = ("condition",) if type(e) in (tir.IfThenElse, tir.Select) else ()
    out: list[tir.Expr] = []
    for name in e._children:
        if name not in skipped:
            value = getattr(e, name)
            out += [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, tir.Expr)]
    return out


def flops(value: tir.Expr) -> int:
    """Operations of a stored value, all lanes."""
    return sum(operations(e) * e.dtype.lanes for e in data_nodes(value) if type(e) is not tir.BufferLoad)
