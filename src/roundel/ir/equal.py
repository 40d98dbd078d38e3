# SPDX-License-Identifier: Apache-2.0
"""Structural equality and hashing: programs equal up to renaming of bound variables and buffers, tokens and spans."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from .constants import ConstData
from .dataclass import dataclass
from .dtype import DType
from .errors import RoundelError
from .graph.expr import DataflowVar, MatchCast, VarBinding, While
from .graph.expr import Var as GraphVar
from .graph.struct_info import FuncInfo, StructInfo
from .node import Node
from .op import OpDef
from .tir import stmt as ts
from .tir.buffer import Buffer
from .tir.expr import Expr, FloatImm, IntImm, Var
from .tir.func import BaseFunc, PrimFunc
from .visit import walk

BY_IDENTITY = (Var, GraphVar, DataflowVar, Buffer)
_BINDS: dict[type, Callable[[Any], tuple]] = {  # a variable may be bound again elsewhere: loops that were duplicated
    ts.For: lambda n: (n.loop_var,), ts.Let: lambda n: (n.var,), ts.IterVar: lambda n: (n.var,), ts.DeclBuffer: lambda n: (n.buffer,),
    ts.Allocate: lambda n: (n.buffer, n.buffer.data),
    ts.Block: lambda n: tuple(x for b in (*n.alloc_buffers, *(m.buffer for m in n.match_buffers)) for x in (b, b.data)),
    VarBinding: lambda n: (n.var,), MatchCast: lambda n: (n.var,), While: lambda n: n.loop_vars,
}


def bound(node: Any) -> tuple:
    """The variables and buffers that a node binds, in order."""
    binds = _BINDS.get(type(node))
    return binds(node) if binds else ()


class _Compare:
    """Compares two trees in step. Variables and buffers correspond one to one from where they are bound.

    One that nothing binds corresponds to itself; inside of a function, or where ``map_free_vars`` says so, to any other that nothing binds.
    """

    def __init__(self, map_free_vars: bool = False) -> None:
        self.left: dict[Any, Any] = {}
        self.right: dict[Any, Any] = {}
        self.path: list[str] = []
        self.mismatch: tuple[str, Any, Any] | None = None
        self.map_free = map_free_vars
        self.inside = False  # of a function
        self.in_info = False  # inside of struct info: a dimension is a size, whether its variable says so or not

    def fail(self, a: Any, b: Any) -> bool:
        if self.mismatch is None:
            self.mismatch = ("".join(self.path), a, b)
        return False

    def same(self, a: Any, b: Any) -> bool:
        if a is b and not isinstance(a, Node):
            return True
        if type(a) is not type(b) and not (isinstance(a, str) and isinstance(b, str)):  # a DType is the string that names it
            return (does_nothing(a) and does_nothing(b)) or self.fail(a, b)
        if isinstance(a, Node):
            return self.nodes(a, b)
        if isinstance(a, tuple):
            same = all(self.step(f"[{k}]", x, y) for k, (x, y) in enumerate(zip(a, b)))  # lengths are compared behind the items
            return same and (len(a) == len(b) or self.ends(a, b))
        if isinstance(a, Mapping):
            return (set(a) == set(b) and all(self.step(f".{k}", a[k], b[k]) for k in a)) or self.fail(a, b)
        if isinstance(a, np.ndarray):
            return (a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()) or self.fail(a, b)
        return a == b or (a != a and b != b) or self.fail(a, b)  # NaN is NaN here

    def step(self, name: str, a: Any, b: Any) -> bool:
        self.path.append(name)
        ok = self.same(a, b)
        self.path.pop()
        return ok

    def ends(self, a: tuple, b: tuple) -> bool:
        """One of two tuples goes on where the other has ended."""
        k = min(len(a), len(b))
        self.path.append(f"[{k}]")
        self.fail(*(t[k] if len(t) > k else None for t in (a, b)))
        self.path.pop()
        return False

    def nodes(self, a: Any, b: Any) -> bool:
        if type(a) in BY_IDENTITY:
            return self.identities(a, b)
        if isinstance(a, FloatImm):
            return a is b or self.fail(a, b)
        if isinstance(a, BaseFunc):
            return self.functions(a, b)
        if isinstance(a, StructInfo):
            outer = self.in_info, self.map_free
            self.in_info, self.map_free = True, self.map_free or isinstance(a, FuncInfo)  # a function's type has variables of its own
            same = self.fields(a, b)
            self.in_info, self.map_free = outer
            return same
        outer, self.in_info = self.in_info, self.in_info or type(a) is ts.Let  # its value says whether it is a size
        matched = self.binds(bound(a), bound(b))
        self.in_info = outer
        return matched and self.fields(a, b)

    def functions(self, a: Any, b: Any) -> bool:
        """Variables belong to their function: two functions may use the same ones. The signature binds before the body is looked at.

        A function inside of a function sees the variables around it."""
        outer = self.left, self.right, self.map_free, self.inside
        known = (dict(self.left), dict(self.right)) if self.inside else ({}, {})
        (self.left, self.right), self.map_free, self.inside = known, True, True
        same = all(self.step("." + f, getattr(a, f), getattr(b, f)) for f in ("params", "buffer_map") if f in a._fields) and self.fields(a, b)
        self.left, self.right, self.map_free, self.inside = outer
        return same

    def binds(self, a: tuple, b: tuple) -> bool:
        """What two nodes bind corresponds from here on, whatever it was before."""
        if len(a) != len(b):
            return self.fail(a, b)
        for x in a:
            self.left.pop(x, None)
        for y in b:
            self.right.pop(y, None)
        outer, self.map_free = self.map_free, True
        same = all(map(self.identities, a, b))
        self.map_free = outer
        return same

    def fields(self, a: Any, b: Any) -> bool:
        skip = (*a._hidden, "name") if type(a) is ts.Block else a._hidden
        return all(self.step("." + f, getattr(a, f), getattr(b, f)) for f in a._fields if f not in skip)

    def identities(self, a: Any, b: Any) -> bool:
        if a in self.left or b in self.right:
            return (self.left.get(a) is b and self.right.get(b) is a) or self.fail(a, b)
        if a is not b and not self.map_free:
            return self.fail(a, b)
        self.left[a], self.right[b] = b, a
        if isinstance(a, Var):
            return self.step(".dtype", a.dtype, b.dtype) and (a.size == b.size or self.in_info or self.fail(a, b))
        skip = (*a._hidden, "name")
        return all(self.step("." + f, getattr(a, f), getattr(b, f)) for f in a._fields if f not in skip)


def does_nothing(s: Any) -> bool:
    """Whether a statement is ``pass``, for which ``T.evaluate(0)`` stands too."""
    return (type(s) is ts.Seq and not s.stmts) or (type(s) is ts.Evaluate and type(s.value) is IntImm and s.value.value == 0)


def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes are the same program up to names of variables, buffers and blocks.

    Variables that no function around them binds are themselves: ``x + 1`` and ``y + 1`` are equal with ``map_free_vars`` only.
    """
    return _Compare(map_free_vars).same(a, b)


def structural_mismatch(a: Any, b: Any, map_free_vars: bool = False) -> tuple[str, Any, Any] | None:
    """The first place where two programs differ, as a path (``".body.stmts[1].value"``) with what stands there in each; None for equal ones."""
    compare = _Compare(map_free_vars)
    return None if compare.same(a, b) else compare.mismatch or ("", a, b)


def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raises RoundelError that shows the first difference and both programs (see ``structural_equal``)."""
    found = structural_mismatch(a, b, map_free_vars)
    if found is None:
        return
    path, left, right = found
    why = f"left:  {_text(left)}\nright: {_text(right)}\n--- left\n{_text(a)}\n--- right\n{_text(b)}"
    raise RoundelError(f"programs differ at {path or 'the top'}", why=why)


def _text(node: Any) -> str:
    return node.script() if isinstance(node, Node) else repr(node)


_PLAIN = frozenset((str, int, bool, float, DType, type(None)))  # values that hash as they are


class _Hash:
    """Variables count by number, in the order in which they appear."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.count = 0

    def of(self, v: Any) -> int:
        if type(v) in _PLAIN:
            return hash(v) if v == v else hash("nan")
        if isinstance(v, Expr | Buffer):
            known, variables = _form(v)
            return hash((known, *map(self.number, variables)))
        if isinstance(v, Node):
            return self.node(v)
        if isinstance(v, tuple):
            return hash(tuple(map(self.of, v)))
        if isinstance(v, Mapping):
            return hash(tuple((k, self.of(v[k])) for k in sorted(v)))
        if isinstance(v, OpDef):
            return hash(v.name)
        if isinstance(v, ConstData | np.ndarray):
            return hash((v.shape, str(v.dtype)))
        return hash(v.value) if isinstance(v, Enum) else hash(v)

    def number(self, variable: Any) -> int:
        """Which variable it is, counted from the first."""
        known = self.numbers.get(variable)
        if known is None:
            known = self.numbers[variable] = self.count = self.count + 1
        return known

    def node(self, v: Node) -> int:
        if does_nothing(v):
            return hash("pass")
        if isinstance(v, BaseFunc):
            return _Hash().fields(v, v._hidden)
        if type(v) not in BY_IDENTITY:
            for x in bound(v):
                self.numbers.pop(x, None)
            return self.fields(v, (*v._hidden, "name", "reads", "writes") if type(v) is ts.Block else v._hidden)  # which follow from the body
        if v in self.numbers:
            return hash(("#", self.numbers[v]))
        self.number(v)
        return self.fields(v, (*v._hidden, "name"))

    def fields(self, v: Any, skip: tuple) -> int:
        return hash((type(v).__name__, *(self.of(getattr(v, f)) for f in v._fields if f not in skip)))


def _form(v: Any) -> tuple[int, tuple[Var, ...]]:
    """The hash of an expression or buffer in which variables count by the place where they first appear, and those variables in that
    order. Of expressions it is memoised."""
    if isinstance(v, Var):
        return hash(str(v.dtype)), (v,)
    if isinstance(v, Buffer):
        return _form_of_fields(v, (*v._hidden, "name"))
    if v._facts is None:
        v._facts = {}
    known = v._facts.get("form")
    if known is None:
        known = (hash((struct.pack("<d", v.value), str(v.dtype))), ()) if isinstance(v, FloatImm) else _form_of_fields(v, v._hidden)
        v._facts["form"] = known
    return known


def _form_of_fields(v: Node, skip: tuple) -> tuple[int, tuple[Var, ...]]:
    places: dict[Var, int] = {}

    def part(value: Any) -> int:
        if isinstance(value, tuple):
            return hash(tuple(map(part, value)))
        if not isinstance(value, Expr | Buffer):
            return _Hash().of(value)
        known, variables = _form(value)
        return hash((known, *(places.setdefault(x, len(places)) for x in variables)))

    return hash((type(v).__name__, *(part(getattr(v, f)) for f in v._fields if f not in skip))), tuple(places)


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that equal programs share (within one process), and that others have of their own but by chance."""
    known = _Hash().of(node)
    if map_free_vars or not isinstance(node, Expr | ts.Stmt):
        return known
    nodes = list(walk(node))
    inside = {x for n in nodes for x in bound(n)}
    return hash((known, *dict.fromkeys(n for n in nodes if isinstance(n, Var) and n not in inside)))


def _outline(node: Any) -> Any:
    """What is seen of a program without going into it, and is the same for equal ones."""
    if not isinstance(node, PrimFunc):
        return structural_hash(node, True)
    return tuple((b.dtype, tuple(n.value if type(n) is IntImm else None for n in b.shape)) for b in node.buffer_params), len(node.params)


class StructuralMap:
    """Values by program: equal ones share a value, those of which only the hashes are equal do not. Most programs differ in their parameters already,
    so they are hashed only where these are the same."""

    def __init__(self) -> None:
        self._found: dict[Any, list[_Entry]] = {}
        self._values: list[Any] = []

    def setdefault(self, node: Any, make: Callable[[], Any]) -> Any:
        """The value of an equal program, or else what ``make`` gives, which is kept for this one."""
        alike = self._found.setdefault(_outline(node), [])
        new = _Entry(node)
        for known in alike:
            if known.hash == new.hash and structural_equal(known.node, node, True):
                return known.value
        new.value = make()
        alike.append(new)
        self._values.append(new.value)
        return new.value

    def values(self) -> list[Any]:
        """All values, in the order in which they were made."""
        return list(self._values)


@dataclass(eq=False)
class _Entry:
    node: Any
    value: Any = None

    @cached_property
    def hash(self) -> int:
        return structural_hash(self.node, True)


__all__ = ["StructuralMap", "assert_structural_equal", "structural_equal", "structural_hash"]
