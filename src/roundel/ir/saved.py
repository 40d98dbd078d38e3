# SPDX-License-Identifier: Apache-2.0
"""Any node as JSON text and back: what a node shares with another (a variable, a buffer) it shares when it is read again.

    {"format": "roundel-ir", "version": 1, "nodes": [{"ir.tir.expr.Var": {"name": "n", ...}}, ...], "root": {"node": 3}}

A module's text (``mod.script()``) is for people; this form also keeps parts that are no whole program: an expression, a binding, struct info.
Reading makes nodes of the intermediate representation and nothing else, so that a file from elsewhere can be read.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from .attrs import Attrs
from .constants import ConstData
from .dtype import DType
from .errors import RoundelError
from .node import Node, Span, Token
from .op import FuseKind, OpDef, get_op
from .tir.stmt import ForKind, IterKind

_FORMAT, _VERSION = "roundel-ir", 1
_ENUMS: dict[str, type[Enum]] = {kind.__name__: kind for kind in (ForKind, IterKind, FuseKind)}
_UNSAVED = ("constants", "choices")  # of a module: neither is part of the program
_RECORDS: dict[str, type] = {}
_KNOWN: dict[str, Mapping[str, Any]] = {}


def saved(kind: type) -> type:
    """A decorator of dataclasses that are saved as nodes are: what refers to one of them twice does so when it is read again."""
    _RECORDS[_name(kind)] = kind
    return kind


def save_json(node: Any) -> str:
    """A node, or a tuple, dict or list of nodes, as JSON text."""
    writer = _Writer()
    root = writer.value(node)
    return json.dumps({"format": _FORMAT, "version": _VERSION, "nodes": writer.nodes, "root": root})


def load_json(text: str) -> Any:
    """What ``save_json`` wrote. Raises RoundelError for any other text."""
    try:
        data = json.loads(text)
        if data["format"] != _FORMAT or data["version"] != _VERSION:
            raise ValueError(f"format {data['format']!r}, version {data['version']!r}")
        reader = _Reader()
        for entry in data["nodes"]:
            reader.read(entry)
        return reader.value(data["root"])
    except RoundelError:
        raise
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError, struct.error) as e:
        raise RoundelError("the text is no saved program", why=f"{type(e).__name__}: {e}", hint="roundel.ir.save_json(node) writes one") from e


def saved_by_name(kind: type, known: Mapping[str, Any]) -> None:
    """Objects of a kind that are saved as their names: these, and no others."""
    _KNOWN[_name(kind)] = known


class _Writer:
    """Nodes in the order in which they can be made again."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []  # nodes that were seen, so that no other takes their identity

    def value(self, v: Any) -> Any:
        if isinstance(v, Node) or _RECORDS.get(_name(type(v))) is type(v):
            return {"node": self.node(v)}
        if isinstance(v, DType):
            return {"dtype": str(v)}
        if v is None or (isinstance(v, bool | int | str) and not isinstance(v, Enum)):
            return v
        known = _KNOWN.get(_name(type(v)), {})
        if known and known.get(v.name) is v:
            return {"known": [_name(type(v)), v.name]}
        for kind, write in _WRITE.items():
            if isinstance(v, kind):
                return write(self, v)
        raise RoundelError(f"a {type(v).__name__} cannot be saved", why=f"{v!r} is no part of a program")

    def node(self, n: Any) -> int:
        if id(n) not in self.numbers:
            names = [f for f in n._fields if f not in _UNSAVED or f not in n._hidden] if isinstance(n, Node) else [f.name for f in dataclasses.fields(n)]
            fields = {f: self.value(getattr(n, f)) for f in names}
            self.nodes.append({_name(type(n)): fields})
            self.numbers[id(n)] = len(self.nodes) - 1
            self.kept.append(n)
        return self.numbers[id(n)]


def _float(writer: _Writer, v: float) -> Any:
    return v if math.isfinite(v) else {"float": struct.pack("<d", v).hex()}


def _constant(writer: _Writer, v: ConstData) -> Any:
    content = base64.b64encode(v.numpy().tobytes()).decode()
    return {"constant": {"shape": list(v.shape), "dtype": str(v.dtype), "bytes": content}}


_WRITE: dict[type, Callable[[_Writer, Any], Any]] = {
    Enum: lambda w, v: {"enum": [type(v).__name__, v.name]},
    float: _float,
    np.generic: lambda w, v: w.value(v.item()),
    tuple: lambda w, v: {"tuple": [w.value(x) for x in v]},
    list: lambda w, v: {"list": [w.value(x) for x in v]},
    Attrs: lambda w, v: {"attrs": {k: w.value(x) for k, x in v.items()}},
    Mapping: lambda w, v: {"dict": [[w.value(k), w.value(x)] for k, x in v.items()]},
    OpDef: lambda w, v: {"operator": v.name},
    ConstData: _constant,
    Token: lambda w, v: None,  # a node that is read gets one of its own
    Span: lambda w, v: {"span": [v.file, v.line, v.column, v.name, list(v.nodes)]},
}


class _Reader:
    """Makes nodes in the order in which they were written."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.kinds = _kinds()

    def read(self, entry: dict[str, Any]) -> None:
        (name, fields), = entry.items()
        kind = self.kinds.get(name)
        if kind is None:
            raise ValueError(f"there is no kind of node {name!r}")
        self.made.append(kind(**{f: self.value(v) for f, v in fields.items()}))

    def value(self, v: Any) -> Any:
        if not isinstance(v, dict):
            return v
        (kind, content), = v.items()
        return _READ[kind](self, content)


def _span(reader: _Reader, v: list) -> Span:
    return Span(*v[:4], tuple(v[4]))


def _data(reader: _Reader, v: dict[str, Any]) -> ConstData:
    dtype = DType(v["dtype"])
    return ConstData(np.frombuffer(base64.b64decode(v["bytes"]), dtype.numpy).reshape(v["shape"]))


_READ: dict[str, Callable[[_Reader, Any], Any]] = {
    "node": lambda r, v: r.made[v],
    "dtype": lambda r, v: DType(v),
    "enum": lambda r, v: _ENUMS[v[0]][v[1]],
    "float": lambda r, v: struct.unpack("<d", bytes.fromhex(v))[0],
    "tuple": lambda r, v: tuple(r.value(x) for x in v),
    "list": lambda r, v: [r.value(x) for x in v],
    "attrs": lambda r, v: Attrs({k: r.value(x) for k, x in v.items()}),
    "dict": lambda r, v: {r.value(k): r.value(x) for k, x in v},
    "operator": lambda r, v: get_op(v),
    "known": lambda r, v: _KNOWN[v[0]][v[1]],
    "constant": _data,
    "span": _span,
}


def _kinds() -> dict[str, type]:
    """The classes of nodes by name."""
    found = dict(_RECORDS)
    pending: list[type] = [Node]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if "_declared" in vars(kind):  # not what it was made of, which lives until garbage is collected
            found[_name(kind)] = kind
    return found


def _name(kind: type) -> str:
    """``ir.tir.expr.Var``: both levels have a Var."""
    return f"{kind.__module__.rpartition('roundel.')[2]}.{kind.__qualname__}"
