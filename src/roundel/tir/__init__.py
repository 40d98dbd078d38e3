# SPDX-License-Identifier: Apache-2.0
"""Names for building and asking about tensor programs in Python, the way TVM's documentation does: ``from roundel import tir``.

    i = tir.Var("i", "int32")
    A = tir.decl_buffer((128,), "float32", name="A")
    loop = tir.For(i, 0, 128, tir.ForKind.SERIAL, tir.BufferStore(A, tir.const(0.0, "float32"), [i]))
    tir.analysis.estimate_tir_flops(loop)

Nodes and their constructors are those of ``roundel.ir.tir``; intrinsics and functions of expressions those of the script's ``T``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import tir as _nodes
from ..ir.dtype import DType
from ..ir.errors import ConstantError
from ..ir.tir import *  # noqa: F403
from ..ir.tir.ops import exact_const as const
from ..script import tir as _script
from . import analysis, stmt_functor
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .stmt_functor import stmt_list

_HERE = [
    "subtract",
    "multiply",
    "indexmod",
    "indexdiv",
    "any",
    "all",
    "BijectiveLayout",
    "DType",
    "Layout",
    "analysis",
    "bijective_layout",
    "const",
    "floordiv",
    "floormod",
    "layout",
    "stmt_functor",
    "stmt_list",
    "truncdiv",
    "truncmod",
]


def _divides(build: Callable[[Any, Any], _nodes.Expr]) -> Callable[[Any, Any], _nodes.Expr]:
    """A division as a person writes it: one by the constant 0 is an error (passes may meet one in code that never runs)."""

    def divide(a: Any, b: Any) -> _nodes.Expr:
        made = build(a, b)
        if isinstance(made, _nodes.BinaryOp) and isinstance(made.b, _nodes.IntImm) and made.b.value == 0:
            raise ConstantError(f"{made.script()} divides by zero")
        return made

    divide.__name__, divide.__doc__ = build.__name__, build.__doc__
    return divide


floordiv, floormod, truncdiv, truncmod = map(_divides, (_nodes.floordiv, _nodes.floormod, _nodes.truncdiv, _nodes.truncmod))
indexdiv, indexmod = floordiv, floormod
multiply, subtract = _nodes.mul, _nodes.sub


def all(*conditions: Any) -> _nodes.Expr:  # noqa: A001  # TVM's name
    """Whether all of one or more conditions hold. Raises ValueError for none."""
    if not conditions:
        raise ValueError("all of no conditions: give one at least")
    return _nodes.logical_and(*map(_condition, conditions))


def any(*conditions: Any) -> _nodes.Expr:  # noqa: A001  # TVM's name
    """Whether one of one or more conditions holds. Raises ValueError for none."""
    if not conditions:
        raise ValueError("any of no conditions: give one at least")
    return _nodes.logical_or(*map(_condition, conditions))


def _condition(value: Any) -> Any:
    if isinstance(value, _nodes.Expr) and not value.dtype.is_bool:
        raise TypeError(f"{value.script()} is no condition but of type {value.dtype}: compare it with something, tir.NE({value.script()}, 0)")
    return value


def __getattr__(name: str) -> Any:
    """What else there is: nodes and constructors, then the functions of ``T``."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_nodes, name) if hasattr(_nodes, name) else getattr(_script, name)


__all__ = [*_HERE]
