# SPDX-License-Identifier: Apache-2.0
"""Merging tensor programs: several block-form functions, called one after another, become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.errors import LowerError
from ...ir.node import Token
from ...ir.visit import Rewriter, on


class Refresh(Rewriter):
    """Copies a program with new variables, buffers and tokens, so that one function can hold it twice."""

    def __init__(self, variables: Mapping[tir.Var, tir.Expr], buffers: Mapping[tir.Buffer, tir.Buffer], taken: set[str]) -> None:
        self.variables, self.buffers, self.taken = dict(variables), dict(buffers), taken

    def _fresh(self, var: tir.Var) -> tir.Var:
        new = self.variables[var] = tir.Var(var.name, var.dtype, var.size)
        return new

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        if buffer not in self.buffers:
            data = self.variables.get(buffer.data) or self._fresh(buffer.data)
            self.buffers[buffer] = buffer.replace(
                shape=self.rewrite_field(buffer.shape), strides=self.rewrite_field(buffer.strides), data=data,
                elem_offset=None if buffer.elem_offset is None else self.rewrite(buffer.elem_offset))
        return self.buffers[buffer]

    @on(tir.Var)
    def _var(self, var: tir.Var) -> tir.Expr:
        return self.variables.get(var, var)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.For:
        low, extent = self.rewrite(loop.min), self.rewrite(loop.extent)
        var = self._fresh(loop.loop_var)
        return loop.replace(loop_var=var, min=low, extent=extent, body=self.rewrite(loop.body), token=Token(),
                            step=None if loop.step is None else self.rewrite(loop.step))

    @on(tir.Let)
    def _let(self, let: tir.Let) -> tir.Let:
        value = self.rewrite(let.value)
        return let.replace(var=self._fresh(let.var), value=value, body=self.rewrite(let.body))

    @on(tir.IterVar)
    def _iter(self, it: tir.IterVar) -> tir.IterVar:
        return it.replace(var=self.variables[it.var], dom=self.rewrite(it.dom))

    @on(tir.Block)
    def _block(self, block: tir.Block) -> tir.Block:
        for it in block.iter_vars:
            self._fresh(it.var)
        return self.generic(block).replace(token=Token(), name=self._name(block.name))

    def _name(self, hint: str) -> str:
        name, k = hint, 0
        while name in self.taken:
            k += 1
            name = f"{hint}_{k}"
        self.taken.add(name)
        return name


@dataclass
class Step:
    """One program of a merge: ``buffers`` is what each of its buffer parameters is in the merged function, ``scalars``
    the values of its scalar parameters."""

    func: tir.PrimFunc
    buffers: Sequence[tir.Buffer]
    scalars: Sequence[tir.Expr] = ()


def merge_programs(steps: Sequence[Step], params: Sequence[tir.Buffer], scalars: Sequence[tir.Var], temporaries: Sequence[tir.Buffer],
                   attrs: Attrs) -> tir.PrimFunc:
    """One function that runs the steps in order over ``params``, with ``temporaries`` allocated in its root block."""
    taken: set[str] = {"root"}
    bodies, allocs = [], list(temporaries)
    for step in steps:
        body, own = _inline(step, taken)
        bodies.append(body)
        allocs += own
    root = tir.Block((), (), (), "root", tir.seq(*bodies), alloc_buffers=tuple(allocs))
    handles = tuple(tir.Var(b.name + "_handle", b.data.dtype) for b in params)
    return tir.PrimFunc((*handles, *scalars), tir.BlockRealize((), tir.const(True), root), tuple(zip(handles, params, strict=True)), attrs)


def _inline(step: Step, taken: set[str]) -> tuple[tir.Stmt, list[tir.Buffer]]:
    func = step.func
    root = func.root_block
    if root is None:
        raise LowerError("only programs in block form can be merged", where=func.attrs.get("global_symbol"))
    buffers = dict(zip(func.buffer_params, step.buffers, strict=True))
    variables: dict[tir.Var, tir.Expr] = {b.data: new.data for b, new in buffers.items()}
    for old, new in buffers.items():
        bind_shape(old.shape, new.shape, variables)
    mapped = func.buffers
    free = [p for p in func.params if p not in mapped]
    variables.update(zip(free, step.scalars, strict=True))
    copy = Refresh(variables, buffers, taken)
    new_root = copy.rewrite(root.replace(name="root_"))
    return new_root.body, list(new_root.alloc_buffers)


def bind_shape(shape: Sequence[tir.Expr], actual: Sequence[tir.Expr], variables: dict[Any, tir.Expr]) -> None:
    """Extend ``variables`` by what ``shape``'s plain variables stand for when the shape is ``actual``."""
    for dim, value in zip(shape, actual, strict=True):
        if type(dim) is tir.Var and dim not in variables:
            variables[dim] = value
