# SPDX-License-Identifier: Apache-2.0
"""``tvm.topi.utils``: constants as numbers, paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith import Analyzer
from ....ir import tir
from .named import number

simplify = Analyzer().simplify


def get_const_int(expr: Any) -> int:
    """A constant as an int. Raises ValueError for what is no constant."""
    value = number(simplify(expr))
    if not isinstance(value, int):
        raise ValueError(f"{value} is no constant")
    return value


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """A shape with its constants as ints and its variables as they are."""
    return tuple(number(simplify(e)) for e in in_tuple)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is this constant."""
    found = number(simplify(expr))
    return isinstance(found, int) and found == value


def prod(x: Sequence[Any]) -> Any:
    """The product of dimensions."""
    return tir.product_of(x)


def ceil_div(a: Any, b: Any) -> Any:
    """A quotient rounded up."""
    return tir.ceildiv(a, b)


def get_pad_tuple_generic(padding: Any, kernel: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The paddings before and those after, by spatial axis: from ``VALID``, ``SAME``, one number, one an axis, or all before and all after."""
    n = len(kernel)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ValueError(f"padding is VALID, SAME or numbers, not {padding!r}")
        whole = [number(k) - 1 if padding == "SAME" else 0 for k in kernel]
        return tuple((w + 1) // 2 for w in whole), tuple(w // 2 for w in whole)
    items = tuple(map(number, padding)) if isinstance(padding, Sequence) else (number(padding),) * n
    items = items * n if len(items) == 1 else items
    if len(items) not in (n, 2 * n):
        raise ValueError(f"{len(items)} paddings for {n} axes; give one, {n} or {2 * n}")
    return items[:n], items[-n:]


def _flat(n: int) -> Any:
    def pads(padding: Any, kernel: Any) -> tuple[Any, ...]:
        before, after = get_pad_tuple_generic(padding, kernel if isinstance(kernel, Sequence) else (kernel,) * n)
        return *before, *after

    pads.__doc__ = f"The paddings before {n} axes, then those after."
    return pads


get_pad_tuple1d, get_pad_tuple, get_pad_tuple3d = _flat(1), _flat(2), _flat(3)
