# SPDX-License-Identifier: Apache-2.0
"""What a flat function does to memory, and what it calls: facts that every code generator asks for, and the description of an interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from weakref import WeakKeyDictionary

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.node import Node
from ..ir.tir.effect import llvm_writes
from ..ir.tir.intrin import Effect, effect
from ..ir.visit import children

Lookup = Callable[[str], tir.PrimFunc]
_found: WeakKeyDictionary[tir.PrimFunc, Facts] = WeakKeyDictionary()


@dataclass
class Facts:
    """What one walk over a function finds: data pointers stored to and loaded from, calls that are not elementary, and the constants of
    the pool that it refers to: the key of each, and its place in the table that the function is given."""

    stored: set[tir.Var] = field(default_factory=set)
    loaded: set[tir.Var] = field(default_factory=set)
    calls: list[tir.Call] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)

    @property
    def calls_out(self) -> bool:
        """Whether something it calls may ask for the thread's workspace."""
        return any(
            c.op in ("parallel_for", "call_packed", "call_packed_into", "call_extern") or not isinstance(c.op, str)
            for c in self.calls
        )

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks that it has run on several threads."""
        return list(dict.fromkeys(c.args[0].value for c in self.calls if c.op == "parallel_for"))

    @property
    def callees(self) -> list[str]:
        """Names of the tensor programs that it calls; tasks are not among them."""
        return list(dict.fromkeys(c.op.name for c in self.calls if not isinstance(c.op, str)))


def facts_of(func: tir.PrimFunc) -> Facts:
    """Of a function, found once."""
    found = _found.get(func)
    if found is None:
        found = _found[func] = _walked(func)
    return found


def _walked(func: tir.PrimFunc) -> Facts:
    """Walks the body; what is shared is met once."""
    out, seen = Facts(), set()
    stack: list[Node] = [func.body]
    while stack:
        n = stack.pop()
        kind = type(n)
        if kind is tir.Seq:
            stack.extend(reversed(n.stmts))
            continue
        if kind in _LEAVES or id(n) in seen:
            continue
        seen.add(id(n))
        if kind is tir.BufferStore:
            out.stored.add(n.buffer.data)
        elif kind is tir.BufferLoad:
            out.loaded.add(n.buffer.data)
        elif kind is tir.Call and (not isinstance(n.op, str) or effect(n) is not Effect.PURE):
            out.calls.append(n)
        elif kind is tir.Call and n.op == "constant_ptr":
            out.constants.setdefault(n.args[0].value, len(out.constants))
        elif kind is tir.Let and n.var.dtype.is_handle:  # another name for memory
            if type(n.value) is tir.Var:
                out.stored.add(n.value)
            elif type(n.value) is tir.Call and n.value.op == "address_of":
                out.stored.add(n.value.args[0].buffer.data)
        stack.extend(reversed(list(children(n))))
    return out


_LEAVES = (tir.IntImm, tir.FloatImm, tir.Var, tir.StringImm)


def written_data(func: tir.PrimFunc, lookup: Lookup | None = None, facts: Facts | None = None) -> frozenset[tir.Var]:
    """Data pointers of buffers that the function stores to, or hands to something that may.

    With ``lookup`` (from a function's name in the module) it looks into tasks and kernels that are called.
    """
    facts = facts or facts_of(func)
    found = set(facts.stored)
    for call in facts.calls:
        found |= _handed_over(call, lookup)
    return frozenset(
        found | {p for p, b in func.buffer_map if b.data in found} | {b.data for p, b in func.buffer_map if p in found}
    )


def _handed_over(call: tir.Call, lookup: Lookup | None) -> set[tir.Var]:
    args: tuple[tir.Expr, ...] = call.args
    if call.op == "call_llvm_intrin" and type(args[0]) is tir.StringImm and not llvm_writes(args[0].value):
        return set()
    params: list[tir.Var | None] = [None] * len(args)
    harmless: frozenset[tir.Var] = frozenset()
    if lookup is not None and (call.op == "parallel_for" or not isinstance(call.op, str)):
        task = call.op == "parallel_for"
        callee = lookup(args[0].value if task else call.op.name)
        harmless = frozenset(callee.params) - written_data(callee, lookup)
        params = [None, *callee.params] if task else list(callee.params)  # begin and end stand for extent and grain
    return {data for a, p in zip(args, params) if p not in harmless for data in _pointers(a)}


def _pointers(e: tir.Expr) -> Iterator[tir.Var]:
    """The data pointers from which a pointer is made."""
    if type(e) is tir.Call and e.op == "address_of":
        yield e.args[0].buffer.data
    elif e.dtype.is_handle:
        if type(e) is tir.Var:
            yield e
        for part in children(e):
            if isinstance(part, tir.Expr):
                yield from _pointers(part)


def read_data(func: tir.PrimFunc, lookup: Lookup) -> frozenset[tir.Var]:
    """Data pointers of buffers that the function (or a task of it) loads from."""
    facts = facts_of(func)
    found = set(facts.loaded)
    for n in facts.calls:
        if n.op == "parallel_for":
            task = lookup(n.args[0].value)
            inner, buffers = read_data(task, lookup), task.buffers
            found.update(
                a
                for a, p in zip(n.args[1:], task.params)
                if type(a) is tir.Var and (p in inner or (p in buffers and buffers[p].data in inner))
            )
    return frozenset(found)
