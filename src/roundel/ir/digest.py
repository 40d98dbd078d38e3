# SPDX-License-Identifier: Apache-2.0
"""A digest by which a program is found again: in another process, on another machine, after everything in it was renamed."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any

from .constants import ConstData
from .dtype import DType
from .equal import BY_IDENTITY, bound, does_nothing
from .graph.struct_info import StructInfo
from .node import Node
from .op import OpDef
from .tir import stmt as ts
from .tir.expr import Expr, Var
from .tir.func import BaseFunc

_VERSION = 1  # of what goes into a digest: a change makes digests that were kept worthless


def structural_digest(node: Any, without_attrs: Collection[str] = ()) -> str:
    """32 hexadecimal digits which programs share that are equal up to names of variables, buffers and blocks, and others do not.

    It is the same in every process. Variables and buffers count by the order in which they appear, so the order of parameters matters, and so
    does everything else: constants bit by bit, types, extents, annotations, and attributes of functions but for those named in
    ``without_attrs``. A constant tensor counts by its type, shape and content.
    """
    writer = _Writer(frozenset(without_attrs))
    writer.put(_VERSION)
    writer.put(node)
    return hashlib.blake2b("".join(writer.parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class _Writer:
    """A program as one text in which no name occurs."""

    def __init__(self, without_attrs: frozenset[str]) -> None:
        self.parts: list[str] = []
        self.without_attrs = without_attrs
        self.numbers: dict[Any, int] = {}  # of variables and buffers
        self.count = 0
        self.inner: dict[Expr, int] | None = None  # parts of the expression that is being written, each of which is written once
        self.size_is_known = False  # here: what a variable is bound to, or where it stands, tells whether it is a size

    def put(self, v: Any) -> None:
        write = _WRITE.get(type(v))
        if write is not None:
            self.parts.append(write(v))
        elif isinstance(v, Node):
            self.node(v)
        elif isinstance(v, tuple | list):
            self.parts.append(f"({len(v)}:")
            for x in v:
                self.put(x)
        elif isinstance(v, Mapping):
            self.mapping(v)
        else:
            self.parts.append(_other(v))

    def mapping(self, v: Mapping[str, Any]) -> None:
        self.parts.append(f"{{{len(v)}:")
        for k in sorted(v):
            self.put(k)
            self.put(v[k])

    def node(self, v: Any) -> None:
        if type(v) in BY_IDENTITY:
            self.identity(v)
        elif isinstance(v, Expr):
            self.expression(v)
        elif does_nothing(v):
            self.parts.append("pass;")
        elif isinstance(v, BaseFunc):
            self.function(v)
        else:
            outer = self.size_is_known
            self.size_is_known = outer or type(v) is ts.Let or isinstance(v, StructInfo)
            for x in bound(v):
                self.numbers.pop(x, None)
            for x in bound(v):
                self.put(x)
            self.size_is_known = outer or isinstance(v, StructInfo)
            self.fields(v, ("name",) if type(v) is ts.Block else ())
            self.size_is_known = outer

    def expression(self, e: Any) -> None:
        """Expressions are graphs: what occurs in one for the second time is named by its number."""
        outermost = self.inner is None
        known = {} if self.inner is None else self.inner
        if e in known:
            self.parts.append(f"@{known[e]};")
            return
        known[e], self.inner = len(known), known
        self.fields(e)
        if outermost:
            self.inner = None

    def identity(self, v: Any) -> None:
        if v in self.numbers:
            self.parts.append(f"#{self.numbers[v]};")
            return
        self.numbers[v] = self.count = self.count + 1
        if isinstance(v, Var):
            self.parts.append(f"Var {v.dtype} {int(v.size and not self.size_is_known)};")
        else:
            outer, self.inner = self.inner, None
            self.fields(v, ("name",))
            self.inner = outer

    def function(self, f: Any) -> None:
        """Variables belong to their function; the signature binds before the body is looked at."""
        outer, self.numbers, self.count = (self.numbers, self.count), {}, 0
        self.put(f.params)
        if "buffer_map" in f._fields:
            self.put(f.buffer_map)
        self.fields(f, ("params", "buffer_map", "attrs"))
        self.mapping({k: v for k, v in f.attrs.items() if k not in self.without_attrs})
        self.numbers, self.count = outer

    def fields(self, v: Any, skip: tuple[str, ...] = ()) -> None:
        self.parts.append(f"{type(v).__name__}[")
        for f in v._fields:
            if f not in skip and f not in v._hidden:
                self.put(getattr(v, f))


def _text(v: str) -> str:
    return f"{len(v)}'{v}"


def _float(v: float) -> str:
    return "nan;" if v != v else f"f{struct.pack('<d', v).hex()};"


def _other(v: Any) -> str:
    if isinstance(v, Enum):
        return f"{type(v).__name__}.{v.name};"
    return f"{type(v).__module__}.{getattr(v, '__qualname__', type(v).__qualname__)};"  # never its repr, which may hold an address


_WRITE: dict[type, Callable[[Any], str]] = {  # of values that are no parts of others
    str: _text, DType: _text, int: lambda v: f"i{v};", bool: lambda v: f"b{int(v)};", float: _float, type(None): lambda v: "none;",
    OpDef: lambda v: f"op {v.name};", ConstData: lambda v: f"{v.key};",
}
