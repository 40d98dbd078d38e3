# SPDX-License-Identifier: Apache-2.0
"""Attribute values as Python: numbers, strings, lists, dicts; expressions and IR objects through ``T`` and ``I``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...ir.dtype import DType
from ...ir.escape import python_string
from ...ir.graph import GlobalVar
from ...ir.op import FuseKind
from ...ir.tir import CommReducer, IndexMap, IntImm, StringImm
from ...target import Target
from ..literals import float_text


def _float(value: float) -> str:
    text = float_text(value)
    return f"float({text})" if text.startswith('"') else text


_PLAIN: dict[type, Callable[[Any], str]] = {
    bool: repr,
    int: repr,
    str: python_string,
    type(None): repr,
    float: _float,
    DType: lambda v: python_string(str(v)),
    Target: lambda v: f"T.target({python_string(str(v))})",
    GlobalVar: lambda v: f"I.GlobalVar({python_string(v.name)})",
    FuseKind: lambda v: f"I.FuseKind.{v.name}",
    IntImm: lambda v: f"T.{v.dtype}({bool(v.value) if v.dtype.is_bool else v.value})",
    StringImm: lambda v: f"T.string({python_string(v.value)})",
}


def value_text(value: Any, node_text: Callable[[Any], str]) -> str:
    """The Python expression for an attribute value; ``node_text`` prints IR nodes."""
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(value_text(v, node_text) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{python_string(k)}: {value_text(v, node_text)}" for k, v in value.items()) + "}"
    return node_text(value)


def index_map_text(mapping: IndexMap, names: Any, expr: Callable[[Any], str]) -> str:
    """``T.index_map(lambda i, j: (i // 4, j, i % 4))``"""
    with names.frame():
        params = ", ".join(names.define(v, v.name) for v in mapping.initial_indices)
        items = [expr(f) for f in mapping.final_indices]
    for at in reversed(mapping.separators):
        items.insert(at, repr(IndexMap.AXIS_SEPARATOR))
    return f"T.index_map(lambda {params}: ({', '.join(items)}{',' if len(items) == 1 else ''}))"


def comm_reducer_text(reducer: CommReducer, names: Any, expr: Callable[[Any], str]) -> str:
    """``T.comm_reducer(lambda x, y: x + y, [T.float32(0.0)])``"""
    with names.frame():
        params = ", ".join(names.define(v, v.name) for v in (*reducer.lhs, *reducer.rhs))
        items = [expr(e) for e in reducer.results]
    combined = items[0] if len(items) == 1 else f"({', '.join(items)})"
    return f"T.comm_reducer(lambda {params}: {combined}, [{', '.join(map(expr, reducer.identity))}])"
