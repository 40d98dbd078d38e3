# SPDX-License-Identifier: Apache-2.0
"""The structural verifier: what must hold of any module at any stage, whatever it computes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from ..ir import graph, tir
from ..ir.annotations import problems as problems_of_annotations
from ..ir.module import IRModule
from ..ir.op import OpDef
from ..ir.visit import Visitor, children, free_vars, on


def well_formed(mod: IRModule, *, rebinding: bool = False) -> list[str]:
    """What is wrong with a module, one sentence each (empty: nothing): variables used before they are defined or bound twice, unknown
    buffers or functions, blocks whose values and iteration variables do not match, operands of unequal type, missing
    struct info. ``rebinding`` allows what lowering makes when it copies statements: one variable bound in several places.
    """
    problems: list[str] = []
    bound: dict[tir.Var, Any] | None = None if rebinding else {}
    for name, func in mod.items():
        checker = _CHECKERS.get(type(func))
        if checker is None:
            problems.append(f"{name} is a {type(func).__name__}, not a function")
        else:
            checker(mod, name, problems, bound).function(func)
    return problems


class _Program(Visitor):
    """A tensor program."""

    def __init__(self, mod: IRModule, name: str, problems: list[str], bound: dict[tir.Var, Any] | None) -> None:
        self.mod, self.name, self.problems, self.bound = mod, name, problems, bound
        self.vars: set[tir.Var] = set()
        self.buffers: set[tir.Buffer] = set()
        self.loops: set[tir.Var] = set()  # of the loops around, since the innermost block
        self.outside: dict[tir.Var, str] = {}  # those around the innermost block, by its name

    def say(self, text: str) -> None:
        """Record a problem once."""
        line = f"{self.name}: {text}"
        if line not in self.problems:
            self.problems.append(line)

    def function(self, func: tir.PrimFunc) -> None:
        """Parameters define variables and buffers; so do the dimensions of the buffers."""
        self.vars.update(func.params)
        params = set(func.params)
        for p, b in func.buffer_map:
            if p not in params:
                self.say(f"buffer {b.name} is mapped to {p.name}, which is not a parameter")
            self._define(b)
            for e in (*b.shape, *b.strides, *([] if b.elem_offset is None else [b.elem_offset])):
                self.vars.update(free_vars(e))
        self.visit(func.body)

    def _define(self, b: tir.Buffer) -> None:
        self.buffers.add(b)
        self.vars.add(b.data)

    @contextmanager
    def scope(self, variables: Any = (), buffers: Any = ()) -> Any:
        """Definitions that hold inside only."""
        saved = self.vars, self.buffers
        self.vars, self.buffers = self.vars | set(variables), set(self.buffers)
        for b in buffers:
            self._define(b)
        yield
        self.vars, self.buffers = saved

    @on(tir.Var)
    def _var(self, e: tir.Var) -> None:
        if e in self.outside:
            self.say(f"variable {e.name} of a loop around block {self.outside[e]} is used inside of the block, which sees its own variables only")
        elif e not in self.vars and self.bound is not None and e in self.bound:
            self.say(f"ill-formed, due to: Invalid use of undefined variable {e.name} at a place where it is no longer in-scope.")
        elif e not in self.vars:
            self.say(f"variable {e.name} is used before it is defined")

    def _binds(self, var: tir.Var, span: Any) -> None:
        """A let binds a variable that no other let has bound."""
        if self.bound is None:
            return
        if var in self.bound:
            kind, again = ("nested definitions", "") if var in self.vars else ("definitions", "later ")
            places = f"It was first defined at {self.bound[var]}, and was {again}re-defined at {span}."
            self.say(f"TIR is ill-formed, due to multiple {kind} of variable {var.name}. {places}")
        self.bound[var] = span

    def _use(self, b: tir.Buffer, indices: int) -> None:
        if b not in self.buffers and b.data not in self.vars:
            self.say(f"buffer {b.name} is not a parameter, allocated or declared here")
        if indices != b.ndim:
            self.say(f"buffer {b.name} has {b.ndim} dimensions, {indices} indices are given")

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> None:
        self._use(e.buffer, len(e.indices))
        self.generic(e)

    @on(tir.BufferStore)
    def _store(self, s: tir.BufferStore) -> None:
        self._use(s.buffer, len(s.indices))
        lanes = s.buffer.dtype.lanes
        for i in s.indices:
            lanes *= i.dtype.lanes
        if s.value.dtype is not s.buffer.dtype.element.with_lanes(lanes):
            self.say(f"a {s.value.dtype} is stored into buffer {s.buffer.name} of {s.buffer.dtype} ({lanes} lanes)")
        self.generic(s)

    @on(*tir.BINARY)
    def _binary(self, e: tir.BinaryOp) -> None:
        if e.a.dtype is not e.b.dtype:
            self.say(f"{type(e).__name__} of {e.a.dtype} and {e.b.dtype}")
        self.generic(e)

    @on(tir.Select, tir.IfThenElse)
    def _choice(self, e: Any) -> None:
        if e.true_value.dtype is not e.false_value.dtype:
            self.say(f"{type(e).__name__} of {e.true_value.dtype} and {e.false_value.dtype}")
        if not e.condition.dtype.is_bool:
            self.say(f"the condition of a {type(e).__name__} is {e.condition.dtype}")
        self.generic(e)

    @on(tir.If, tir.While)
    def _branch(self, s: Any) -> None:
        if not s.condition.dtype.is_bool:
            self.say(f"the condition of a {type(s).__name__} is {s.condition.dtype}")
        self.generic(s)

    @on(tir.For)
    def _loop(self, s: tir.For) -> None:
        for e in (s.min, s.extent, *([] if s.step is None else [s.step])):
            self.visit(e)
        if s.loop_var in self.vars:
            self.say(f"loop variable {s.loop_var.name} is defined twice")
        self._annotations(s, f"loop {s.loop_var.name}")
        if (s.kind is tir.ForKind.THREAD_BINDING) != (s.thread is not None):
            self.say(f"loop {s.loop_var.name} is {s.kind.value} with thread {s.thread}")
        outer, self.loops = self.loops, self.loops | {s.loop_var}
        with self.scope([s.loop_var]):
            self.visit(s.body)
        self.loops = outer

    @on(tir.Let)
    def _let(self, s: tir.Let) -> None:
        self.visit(s.value)
        self._binds(s.var, s.span)
        if s.var.dtype is not s.value.dtype:
            self.say(f"variable {s.var.name} of {s.var.dtype} is let be a {s.value.dtype}")
        with self.scope([s.var]):
            self.visit(s.body)

    @on(tir.Allocate)
    def _allocate(self, s: tir.Allocate) -> None:
        self._annotations(s, f"the allocation of {s.buffer.name}")
        self._shape(s.buffer)
        with self.scope(buffers=[s.buffer]):
            self.visit(s.body)

    @on(tir.DeclBuffer)
    def _declare(self, s: tir.DeclBuffer) -> None:
        self._shape(s.buffer)
        if s.buffer.data not in self.vars:
            self.say(f"buffer {s.buffer.name} is declared over {s.buffer.data.name}, which is not defined")
        with self.scope(buffers=[s.buffer]):
            self.visit(s.body)

    def _shape(self, b: tir.Buffer) -> None:
        for e in (*b.shape, *b.strides, *([] if b.elem_offset is None else [b.elem_offset])):
            self.visit(e)

    @on(tir.AttrStmt)
    def _attr(self, s: tir.AttrStmt) -> None:
        var = s.subject.var if isinstance(s.subject, tir.IterVar) else s.subject
        self.visit(s.value)
        made = _made_by(s)
        threads = [var] if s.key in ("thread_extent", "virtual_thread") and isinstance(var, tir.Var) else []
        with self.scope([*threads, *(v for b in made for v in _symbols(b))], made):
            self.visit(s.body)

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        if len(s.iter_values) != len(s.block.iter_vars):
            self.say(
                f"block {s.block.name} has {len(s.block.iter_vars)} iteration variables and {len(s.iter_values)} values"
            )
        for e in (*s.iter_values, s.predicate):
            self.visit(e)
        if not s.predicate.dtype.is_bool:
            self.say(f"the predicate of block {s.block.name} is {s.predicate.dtype}")
        self.visit(s.block)

    def _annotations(self, node: Any, what: str) -> None:
        for problem in problems_of_annotations(node):
            self.say(f"{what}: {problem}")

    @on(tir.Block)
    def _block(self, b: tir.Block) -> None:
        self._annotations(b, f"block {b.name}")
        for iv in b.iter_vars:
            self.visit(iv.dom.min)
            self.visit(iv.dom.extent)
            if iv.var in self.vars:
                self.say(f"iteration variable {iv.var.name} of block {b.name} is defined twice")
        inside = {v: b.name for v in self.loops} if b.iter_vars else {}
        outer = self.loops, self.outside
        self.loops, self.outside = set(), {**self.outside, **inside}
        self._contents(b)
        self.loops, self.outside = outer

    def _contents(self, b: tir.Block) -> None:
        with self.scope([iv.var for iv in b.iter_vars], b.alloc_buffers):
            for m in b.match_buffers:
                self._use(m.source.buffer, len(m.source.region))
                for r in m.source.region:
                    self.visit(r.min)
                    self.visit(r.extent)
                self._define(m.buffer)
                for e in (
                    *m.buffer.shape,
                    *m.buffer.strides,
                    *([] if m.buffer.elem_offset is None else [m.buffer.elem_offset]),
                ):
                    self.vars |= free_vars(e)
            for region in (*b.reads, *b.writes):
                self._use(region.buffer, len(region.region))
            if b.init is not None:
                self.visit(b.init)
            self.visit(b.body)

    @on(tir.Call)
    def _call(self, e: tir.Call) -> None:
        if isinstance(e.op, graph.GlobalVar):
            callee = self.mod.functions.get(e.op.name)
            if callee is None:
                self.say(f"function {e.op.name} is called, but is not in the module")
        self.generic(e)


def _made_by(s: tir.AttrStmt) -> list[tir.Buffer]:
    """Buffers that an attribute declares: a view bound to a region, memory realized for one."""
    if s.key == "buffer_bind_scope" and isinstance(s.subject, tuple | list):
        return [s.subject[0]]
    return [s.subject.buffer] if s.key == "realize_scope" and isinstance(s.subject, tir.BufferRegion) else []


def _symbols(b: tir.Buffer) -> set[tir.Var]:
    """Variables in the shape, strides and offset of a buffer."""
    return set().union(*(free_vars(e) for e in (*b.shape, *b.strides, *([] if b.elem_offset is None else [b.elem_offset]))))


class _Graph:
    """A graph function."""

    def __init__(self, mod: IRModule, name: str, problems: list[str], bound: dict[tir.Var, Any] | None) -> None:
        self.mod, self.name, self.problems = mod, name, problems
        self.vars: set[graph.Var] = set()
        self.dims: set[tir.Var] = set()

    def say(self, text: str) -> None:
        """Record a problem."""
        self.problems.append(f"{self.name}: {text}")

    def function(self, func: graph.Function) -> None:
        """Parameters define variables and symbolic dimensions."""
        for p in func.params:
            self.vars.add(p)
            self.dims |= _dims(p.sinfo)
        self.seq(func.body)

    def function_inside(self, func: graph.Function) -> None:
        """A function that is a value: it sees the variables around it, its own end with it."""
        outer = self.vars, self.dims
        self.vars, self.dims = set(self.vars), set(self.dims)
        self.function(func)
        self.vars, self.dims = outer

    def seq(self, e: Any) -> None:
        """Bindings in order; dataflow variables end with their block."""
        if not isinstance(e, graph.SeqExpr):
            self.expr(e)
            return
        for block in e.blocks:
            for b in block.bindings:
                self.binding(b, isinstance(block, graph.DataflowBlock))
            self.vars = {v for v in self.vars if not isinstance(v, graph.DataflowVar)}
        self.expr(e.body)

    def binding(self, b: graph.Binding, dataflow: bool) -> None:
        """One binding."""
        value: Any = b.value  # type: ignore[attr-defined]
        self.expr(value)
        if b.var in self.vars:
            self.say(f"variable {b.var.name} is bound twice")
        if isinstance(b.var, graph.DataflowVar) and not dataflow:
            self.say(f"dataflow variable {b.var.name} is bound outside a dataflow block")
        if dataflow and isinstance(value, graph.If | graph.While):
            self.say(f"control flow ({b.var.name}) stands inside a dataflow block")
        if isinstance(b, graph.MatchCast):
            self.dims |= _dims(b.sinfo)
        if not isinstance(b.var.sinfo, graph.StructInfo):
            self.say(f"variable {b.var.name} has no struct info")
        else:
            self.known(_dims(b.var.sinfo), f"the struct info of {b.var.name}")
        self.vars.add(b.var)

    def known(self, dims: set[tir.Var], where: str) -> None:
        """Symbolic dimensions must be defined by a parameter or a match_cast."""
        for v in dims - self.dims:
            self.say(f"symbolic dimension {v.name} in {where} is not defined")

    def expr(self, e: Any) -> None:
        """An expression; calls have variables, constants or tuples of them as operands."""
        if isinstance(e, graph.Var):
            if e not in self.vars:
                self.say(f"variable {e.name} is used before it is defined")
            return
        handlers: dict[type, Callable[[Any], None]] = {
            graph.Call: self.call,
            graph.If: self.branch,
            graph.While: self.loop,
            graph.SeqExpr: self.seq,
            graph.Function: self.function_inside,
        }
        handler = handlers.get(type(e))
        if handler is not None:
            handler(e)
        elif isinstance(e, graph.GlobalVar):
            if e not in self.mod:
                self.say(f"function {e.name} is referred to, but is not in the module")
        elif isinstance(e, graph.ShapeExpr | graph.PrimValue):
            for v in e.values if isinstance(e, graph.ShapeExpr) else (e.value,):
                self.known(set(free_vars(v)), "a shape")
        elif isinstance(e, graph.Tuple | graph.TupleGetItem):
            for c in children(e):
                self.expr(c)

    def call(self, e: graph.Call) -> None:
        """Operands, the callee, and the number of arguments of tensor programs."""
        if not isinstance(e.op, OpDef):
            self.expr(e.op)
        for a in e.args:
            if isinstance(a, graph.Call | graph.If | graph.While | graph.SeqExpr):
                self.say(f"an operand of {e.op!r} is not bound to a variable")
            if a is not None:
                self.expr(a)
        if isinstance(e.op, OpDef) and e.op.name in ("call_tir", "call_tir_inplace") and e.args[0] in self.mod:
            callee = self.mod[e.args[0]]
            if not isinstance(callee, tir.PrimFunc):
                self.say(f"call_tir of {e.args[0].name}, which is not a tensor program")  # type: ignore[union-attr]
            elif not e.sinfo_args:
                self.say(f"call_tir of {e.args[0].name} without the struct info of its result")  # type: ignore[union-attr]

    def branch(self, e: graph.If) -> None:
        """Each branch sees what is before it."""
        self.expr(e.condition)
        for part in (e.true_branch, e.false_branch):
            saved = set(self.vars), set(self.dims)
            self.seq(part)
            self.vars, self.dims = saved

    def loop(self, e: graph.While) -> None:
        """Condition and body see the loop variables."""
        for v in e.init:
            self.expr(v)
        saved = set(self.vars), set(self.dims)
        for v in e.loop_vars:
            self.vars.add(v)
            self.dims |= _dims(v.sinfo)
        for part in (e.condition, e.body):
            inner = set(self.vars), set(self.dims)
            self.seq(part)
            self.vars, self.dims = inner
        self.vars, self.dims = saved


def _dims(info: Any) -> set[tir.Var]:
    """Symbolic dimensions in a struct info."""
    exprs: tuple = ()
    if isinstance(info, graph.TensorInfo):
        exprs = info.shape or ()
    elif isinstance(info, graph.ShapeInfo):
        exprs = info.values or ()
    elif isinstance(info, graph.PrimInfo) and info.value is not None:
        exprs = (info.value,)
    elif isinstance(info, graph.TupleInfo):
        return set().union(*map(_dims, info.fields))
    return set().union(*(free_vars(e) for e in exprs))


_CHECKERS: dict[type, type] = {tir.PrimFunc: _Program, graph.Function: _Graph}
