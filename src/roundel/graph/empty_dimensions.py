# SPDX-License-Identifier: Apache-2.0
"""Checks of extents: what a program reads or writes at a position that is clamped or wrapped into a dimension needs one that is not empty.

    r = call_tir(pad, (x,), (m,))      ->    assert_op(n > 0 or m <= 0); r = call_tir(pad, (x,), (m,))

    for i in range(m): r[i] = x[max(min(i - 1, n - 1), 0)]

An access says that a dimension has an element where it runs at all: the loops around it are not empty and the conditions hold. Where those
prove that there is one (``for i in range(n): x[i]``, ``if 0 <= i - 1 < n: x[i - 1]``), nothing is checked; a check is of sizes, once a call.
Where only data tells whether a place is reached (``if mask[i]: x[count] = i``), sizes say nothing.

The option ``empty_checks`` turns the pass on. It is off by default because it still refuses some calls that are right: programs of sequences and
of non-maximum suppression whose own conditions on data keep them from the empty dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..arith import Analyzer
from ..arith.effects import reads_memory
from ..ir import graph, options, tir
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.op import CALL_TIR, CALL_TIR_INPLACE
from ..ir.tir import Expr, Range
from ..ir.visit import Rewriter, Visitor, free_vars, on, substitute, walk
from ..ops import make
from ..ops.dims import dim_text
from ..passes import pass_
from .index_ranges import static
from .merge_programs import bind_shape
from .rewriter import GraphRewriter, is_call


@dataclass(frozen=True)
class Need:
    """``buffer`` needs an element along ``dim``, unless one of the loops around its access is empty (``extents``)."""

    buffer: tir.Buffer
    dim: int
    extents: tuple[Expr, ...]


@pass_("empty_dimensions")
def empty_dimensions(mod: IRModule) -> IRModule:
    """Have calls of programs fail where a dimension is empty that they read from or write to; nothing unless the option ``empty_checks`` is on."""
    return _Check(mod).module() if options.get("empty_checks") else mod


class _Check(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.needs: dict[str, list[Need]] = {}
        self.asserted: set[Expr] = set()

    def block(self, block: graph.BindingBlock) -> graph.BindingBlock:
        """A rebuilt block; what was asserted inside of a branch says nothing about what follows it."""
        saved = set(self.asserted)
        try:
            return super().block(block)
        finally:
            self.asserted = saved

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        func = self.mod[call.args[0].name] if is_call(call, CALL_TIR) or is_call(call, CALL_TIR_INPLACE) else None
        if not isinstance(func, tir.PrimFunc):
            return call
        name = call.args[0].name
        if name not in self.needs:
            self.needs[name] = needs(func)
        if self.needs[name]:
            known = _sizes(func, call)
            for need in self.needs[name]:
                self.require(need, known, _no_results(call), str(binding.span or name))
        return call

    def require(self, need: Need, known: dict[Any, Expr], skipped: Expr, node: str) -> None:
        """Assert what is needed, in sizes of the graph, unless the call is ``skipped``."""
        an = Analyzer()
        size = an.simplify(substitute(need.buffer.shape[need.dim], known))
        empty = [an.simplify(substitute(n, known)) for n in need.extents]
        holds = tir.logical_or(skipped, tir.gt(size, 0), *(tir.le(n, 0) for n in empty if not free_vars(n) - set(_variables(known))))
        holds = an.simplify(holds)
        if an.prove(holds) or holds in self.asserted:
            return
        self.asserted.add(holds)
        text = f"{node}: dimension {need.dim} of {need.buffer.name} ({dim_text(size)}) is empty, but elements of it are needed"
        self.emit(make("assert_op", graph.PrimValue(holds), format=text), "not_empty")


def _no_results(call: graph.Call) -> Expr:
    """Whether all results are empty: then the program does not run."""
    infos = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    shapes = [info.shape if isinstance(info, graph.TensorInfo) and info.shape is not None else () for info in infos]
    return tir.logical_and(*(tir.logical_or(tir.const(False), *(tir.le(n, 0) for n in shape)) for shape in shapes))


def _variables(known: dict[Any, Expr]) -> Iterator[Any]:
    for value in known.values():
        yield from free_vars(value)


def _sizes(func: tir.PrimFunc, call: graph.Call) -> dict[Any, Expr]:
    """What the variables of a program are in a call of it."""
    operands = call.args[1].fields if isinstance(call.args[1], graph.Tuple) else (call.args[1],)
    infos = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    shapes = [info.shape for info in (*(o.sinfo for o in operands), *infos) if isinstance(info, graph.TensorInfo)]
    known: dict[Any, Expr] = {}
    for buffer, shape in zip(func.buffer_params, shapes, strict=False):
        if shape is not None and len(shape) == buffer.ndim:
            bind_shape(buffer.shape, shape, known)
    scalars = [p for p in func.params if p not in func.buffers]
    return known | dict(zip(scalars, call.args[2].values if len(call.args) > 2 else (), strict=False))


def needs(func: tir.PrimFunc) -> list[Need]:
    """The dimensions that a program needs elements along and that are not proven to have any."""
    if all((static(n) or 0) > 0 for b in func.buffer_params for n in b.shape):
        return []
    found = _Accesses()
    found.visit(func.body)
    return list(found.needs)


class _Accesses(Visitor):
    """Goes through a program with what is known at each place: loops are not empty, conditions hold. Values that are read are unknown, but
    the same wherever they are read: a value that a condition is about is the one that is used under it."""

    def __init__(self) -> None:
        self.an = Analyzer()
        self.values = _Unknown()
        self.extents: tuple[Expr, ...] = ()
        self.by_data = False  # whether only data tells if this place is reached
        self.needs: dict[Need, None] = {}
        self.seen: set[Node] = set()  # expressions that were gone into where no more is known than here

    @contextmanager
    def scope(self, *conditions: Expr, extent: Expr | None = None) -> Iterator[None]:
        saved = self.seen, self.extents, self.by_data
        self.seen = set(self.seen)
        self.by_data = self.by_data or any(map(reads_memory, conditions))
        if extent is not None:
            self.extents = (*self.extents, extent)
        with self.an.scope():
            for condition in conditions:
                self.an.assume(self.values.rewrite(condition))
            yield
        self.seen, self.extents, self.by_data = saved

    def generic(self, node: Node) -> None:
        if isinstance(node, Expr):
            if node in self.seen:
                return
            self.seen.add(node)
        super().generic(node)

    @on(tir.For)
    def _loop(self, loop: tir.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        extent = self.values.rewrite(loop.extent)
        with self.scope(extent=None if (static(extent) or 0) > 0 else extent):
            self.an.bind(loop.loop_var, Range(self.values.rewrite(loop.min), extent))
            self.visit(loop.body)

    @on(tir.BlockRealize)
    def _block(self, realize: tir.BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        with self.scope(realize.predicate):
            for iv, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
                self.an.bind(iv.var, self.values.rewrite(value))
            for part in (realize.block.init, realize.block.body):
                if part is not None:
                    self.visit(part)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.visit(let.value)
        with self.scope():
            if let.var.dtype.is_int and let.var.dtype.lanes == 1:
                self.an.bind(let.var, self.values.rewrite(let.value))
            self.visit(let.body)

    @on(tir.If)
    def _if(self, branch: tir.If) -> None:
        self.either(branch.condition, branch.then_case, branch.else_case)

    @on(tir.IfThenElse)
    def _if_then_else(self, choice: tir.IfThenElse) -> None:
        self.either(choice.condition, choice.true_value, choice.false_value)

    def either(self, condition: Expr, then: Node, otherwise: Node | None) -> None:
        """Two branches, each with what is known there."""
        self.visit(condition)
        with self.scope(condition):
            self.visit(then)
        if otherwise is not None:
            with self.scope(tir.logical_not(condition)):
                self.visit(otherwise)

    @on(tir.While)
    def _while(self, loop: tir.While) -> None:
        self.visit(loop.condition)
        with self.scope(loop.condition):
            self.visit(loop.body)

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: Any) -> None:
        for dim, (i, n) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            if (static(n) or 0) <= 0 and not self.by_data and not self.an.prove(tir.gt(n, 0)) and not self.inside(i, n):
                self.needs[Need(access.buffer, dim, self.extents)] = None
        self.generic(access)

    def inside(self, index: Expr, size: Expr) -> bool:
        """Whether an index is a position, which also holds of a place that is never reached (remainders are only where the divisor is not 0)."""
        if index.dtype.lanes > 1 or any(type(e) in (tir.FloorMod, tir.FloorDiv) and (static(e.b) or 0) <= 0 for e in walk(index)):
            return False
        index = self.values.rewrite(index)
        return self.an.prove(tir.ge(index, 0)) and self.an.prove(tir.lt(index, size))

    @on(tir.Call)
    def _call(self, call: tir.Call) -> None:
        if call.op != "address_of":
            self.generic(call)


class _Unknown(Rewriter):
    """An expression with a variable for each value that depends on memory."""

    def __init__(self) -> None:
        self.variables: dict[Expr, tir.Var] = {}

    @on(tir.BufferLoad, tir.Cast, tir.Call)
    def _value(self, e: Any) -> Expr:
        if not reads_memory(e):
            return e
        if e not in self.variables:
            self.variables[e] = tir.Var("value", e.dtype)
        return self.variables[e]
