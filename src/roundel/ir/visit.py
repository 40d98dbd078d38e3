# SPDX-License-Identifier: Apache-2.0
"""Walking and rewriting IR, generic over both levels; handlers are found by ``dict[type]``.

    class Simplify(Rewriter):
        @on(tir.For)
        def _loop(self, loop):
            loop = self.generic(loop)
            ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from .graph import expr as ge
from .module import IRModule
from .node import Node
from .tir import buffer as tb
from .tir import expr as te
from .tir import stmt as ts
from .tir.func import PrimFunc

F = TypeVar("F", bound=Callable)

# A host function declares every tensor of a model in the scope of the one before: as many levels as a model has layers.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 50_000))


_LEAVES = frozenset((te.Var, te.IntImm, te.FloatImm, te.StringImm))


def on(*types: type) -> Callable[[F], F]:
    """Marks a method of a Visitor or Rewriter as the handler of these node types."""

    def mark(fn: F) -> F:
        fn.handles = types  # type: ignore[attr-defined]
        return fn

    return mark


class _Dispatch:
    _table: dict[type, Callable] = {}

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        own = {t: fn for fn in cls.__dict__.values() if hasattr(fn, "handles") for t in fn.handles}
        cls._table = {**{k: v for base in reversed(cls.__mro__[1:]) for k, v in getattr(base, "_table", {}).items()}, **own}


def children(node: Node) -> list[Node]:
    """Child nodes in field order (buffers are references, not children)."""
    return node._below()


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, parents first; shared expressions are met at each place."""
    stack = [node]
    while stack:
        n = stack.pop()
        yield n
        below = n._below()
        if below:
            below.reverse()
            stack += below


def statements(node: Node) -> Iterator[Node]:
    """Every statement of the tree (with ranges and regions of blocks), parents first; expressions are not entered."""
    stack = [] if isinstance(node, te.Expr) else [node]
    while stack:
        n = stack.pop()
        yield n
        kind = type(n)
        if kind is ts.Seq:
            stack += n.stmts[::-1]
        elif kind is not ts.BufferStore and kind is not ts.Evaluate:  # in which there are expressions only
            stack += [c for c in reversed(n._below()) if not isinstance(c, te.Expr)]


def walk_once(node: Node) -> Iterator[Node]:
    """Every node of the tree, in no particular order; expressions are shared, and each is met once."""
    stack, seen = [node], set()
    while stack:
        n = stack.pop()
        if isinstance(n, te.Expr):
            if n in seen:
                continue
            seen.add(n)
        yield n
        stack += n._below()


def walk_data(node: Node) -> Iterator[Node]:
    """Every node that may touch memory or call something, parents first: index expressions are left out, and what is shared is met once."""
    stack, seen = [node], set()
    while stack:
        n = stack.pop()
        if isinstance(n, te.Expr):
            if n.is_index or n in seen:
                continue
            seen.add(n)
        yield n
        below = n._below()
        below.reverse()
        stack += below


class Visitor(_Dispatch):
    """Walks a tree; a handler decides whether to go on into children by calling ``self.generic(node)``."""

    def visit(self, node: Node) -> None:
        """Dispatch on the node's type."""
        handler = self._table.get(type(node))
        if handler is None:
            self.generic(node)
        else:
            handler(self, node)

    def generic(self, node: Node) -> None:
        """Visit the children."""
        table = self._table
        for child in node._below():
            handler = table.get(type(child))
            if handler is not None:
                handler(self, child)
            elif type(child) not in _LEAVES:
                self.generic(child)


class OnceVisitor(Visitor):
    """Goes into each expression once: they are shared, a graph and not a tree. ``seen``: those it went into."""

    def __init__(self) -> None:
        self.seen: set[Node] = set()

    def generic(self, node: Node) -> None:
        """Visit the children that were not visited yet."""
        if isinstance(node, te.Expr):
            if node in self.seen:
                return
            self.seen.add(node)
        super().generic(node)


class Rewriter(_Dispatch):
    """Builds a new tree bottom-up or as handlers decide; what does not change stays the same object.

    ``buffer`` is asked for every reference to a buffer and may map it to another.
    """

    _ways: dict[type, Callable] = {}  # what is done with nodes of each type that was met

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        cls._ways = {}

    def rewrite(self, node: Any) -> Any:
        """Dispatch on the node's type."""
        kind = type(node)
        way = self._ways.get(kind)
        if way is None:
            way = self._ways[kind] = self._way(kind)
        return way(self, node)

    __call__ = rewrite

    @classmethod
    def _way(cls, kind: type) -> Callable:
        """What is done with nodes of a type: its handler, or the generic way, without a detour where the class has the usual one."""
        if kind in cls._table:
            return cls._table[kind]
        if kind in _LEAVES:
            return unchanged
        return _GENERIC.get(kind) or kind._rebuilt if cls.generic is Rewriter.generic else cls.generic  # type: ignore[attr-defined]

    def generic(self, node: Any) -> Any:
        """The node with rewritten children; dispatch by kind of field."""
        special = _GENERIC.get(type(node))
        return node._rebuilt(self, node) if special is None else special(self, node)

    def rewrite_field(self, value: Any) -> Any:
        """What a field of a node holds, with the nodes in it rewritten."""
        if isinstance(value, tuple):
            return self.rewrite_items(value)
        if isinstance(value, Node):
            return self.rewrite(value)
        if type(value) is dict:
            new_dict = {k: self.rewrite(v) for k, v in value.items()}
            return value if all(new_dict[k] is v for k, v in value.items()) else new_dict
        return value

    def rewrite_items(self, values: tuple) -> tuple:
        """A tuple with the nodes in it rewritten."""
        new, same = [], True
        for v in values:
            w = self.rewrite(v) if isinstance(v, Node) else self.rewrite_field(v)
            if w is not v:
                same = False
            new.append(w)
        return values if same else tuple(new)

    def buffer(self, buffer: tb.Buffer) -> tb.Buffer:
        """What a reference to ``buffer`` becomes (itself by default)."""
        return buffer


def _with_buffer(self: Rewriter, node: Any) -> Any:
    changes = {name: self.rewrite_field(getattr(node, name)) for name in node._children}
    return node.replace(buffer=self.buffer(node.buffer), **changes)


def _store(self: Rewriter, node: ts.BufferStore) -> ts.BufferStore:
    buffer, value, indices = self.buffer(node.buffer), self.rewrite(node.value), self.rewrite_items(node.indices)
    predicate = None if node.predicate is None else self.rewrite(node.predicate)
    if value is node.value and indices is node.indices and buffer is node.buffer and predicate is node.predicate:
        return node
    return ts.BufferStore(buffer, value, indices, predicate, node.span)


def _load(self: Rewriter, node: te.BufferLoad) -> te.BufferLoad:
    buffer, indices = self.buffer(node.buffer), self.rewrite_items(node.indices)
    predicate = None if node.predicate is None else self.rewrite(node.predicate)
    if buffer is node.buffer and indices is node.indices and predicate is node.predicate:
        return node
    return te.BufferLoad(buffer, indices, predicate)


def _region(self: Rewriter, node: ts.BufferRegion) -> ts.BufferRegion:
    region, buffer = self.rewrite_items(node.region), self.buffer(node.buffer)
    return node if region is node.region and buffer is node.buffer else ts.BufferRegion(buffer, region)


def _block(self: Rewriter, node: ts.Block) -> ts.Block:
    allocs = tuple(self.buffer(b) for b in node.alloc_buffers)
    changes = {name: self.rewrite_field(getattr(node, name)) for name in node._children if name != "alloc_buffers"}
    return node.replace(alloc_buffers=node.alloc_buffers if allocs == node.alloc_buffers else allocs, **changes)


def _prim_func(self: Rewriter, node: PrimFunc) -> PrimFunc:
    pairs = tuple((v, self.buffer(b)) for v, b in node.buffer_map)
    same = all(a[1] is b[1] for a, b in zip(pairs, node.buffer_map, strict=True))
    return node.replace(buffer_map=node.buffer_map if same else pairs, body=self.rewrite(node.body))


def unchanged(self: Rewriter, node: Any) -> Any:
    """The way with nodes that have nothing to rewrite."""
    return node


_GENERIC: dict[type, Callable] = {
    ge.Var: unchanged, ge.DataflowVar: unchanged,
    te.BufferLoad: _load, ts.BufferStore: _store, ts.BufferRegion: _region, ts.MatchBufferRegion: _with_buffer,
    ts.Allocate: _with_buffer, ts.DeclBuffer: _with_buffer, ts.Block: _block, PrimFunc: _prim_func,
}


class Substitution(Rewriter):
    """Variables to expressions and buffers to buffers, for several nodes; what an expression becomes is remembered."""

    def __init__(self, variables: Mapping[Any, Any], buffers: Mapping[tb.Buffer, tb.Buffer]) -> None:
        self.variables, self.buffers = variables, dict(buffers)
        self.memo: dict[Any, Any] = {}

    def rewrite(self, node: Any) -> Any:
        """The node with its variables exchanged; the same object where it has none of them."""
        hit = self.memo.get(node)
        if hit is None:
            if not isinstance(node, te.Expr):
                return super().rewrite(node)
            if type(node) is te.Var:
                hit = self.variables.get(node, node)
            else:
                hit = node if is_free_of(node, self.variables) else self.generic(node)
            self.memo[node] = hit
        return hit

    def buffer(self, buffer: tb.Buffer) -> tb.Buffer:
        """The buffer with shape, strides and offset exchanged, the same new one at every use."""
        if buffer not in self.buffers:
            self.buffers[buffer] = _substitute_buffer(self, buffer)
        return self.buffers[buffer]


def _substitute_buffer(self: Rewriter, b: tb.Buffer) -> tb.Buffer:
    shape, strides = self.rewrite_field(b.shape), self.rewrite_field(b.strides)
    offset = None if b.elem_offset is None else self.rewrite(b.elem_offset)
    data = self.rewrite(b.data)
    return b.replace(shape=shape, strides=strides, elem_offset=offset, data=data if type(data) is te.Var else b.data)


def substitute(node: Any, variables: Mapping[Any, Any], buffers: Mapping[tb.Buffer, tb.Buffer] | None = None) -> Any:
    """``node`` with variables replaced by expressions and buffers by buffers (shapes of buffers are substituted too)."""
    if not variables and not buffers:
        return node
    if isinstance(node, te.Expr) and is_free_of(node, variables):
        return node
    return Substitution(variables, buffers or {}).rewrite(node)


def is_free_of(expr: te.Expr, variables: Mapping[Any, Any]) -> bool:
    """Whether an index expression has none of the variables (False for others: the buffers that they read have shapes)."""
    return expr.is_index and variables.keys().isdisjoint(free_vars(expr))


def free_vars(expr: te.Expr) -> frozenset[te.Var]:
    """Variables of an expression (memoised)."""
    if type(expr) is te.Var:
        return frozenset((expr,))
    if expr._facts is None:
        expr._facts = {}
    known = expr._facts.get("vars")
    if known is None:
        found = {free_vars(c) for c in expr._below() if isinstance(c, te.Expr)}
        known = expr._facts["vars"] = found.pop() if len(found) == 1 else frozenset().union(*found)
    return known


def map_functions(mod: IRModule, kind: type, fn: Callable[[Any], Any]) -> IRModule:
    """The module with ``fn`` applied to its functions of ``kind``; the same object when nothing changed."""
    return mod.with_functions({k: fn(f) for k, f in mod.items() if isinstance(f, kind)})
