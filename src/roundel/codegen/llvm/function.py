# SPDX-License-Identifier: Apache-2.0
"""Whole functions: signatures, entry blocks, tasks; and the text of a module.

kernel   void @k(ptr ctx, parameters in order)
task     void @t(i64 begin, i64 end, ptr args)      args[0] is the context, then what was captured, 8 bytes each
host     i32  @f(ptr ctx, parameters in order)      0, or a failure's status
plain    T    @p(parameters in order)               helpers of a module's description
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import field

from ...ir import tir
from ...ir.dataclass import dataclass
from ...lower.facts import Facts, written_data
from ...target.spec import MachineSpec
from ..storage import buffer_bytes, element_bytes
from . import arithmetic, convert, host, intrinsics, memory  # noqa: F401  (they register what they write)
from .emitter import Emitter, Platform
from .features import vector_length
from .statements import write_scratch
from .types import llvm_type

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
    vectors: bool = False


def emit_function(
    func: tir.PrimFunc, name: str, platform: Platform, symbol: Callable[[str], str], facts: Facts
) -> Piece:
    """One function of the flat form as LLVM text; ``symbol`` gives the symbol of each function of the module."""
    kind = func.attrs.get("kind")
    result = "i32" if kind == "host" else llvm_type(func.ret_dtype)
    em = Emitter(platform, symbol, contract=bool(func.attrs.get("contract", True)))
    em.function, em.is_host, em.constants = func, kind == "host", facts.constants
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
    length = vector_length(platform.features)
    if kind == "task":
        text = f"define internal void @{name}.body({signature}) nounwind{length} {{\n{body}\n}}\n" + _task_wrapper(name, params)
    else:
        text = f"define {result} @{name}({signature}){'' if kind == 'host' else ' nounwind'}{length} {{\n{body}\n}}"
    return Piece(text, em.declares, em.globals, "load <" in body or "store <" in body)


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


def platform_of(spec: MachineSpec) -> Platform:
    """The platform of a machine."""
    return Platform(spec.triple.split("-")[0], frozenset(f[1:] for f in spec.features.split(",") if f.startswith("+")), spec.adds_apart)


__all__ = ["Piece", "emit_function", "module_text", "platform_of"]
