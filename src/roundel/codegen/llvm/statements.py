# SPDX-License-Identifier: Apache-2.0
"""Statements: loops, branches, lets, allocation, asserts, fork-join regions."""

from __future__ import annotations

from ...ir import tir
from ...ir.annotations import ARENA, INTERLEAVE, STREAMED
from ...ir.dtype import INT64
from ...ir.errors import BuildError
from ...ir.visit import statements
from ..storage import buffer_bytes
from ..writes import writes
from .emitter import CALLS, STMT, Emitter, Walk, hoistable
from .types import llvm_type

STACK_LIMIT = 64 * 1024  # bytes of one allocation that may lie on the stack
STACK_TOTAL = 256 * 1024  # bytes of all of a function's
WORK = 1 << 20  # operations from one question whether to go on to the next, some tenths of a millisecond


@writes(STMT, tir.Seq)
def _seq(em: Emitter, s: tir.Seq) -> None:
    for item in s.stmts:
        em.statement(item)


@writes(STMT, tir.For)
def _for(em: Emitter, s: tir.For) -> None:
    """A loop with its test at the bottom; one more ahead of it unless it is known to run. What loops with the annotation
    ``streamed`` store in whole vectors is not kept in caches; one with ``interleave`` 1 is not run several vectors at a time by LLVM."""
    if STREAMED in s.annotations:
        em.streaming += 1
        _for(em, s.replace(annotations=s.annotations.without(STREAMED)))
        em.streaming -= 1
        return
    if s.kind is not tir.ForKind.SERIAL:
        raise BuildError(f"a {s.kind.value} loop over {s.loop_var.name} cannot be compiled: the program is not lowered")
    em.values.clear()
    step = s.step.value if type(s.step) is tir.IntImm else None if s.step is not None else 1
    count = s.extent.value if type(s.extent) is tir.IntImm else None
    if count is not None and count <= 0:
        return
    if count is not None and step and count <= step:  # one iteration
        _let(em, tir.Let(s.loop_var, tir.cast(s.min, s.loop_var.dtype), s.body))
        return
    _note_sign(em, s.loop_var, s.min)
    t = llvm_type(s.loop_var.dtype)
    low = em.value(tir.cast(s.min, s.loop_var.dtype))
    end = em.value(tir.cast(tir.add(s.min, s.extent), s.loop_var.dtype))
    by = str(step) if step is not None else em.value(tir.cast(s.step, s.loop_var.dtype))
    loop, done, ahead = em.name("loop"), em.name("done"), em.block
    is_inner = _is_inner(s.body)
    walk = Walk(s.loop_var, step) if is_inner and step and low == "0" and em.platform.is_wasm else None
    if count is None:
        em.branch(em.op(f"icmp slt {t} {low}, {end}"), loop, done)
    else:
        em.jump(loop)
    em.start(loop)
    counter = "%" + em.name("i")
    lines, slot = em.out, len(em.out)
    lines.append("")
    em.open_scope().walk = walk
    em.bind(s.loop_var, counter)
    outer, em.inner = em.inner, len(em.scopes) - 1 if is_inner else None
    em.statement(s.body)
    em.inner = outer
    em.close_scope()
    em.values.clear()
    following = em.op(f"add nsw {t} {counter}, {by}")
    begun = [f"  {counter} = phi {t} [ {low}, %{ahead} ], [ {following}, %{em.block} ]"]
    for register, start, nbytes in walk.pointers if walk is not None else ():
        further = em.op(f"getelementptr i8, ptr {register}, i64 {nbytes}")
        begun.append(f"  {register} = phi ptr [ {start}, %{ahead} ], [ {further}, %{em.block} ]")
    lines[slot] = begun
    em.branch(em.op(f"icmp slt {t} {following}, {end}"), loop, done, ", !llvm.loop !4" if s.annotations.get(INTERLEAVE) == 1 else "")
    em.start(done)


def _is_inner(body: tir.Stmt) -> bool:
    """Whether a loop's body has no loop inside, and makes vectors."""
    makes_vectors = False
    for s in statements(body):
        if type(s) is tir.For or type(s) is tir.While:
            return False
        makes_vectors = makes_vectors or (type(s) is tir.BufferStore and s.value.dtype.lanes > 1)
    return makes_vectors


def _scoped(em: Emitter, body: tir.Stmt) -> None:
    em.statement(body)
    em.values.clear()


def _note_sign(em: Emitter, var: tir.Var, value: tir.Expr) -> None:
    """Whether a variable that starts from ``value`` is known to be >= 0."""
    (em.nonneg_vars.add if em.nonneg(value) else em.nonneg_vars.discard)(var)


def _bind_let(em: Emitter, var: tir.Var, value: tir.Expr) -> bool:
    """Make ``var`` stand for ``value``; True when that opened a scope.

    A variable that was bound before gets a scope: what was computed from its former value stays behind.
    """
    operand = em.value(value)
    if hoistable(value) and var not in em.depth and (depth := em.home(value)) < len(em.scopes):
        em.bind(var, operand, depth)
        return False
    em.open_scope()
    em.bind(var, operand)
    return True


@writes(STMT, tir.Let)
def _let(em: Emitter, s: tir.Let) -> None:
    em.values.clear()
    _note_sign(em, s.var, s.value)
    opened = _bind_let(em, s.var, s.value)
    _scoped(em, s.body)
    if opened:
        em.close_scope()


@writes(STMT, tir.If)
def _if(em: Emitter, s: tir.If) -> None:
    em.values.clear()
    yes, done = em.name("then"), em.name("done")
    no = em.name("else") if s.else_case is not None else done
    em.branch(em.value(s.condition), yes, no, _expected(s.condition))
    for label, case in ((yes, s.then_case), (no, s.else_case)):
        if case is not None:
            em.start(label)
            em.values.clear()
            em.statement(case)
            em.jump(done)
    em.start(done)
    em.values.clear()


def _expected(condition: tir.Expr) -> str:
    """The weights of a branch whose condition is said to be likely, or not: registers go to what runs often."""
    if type(condition) is tir.Not:
        return {", !prof !3": ", !prof !2"}.get(_expected(condition.a), "")
    return ", !prof !3" if type(condition) is tir.Call and condition.op == "likely" else ""


@writes(STMT, tir.While)
def _while(em: Emitter, s: tir.While) -> None:
    test, body, done = em.name("while"), em.name("body"), em.name("done")
    em.jump(test)
    em.start(test)
    em.values.clear()
    em.branch(em.value(s.condition), body, done)
    em.start(body)
    _scoped(em, s.body)
    if em.is_host:
        ask(em)
    em.jump(test)
    em.start(done)
    em.values.clear()


@writes(STMT, tir.Evaluate)
def _evaluate(em: Emitter, s: tir.Evaluate) -> None:
    em.values.clear()
    if type(s.value) is tir.Call:
        em.value(s.value)
        em.values.clear()


@writes(STMT, tir.AttrStmt)
def _attr(em: Emitter, s: tir.AttrStmt) -> None:
    em.statement(s.body)


@writes(STMT, tir.DeclBuffer)
def _decl(em: Emitter, s: tir.DeclBuffer) -> None:
    if s.buffer.data not in em.env:
        raise em.undefined(s.buffer.data)
    em.statement(s.body)


@writes(STMT, tir.Assert)
def _assert(em: Emitter, s: tir.Assert) -> None:
    em.values.clear()
    holds, fails = em.name("ok"), em.name("fails")
    em.branch(em.value(s.condition), holds, fails)
    em.start(fails)
    em.fail(_failure(em, s))
    em.start(holds)
    em.values.clear()


def _failure(em: Emitter, s: tir.Assert) -> str:
    """Record the message, with integers put into it: the statement's values, or the two sides of a comparison."""
    message = em.string(s.message)
    compared = isinstance(s.condition, tir.Compare) and s.condition.a.dtype.is_int
    shown = s.values or ((s.condition.a, s.condition.b) if compared else ())
    if not shown or "{0}" not in s.message:
        name = em.declare("rd_fail", "i32", "ptr", "ptr", attrs="cold")
        return em.op(f"call i32 {name}(ptr %ctx, ptr {message})")
    values = [em.value(tir.cast(v, INT64)) for v in shown]
    array = em.alloca(f"[{len(values)} x i64], align 8")
    for k, v in enumerate(values):
        em.line(f"store i64 {v}, ptr {em.op(f'getelementptr i64, ptr {array}, i64 {k}')}, align 8")
    name = em.declare("rd_failf", "i32", "ptr", "ptr", "i32", "ptr", attrs="cold")
    return em.op(f"call i32 {name}(ptr %ctx, ptr {message}, i32 {len(values)}, ptr {array})")


# ---- allocation --------------------------------------------------------------------------------------------


@writes(STMT, tir.Allocate)
def _allocate(em: Emitter, s: tir.Allocate) -> None:
    em.values.clear()
    size, free = buffer_bytes(s.buffer), None
    fixed = size.value if type(size) is tir.IntImm else None
    if s.annotations.get(ARENA):
        operand = em.op("load ptr, ptr %ctx, !invariant.load !0")
    elif fixed is not None and (
        s.buffer.scope == "local" or (fixed <= STACK_LIMIT and em.stack_bytes + fixed <= STACK_TOTAL)
    ):
        em.stack_bytes += fixed
        operand = em.alloca(f"[{max(fixed, 1)} x i8], align 64")
    elif em.calls_out or not (hoistable(size) and em.home(size) == 0):
        operand = free = _heap(em, size)
    else:
        operand = _scratch(em, size)
    em.align[s.buffer.data] = 64
    em.distinct.add(s.buffer.data)
    em.open_scope()
    em.bind(s.buffer.data, operand)
    _scoped(em, s.body)
    em.close_scope()
    if free is not None:
        em.line(f"call void {em.declare('rd_heap_free', 'void', 'ptr', 'ptr')}(ptr %ctx, ptr {free})")


def _heap(em: Emitter, size: tir.Expr) -> str:
    name = em.declare("rd_heap_alloc", "ptr", "ptr", "i64")
    memory = em.op(f"call ptr {name}(ptr %ctx, i64 {em.value(size)})")
    check_memory(em, memory)
    return memory


def check_memory(em: Emitter, memory: str) -> None:
    """Leave the function when there was no memory (the runtime has recorded why)."""
    holds, fails = em.name("ok"), em.name("fails")
    em.branch(em.op(f"icmp ne ptr {memory}, null"), holds, fails)
    em.start(fails)
    em.fail("1")
    em.start(holds)


def _scratch(em: Emitter, size: tir.Expr) -> str:
    """A part of the thread's workspace, which is asked for once, in the entry block."""
    rounded = tir.mul(tir.floordiv(tir.add(size, 63), 64), 64)
    part = em.name("part")
    em.scratch.append((part, rounded))
    return "%" + part


def write_scratch(em: Emitter) -> list:
    """The lines that get the workspace; they go behind the entry block's variables."""
    if not em.scratch:
        return []
    saved, em.out = em.out, []
    lines = em.out
    offsets, total = [], tir.index_const(0)
    for _, size in em.scratch:
        offsets.append(total)
        total = tir.add(total, size)
    if not isinstance(total, tir.IntImm):
        total = tir.add(total, 64)  # a workspace of no bytes has no address
    values = [em.value(o) for o in (*offsets, total)]
    name = em.declare("rd_scratch", "ptr", "ptr", "i64")
    base = em.op(f"call ptr {name}(ptr %ctx, i64 {values[-1]})")
    check_memory(em, base)
    for (part, _), where in zip(em.scratch, values):
        em.out.append(f"  %{part} = getelementptr i8, ptr {base}, i64 {where}")
    em.out = saved
    return lines


@writes(CALLS, "ret")
def _ret(em: Emitter, e: tir.Call) -> str:
    em.line(f"ret {em.typed(e.args[0])}" if e.args else "ret void")
    em.start(em.name("after"))
    return ""


def leave_with(em: Emitter, status: str) -> None:
    """Leave the function where the run has failed: what comes behind would work with what was left undone."""
    holds, fails = em.name("ok"), em.name("fails")
    em.branch(em.op(f"icmp eq i32 {status}, 0"), holds, fails, ", !prof !3")
    em.start(fails)
    em.fail(status)
    em.start(holds)


def ask(em: Emitter) -> None:
    """Ask the runtime whether to go on."""
    leave_with(em, em.op(f"call i32 {em.declare('rd_checkpoint', 'i32', 'ptr')}(ptr %ctx)"))


@writes(CALLS, "checkpoint")
def _checkpoint(em: Emitter, e: tir.Call) -> str:
    """(work): the runtime is asked once in `WORK` operations of this function, which takes a subtraction and a branch otherwise."""
    if em.work is None:
        em.work = em.alloca("i64, align 8")
        em.entry.append(f"  store i64 {WORK}, ptr {em.work}, align 8")
    left = em.op(f"sub i64 {em.op(f'load i64, ptr {em.work}, align 8')}, {em.value(tir.cast(e.args[0], INT64))}")
    em.line(f"store i64 {left}, ptr {em.work}, align 8")
    spent, on = em.name("spent"), em.name("on")
    em.branch(em.op(f"icmp slt i64 {left}, 0"), spent, on, ", !prof !2")
    em.start(spent)
    em.line(f"store i64 {WORK}, ptr {em.work}, align 8")
    ask(em)
    em.jump(on)
    em.start(on)
    return ""


# ---- fork --------------------------------------------------------------------------------------------------


@writes(CALLS, "parallel_for")
def _parallel_for(em: Emitter, e: tir.Call) -> str:
    """(task, extent, grain, captured...): the context and what is captured go into 8-byte slots."""
    task, extent, grain, *captured = e.args
    slots = em.alloca(f"[{len(captured) + 1} x i64], align 8")
    operands = [em.typed(c) for c in captured]
    em.line(f"store ptr %ctx, ptr {slots}, align 8")
    for k, operand in enumerate(operands):
        if operand.startswith("i1 "):
            operand = f"i8 {em.op(f'zext {operand} to i8')}"
        em.line(f"store {operand}, ptr {em.op(f'getelementptr i64, ptr {slots}, i64 {k + 1}')}, align 8")
    name = em.declare("rd_parallel_for", "i32", "ptr", "ptr", "ptr", "i64", "i64")
    symbol = em.symbol(task.value if type(task) is tir.StringImm else task.name)
    em.declare(symbol, "void", "i64", "i64", "ptr")
    em.tasks.add(symbol)
    numbers = f"i64 {em.value(tir.cast(extent, INT64))}, i64 {em.value(tir.cast(grain, INT64))}"
    status = em.op(f"call i32 {name}(ptr %ctx, ptr @{symbol}, ptr {slots}, {numbers})")
    leave_with(em, status)
    return status
