# SPDX-License-Identifier: Apache-2.0
"""Vectors of four numbers of 32 bits as values in C (`vectors.h`), for processors whose compilers have such, and where every part of a value has that form.

A vector of more lanes is several of these. Narrower integers are widened where they are loaded; what has no form of its own is computed lane by lane and
loaded from an array. Elsewhere a vector is what it is in one lane, in a loop over lanes (`writer`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...ir import tir
from ...ir.dtype import INT32, DType
from .expressions import place
from .quantised import Quantised
from .types import short
from .writer import Writer

FEATURES = ("mve.fp", "v")
"""LLVM's names of what a processor needs, one of them, for `vectors.h` to be faster than loops: vectors of Arm's microcontrollers, and of RISC-V."""

LANES = 4
_TEXT = "rd_vectors", (Path(__file__).parent / "vectors.h").read_text()
_FLOAT32 = DType("float32")
_IN_MEMORY = frozenset(map(DType, ("float32", "int32", "int16", "int8", "uint8")))
_Rule = Callable[[Writer, Any, int], str]


class _NoForm(Exception):
    """A value has no such form."""


def use(w: Writer, name: str) -> str:
    """The name of a function of `vectors.h`, which the text has from here on."""
    w.helpers.use(_TEXT)
    return name


def stored(w: Writer, s: tir.BufferStore, disturbs: bool) -> bool:
    """Write a store of vectors to neighbours in memory; False where there is no such form, and nothing is written. ``disturbs``: it changes what it loads."""
    dtype, lanes = s.buffer.dtype, s.value.dtype.lanes
    if s.predicate is not None or dtype not in _IN_MEMORY or lanes % LANES or _first(s.indices, 0) is None:
        return False
    if not disturbs and _copied(w, s):
        return True
    value = s.value
    if type(value) is tir.Cast and dtype.is_int and _is_whole(value.value.dtype.element) and value.value.dtype.bits >= dtype.bits:
        value = value.value  # the low bits of which are stored
    saved = len(w.lines), dict(w.memo), dict(w.arrays)
    lines, kind = [], short(dtype)
    try:
        for at in range(0, lanes, LANES):
            text = _root(w, value, at)
            if disturbs and lanes > LANES:
                text = _temporary(w, value.dtype.element, text)
            lines.append(f"{use(w, f'rd_store4_{kind}')}(&{_place(w, s.buffer, s.indices, at)}, {text});")
    except _NoForm:
        del w.lines[saved[0] :]
        w.memo, w.arrays = saved[1:]
        return False
    for line in lines:
        w.line(line)
    return True


def _copied(w: Writer, s: tir.BufferStore) -> bool:
    """Neighbours that are stored as they are loaded are copied as bytes."""
    e, nbytes = s.value, s.value.dtype.lanes * s.buffer.dtype.bits // 8
    if type(e) is not tir.BufferLoad or e.predicate is not None or e.buffer.dtype is not s.buffer.dtype or _first(e.indices, 0) is None:
        return False
    if nbytes % 16 and nbytes not in (4, 8):
        return False
    step = 16 if nbytes % 16 == 0 else nbytes
    for at in range(0, nbytes, step):
        element = at * 8 // s.buffer.dtype.bits
        to, source = _place(w, s.buffer, s.indices, element), _place(w, e.buffer, e.indices, element)
        w.line(f"{use(w, 'rd_copy16')}(&{to}, &{source});" if step == 16 else f"memcpy(&{to}, &{source}, {step});")
    return True


def _first(indices: tuple[tir.Expr, ...], at: int) -> tuple[tir.Expr, ...] | None:
    """The indices of one lane of neighbours in memory; None where lanes are no neighbours."""
    *around, last = indices
    if type(last) is not tir.Ramp or any(i.dtype.lanes > 1 for i in around) or type(last.stride) is not tir.IntImm or last.stride.value != 1:
        return None
    return *around, tir.add(last.base, tir.const(at, last.base.dtype))


def _place(w: Writer, buffer: tir.Buffer, indices: tuple[tir.Expr, ...], at: int) -> str:
    first = _first(indices, at)
    if first is None or buffer.dtype.lanes > 1:
        raise _NoForm
    return place(w, buffer, first)


def _is_whole(dtype: DType) -> bool:
    """Whether numbers of an integer type are those of a lane, exactly."""
    return dtype.is_int and not dtype.is_bool and (dtype.bits < 32 or dtype is INT32)


def _kind(dtype: DType) -> str:
    if dtype.element is _FLOAT32:
        return "f32"
    if _is_whole(dtype.element):
        return "i32"
    raise _NoForm


def _temporary(w: Writer, dtype: DType, text: str) -> str:
    name = w.name("t")
    w.line(f"const rd_{_kind(dtype)}x4 {name} = {text};")
    return name


def vector(w: Writer, e: tir.Expr, at: int) -> str:
    """Four lanes of a value, from ``at`` on. Raises _NoForm."""
    if e.dtype.lanes == 1:
        return f"{use(w, f'rd_all4_{_kind(e.dtype)}')}({w.value(e)})"
    key: Any = (e, at)
    if key in w.memo:
        return w.memo[key]
    try:
        text = _root(w, e, at)
    except _NoForm:
        text = _in_array(w, e, at)
    if e in w.shared and type(e) is not tir.Broadcast:
        text = _temporary(w, e.dtype, text)
    w.memo[key] = text
    return text


def _root(w: Writer, e: tir.Expr, at: int) -> str:
    rule = _RULES.get(type(e))
    if rule is None:
        raise _NoForm
    return rule(w, e, at)


def _in_array(w: Writer, e: tir.Expr, at: int) -> str:
    _kind(e.dtype)
    if e.dtype.element not in _IN_MEMORY:
        raise _NoForm
    return f"{use(w, f'rd_load4_{short(e.dtype)}')}({w.array(e)}{f' + {at}' if at else ''})"


def _load(w: Writer, e: tir.BufferLoad, at: int) -> str:
    if e.predicate is not None or e.buffer.dtype not in _IN_MEMORY:
        raise _NoForm
    return f"{use(w, f'rd_load4_{short(e.dtype)}')}(&{_place(w, e.buffer, e.indices, at)})"


def _variable(w: Writer, e: tir.Var, at: int) -> str:
    return _in_array(w, e, at)


def _broadcast(w: Writer, e: tir.Broadcast, at: int) -> str:
    if e.value.dtype.lanes > 1:
        raise _NoForm
    return vector(w, e.value, at)


_SIGNS = {tir.Add: "add", tir.Sub: "sub", tir.Mul: "mul"}


def _ring(w: Writer, e: Any, at: int) -> str:
    if e.dtype.element not in (_FLOAT32, INT32):
        raise _NoForm
    kind, a, b = _kind(e.dtype), e.a, e.b
    if kind == "f32" and w.contract and type(e) is not tir.Mul:
        if type(b) is tir.Mul:
            return _fused(w, b.a, b.b, vector(w, a, at), at, negated=type(e) is tir.Sub)
        if type(a) is tir.Mul:
            c = vector(w, b, at)
            return _fused(w, a.a, a.b, c if type(e) is tir.Add else f"{use(w, 'rd_neg4_f32')}({c})", at)
    if type(a) is tir.Broadcast and type(e) is not tir.Sub:
        a, b = b, a
    return _by(w, f"rd_{_SIGNS[type(e)]}4_{kind}", a, b, at)


def _by(w: Writer, name: str, a: tir.Expr, b: tir.Expr, at: int, more: str = "") -> str:
    """A function of a vector, and of one that may have the same number in all lanes."""
    if type(b) is tir.Broadcast and b.value.dtype.lanes == 1:
        return f"{use(w, name)}_by({vector(w, a, at)}, {w.value(b.value)}{more})"
    return f"{use(w, name)}({vector(w, a, at)}, {vector(w, b, at)}{more})"


def _fused(w: Writer, a: tir.Expr, b: tir.Expr, c: str, at: int, negated: bool = False) -> str:
    if negated:
        return f"{use(w, 'rd_fma4_f32')}({use(w, 'rd_neg4_f32')}({vector(w, a, at)}), {vector(w, b, at)}, {c})"
    return _by(w, "rd_fma4_f32", *((b, a) if type(a) is tir.Broadcast else (a, b)), at, f", {c}")


def _extreme(w: Writer, e: Any, at: int) -> str:
    return f"{use(w, f'''rd_{'min' if type(e) is tir.Min else 'max'}4_{_kind(e.dtype)}''')}({vector(w, e.a, at)}, {vector(w, e.b, at)})"


def _cast(w: Writer, e: tir.Cast, at: int) -> str:
    source, target = e.value.dtype.element, e.dtype.element
    if found := Quantised.of(e):
        return f"{use(w, 'rd_nearest4')}({vector(w, found.value, at)}, {found.zero}, {found.low}, {found.high})"
    if target is _FLOAT32 and _is_whole(source):
        return f"{use(w, 'rd_float4')}({vector(w, e.value, at)})"
    if target is INT32 and source is _FLOAT32:
        return f"{use(w, 'rd_whole4')}({vector(w, e.value, at)})"
    if _is_whole(source) and _is_whole(target) and target.limits[0] <= source.limits[0] and source.limits[1] <= target.limits[1]:
        return vector(w, e.value, at)
    raise _NoForm


def _select(w: Writer, e: tir.Select, at: int) -> str:
    if e.condition.dtype.lanes > 1:
        raise _NoForm
    return f"({w.value(e.condition)} ? {vector(w, e.true_value, at)} : {vector(w, e.false_value, at)})"


def _if_then_else(w: Writer, e: tir.IfThenElse, at: int) -> str:
    """Only the value that is chosen is computed."""
    if e.condition.dtype.lanes > 1:
        raise _NoForm
    name, condition = w.name("t"), w.value(e.condition)
    w.line(f"rd_{_kind(e.dtype)}x4 {name};")
    for head, side in ((f"if ({condition}) {{", e.true_value), ("} else {", e.false_value)):
        w.line(head)
        w.depth += 1
        memo, arrays = dict(w.memo), dict(w.arrays)
        w.line(f"{name} = {vector(w, side, at)};")
        w.memo, w.arrays = memo, arrays
        w.depth -= 1
    w.line("}")
    return name


def _call(w: Writer, e: tir.Call, at: int) -> str:
    if e.dtype.element is not _FLOAT32:
        raise _NoForm
    if e.op in ("round", "nearbyint"):
        return f"{use(w, 'rd_round4')}({vector(w, e.args[0], at)})"
    if e.op == "neg":
        return f"{use(w, 'rd_neg4_f32')}({vector(w, e.args[0], at)})"
    if e.op == "fma":
        return _fused(w, e.args[0], e.args[1], vector(w, e.args[2], at), at)
    raise _NoForm


_RULES: dict[type, _Rule] = {
    tir.BufferLoad: _load,
    tir.Var: _variable,
    tir.Broadcast: _broadcast,
    **dict.fromkeys(_SIGNS, _ring),
    tir.Min: _extreme,
    tir.Max: _extreme,
    tir.Cast: _cast,
    tir.Select: _select,
    tir.IfThenElse: _if_then_else,
    tir.Call: _call,
}
