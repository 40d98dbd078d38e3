# SPDX-License-Identifier: Apache-2.0
"""Relay's expressions and types, as text and JSON give them before anything is known of shapes.

A node that is used twice is one object: graphs are shared by identity, so that nodes compare and hash by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ...ir.dataclass import dataclass


class UnknownSize:
    """The dimension ``?`` of a type: a size that only the run tells, another one at each place."""

    def __repr__(self) -> str:
        return "?"


ANY = UnknownSize()


@dataclass(frozen=True)
class TensorType:
    """``Tensor[(2, ?), float32]``; dimensions are numbers or ``ANY``."""

    shape: tuple[Any, ...]
    dtype: str


@dataclass(frozen=True)
class TupleType:
    """``(Tensor[...], Tensor[...])``."""

    fields: tuple[Any, ...]


@dataclass(frozen=True)
class OtherType:
    """A type that no tensor has: a function, a reference, a data type. ``text`` says which."""

    text: str


class Expr:
    """Base class of expressions."""


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A parameter or a variable of ``let``; ``type`` is None where it is not annotated."""

    name: str
    type: Any = None


@dataclass(frozen=True, eq=False)
class GlobalVar(Expr):
    """``@name``, a function of the module."""

    name: str


@dataclass(frozen=True, eq=False)
class Constant(Expr):
    """A tensor that is known."""

    data: np.ndarray


@dataclass(frozen=True, eq=False)
class Tuple(Expr):
    """``(a, b)``."""

    fields: tuple[Expr, ...]


@dataclass(frozen=True, eq=False)
class Item(Expr):
    """``value.index``."""

    value: Expr
    index: int


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A call of an operator (its name) or of a function (an expression). ``attrs`` are those that are written: others have Relay's defaults."""

    op: str | Expr
    args: tuple[Expr, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Let(Expr):
    """``let var = value; body``."""

    var: Var
    value: Expr
    body: Expr


@dataclass(frozen=True, eq=False)
class If(Expr):
    """``if (condition) { then } else { otherwise }``."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False)
class Function(Expr):
    """``fn (params) { body }``."""

    params: tuple[Var, ...]
    body: Expr
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Refused(Expr):
    """What no tensor program is made of: pattern matching, references, constructors of data types. ``what`` names it."""

    what: str


@dataclass(frozen=True)
class Module:
    """Functions by name."""

    functions: Mapping[str, Function]


_PARTS: Mapping[type, tuple[str, ...]] = {Tuple: ("fields",), Item: ("value",), Let: ("value", "body"), If: ("condition", "then", "otherwise"),
                                          Function: ("body",), Call: ("args", "op")}


def parts(node: Expr) -> list[Expr]:
    """The expressions that one is made of."""
    found = (getattr(node, name) for name in _PARTS.get(type(node), ()))
    return [e for part in found for e in (part if isinstance(part, tuple) else (part,)) if isinstance(e, Expr)]
