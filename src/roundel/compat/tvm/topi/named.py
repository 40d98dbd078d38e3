# SPDX-License-Identifier: Apache-2.0
"""Operators of Roundel as functions of tensors under TVM's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ir import tir
from ....ir.op import get_op
from ....ops.on_tensors import on_tensors


def same(name: str, operator: str | None = None) -> Callable[..., Any]:
    """A function with the arguments of the operator."""
    operator = operator or name

    def function(*args: Any, **attrs: Any) -> Any:
        return on_tensors(operator, *args, **attrs)

    function.__name__ = name
    function.__doc__ = (get_op(operator).__doc__ or f"The operator {operator}.").strip().split("\n")[0]
    return function


def number(value: Any) -> Any:
    """A constant, given as a number or as an expression, as a number; any other expression as it is."""
    return value.value if isinstance(value, tir.IntImm | tir.FloatImm) else value


def numbers(values: Any) -> Any:
    """One number or several."""
    return tuple(map(number, values)) if isinstance(values, Sequence) and not isinstance(values, str) else number(values)
