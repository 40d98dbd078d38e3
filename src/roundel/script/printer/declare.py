# SPDX-License-Identifier: Apache-2.0
"""What a tree declares and what it uses without declaring it: free variables, buffers over other pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...ir import tir
from ...ir.node import Node
from ...ir.tir import Buffer, Var
from ...ir.visit import free_vars, walk

_DEFINES: dict[type, Callable[[Any], Iterator[Any]]] = {
    tir.For: lambda n: iter((n.loop_var,)),
    tir.Let: lambda n: iter((n.var,)),
    tir.IterVar: lambda n: iter((n.var,)),
    tir.Allocate: lambda n: iter((n.buffer,)),
    tir.DeclBuffer: lambda n: iter((n.buffer,)),
    tir.MatchBufferRegion: lambda n: iter((n.buffer,)),
    tir.Block: lambda n: iter(n.alloc_buffers),
    tir.PrimFunc: lambda n: iter((*n.params, *(b for _, b in n.buffer_map))),
    tir.IndexMap: lambda n: iter(n.initial_indices),
    tir.CommReducer: lambda n: iter((*n.lhs, *n.rhs)),
}
_USES: dict[type, Callable[[Any], Any]] = {
    t: lambda n: n.buffer
    for t in (tir.BufferLoad, tir.BufferStore, tir.BufferRegion, tir.MatchBufferRegion, tir.Allocate, tir.DeclBuffer)
}


def shape_vars(b: Buffer) -> frozenset[Var]:
    """Variables in the shape, strides and offset of a buffer."""
    exprs = (*b.shape, *b.strides, *(() if b.elem_offset is None else (b.elem_offset,)))
    return frozenset().union(*map(free_vars, exprs)) if exprs else frozenset()


class Declarations:
    """``free_vars`` in order of use; ``free_buffers``: used but declared by no statement; ``over``: the buffers of a free pointer."""

    def __init__(self, node: Node) -> None:
        defined: set[Any] = set()
        variables: dict[Var, None] = {}
        shapes = (
            {b for _, b in node.buffer_map} if isinstance(node, tir.PrimFunc) else set()
        )  # of parameters: known before the body
        buffers: dict[Buffer, None] = {}
        before: set[Var] = set()  # used before they are bound, as by a let further down
        views: set[Buffer] = set()  # over pointers that are there already
        for n in walk(node):
            defined.update(_DEFINES.get(type(n), lambda _: iter(()))(n))
            if type(n) is tir.DeclBuffer:
                views.add(n.buffer)
            if type(n) in _USES:
                buffers[_USES[type(n)](n)] = None
            elif type(n) is Var:
                variables[n] = None
                before |= set() if n in defined else {n}
            elif type(n) is tir.AttrStmt:
                for part in n.subject if isinstance(n.subject, tuple) else (n.subject,):
                    subject = part.buffer if isinstance(part, tir.BufferRegion) else part
                    if isinstance(subject, Buffer | Var):
                        (buffers if isinstance(subject, Buffer) else variables).setdefault(subject, None)  # type: ignore[arg-type]
                        before |= {subject} if isinstance(subject, Var) and subject not in defined else set()
            elif type(n) is tir.Block:
                buffers.update(dict.fromkeys(n.alloc_buffers))
            elif type(n) is tir.PrimFunc:
                buffers.update((b, None) for _, b in n.buffer_map)
        for b in buffers:
            variables.update(dict.fromkeys(sorted(shape_vars(b), key=lambda v: v.name)))
        self.pointers = {b.data for b in buffers if b not in views}
        variables.update(dict.fromkeys(b.data for b in buffers if b in views))
        params = set(node.params) if isinstance(node, tir.PrimFunc) else set()
        early = {v for b in defined if isinstance(b, Buffer) and b in shapes for v in shape_vars(b)} - params
        self.free_vars = [v for v in variables if (v not in defined or v in early or v in before) and v not in self.pointers]
        self.free_buffers = [b for b in buffers if b not in defined]
        self.over = {v: [b for b in buffers if b.data is v] for v in self.free_vars if v.dtype.is_handle}
        self.provided = {v for v in defined if isinstance(v, Var) and v not in before} | {b.data for b in defined if isinstance(b, Buffer)}

    def needs(self, b: Buffer) -> frozenset[Var]:
        """What must be declared before ``b`` can be."""
        return shape_vars(b) | ({b.data} & self.provided)
