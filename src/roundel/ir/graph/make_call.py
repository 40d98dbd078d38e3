# SPDX-License-Identifier: Apache-2.0
"""Calls of operators from Python values: operands and attributes by position or name, coerced, struct info inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..attrs import Attrs
from ..dtype import DType
from ..errors import RoundelError
from ..op import OpDef
from ..tir.expr import Expr
from ..tir.index_map import IndexMap
from ..tir.ops import const
from .expr import Call, Constant, DTypeValue, GraphExpr, PrimValue, ShapeExpr, StringValue, Tuple
from .struct_info import TensorInfo

ABSENT = Tuple(())  # stands for an optional operand left out before one that is given


def make_call(op: OpDef, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Call:
    """``op(*args, **kwargs)``: operands first, then attributes, in the order that the operator declares.

    Arrays become constants; numbers constants of the first tensor's dtype (scalars where the operator lists the operand
    in ``scalars``); tuples of integers shapes, of other values tuples; None an operand left out.
    """
    names = [n.rstrip("?").lstrip("*") for n in op.operands]
    given = dict(kwargs or {})
    order = op.signature or (*names, *op.attributes)
    if len(args) > len(order):
        raise RoundelError(f"{op!r} takes at most {len(order)} arguments ({', '.join(order)}), {len(args)} were given")
    for name, value in zip(order, args):
        if name in given:
            raise RoundelError(f"{op!r} was given {name} twice")
        given[name] = value
    unknown = [n for n in given if n not in order]
    if unknown:
        raise RoundelError(f"{op!r} has no argument {', '.join(unknown)}", hint=_meant(unknown[0], order) + f"it takes {', '.join(order)}")
    operands = _operands(op, names, given)
    missing = [n for n, default in op.attributes.items() if default is ... and n not in given]
    if missing:
        raise RoundelError(f"{op!r} needs {', '.join(missing)}")
    attrs = Attrs({n: _typeless(n, _attribute(given.get(n, default)), default) for n, default in op.attributes.items()})
    return infer_call(Call(op, operands, attrs))


def _meant(name: str, order: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, order, 1)
    return f"did you mean {near[0]}? " if near else ""


def infer_call(call: Call) -> Call:
    """The call with the struct info that its operator infers."""
    found = call.op.infer(tuple(a.sinfo for a in call.args), call.attrs)  # type: ignore[union-attr]
    return call if found is None else call.replace(sinfo=found)


def _operands(op: OpDef, names: list[str], given: dict[str, Any]) -> tuple[GraphExpr, ...]:
    values = [given.get(n) for n in names]
    for name, spec, value in zip(names, op.operands, values):
        if value is None and not spec.endswith("?"):
            raise RoundelError(f"{op!r} needs operand {name}")
    while values and values[-1] is None:
        values.pop()
    dtype = next((v.sinfo.dtype for v in values if isinstance(v, GraphExpr) and isinstance(v.sinfo, TensorInfo)), None)
    scalars = op.scalars
    return tuple(ABSENT if v is None else as_operand(v, None if n in scalars else dtype, n in scalars)
                 for n, v in zip(names, values))


def as_operand(value: Any, dtype: DType | None = None, scalar: bool = False) -> GraphExpr:
    """A Python value as a graph value; a number becomes a constant of ``dtype``, or a scalar."""
    if isinstance(value, GraphExpr):
        return value
    if isinstance(value, Expr):
        return PrimValue(value)
    if isinstance(value, bool | int | float):
        return PrimValue(const(value)) if scalar else Constant.of(value, dtype)
    if isinstance(value, str):
        return StringValue(value)
    if isinstance(value, tuple | list):
        if all(isinstance(v, int | np.integer | Expr | PrimValue) for v in value):
            return ShapeExpr(tuple(v.value if isinstance(v, PrimValue) else const(v) for v in value))
        return Tuple(tuple(as_operand(v, dtype) for v in value))
    return Constant.of(value)


def _typeless(name: str, value: Any, default: Any) -> Any:
    """The data type "void" stands for one that is not given (TVM prints ``out_dtype="void"``)."""
    return default if name.endswith("dtype") and value == "void" and default is not ... else value


def _attribute(value: Any) -> Any:
    """Attributes are plain values: NumPy scalars and constant expressions are unwrapped."""
    if isinstance(value, list | tuple):
        return tuple(_attribute(v) for v in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, PrimValue | StringValue | DTypeValue):
        return _attribute(value.value)
    if isinstance(value, FunctionType):
        return IndexMap.from_func(value)
    return getattr(value, "value", value) if isinstance(value, Expr) else value
