# SPDX-License-Identifier: Apache-2.0
"""Blocks, their axes and buffers: the part of tensor programs that isolates computations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arith import block_access
from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.dtype import INT64
from ...ir.tir import Block, BlockRealize, Buffer, IterVar, Range, Stmt, Var
from ...ir.visit import walk
from .. import marks
from ..regions import extent_between
from .core import StaticEvaluator
from .frames import BlockParts, Body, FunctionParts


class Blocks(StaticEvaluator):
    """Reads block heads, axes and buffer declarations."""

    parts: FunctionParts
    blocks: list[BlockParts]
    body: Body
    loops: dict[Var, Range]
    pointers: set[Buffer]
    said_nothing: Block | None = None  # the last block that left its regions to be detected
    around: list[Var]  # variables of the loops around, inside the innermost block

    def statements(self, nodes: list[ast.stmt]) -> Stmt:
        """A body in a frame of its own."""
        raise NotImplementedError

    # ---- blocks

    def enter_block(self, head: marks.BlockHead, target: Any, body: list[ast.stmt], node: ast.With) -> None:
        """``with T.sblock("B"):``"""
        if target is not None and not head.axes:
            raise self.error(target, "a block has no value to name", "its axes are named inside: vi = T.axis.spatial(128, i)")
        parts = BlockParts(head.name, head.no_realize)
        self.blocks.append(parts)
        outside, self.around = self.around, []
        try:
            with self.scope.frame():
                if head.axes:
                    self._bind_in_order(head.axes, target, outside, node)
                stmt = self.statements(body)
        finally:
            self.blocks.pop()
            self.around = outside
        self.body.add(self._realize(parts, stmt, node))

    def _bind_in_order(self, axes: Sequence[marks.Axes], target: Any, loops: list[Var], node: ast.AST) -> None:
        """The oldest spelling: ``as [vi, vk]`` names the axes, bound to the loops around in order unless ``T.bind`` says otherwise."""
        names = [t.id for t in getattr(target, "elts", [target] if target is not None else []) if isinstance(t, ast.Name)]
        if len(names) != len(axes):
            raise self.error(node, f"{len(names)} names for {len(axes)} axes")
        values: list[Any] = loops if len(loops) == len(axes) else [0] * len(axes)
        for name, a, value in zip(names, axes, values):
            self.scope.define(name, self.bind_axis(name, marks.Axes(a.kinds, a.doms, [value], a.dtype), node))

    def rebind(self, var: Var, value: Any) -> bool:
        """``T.bind(vi, value)`` in a block of the oldest spelling; False where ``var`` is no variable of the block."""
        block = self.blocks[-1]
        for k, iv in enumerate(block.iter_vars):
            if iv.var is var:
                block.values[k] = tir.as_index(self.operand(value))
                return True
        return False

    def _realize(self, parts: BlockParts, body: Stmt, node: ast.AST) -> Stmt:
        block = Block(
            tuple(parts.iter_vars),
            parts.reads or (),
            parts.writes or (),
            parts.name,
            body,
            parts.init,
            tuple(parts.allocs),
            tuple(parts.matches),
            Attrs(parts.annotations),
            None,
            self.source.span(node),
        )
        if parts.reads is None or parts.writes is None:
            visible = [*self.parts.buffer_map.values(), *(b for p in (*self.blocks, parts) for b in p.allocs)]
            reads, writes = block_access(block, visible)
            block = block.replace(
                reads=reads if parts.reads is None else block.reads,
                writes=writes if parts.writes is None else block.writes,
            )
            self.said_nothing = block if parts.reads is None and parts.writes is None else None
        return BlockRealize(tuple(parts.values), parts.predicate, block)

    def with_root(self, body: Stmt) -> Stmt:
        """The body under a root block, where it has blocks or block allocations and no root of its own."""
        root = self.parts.root
        has_root = isinstance(body, BlockRealize) and not body.block.iter_vars
        if has_root and not root.allocs and not root.annotations:
            found = body.block is self.said_nothing  # a root has no regions unless the script gives it some, written out or not
            return body.replace(block=body.block.replace(reads=(), writes=())) if found else body
        if not (
            root.allocs
            or root.annotations
            or root.reads
            or root.writes
            or any(isinstance(n, BlockRealize) for n in walk(body))
        ):
            return body
        return BlockRealize(
            (),
            root.predicate,
            Block(
                (),
                root.reads or (),
                root.writes or (),
                "root",
                body,
                root.init,
                tuple(root.allocs),
                tuple(root.matches),
                Attrs(root.annotations),
            ),
        )

    # ---- axes

    def split_axes(self, axes: marks.Axes) -> list[marks.Axes]:
        """One mark per axis, for ``vi, vj = T.axis.remap(...)``."""
        return [marks.Axes([k], [d], [v], axes.dtype) for k, d, v in zip(axes.kinds, axes.doms, axes.values)]

    def bind_axis(self, name: str, axes: marks.Axes, node: ast.AST) -> Any:
        """The iteration variable(s) called ``name``, added to the block."""
        if len(axes.kinds) > 1:
            return [self.bind_axis(f"{name}_{k}", a, node) for k, a in enumerate(self.split_axes(axes))]
        if len(self.blocks) == 1:
            raise self.error(node, "T.axis stands outside of a block", 'open one: with T.sblock("name"):')
        block = self.blocks[-1]
        if name in self.scope.frames[-1] and any(iv.var is self.scope.frames[-1][name] for iv in block.iter_vars):
            raise self.error(node, f"block {block.name} has two axes called {name}")
        dom, value = self._domain(axes.doms[0], self.operand(axes.values[0]), node)
        var = Var(name, axes.dtype or value.dtype)
        for e in (value, dom.min, dom.extent):
            if not e.dtype.is_int:
                raise self.error(node, f"axis {name} runs over integers, not {e.dtype}")
        self.scope.define(name, var)
        block.iter_vars.append(IterVar(var, dom, axes.kinds[0]))
        block.values.append(value)
        return var

    def _domain(self, dom: Any, value: Any, node: ast.AST) -> tuple[Range, tir.Expr]:
        if value is not None and isinstance(dom, Var) and dom in self.loops and not (isinstance(value, Var) and value in self.loops):
            dom, value = value, dom  # the oldest spelling: T.axis.spatial(i, 128)
        if dom is None:
            if not isinstance(value, Var) or value not in self.loops:
                raise self.error(
                    node,
                    "T.axis.remap takes loop variables",
                    "for other bindings use T.axis.spatial(extent, value) or T.axis.reduce",
                )
            return self.loops[value], value
        if isinstance(dom, Range):
            made = dom
        elif isinstance(dom, tuple | list):
            made = Range(tir.as_index(dom[0]), extent_between(dom[0], dom[1]))
        else:
            extent = tir.as_index(dom)
            made = Range(tir.IntImm(0, extent.dtype), extent)
        if value is None:
            raise self.error(node, "the axis is not bound to a value", "write T.axis.spatial(extent, value)")
        return made, tir.as_index(value)

    # ---- buffers

    def buffer(self, name: str, spec: marks.BufferSpec) -> Buffer:
        """The buffer of a declaration."""
        o = spec.options
        data = o.get("data")
        data = data.data if isinstance(data, Buffer) else data
        offset, factor = o.get("elem_offset"), o.get("offset_factor") or 0
        if offset is ...:
            offset = Var(f"{name}_elem_offset", INT64) if factor else None
        return tir.decl_buffer(
            [self.operand(s) for s in spec.shape],
            spec.dtype,
            name,
            strides=tuple(self._stride(s) for s in o.get("strides") or ()),
            elem_offset=offset,
            scope=o.get("scope") or "global",
            data=data,
            align=o["align"] if o.get("align", 0) > 0 else 64,
            offset_factor=factor or 1,
            axis_separators=o.get("axis_separators") or (),
        )

    def _stride(self, stride: Any) -> Any:
        """A stride; a text names the variable that it is known by in this function."""
        if not isinstance(stride, str):
            return stride
        frame = self.scope.frames[0]
        known = frame.setdefault(stride, Var(stride, INT64, True))
        if not isinstance(known, tir.Expr):
            raise TypeError(f"stride {stride!r} is the name of something that is no variable")
        return known

    def bind_buffer(self, name: str, spec: marks.BufferSpec, node: ast.AST) -> Buffer:
        """The buffer called ``name``, declared where its role says."""
        if name != "_" and isinstance(self.scope.frames[-1].get(name), Buffer):
            raise self.error(node, f"buffer {name} is declared twice")
        buffer = self.buffer(name, spec).replace(span=self.source.span(node))
        _ROLES[spec.role](self, buffer, spec, node)
        return buffer

    def _match(self, buffer: Buffer, spec: marks.BufferSpec, node: ast.AST) -> None:
        if isinstance(spec.source, tir.BufferRegion):
            self.blocks[-1].matches.append(tir.MatchBufferRegion(buffer, spec.source))
        elif spec.source in self.parts.params:
            self.parts.buffer_map[spec.source] = buffer
        else:
            raise self.error(node, f"T.match_buffer of {spec.source.name}, which is not a parameter of the function")


def _allocate(p: Blocks, buffer: Buffer, spec: marks.BufferSpec, node: ast.AST) -> None:
    if spec.role == "allocate":
        p.pointers = p.pointers | {buffer}
    span = p.source.span(node)
    p.body.wrap(lambda rest: tir.Allocate(buffer, rest, Attrs(spec.annotations), span))


def _declare(p: Blocks, buffer: Buffer, spec: marks.BufferSpec, node: ast.AST) -> None:
    if spec.options.get("data") is None:  # no pointer to view: memory of its own
        _allocate(p, buffer, spec, node)
        return
    span = p.source.span(node)
    p.body.wrap(lambda rest: tir.DeclBuffer(buffer, rest, span))


def _fill(p: Blocks, buffer: Buffer, spec: marks.BufferSpec, node: ast.AST) -> None:
    """Memory with literal values: allocated and stored one by one."""
    _allocate(p, buffer, spec, node)
    shape = tuple(int(n.value) for n in buffer.shape if isinstance(n, tir.IntImm))
    values = np.array(spec.source.values).reshape(shape)
    for at in np.ndindex(*shape):
        place = tuple(tir.index_const(k) for k in at)
        p.body.add(tir.BufferStore(buffer, tir.const(values[at].item(), buffer.dtype), place, None, p.source.span(node)))


_ROLES: dict[str, Any] = {
    "param": lambda p, buffer, spec, node: None,
    "alloc": lambda p, buffer, spec, node: p.blocks[-1].allocs.append(buffer),
    "allocate": _allocate,
    "decl": _declare,
    "const": _fill,
    "match": Blocks._match,
}
