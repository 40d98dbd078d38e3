# SPDX-License-Identifier: Apache-2.0
"""Operators, casts, selection, loads and what mixes lanes, as C."""

from __future__ import annotations

from typing import Any

from ...arith import Analyzer
from ...ir import tir
from ...ir.dtype import INT32, INT64, DType
from ..expand.convert import half_of_double, narrow, widen
from ..expand.remainder import float_floordiv, float_floormod
from ..storage import buffer_bytes, is_packed, strides
from ..writes import writes
from . import prelude
from .quantised import quantised
from .types import c_type, short, storage_float
from .writer import EXPR, Writer

_RING = {tir.Add: ("add", "+"), tir.Sub: ("sub", "-"), tir.Mul: ("mul", "*")}
_COMPARE = {tir.EQ: "==", tir.NE: "!=", tir.LT: "<", tir.LE: "<=", tir.GT: ">", tir.GE: ">="}


def both(sign: str, a: str, b: str) -> str:
    """A bitwise operation on truth values, one of them as a number: for two conditions, Clang warns that a logical operation may be meant."""
    return f"((int){a} {sign} {b})"


def _wide_operand(w: Writer, e: Any, operand: tir.Expr) -> tir.Expr:
    """An operand in float32; a product that may contract keeps its unrounded value."""
    if w.contract and type(operand) is tir.Mul and type(e) in (tir.Add, tir.Sub):
        return tir.Mul(widen(operand.a), widen(operand.b))
    return widen(operand)


@writes(EXPR, tir.Add, tir.Sub, tir.Mul)
def _ring(w: Writer, e: Any) -> str:
    name, sign = _RING[type(e)]
    if storage_float(e.dtype):
        return w.value(narrow(type(e)(_wide_operand(w, e, e.a), _wide_operand(w, e, e.b)), e.dtype))
    if e.dtype.is_float:
        return (_multiply_add(w, e) if w.contract else None) or f"({w.value(e.a)} {sign} {w.value(e.b)})"
    if e.dtype.is_bool:
        return both({"add": "|", "sub": "^", "mul": "&"}[name], w.value(e.a), w.value(e.b))
    if e.is_index and e.dtype.bits >= 32:
        wide = "(int64_t)" if e.dtype.element is INT64 and _is_int(e.a) and _is_int(e.b) else ""
        return f"({wide}{w.value(e.a)} {sign} {w.value(e.b)})"
    return f"{w.helpers.use(prelude.ring(name, e.dtype.element))}({w.value(e.a)}, {w.value(e.b)})"


def _is_int(e: tir.Expr) -> bool:
    """Whether an expression of 64 bits may be an ``int`` in C: small constants, and choices among them."""
    if type(e) is tir.Select:
        return _is_int(e.true_value) and _is_int(e.false_value)
    return _is_int(e.value) if type(e) is tir.Broadcast else type(e) is tir.IntImm


def _multiply_add(w: Writer, e: Any) -> str | None:
    """a * b + c, a * b - c and c - a * b with one rounding where the processor has that."""
    if type(e) not in (tir.Add, tir.Sub):
        return None
    fma, adds = prelude.fused(e.dtype.element), type(e) is tir.Add
    if type(e.b) is tir.Mul:
        x = w.value(e.b.a)
        return f"{w.helpers.use(fma)}({x if adds else f'-{x}'}, {w.value(e.b.b)}, {w.value(e.a)})"
    if type(e.a) is tir.Mul:
        c = w.value(e.b)
        return f"{w.helpers.use(fma)}({w.value(e.a.a)}, {w.value(e.a.b)}, {c if adds else f'-{c}'})"
    return None


_DIVISIONS = {tir.Div: "div", tir.Mod: "mod", tir.FloorDiv: "floordiv", tir.FloorMod: "floormod"}


@writes(EXPR, *_DIVISIONS)
def _divide(w: Writer, e: Any) -> str:
    op, kind = _DIVISIONS[type(e)], type(e)
    if e.dtype.is_float:
        if op.startswith("floor"):
            return w.value((float_floordiv if op == "floordiv" else float_floormod)(e.a, e.b))
        if storage_float(e.dtype):
            return w.value(narrow(kind(widen(e.a), widen(e.b)), e.dtype))
        a, b = w.value(e.a), w.value(e.b)
        return f"({a} / {b})" if op == "div" else f"fmod{'f' if e.dtype.bits == 32 else ''}({a}, {b})"
    by = e.b.value if type(e.b) is tir.Broadcast else e.b
    if type(by) is tir.IntImm and by.value > 0 and (e.dtype.kind == "uint" or not op.startswith("floor") or w.nonneg(e.a)):
        return f"({c_type(e.dtype)})({w.value(e.a)} {'/' if op.endswith('div') else '%'} {w.value(e.b)})"
    return f"{w.helpers.use(prelude.divide(op, e.dtype.element))}({w.value(e.a)}, {w.value(e.b)})"


@writes(EXPR, *_COMPARE)
def _compare(w: Writer, e: Any) -> str:
    if storage_float(e.a.dtype):
        return w.value(type(e)(widen(e.a), widen(e.b)))
    known = _always(e)
    return f"({w.value(e.a)} {_COMPARE[type(e)]} {w.value(e.b)})" if known is None else str(int(known))


def _always(e: Any) -> bool | None:
    """What a comparison of narrow or unsigned integers with a limit of their type always is: compilers warn of such."""
    dtype = e.a.dtype
    number = e.b.value if type(e.b) is tir.Broadcast else e.b
    if dtype.is_float or dtype.is_handle or type(number) is not tir.IntImm:
        return None
    low, high = (0, 1) if dtype.is_bool else dtype.element.limits
    if number.value <= low and type(e) in (tir.LT, tir.GE):
        return type(e) is tir.GE
    if number.value >= high and type(e) in (tir.GT, tir.LE):
        return type(e) is tir.LE
    return None


@writes(EXPR, tir.Min, tir.Max)
def _extreme(w: Writer, e: Any) -> str:
    if storage_float(e.dtype):
        return w.value(narrow(type(e)(widen(e.a), widen(e.b)), e.dtype))
    return f"{w.helpers.use(prelude.extreme('min' if type(e) is tir.Min else 'max', e.dtype.element))}({w.value(e.a)}, {w.value(e.b)})"


@writes(EXPR, tir.And, tir.Or)
def _logic(w: Writer, e: Any) -> str:
    return both("&" if type(e) is tir.And else "|", w.value(e.a), w.value(e.b))


@writes(EXPR, tir.Not)
def _not(w: Writer, e: tir.Not) -> str:
    return f"(!{w.value(e.a)})"


@writes(EXPR, tir.Select)
def _select(w: Writer, e: tir.Select) -> str:
    return f"({w.value(e.condition)} ? {w.value(e.true_value)} : {w.value(e.false_value)})"


@writes(EXPR, tir.IfThenElse)
def _if_then_else(w: Writer, e: tir.IfThenElse) -> str:
    """Of vectors whose condition has one lane, the one that is chosen is put into an array."""
    if e.dtype.lanes == 1:
        return w.choose(e.dtype, w.value(e.condition), e.true_value, e.false_value)
    if e.condition.dtype.lanes > 1:
        return _select(w, tir.Select(e.condition, e.true_value, e.false_value))
    name = w.arrays.get(e)
    if name is None:
        name = w.arrays[e] = w.name("v")
        w.line(f"{c_type(e.dtype)} {name}[{e.dtype.lanes}];")
        condition = w.value(e.condition)
        for head, side in ((f"if ({condition}) {{", e.true_value), ("} else {", e.false_value)):
            w.line(head)
            w.depth += 1
            saved = dict(w.memo), dict(w.arrays)
            w.for_lanes(e.dtype.lanes, lambda side=side: [f"{name}[l] = {w.value(side)};"])
            w.memo, w.arrays = saved
            w.depth -= 1
        w.line("}")
    return f"{name}[l]"


# ---- casts -------------------------------------------------------------------------------------------------


@writes(EXPR, tir.Cast)
def _cast(w: Writer, e: tir.Cast) -> str:
    source, target = e.value.dtype.element, e.dtype.element
    if source is target:
        return w.value(e.value)
    if found := quantised(w, e):
        return found
    if storage_float(source):
        single = f"{w.helpers.use(_decoded(w, source))}({w.value(e.value)})"
        return single if target == "float32" else converted(w, single, DType("float32"), target) if not storage_float(target) else _encode(w, single, target)
    if storage_float(target):
        if source.is_float and source.bits == 64 and target == "float16":
            return w.value(half_of_double(e.value))
        return _encode(w, converted(w, w.value(e.value), source, DType("float32")), target)
    return converted(w, w.value(e.value), source, target)


def converted(w: Writer, text: str, source: DType, target: DType) -> str:
    """A value as another type, neither of them a storage float."""
    if source is target:
        return text
    if target.is_bool:
        return f"({text} != 0)"
    if source.is_float and not target.is_float:
        return f"{w.helpers.use(prelude.to_integer(source, target))}({text})"
    if target.is_float or target.is_handle or source.is_handle:
        through = "(uintptr_t)" if target.is_handle or source.is_handle else ""
        return f"({c_type(target)}){through}{text}"
    if source.bits < target.bits and (source.kind == target.kind or source.kind != "int") and target.bits >= 8:
        return f"({c_type(target)}){text}"
    return f"({prelude.narrowed(text, target)})"


def _decoded(w: Writer, dtype: DType) -> tuple[str, str]:
    """A helper function from a storage float to float32."""
    from .functions import helper_function

    return helper_function(w, f"rd_{dtype}_to_f32", (dtype,), lambda x: _decode_rule(x))


def _decode_rule(x: tir.Expr) -> tir.Expr:
    from ..expand.convert import decode

    return decode(x)


def _encode(w: Writer, text: str, dtype: DType) -> str:
    from ..expand.convert import encode
    from .functions import helper_function

    return f"{w.helpers.use(helper_function(w, f'rd_f32_to_{dtype}', (DType('float32'),), lambda x: encode(x, dtype)))}({text})"


def reinterpreted(w: Writer, e: tir.Call) -> str:
    """The bits of a value as another type; of neighbours in memory as one number."""
    if e.dtype.lanes == 1 < e.args[0].dtype.lanes:
        return _word(w, e)
    source, target, text = e.args[0].dtype.element, e.dtype.element, w.value(e.args[0])
    if c_type(source) == c_type(target):
        return text
    if not (source.is_float or target.is_float) or (storage_float(source) and not target.is_float) or (storage_float(target) and not source.is_float):
        return f"({c_type(target)}){text}"
    return f"{w.helpers.use(prelude.reinterpreted(source, target))}({text})"


def _word(w: Writer, e: tir.Call) -> str:
    """Neighbours in memory as one number of the same bytes."""
    first = neighbours(e.args[0])
    if first is None:
        raise w.fail("lanes that are no neighbours in memory cannot become one number in C", e, "load them by one expression, without a condition")
    return f"{w.helpers.use(prelude.word(first.dtype, e.dtype))}(&{place(w, first.buffer, first.indices)})"


def neighbours(e: tir.Expr) -> tir.BufferLoad | None:
    """The first of the elements that a vector is loaded from, where they follow each other; several loads may be one vector."""
    parts = e.vectors if type(e) is tir.Shuffle and e.indices == tuple(range(e.dtype.lanes)) else (e,)
    firsts = []
    for part in parts:
        if type(part) is not tir.BufferLoad or part.predicate is not None or is_packed(part.buffer.dtype) or type(part.indices[-1]) is not tir.Ramp:
            return None
        *around, last = part.indices
        if any(i.dtype.lanes > 1 for i in around) or last.stride is not tir.const(1, last.stride.dtype):
            return None
        firsts.append(tir.BufferLoad(part.buffer, (*around, last.base)))
    an, begin, at = Analyzer(), firsts[0], 0
    number = lambda load: tir.sum_of([tir.mul(tir.cast(i, INT64), tir.cast(n, INT64)) for i, n in zip(load.indices, strides(load.buffer), strict=True)])
    for load, part in zip(firsts, parts, strict=True):
        if load.buffer is not begin.buffer or not an.prove_equal(number(load), tir.add(number(begin), tir.const(at, INT64))):
            return None
        at += part.dtype.lanes
    return begin


# ---- memory ------------------------------------------------------------------------------------------------


def offset(w: Writer, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> str:
    """The element's number from where the buffer's data pointer points to, in the lane ``l`` where an index has lanes."""
    wide = _offset_type(buffer, indices)
    fixed: tir.Expr = tir.cast(buffer.elem_offset if buffer.elem_offset is not None else tir.index_const(0), wide)
    parts: list[str] = []
    for i, step in zip(indices, strides(buffer), strict=True):
        step = tir.cast(step, wide)
        if i.dtype.lanes == 1:
            fixed = tir.add(fixed, tir.mul(tir.cast(i, wide), step))
            continue
        if type(i) is tir.Ramp:
            fixed = tir.add(fixed, tir.mul(tir.cast(i.base, wide), step))
            by = tir.mul(tir.cast(i.stride, wide), step)
            fits = wide is INT32 or (type(by) is tir.IntImm and abs(by.value) < 1 << 20)
            parts.append("l" if type(by) is tir.IntImm and by.value == 1 else f"{'' if fits else '(int64_t)'}l * {w.value(by)}")
            continue
        scale = "" if type(step) is tir.IntImm and step.value == 1 else f" * {w.value(step)}"
        parts.append(f"({c_type(wide)}){w.value(i)}{scale}")
    if not parts or type(fixed) is not tir.IntImm or fixed.value:
        text = w.value(fixed)
        parts.insert(0, bare(text))
    return " + ".join(parts)


def _offset_type(buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> DType:
    """int32 where indices are of that type (`lower.narrow_indices`) and no element of the buffer has a greater number."""
    numbers = (*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset]))
    if all(type(n) is tir.IntImm for n in numbers) and all(type(i) is tir.IntImm or i.dtype.element is INT32 for i in indices):
        size = buffer_bytes(buffer)
        return INT32 if type(size) is tir.IntImm and size.value * (8 if is_packed(buffer.dtype) else 1) < 1 << 31 else INT64
    return INT64


def bare(text: str) -> str:
    """An expression without the parentheses around all of it."""
    return text[1:-1] if text.startswith("(") and text.endswith(")") and _one_pair(text) else text


def _one_pair(text: str) -> bool:
    """Whether the first parenthesis is closed by the last one."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return k == len(text) - 1
    return False


def base(w: Writer, buffer: tir.Buffer) -> str:
    """The buffer's data pointer as a pointer to its elements."""
    name, t = w.value(buffer.data), "uint8_t" if is_packed(buffer.dtype) else c_type(buffer.dtype)
    if w.typed.get(buffer.data) == t:
        return name
    space = "" if t.endswith("*") else " "
    return f"(({t}{space}*){name})"


def place(w: Writer, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> str:
    """An element as a place in memory. A buffer whose elements are vectors has them one lane behind the other."""
    where = offset(w, buffer, indices)
    if buffer.dtype.lanes > 1:
        where = f"({where}) * {buffer.dtype.lanes} + l"
    return f"{base(w, buffer)}[{where}]"


def _element(w: Writer, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> str:
    if is_packed(buffer.dtype):
        return f"{w.helpers.use(prelude.packed_load(buffer.dtype))}({base(w, buffer)}, {offset(w, buffer, indices)})"
    text = place(w, buffer, indices)
    return f"({text} != 0)" if buffer.dtype.is_bool else text


@writes(EXPR, tir.BufferLoad)
def _load(w: Writer, e: tir.BufferLoad) -> str:
    if e.predicate is None:
        return _element(w, e.buffer, e.indices)
    if e.dtype.lanes == 1:
        return w.choose(e.dtype, w.value(e.predicate), tir.BufferLoad(e.buffer, e.indices), tir.const(0, e.dtype))
    return f"({w.value(e.predicate)} ? {_element(w, e.buffer, e.indices)} : 0)"


# ---- lanes -------------------------------------------------------------------------------------------------


@writes(EXPR, tir.Broadcast)
def _broadcast(w: Writer, e: tir.Broadcast) -> str:
    inner = e.value.dtype.lanes
    return w.value(e.value) if inner == 1 else f"{w.array(e.value)}[l % {inner}]"


@writes(EXPR, tir.Ramp)
def _ramp(w: Writer, e: tir.Ramp) -> str:
    t, first, step = c_type(e.dtype), w.value(e.base), w.value(e.stride)
    if e.base.is_index and e.stride.is_index and e.dtype.bits >= 32:
        by = f"({t})l" if step == "1" else f"({t})l * {step}"
        return by if first == "0" else f"({first} + {by})"
    product = f"{w.helpers.use(prelude.ring('mul', e.dtype.element))}(({t})l, {step})"
    return f"{w.helpers.use(prelude.ring('add', e.dtype.element))}({first}, {product})"


@writes(EXPR, tir.Shuffle)
def _shuffle(w: Writer, e: tir.Shuffle) -> str:
    vectors = e.vectors
    if len(vectors) == 1 and vectors[0].dtype.lanes > 1:
        source = w.array(vectors[0])
    else:
        source = w.arrays.get(vectors) or _joined(w, e)
    if len(e.indices) == 1:
        return f"{source}[{e.indices[0]}]"
    first, step = e.indices[0], e.indices[1] - e.indices[0]
    if all(i == first + k * step for k, i in enumerate(e.indices)):
        at = "l" if step == 1 else f"{step} * l" if step else ""
        return f"{source}[{' + '.join(filter(None, [str(first) if first or not at else '', at]))}]"
    table = w.name("lane")
    w.line(f"static const uint16_t {table}[{len(e.indices)}] = {{{', '.join(map(str, e.indices))}}};")
    return f"{source}[{table}[l]]"


def _joined(w: Writer, e: tir.Shuffle) -> str:
    """Vectors and scalars, one behind the other in an array, which is not that of the lanes that are picked from it."""
    name = w.arrays[e.vectors] = w.name("v")
    w.line(f"{c_type(e.dtype)} {name}[{sum(v.dtype.lanes for v in e.vectors)}];")
    at = 0
    for v in e.vectors:
        if v.dtype.lanes == 1:
            w.line(f"{name}[{at}] = {w.value(v)};")
        else:
            w.for_lanes(v.dtype.lanes, lambda v=v, at=at: [f"{name}[{at} + l] = {w.value(v)};"])
        at += v.dtype.lanes
    return name


__all__ = ["base", "converted", "neighbours", "offset", "place", "reinterpreted", "short"]
