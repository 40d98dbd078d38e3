# SPDX-License-Identifier: Apache-2.0
"""Whole functions in C. Each is a static function with typed parameters, and one with plain pointers that others call:

kernel   void k(RdContext *ctx, parameters in order)
task     void t(int64_t begin, int64_t end, void **args)   args[0] is the context, then what was captured, in slots
host     int32_t f(RdContext *ctx, parameters in order)    0, or a failure's status
plain    T p(parameters in order)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.dtype import INT64, DType
from ...lower.facts import written_data
from ...target.spec import MachineSpec
from ..backend import Function
from ..storage import is_packed
from . import calls, vector_extensions, vectors  # noqa: F401  (calls registers what it writes)
from .statements import SMALL_STACK, STACK_LIMIT, STACK_TOTAL, WORK, slot_field
from .types import c_type
from .writer import Helpers, Writer, identifiers


@dataclass
class Piece:
    """The text of a function, and declarations of what it calls."""

    text: str
    declares: dict[str, str] = field(default_factory=dict)


def c_name(symbol: str) -> str:
    """A symbol as a name in C."""
    return symbol.replace(".", "_")


def helper_function(w: Writer, name: str, dtypes: tuple[DType, ...], rule: Callable[..., tir.Expr]) -> tuple[str, str]:
    """An expression of parameters as a function of its own."""
    known = w.helpers.texts.get(name)
    if known is not None:
        return name, known
    params = tuple(tir.Var("xyz"[k], d) for k, d in enumerate(dtypes))
    value = rule(*params)
    inner = Writer(w.helpers, w.symbol)
    inner.env = {p: inner.name(p.name) for p in params}
    inner.begin(value)
    inner.line(f"return {inner.value(value)};")
    w.declares |= inner.declares
    signature = ", ".join(f"{c_type(p.dtype)} {inner.env[p]}" for p in params)
    return name, inner.unused(f"RD_INLINE {c_type(value.dtype)} {name}({signature}) {{\n" + "\n".join(inner.lines) + "\n}")


def emit_function(f: Function, helpers: Helpers, spec: MachineSpec) -> Piece:
    """One function of the flat form. Raises BuildError."""
    func, kind = f.program, f.program.attrs.get("kind")
    w = Writer(helpers, lambda name: c_name(f.symbols(name)), contract=bool(func.attrs.get("contract", True)))
    w.for_board = spec.is_bare
    features = {f.removeprefix("+") for f in spec.features.split(",")}
    if vector_extensions.FEATURE in features:
        w.store_vectors, w.assign_vector = vector_extensions.stored, vector_extensions.assigned
    elif not features.isdisjoint(vectors.FEATURES):
        w.store_vectors = vectors.stored
    w.function, w.kind, w.constants = func, str(kind), f.facts.constants
    w.stack_limit, w.stack_total = (SMALL_STACK, SMALL_STACK) if spec.is_bare else (STACK_LIMIT, STACK_TOTAL)
    result = "int32_t" if kind == "host" else c_type(func.ret_dtype)
    w.leave = lambda status: f"return {status};" if kind == "host" else "return;" if result == "void" else "return 0;"
    noalias = bool(func.attrs.get("noalias", True)) and kind not in ("plain",)
    typed = _bind(w, f, noalias)
    w.statement(func.body)
    if kind == "host":
        w.line("return 0;")
    head = [f"  void *{name} = 0;" for name in w.slots.values()] + ([f"  int64_t rd_left = {WORK};"] if w.counts_work else [])
    name = c_name(f.symbol)
    context = [] if kind == "plain" else ["RdContext *ctx"]
    w.declared += ["ctx"] if context else []
    signature = ", ".join([*context, *typed]) or "void"
    names = [*(["ctx"] if context else []), *(w.env[p] for p in func.params)]
    used = {n for line in w.lines for n in identifiers(line)}
    silent = [f"  (void){n};" for n in names if n not in used]
    w.declared = [d for d in w.declared if d not in names]
    text = w.unused("\n".join([f"static {result} {name}_body({signature}) {{", *silent, *head, *w.lines, "}"]))
    return Piece(f"{text}\n{_wrapper(w, name, str(kind), result, func, names)}", w.declares)


def _bind(w: Writer, f: Function, noalias: bool) -> list[str]:
    """Names of the parameters, and how the signature spells them."""
    func, out = f.program, []
    written = written_data(func, facts=f.facts)
    for p in func.params:
        buffer = func.buffers.get(p)
        hint = buffer.name if buffer is not None else p.name
        name = w.env[p] = w.name(hint)
        if buffer is None:
            out.append(f"{c_type(p.dtype)}{'' if p.dtype.is_handle else ' '}{name}")
            continue
        w.env[buffer.data] = name
        t = "uint8_t" if is_packed(buffer.dtype) else c_type(buffer.dtype)
        w.typed[p] = w.typed[buffer.data] = t
        const = "const " if buffer.data not in written and not t.endswith("*") else ""
        out.append(f"{const}{t}{'' if t.endswith('*') else ' '}*{'restrict ' if noalias else ''}{name}")
        if noalias:
            w.distinct.add(buffer.data)
    return out


def _wrapper(w: Writer, name: str, kind: str, result: str, func: tir.PrimFunc, names: list[str]) -> str:
    """The function that others call, with pointers without types, or with the slots of a task."""
    if kind == "task":
        values = [f"slots[{k}].{slot_field(p.dtype)}" for k, p in enumerate(func.params[2:], 1)]
        narrow = "" if func.params[0].dtype is INT64 else f"({c_type(func.params[0].dtype)})"
        arguments = ", ".join(["(RdContext *)slots[0].p", f"{narrow}begin", f"{narrow}end", *values])
        return (f"RD_KERNEL void {name}(int64_t begin, int64_t end, void **args) {{\n  const RdSlot *slots = (const RdSlot *)(void *)args;\n"
                f"  {name}_body({arguments});\n}}")
    params = [f"{c_type(p.dtype)}{'' if p.dtype.is_handle else ' '}p{k}" for k, p in enumerate(func.params)]
    context = [] if kind == "plain" else ["RdContext *ctx"]
    call = f"{name}_body({', '.join([*(['ctx'] if context else []), *(f'p{k}' for k in range(len(params)))])});"
    return f"RD_KERNEL {result} {name}({', '.join([*context, *params]) or 'void'}) {{ {'' if result == 'void' else 'return '}{call} }}"


__all__ = ["Attrs", "Piece", "c_name", "emit_function", "helper_function"]
