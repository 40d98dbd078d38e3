# SPDX-License-Identifier: Apache-2.0
"""Statements as C: loops, branches, stores, allocation, asserts; and what host functions do besides."""

from __future__ import annotations

from ...ir import escape, tir
from ...ir.annotations import ARENA
from ...ir.dtype import INT64, DType
from ...ir.visit import walk
from ...runtime.native import dlpack_code
from ..storage import buffer_bytes, element_bytes, is_packed
from ..writes import writes
from . import prelude
from .calls import operands
from .expressions import bare, base, offset, place
from .types import c_type
from .writer import CALLS, STMT, Writer

STACK_LIMIT = 64 * 1024   # bytes of one allocation that may lie on the stack
STACK_TOTAL = 256 * 1024  # bytes of all of a function's
SMALL_STACK = 512         # bytes of both on machines without a system, whose stack has some kilobytes
WORK = 1 << 20  # operations from one question whether to go on to the next


@writes(STMT, tir.Seq)
def _seq(w: Writer, s: tir.Seq) -> None:
    for item in s.stmts:
        w.statement(item)


@writes(STMT, tir.AttrStmt, tir.DeclBuffer)
def _inside(w: Writer, s: tir.AttrStmt | tir.DeclBuffer) -> None:
    w.statement(s.body)


@writes(STMT, tir.For)
def _for(w: Writer, s: tir.For) -> None:
    if s.kind is not tir.ForKind.SERIAL:
        raise w.fail(f"a {s.kind.value} loop over {s.loop_var.name} cannot be compiled: the program is not lowered", s)
    count, step = (x.value if type(x) is tir.IntImm else None for x in (s.extent, s.step if s.step is not None else tir.index_const(1)))
    if count is not None and count <= 0:
        return
    low, by = tir.cast(s.min, s.loop_var.dtype), tir.cast(s.step, s.loop_var.dtype) if s.step is not None else tir.const(1, s.loop_var.dtype)
    if count is not None and step and count <= step:  # one iteration
        _let(w, tir.Let(s.loop_var, low, s.body))
        return
    end = tir.cast(tir.add(s.min, s.extent), s.loop_var.dtype)
    w.begin(low, end, by)
    first, last, add = w.value(low), w.value(end), w.value(by)
    if type(end) not in (tir.IntImm, tir.Var):
        last = w.temporary(end.dtype, last, hint="stop")
    (w.nonneg_vars.add if w.nonneg(s.min) else w.nonneg_vars.discard)(s.loop_var)
    i = w.env[s.loop_var] = w.name(s.loop_var.name)
    w.declared.remove(i)
    with w.block(f"for ({c_type(s.loop_var.dtype)} {i} = {first}; {i} < {last}; {f'{i}++' if step == 1 else f'{i} += {add}'}) {{"):
        w.statement(s.body)


@writes(STMT, tir.Let)
def _let(w: Writer, s: tir.Let) -> None:
    w.begin(s.value)
    if s.var.dtype.lanes > 1:
        name = w.name(s.var.name)
        w.line(f"{c_type(s.var.dtype)} {name}[{s.var.dtype.lanes}];")
        w.assign(name, s.value)
    else:
        text = w.value(s.value)
        (w.nonneg_vars.add if w.nonneg(s.value) else w.nonneg_vars.discard)(s.var)
        name = w.temporary(s.var.dtype, text, hint=s.var.name)
    w.env[s.var] = name
    w.typed.pop(s.var, None)
    w.statement(s.body)


@writes(STMT, tir.If)
def _if(w: Writer, s: tir.If) -> None:
    w.begin(s.condition)
    with w.block(f"if ({bare(w.value(s.condition))}) {{", "}" if s.else_case is None else "} else {"):
        w.statement(s.then_case)
    if s.else_case is not None:
        w.depth += 1
        w.statement(s.else_case)
        w.depth -= 1
        w.line("}")


@writes(STMT, tir.While)
def _while(w: Writer, s: tir.While) -> None:
    with w.block("for (;;) {"):
        w.begin(s.condition)
        w.line(f"if (!{w.value(s.condition)}) break;")
        w.statement(s.body)
        if w.kind == "host":
            ask(w)


@writes(STMT, tir.Evaluate)
def _evaluate(w: Writer, s: tir.Evaluate) -> None:
    if type(s.value) is not tir.Call:
        return
    w.begin(*s.value.args)
    text = w.value(s.value)
    if text:
        w.line(f"{text};" if s.value.dtype == "void" or s.value.op in _STATEMENTS else f"(void){text};")
    if not isinstance(s.value.op, str) and s.value.dtype == "void":
        w.line(f"if (ctx->status) {w.leave('ctx->status')}")


_STATEMENTS = frozenset(("call_packed", "call_packed_into", "parallel_for"))


@writes(STMT, tir.Assert)
def _assert(w: Writer, s: tir.Assert) -> None:
    compared = isinstance(s.condition, tir.Compare) and s.condition.a.dtype.is_int
    shown = s.values or ((s.condition.a, s.condition.b) if compared else ())
    w.begin(s.condition)
    with w.block(f"if (!{w.value(s.condition)}) {{"):
        message = escape.c_string(s.message)
        if not shown or "{0}" not in s.message:
            w.line(f'rd_fail(ctx, "{message}");')
        else:
            w.begin(*shown)
            values = ", ".join(w.value(tir.cast(v, INT64)) for v in shown)
            w.line(f'rd_failf(ctx, "{message}", {len(shown)}, (const int64_t[]){{{values}}});')
        w.line(w.leave("1"))


# ---- stores ------------------------------------------------------------------------------------------------


def _disturbs(w: Writer, s: tir.BufferStore, lanes: int) -> bool:
    """Whether a store to one lane may change what another lane still has to load."""
    if lanes == 1:
        return False
    for n in walk(s.value):
        if type(n) is tir.BufferLoad:
            if n.buffer.data is s.buffer.data:
                if n.indices != s.indices or n.buffer is not s.buffer:
                    return True
            elif not {n.buffer.data, s.buffer.data} <= w.distinct:
                return True
    return False


@writes(STMT, tir.BufferStore)
def _store(w: Writer, s: tir.BufferStore) -> None:
    if s.predicate is not None and s.predicate.dtype.lanes == 1:
        w.statement(tir.If(s.predicate, s.replace(predicate=None)))
        return
    w.begin(s.value, s.predicate, *s.indices)
    lanes = max([s.value.dtype.lanes, *(i.dtype.lanes for i in s.indices)])
    if lanes == 1:
        w.line(_written(w, s, w.value(s.value)))
        return
    disturbs = _disturbs(w, s, lanes)
    if w.store_vectors is not None and w.store_vectors(w, s, disturbs):
        return
    held = w.array(s.value) if disturbs else None

    def body() -> list[str]:
        text = f"{held}[l]" if held is not None else w.value(s.value)
        line = _written(w, s, text)
        return [f"if ({bare(w.value(s.predicate))}) {line}" if s.predicate is not None else line]

    w.for_lanes(lanes, body)


def _written(w: Writer, s: tir.BufferStore, value: str) -> str:
    if is_packed(s.buffer.dtype):
        return f"{w.helpers.use(prelude.packed_store(s.buffer.dtype))}({base(w, s.buffer)}, {offset(w, s.buffer, s.indices)}, {value});"
    return f"{place(w, s.buffer, s.indices)} = {bare(value)};"


# ---- allocation --------------------------------------------------------------------------------------------


@writes(STMT, tir.Allocate)
def _allocate(w: Writer, s: tir.Allocate) -> None:
    size, data = buffer_bytes(s.buffer), s.buffer.data
    fixed = size.value if type(size) is tir.IntImm else None
    t = "uint8_t" if is_packed(s.buffer.dtype) else c_type(s.buffer.dtype)
    name = w.env[data] = w.name(s.buffer.name)
    w.distinct.add(data)
    freed = False
    if s.annotations.get(ARENA):
        w.line(f"void *const {name} = ctx->arena;")
    elif fixed is not None and (s.buffer.scope == "local" or (fixed <= w.stack_limit and w.stack_bytes + fixed <= w.stack_total)):
        w.stack_bytes += fixed
        w.typed[data] = t
        w.line(f"RD_ALIGNED {t} {name}[{max(-(-fixed // element_bytes(s.buffer.dtype.element)), 1)}];")
    else:
        freed = True
        w.begin(size)
        w.line(f"void *const {name} = rd_heap_alloc(ctx, {w.value(size)});")
        w.line(f"if (!{name}) {w.leave('1')}")
    w.statement(s.body)
    if freed:
        w.line(f"rd_heap_free(ctx, {name});")


# ---- asking, failing, leaving ------------------------------------------------------------------------------


def ask(w: Writer) -> None:
    """Ask the runtime whether to go on."""
    w.line(f"if (rd_checkpoint(ctx)) {w.leave('ctx->status')}")


@writes(CALLS, "checkpoint")
def _checkpoint(w: Writer, e: tir.Call) -> str:
    """(work): the runtime is asked once in ``WORK`` operations of this function."""
    w.counts_work = True
    w.line(f"rd_left -= {w.value(tir.cast(e.args[0], INT64))};")
    with w.block("if (rd_left < 0) {"):
        w.line(f"rd_left = {WORK};")
        ask(w)
    return ""


@writes(CALLS, "ret")
def _ret(w: Writer, e: tir.Call) -> str:
    w.line(f"return {w.value(e.args[0])};" if e.args else "return;")
    return ""


@writes(CALLS, "parallel_for")
def _parallel_for(w: Writer, e: tir.Call) -> str:
    """(task, extent, grain, captured...): the context and what is captured go into slots."""
    task, extent, grain, *captured = e.args
    slots, symbol = w.name("slots"), w.symbol(task.value)
    w.line(f"RdSlot {slots}[{len(captured) + 1}];")
    w.line(f"{slots}[0].p = ctx;")
    for k, c in enumerate(captured):
        w.line(f"{slots}[{k + 1}].{slot_field(c.dtype)} = {operands(w, (c,))};")
    w.declares.setdefault(symbol, f"RD_KERNEL void {symbol}(int64_t, int64_t, void **);")
    numbers = f"{w.value(tir.cast(extent, INT64))}, {w.value(tir.cast(grain, INT64))}"
    w.line(f"if (rd_parallel_for(ctx, {symbol}, (void **)(void *){slots}, {numbers})) {w.leave('ctx->status')}")
    return ""


def slot_field(dtype: DType) -> str:
    """The field of ``RdSlot`` that a captured value is in."""
    return "p" if dtype.is_handle else {"float": "f32", "double": "f64"}.get(c_type(dtype)) or f"{c_type(dtype).removesuffix('_t')}"


# ---- host --------------------------------------------------------------------------------------------------


@writes(CALLS, "constant_ptr")
def _constant_ptr(w: Writer, e: tir.Call) -> str:
    return f"((void *)ctx->constants[{w.constants[e.args[0].value]}])"


@writes(CALLS, "arena_ptr")
def _arena_ptr(w: Writer, e: tir.Call) -> str:
    return f"((void *)((char *)ctx->arena + {w.value(e.args[0])}))"


@writes(CALLS, "copy_bytes")
def _copy_bytes(w: Writer, e: tir.Call) -> str:
    return f"memcpy({operands(w, e.args[:2])}, (size_t){w.value(e.args[2])})"


def _checked(w: Writer, text: str, hint: str) -> str:
    """A pointer under a name; where it is null the function is left, the runtime knows why."""
    name = w.name(hint)
    w.line(f"void *const {name} = {text};")
    w.line(f"if (!{name}) {w.leave('1')}")
    return name


def _extents(w: Writer, extents: tuple[tir.Expr, ...]) -> str:
    values = ", ".join(w.value(tir.cast(x, INT64)) for x in extents) or "0"
    name = w.name("shape")
    w.line(f"int64_t {name}[] = {{{values}}};")
    return name


@writes(CALLS, "alloc_output")
def _alloc_output(w: Writer, e: tir.Call) -> str:
    index, *extents = e.args
    return _checked(w, f"rd_alloc_output(ctx, {w.value(tir.cast(index, 'int32'))}, {len(extents)}, {_extents(w, tuple(extents))})", "output")


@writes(CALLS, "heap_alloc")
def _heap_alloc(w: Writer, e: tir.Call) -> str:
    return _checked(w, f"rd_heap_alloc(ctx, {w.value(tir.cast(e.args[0], INT64))})", "memory")


@writes(CALLS, "heap_free")
def _heap_free(w: Writer, e: tir.Call) -> str:
    return f"rd_heap_free(ctx, {operands(w, e.args)})"


def _slot(w: Writer, e: tir.Call) -> str:
    number = e.args[0].value
    if number not in w.slots:
        w.slots[number] = w.name(f"kept{number}")
    return w.slots[number]


@writes(CALLS, "heap_keep")
def _heap_keep(w: Writer, e: tir.Call) -> str:
    slot, memory = _slot(w, e), w.value(e.args[1])
    w.line(f"rd_heap_free(ctx, {slot});")
    return f"{slot} = {memory}"


@writes(CALLS, "heap_kept")
def _heap_kept(w: Writer, e: tir.Call) -> str:
    return _slot(w, e)


@writes(CALLS, "tensor_view")
def _tensor_view(w: Writer, e: tir.Call) -> str:
    """(dtype, pointer, rank, extents...) as a DLTensor."""
    dtype, data, rank, *dims = e.args
    code, bits, lanes = dlpack_code(DType(dtype.value))
    shape, tensor = _extents(w, tuple(dims)), w.name("tensor")
    w.line(f"DLTensor {tensor} = {{{operands(w, (data,))}, {{1, 0}}, {rank.value}, {{{code}, {bits}, {lanes}}}, {shape}, 0, 0}};")
    return f"(&{tensor})"


def _packed_operand(w: Writer, array: str, k: int, a: tir.Expr) -> None:
    """One RdArg; a pointer that is no tensor is passed as the number of its address."""
    kind, field, text = 1, "i", ""
    if type(a) is tir.StringImm:
        kind, field, text = 4, "string", w.value(a)
    elif a.dtype.is_handle and type(a) is tir.Call and a.op == "tensor_view":
        kind, field, text = 3, "tensor", w.value(a)
    elif a.dtype.is_handle:
        text = f"(int64_t)(intptr_t){w.value(a)}"
    elif a.dtype.is_float:
        kind, field, text = 2, "f", w.value(tir.cast(a, "float64"))
    else:
        text = w.value(tir.cast(a, INT64))
    w.line(f"{array}[{k}].kind = {kind};")
    w.line(f"{array}[{k}].value.{field} = {text};")


@writes(CALLS, "call_packed", "call_packed_into")
def _call_packed(w: Writer, e: tir.Call) -> str:
    """(name, operands...); ``call_packed_into`` copies what is returned into its last operand, a tensor view."""
    name, *args = e.args
    result = w.value(args.pop()) if e.op == "call_packed_into" else None
    array = w.name("args_")
    w.line(f"RdArg {array}[{max(len(args), 1)}];")
    for k, a in enumerate(args):
        _packed_operand(w, array, k, a)
    more = f", {result}" if result is not None else ""
    status = w.temporary(DType("int32"), f'rd_{e.op}(ctx, {w.value(name)}, {len(args)}, {array}{more})', hint="status")
    w.line(f"if ({status}) {w.leave(status)}")
    return ""


@writes(CALLS, "start_profile", "stop_profile")
def _profile(w: Writer, e: tir.Call) -> str:
    return f"rd_profile_{'begin' if e.op == 'start_profile' else 'end'}(ctx, {w.value(tir.cast(e.args[0], 'int32'))})"


