# SPDX-License-Identifier: Apache-2.0
"""Whole functions: signatures, entry blocks, tasks; and the text of a module.

kernel   void @k(ptr ctx, parameters in order)
task     void @t(i64 begin, i64 end, ptr args)      args[0] is the context, then what was captured, 8 bytes each
host     i32  @f(ptr ctx, parameters in order)      0, or a failure's status
plain    T    @p(parameters in order)               helpers of a module's description
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ...ir import tir
from ...ir.node import Node
from ...ir.tir.intrin import Effect, effect
from ...ir.visit import children
from . import arithmetic, convert, host, intrinsics, memory  # noqa: F401  (they register what they write)
from .emitter import Emitter, Platform
from .statements import buffer_bytes, write_scratch
from .types import element_bytes, llvm_type

WEIGHTS = ('!2 = !{!"branch_weights", i32 1, i32 100000}', '!3 = !{!"branch_weights", i32 100000, i32 1}')
"""Of branches that are hardly ever taken, and of those that nearly always are."""

ONE_VECTOR = ("!4 = distinct !{!4, !5}", '!5 = !{!"llvm.loop.interleave.count", i32 1}')
"""Of loops that LLVM's vectoriser does not run several vectors at a time."""


@dataclass
class Piece:
    """The text of one function with what it refers to."""

    text: str
    declares: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    vectors: bool = False


Lookup = Callable[[str], tir.PrimFunc]


@dataclass
class Facts:
    """What one walk over a function finds: data pointers stored to and loaded from, calls that are not elementary."""

    stored: set[tir.Var] = field(default_factory=set)
    loaded: set[tir.Var] = field(default_factory=set)
    calls: list[tir.Call] = field(default_factory=list)

    @property
    def calls_out(self) -> bool:
        """Whether something it calls may ask for the thread's workspace."""
        return any(
            c.op in ("parallel_for", "call_packed", "call_packed_into", "call_extern") or not isinstance(c.op, str)
            for c in self.calls
        )

    @property
    def callees(self) -> list[str]:
        """Names of the tensor programs that it calls; tasks are not among them."""
        return list(dict.fromkeys(c.op.name for c in self.calls if not isinstance(c.op, str)))


def facts_of(func: tir.PrimFunc) -> Facts:
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


def emit_function(
    func: tir.PrimFunc, name: str, platform: Platform, symbol: Callable[[str], str], facts: Facts | None = None
) -> Piece:
    """One function of the flat form as LLVM text; ``symbol`` gives the symbol of each function of the module."""
    kind = func.attrs.get("kind")
    result = "i32" if kind == "host" else llvm_type(func.ret_dtype)
    em = Emitter(platform, symbol, contract=bool(func.attrs.get("contract", True)))
    facts = facts or facts_of(func)
    em.function, em.is_host = func, kind == "host"
    em.calls_out = em.is_host or facts.calls_out
    em.fail = lambda code: em.line(
        f"ret i32 {code}" if kind == "host" else "ret void" if result == "void" else f"ret {result} zeroinitializer"
    )
    noalias = bool(func.attrs.get("noalias", True))
    params = _bind_params(em, func, noalias, written_data(func, facts=facts))
    em.statement(func.body)
    if em.streamed and platform.is_x86:  # such stores are not ordered by others, as those that tell of a task's end
        em.line(f"call void {em.declare('llvm.x86.sse.sfence', 'void')}()")
    em.line("ret i32 0" if kind == "host" else "ret void" if result == "void" else "unreachable")
    em.finish_entry(write_scratch(em))
    body = em.text()
    signature = ", ".join(f"{p.type}{p.facts} {p.register}" for p in params)
    if kind == "task":
        text = f"define internal void @{name}.body({signature}) nounwind {{\n{body}\n}}\n" + _task_wrapper(name, params)
    else:
        text = f"define {result} @{name}({signature}){'' if kind == 'host' else ' nounwind'} {{\n{body}\n}}"
    return Piece(text, em.declares, em.globals, em.constants, "load <" in body or "store <" in body)


@dataclass(frozen=True)
class Param:
    """A parameter in LLVM's words."""

    register: str
    type: str
    facts: str = ""


def _bind_params(em: Emitter, func: tir.PrimFunc, noalias: bool, written: frozenset[tir.Var]) -> list[Param]:
    """Variables and buffers of the parameter list, and how the signature spells them."""
    buffers = func.buffers
    out = [] if func.attrs.get("kind") == "plain" else [Param("%ctx", "ptr", " noalias" if noalias else "")]
    readonly = set()
    for k, p in enumerate(func.params):
        register = f"%p{k}"  # names are not part of the text, so that equal kernels have equal text
        em.bind(p, register, 0)
        facts = " zeroext" if p.dtype.is_bool else ""
        buffer = buffers.get(p)
        if buffer is not None:
            em.bind(buffer.data, register, 0)
            facts = _pointer_facts(buffer, noalias, buffer.data not in written)
            if noalias:
                em.distinct.add(buffer.data)
                if buffer.data not in written:
                    readonly.add(buffer.data)
        out.append(Param(register, llvm_type(p.dtype), facts))
    em.readonly = frozenset(readonly)
    return out


def _pointer_facts(buffer: tir.Buffer, noalias: bool, readonly: bool) -> str:
    facts = " noalias" if noalias else ""
    facts += " readonly" if readonly and noalias else ""
    facts += f" align {element_bytes(buffer.dtype.element)}"
    size = buffer_bytes(buffer)
    if type(size) is tir.IntImm and size.value > 0:
        facts += f" dereferenceable({size.value})"
    return facts


def _task_wrapper(name: str, params: list[Param]) -> str:
    """The function that the runtime calls: takes the slots apart."""
    context, begin, end, *captured = params
    lines, operands = (
        [f"  {context.register} = load ptr, ptr %args, align 8"],
        [f"ptr {context.register}", f"i64 {begin.register}", f"i64 {end.register}"],
    )
    for k, p in enumerate(captured):
        lines.append(f"  %slot{k} = getelementptr i64, ptr %args, i64 {k + 1}")
        if p.type == "i1":
            lines += [f"  %byte{k} = load i8, ptr %slot{k}, align 8", f"  {p.register} = trunc i8 %byte{k} to i1"]
        else:
            lines.append(f"  {p.register} = load {p.type}, ptr %slot{k}, align 8")
        operands.append(f"{p.type} {p.register}")
    call = f"  call void @{name}.body({', '.join(operands)})"
    body = "\n".join([*lines, call, "  ret void"])
    return f"define void @{name}(i64 {begin.register}, i64 {end.register}, ptr %args) nounwind {{\n{body}\n}}"


def module_text(pieces: Iterable[Piece], extra: str = "") -> str:
    """Pieces put together: strings, functions, declarations of what is not defined here, metadata."""
    defined, declares, parts = set(), {}, []
    for n, piece in enumerate(pieces):
        text = piece.text
        for body, name in piece.globals.items():
            unique = f"@.str.{n}.{name[5:]}"
            parts.append(f"{unique} = {body}")
            text = re.sub(re.escape(name) + r"(?![0-9])", unique, text)
        parts.append(text)
        declares.update(piece.declares)
        defined.update(re.findall(r"^define [^@]*@([\w.$]+)\(", text, re.M))
    lines = [text for name, text in sorted(declares.items()) if name not in defined]
    loops = ONE_VECTOR if any("!llvm.loop" in text for text in parts) else ()
    return "\n".join([*parts, extra, *lines, "!0 = !{}", "!1 = !{i32 1}", *WEIGHTS, *loops, ""])


def platform_of(triple: str, features: str) -> Platform:
    """The platform of a target triple and LLVM's feature string (``+avx2,-sse4a``)."""
    return Platform(triple.split("-")[0], frozenset(f[1:] for f in features.split(",") if f.startswith("+")))


__all__ = ["Piece", "emit_function", "module_text", "platform_of"]
