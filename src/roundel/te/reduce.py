# SPDX-License-Identifier: Apache-2.0
"""Reductions: ``te.sum(A[i, k], axis=k)`` and others by ``comm_reducer``; they stand at the top of a compute's body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from roundel.ir import tir
from roundel.ir.dataclass import dataclass
from roundel.ir.dtype import BOOL, DType
from roundel.ir.errors import RoundelError
from roundel.ir.node import node
from roundel.ir.saved import saved_by_name


@dataclass(frozen=True, eq=False)
class Combiner:
    """``combine(accumulated, new)`` of tuples of expressions, commutative and associative, and its ``identity``."""

    name: str
    combine: Callable[[tuple[tir.Expr, ...], tuple[tir.Expr, ...]], tuple[tir.Expr, ...]]
    identity: Callable[[tuple[DType, ...]], tuple[tir.Expr, ...]]


@node(intern=True, derive={"dtype": "sources[value_index].dtype"})
class Reduce(tir.Expr):
    """``sources`` (one per element of the combiner's tuple) combined over ``axes`` where ``condition`` holds."""

    combiner: Any
    sources: tuple[tir.Expr, ...]
    axes: tuple[tir.IterVar, ...]
    condition: tir.Expr
    value_index: int

    def as_text(self, text: Callable[[tir.Expr], str]) -> str:
        """As it is written: ``te.sum(x[k], axis=k)``."""
        axes = ", ".join(a.var.name for a in self.axes)
        source = text(self.sources[0]) if len(self.sources) == 1 else f"({', '.join(map(text, self.sources))})"
        where = "" if isinstance(self.condition, tir.IntImm) else f", where={text(self.condition)}"
        part = "" if len(self.sources) == 1 else f"[{self.value_index}]"
        return f"te.{self.combiner.name}({source}, axis={axes if len(self.axes) == 1 else f'[{axes}]'}{where}){part}"


def reduce_axis(dom: Any, name: str = "k") -> tir.IterVar:
    """A reduction axis over ``[begin, end)``; ``dom`` is (begin, end), an extent, or a tir.Range."""
    if isinstance(dom, tuple | list):
        end = tir.as_index(dom[1])
        begin = tir.const(dom[0], end.dtype) if isinstance(dom[0], int) else tir.as_index(dom[0])
        dom = tir.Range(begin, end - begin)
    elif not isinstance(dom, tir.Range):
        extent = tir.as_index(dom)
        dom = tir.Range(tir.const(0, extent.dtype), extent)
    variable = tir.Var(name, dom.extent.dtype)
    variable._facts = {"reduces": True}
    return _Axis(variable, dom, tir.IterKind.REDUCE)


def is_reduced_over(v: tir.Var) -> bool:
    """Whether a variable is that of a reduction axis."""
    return bool(v._facts and v._facts.get("reduces"))


@node
class _Axis(tir.IterVar):
    """An tir.IterVar that stands for its variable in arithmetic."""

    def asexpr(self) -> tir.Expr:
        """The variable."""
        return self.var

    def __add__(self, other: Any) -> tir.Expr:
        return self.var + other

    def __radd__(self, other: Any) -> tir.Expr:
        return other + self.var

    def __sub__(self, other: Any) -> tir.Expr:
        return self.var - other

    def __rsub__(self, other: Any) -> tir.Expr:
        return other - self.var

    def __mul__(self, other: Any) -> tir.Expr:
        return self.var * other

    def __rmul__(self, other: Any) -> tir.Expr:
        return other * self.var

    def __floordiv__(self, other: Any) -> tir.Expr:
        return self.var // other

    def __mod__(self, other: Any) -> tir.Expr:
        return self.var % other

    def __lt__(self, other: Any) -> tir.Expr:
        return tir.lt(self.var, other)

    def __le__(self, other: Any) -> tir.Expr:
        return tir.le(self.var, other)

    def __gt__(self, other: Any) -> tir.Expr:
        return tir.gt(self.var, other)

    def __ge__(self, other: Any) -> tir.Expr:
        return tir.ge(self.var, other)


def lowest(dtype: Any) -> tir.Expr:
    """The least value of a dtype: -inf of floats."""
    d = DType(dtype)
    return tir.const(-np.inf, d) if d.is_float else min_value(d)


def highest(dtype: Any) -> tir.Expr:
    """The greatest value of a dtype: inf of floats."""
    d = DType(dtype)
    return tir.const(np.inf, d) if d.is_float else max_value(d)


def min_value(dtype: Any) -> tir.Expr:
    """The least finite value of a dtype."""
    d = DType(dtype)
    return tir.const(float(ml_dtypes.finfo(d.numpy).min), d) if d.is_float else tir.IntImm(d.limits[0], d)


def max_value(dtype: Any) -> tir.Expr:
    """The greatest finite value of a dtype."""
    d = DType(dtype)
    return tir.const(float(ml_dtypes.finfo(d.numpy).max), d) if d.is_float else tir.IntImm(d.limits[1], d)


def comm_reducer(
    combine: Callable[[Any, Any], Any], identity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """A reduction, called like ``te.sum``, from ``combine(x, y)`` and ``identity(dtype, ...)`` of scalars or tuples."""

    def wrapped(lhs: tuple[tir.Expr, ...], rhs: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        out = combine(lhs, rhs) if len(lhs) > 1 else combine(lhs[0], rhs[0])
        return tuple(out) if isinstance(out, tuple | list) else (out,)

    def start(dtypes: tuple[DType, ...]) -> tuple[tir.Expr, ...]:
        out = identity(*dtypes)
        items = out if isinstance(out, tuple | list) else (out,)
        return tuple(tir.const(v, d) for v, d in zip(items, dtypes, strict=True))

    combiner = Combiner(name, wrapped, start)

    def reducer(expr: Any, axis: Any = None, where: Any = None) -> Any:
        """``expr`` (or a tuple of them) reduced over ``axis`` (one or several reduce axes) where ``where`` holds; of two scalars,
        ``te.max(x, 0.0)``, just their combination."""
        if axis is None:
            raise RoundelError(f"{name} does not say over what it reduces", hint=f'k = te.reduce_axis((0, n), "k"); te.{name}(A[i, k], axis=k)')
        if isinstance(axis, tir.Expr | int | float):
            return wrapped((expr,), (axis,))[0]
        sources = tuple(tir.const(e) for e in (expr if isinstance(expr, tuple | list) else (expr,)))
        axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
        if not all(isinstance(a, tir.IterVar) and a.kind is tir.IterKind.REDUCE for a in axes):
            raise RoundelError(f"{name} reduces over axes made by te.reduce_axis, not {axes}")
        if not axes:
            return sources if isinstance(expr, tuple | list) else sources[0]
        condition = tir.IntImm(1, BOOL) if where is None else where.asexpr() if hasattr(where, "asexpr") else tir.const(where)
        made = tuple(Reduce(combiner, sources, axes, condition, k) for k in range(len(sources)))
        return made if isinstance(expr, tuple | list) else made[0]

    reducer.__name__ = name
    reducer.combiner = combiner  # type: ignore[attr-defined]
    return reducer


def _sum(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    return tir.logical_or(x, y) if x.dtype.is_bool else x + y


sum_over = comm_reducer(_sum, lambda d: 0, "sum")
prod_over = comm_reducer(lambda x, y: x * y, lambda d: 1, "prod")
max_over = comm_reducer(tir.max_, lowest, "max")
min_over = comm_reducer(tir.min_, highest, "min")
max_number_over = comm_reducer(lambda x, y: tir.select(x < y, y, x), lowest, "max_number")
"""The largest of those that are numbers, -inf without any: one instruction, where ``max``, which keeps NaNs, takes three or four."""
max_finite_over = comm_reducer(lambda x, y: tir.select(x < y, y, x), min_value, "max_finite")
"""The largest of those that are numbers and not -inf, the smallest finite one without any: its difference to -inf is -inf, not NaN."""
all_over = comm_reducer(tir.logical_and, lambda d: 1, "all")
any_over = comm_reducer(tir.logical_or, lambda d: 0, "any")

saved_by_name(Combiner, {r.combiner.name: r.combiner for r in (sum_over, prod_over, max_over, min_over, max_number_over, max_finite_over, all_over, any_over)})
