# SPDX-License-Identifier: Apache-2.0
"""Parallel loops become tasks: functions over a range of iterations, which the runtime's threads call.

    for i in T.parallel(n):                     T.parallel_for("f_task", n, grain, A.data, B.data, m)
        B[i] = A[i] + m                 ->
                                                def f_task(begin, end, A, B, m):
                                                    for i in range(begin, end):
                                                        B[i] = A[i] + m

The outermost parallel loop is outlined; parallel loops inside run serially, and so does a loop that writes elements of less than a byte
(neighbours share one, and two threads would write it at the same time). The loop annotation ``grain`` is the number
of iterations that a thread takes at once (0: the runtime chooses); where the extent is symbolic, at most that many. With the annotation ``ranges``
each thread takes one range, of at least ``grain`` iterations.
"""

from __future__ import annotations

from roundel.ir import Attrs, IRModule, Var, free_vars, on, tir
from roundel.ir.annotations import GRAIN, RANGES
from roundel.ir.dtype import HANDLE, INT32, INT64
from roundel.ir.visit import OnceVisitor, Rewriter, statements, substitute
from roundel.passes import pass_

from .kernel_pass import is_kernel
from .statements import StatementRewriter

FEW_CHUNKS = 4  # for all threads together, of a loop that is worth several


class _Captures(OnceVisitor):
    """Variables and memory that a statement uses and does not define, in order of appearance."""

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[Var, None] = {}
        self.defined: set[Var] = set()
        self.buffers: dict[tir.Buffer, None] = {}
        self.own: set[tir.Buffer] = set()

    def use(self, v: Var) -> None:
        if v not in self.defined:
            self.used.setdefault(v)

    def use_buffer(self, buffer: tir.Buffer) -> None:
        if buffer in self.buffers:
            return
        self.buffers[buffer] = None
        for e in (*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset])):
            self.visit(e)
        self.use(buffer.data)

    @on(Var)
    def _var(self, v: Var) -> None:
        self.use(v)

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, access: tir.BufferLoad | tir.BufferStore) -> None:
        self.use_buffer(access.buffer)
        self.generic(access)

    @on(tir.For)
    def _for(self, loop: tir.For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.defined.add(loop.loop_var)
        self.visit(loop.body)

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        self.visit(let.value)
        self.defined.add(let.var)
        self.visit(let.body)

    @on(tir.Allocate)
    def _allocate(self, alloc: tir.Allocate) -> None:
        self.own.add(alloc.buffer)
        self.defined.add(alloc.buffer.data)
        self.use_buffer(alloc.buffer)
        self.visit(alloc.body)

    @on(tir.DeclBuffer)
    def _decl(self, decl: tir.DeclBuffer) -> None:
        self.own.add(decl.buffer)
        self.use_buffer(decl.buffer)
        self.visit(decl.body)


def make_task(loop: tir.For) -> tuple[tir.PrimFunc, tuple[tir.Expr, ...]]:
    """The task of a loop, and the operands that its caller passes after the range."""
    found = _Captures()
    found.visit(loop.body)
    for v in free_vars(loop.min) - {loop.loop_var}:
        found.use(v)
    captured = [v for v in found.used if v is not loop.loop_var]
    buffers = [b for b in found.buffers if b not in found.own]
    first: dict[Var, tir.Buffer] = {}
    for b in buffers:
        first.setdefault(b.data, b)
    i, body = loop.loop_var, loop.body  # variables and buffers of one function may be those of another
    if type(loop.min) is not tir.IntImm or loop.min.value != 0:
        i = Var(loop.loop_var.name, loop.loop_var.dtype)
        body = substitute(body, {loop.loop_var: loop.min + i})
    for b in reversed(buffers):
        if first[b.data] is not b:
            body = tir.DeclBuffer(b, body)
    handles = {v: Var(b.name + "_handle", HANDLE) for v, b in first.items()}
    params = [handles.get(v, v) for v in captured]
    pairs = [(handles[v], first[v]) for v in captured if v in handles]
    begin, end = Var("begin", INT64), Var("end", INT64)
    run: tir.Stmt
    if RANGES in loop.annotations:
        run = _Ranged(begin, end - begin).rewrite(substitute(body, {i: begin}))
    else:
        run = tir.For(i, begin, end - begin, tir.ForKind.SERIAL, body, annotations=loop.annotations.without(GRAIN))
    return tir.PrimFunc((begin, end, *params), run, tuple(pairs), Attrs({"kind": "task"})), tuple(captured)


class _Ranged(Rewriter):
    """Calls of a C function for one iteration, whose last operands are its number and 1, as those for so many that begin with it."""

    def __init__(self, begin: Var, count: tir.Expr) -> None:
        self.begin, self.count = begin, count

    @on(tir.Call)
    def _call(self, call: tir.Call) -> tir.Expr:
        is_of_range = call.op == "call_extern" and len(call.args) > 1 and call.args[-2] is self.begin
        return call.replace(args=(*call.args[:-1], self.count)) if is_of_range else call


class _Serial(StatementRewriter):
    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        loop = self.generic(loop)
        return loop.replace(kind=tir.ForKind.SERIAL) if loop.kind is tir.ForKind.PARALLEL else loop


class _Outline(StatementRewriter):
    def __init__(self, name: str, taken: IRModule, contract: bool) -> None:
        self.name, self.taken, self.contract = name, taken, contract
        self.tasks: dict[str, tir.PrimFunc] = {}

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        if loop.kind is not tir.ForKind.PARALLEL:
            return self.generic(loop)
        if any(type(s) is tir.BufferStore and s.buffer.dtype.storage_bits < 8 for s in statements(loop.body)):
            return _Serial().rewrite(loop)
        name = self.taken.unique_name(f"{self.name}_task{len(self.tasks) or ''}")
        nested = any(type(s) is tir.For and s.kind is tir.ForKind.PARALLEL for s in statements(loop.body))
        task, operands = make_task(loop.replace(body=_Serial().rewrite(loop.body)) if nested else loop)
        if not self.contract:
            task = task.with_attr("contract", False)
        self.tasks[name] = task
        given = int(loop.annotations.get(GRAIN, 0))
        grain = tir.index_const(-max(given, 1)) if RANGES in loop.annotations else _grain(given, loop.extent)
        return tir.Evaluate(tir.Call("parallel_for", (tir.StringImm(name), loop.extent, grain, *operands), INT32))


def _grain(most: int, extent: tir.Expr) -> tir.Expr:
    """Iterations of a chunk: ``most``, or fewer where an extent that is known only at run time makes more than one chunk but few of them."""
    if most <= 1 or isinstance(extent, tir.IntImm):
        return tir.index_const(most)
    quarter = tir.floordiv(extent, FEW_CHUNKS)
    return tir.if_then_else(extent <= most, tir.index_const(most), tir.max_(1, tir.min_(most, quarter)))


@pass_("outline_tasks")
def outline_tasks(mod: IRModule) -> IRModule:
    """Parallel loops become tasks and calls of ``parallel_for``."""
    for name, func in list(mod.items()):
        if is_kernel(func):
            outline = _Outline(name, mod, bool(func.attrs.get("contract", True)))
            body = outline.rewrite(func.body)
            mod = mod.with_functions({name: func.replace(body=body), **outline.tasks})
    return mod
