# SPDX-License-Identifier: Apache-2.0
"""Vectors of any power of two of lanes as values in C, by the extensions that GCC and Clang share, for processors with wide vectors (target
``c -mattr=+vector-extensions``).

A statement of vectors is an expression of whole vectors, so arrays that are a tile of registers stay in registers, which they do not where each
statement is a loop over lanes. What has no such form is computed lane by lane and loaded from an array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...ir import tir
from ...ir.dtype import DType
from ..storage import strides
from .expressions import base, offset, place
from .types import c_type, short
from .writer import Writer

FEATURE = "vector-extensions"
"""The name of this form among the features of a target of kind c."""

_ELEMENTS = frozenset(map(DType, ("float32", "float64", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))))
_HEAD = "rd_vector_extensions", """
#if !defined(__GNUC__)
#error "this file needs the vector extensions of GCC or Clang: compile the model for the target c, without +vector-extensions"
#endif
#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif"""
_FUSED = {  # (type, lanes) -> where the processor has an instruction for a * b + c, and how C compilers call it
    ("f32", 16): (("__AVX512F__", "((rd_f32x16)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))"),),
    ("f64", 8): (("__AVX512F__", "((rd_f64x8)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))"),),
    ("f32", 8): (("__FMA__", "((rd_f32x8)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))"),),
    ("f64", 4): (("__FMA__", "((rd_f64x4)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))"),),
    ("f32", 4): (("__FMA__", "((rd_f32x4)_mm_fmadd_ps((__m128)(a), (__m128)(b), (__m128)(c)))"),
                 ("__aarch64__", "((rd_f32x4)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))")),
    ("f64", 2): (("__FMA__", "((rd_f64x2)_mm_fmadd_pd((__m128d)(a), (__m128d)(b), (__m128d)(c)))"),
                 ("__aarch64__", "((rd_f64x2)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))")),
}


class _NoForm(Exception):
    """A value has no such form."""


def stored(w: Writer, s: tir.BufferStore, disturbs: bool) -> bool:
    """Write a store of vectors to neighbours in memory; False where there is no such form, and nothing is written. All lanes are loaded before one
    is stored, so it does not matter whether it ``disturbs`` what it loads."""
    if s.predicate is not None:
        return False
    try:
        with _undone(w):
            to = _memory(w, s.buffer, s.indices, s.value.dtype.lanes)
            w.line(f"{to} = {_vector(w, s.value)};")
    except _NoForm:
        return False
    return True


def assigned(w: Writer, array: str, e: tir.Expr) -> bool:
    """Write all lanes of a value into an array; False where there is no such form, and nothing is written."""
    try:
        with _undone(w):
            text = _root(w, e)
            w.line(f"{_at(w, e.dtype, '', f'{array}[0]')} = {text};")
    except _NoForm:
        return False
    return True


@contextmanager
def _undone(w: Writer) -> Iterator[None]:
    """What is written inside is taken back where it turns out to have no such form."""
    lines, memo, arrays = len(w.lines), dict(w.memo), dict(w.arrays)
    try:
        yield
    except _NoForm:
        del w.lines[lines:]
        w.memo, w.arrays = memo, arrays
        raise


# ---- types and functions -----------------------------------------------------------------------------------


def _type(w: Writer, dtype: DType) -> str:
    """The type of a vector; raises _NoForm where there is none."""
    element, lanes = dtype.element, dtype.lanes
    if element not in _ELEMENTS or lanes < 2 or lanes & (lanes - 1):
        raise _NoForm
    name = f"rd_{short(element)}x{lanes}"
    w.helpers.use(_HEAD)
    return w.helpers.use((name, f"typedef {c_type(element)} {name} __attribute__((vector_size({lanes * element.bits // 8})));\n"
                                f"typedef {name} {name}_at __attribute__((aligned({element.bits // 8}), may_alias)); /* in memory */"))


def _mask(w: Writer, dtype: DType) -> str:
    """The type of what comparisons of a vector give: all bits of a lane, or none."""
    return _type(w, DType(f"int{dtype.bits}").with_lanes(dtype.lanes))


def _macro(w: Writer, what: str, result: DType, params: str, body: str) -> str:
    """The name of a macro ``what`` of vectors of a type, which the text has from here on. ``V``, ``T`` and ``M`` stand for that type, that of a lane, and
    that of comparisons; each of the ``params`` is a letter for its type and one for its value, which is computed once. They are no functions: how vectors
    are passed to these depends on what the processor has, of which compilers tell."""
    v = _type(w, result)
    words = {"V": v, "T": c_type(result.element), "M": _mask(w, result), **{letter: f"rd_{letter}" for letter in "abmx"}}
    named = lambda text: re.sub(r"\b[VTMabmx]\b", lambda found: words[found[0]], text)
    typed = [param.split(" ") for param in params.split(", ")]
    values = " ".join(f"const {words[kind]} {words[value]} = ({value});" for kind, value in typed)
    name = f"{v.replace('rd_', f'rd_{what}_', 1)}"
    head = f"#define {name}({', '.join(value for _, value in typed)})"
    return w.helpers.use((name, f"{head} \\\n  __extension__({{ {values} {named(body)}; }})"))


def _all(w: Writer, dtype: DType, text: str) -> str:
    """One number in all lanes."""
    return f"{_macro(w, 'all', dtype, 'T x', f'''(V){{ {', '.join('x' * dtype.lanes)} }}''')}({text})"


def _fma(w: Writer, a: str, b: str, c: str, dtype: DType) -> str:
    ways = _FUSED.get((short(dtype.element), dtype.lanes), ())
    name = _type(w, dtype).replace("rd_", "rd_fma_", 1)
    head, plain = f"#define {name}(a, b, c)", "((a) * (b) + (c))"
    lines = [f"#{'el' * bool(k)}if defined({has})\n{head} {call}" for k, (has, call) in enumerate(ways)]
    w.helpers.use((name, "\n".join([*lines, "#else", f"{head} {plain}", "#endif"]) if ways else f"{head} {plain}"))
    return f"{name}({a}, {b}, {c})"


# ---- memory ------------------------------------------------------------------------------------------------


def _at(w: Writer, dtype: DType, const: str, first: str) -> str:
    """The vector whose first lane is a place in memory."""
    return f"*({const}{_type(w, dtype)}_at *)&{first}"


def _memory(w: Writer, buffer: tir.Buffer, indices: tuple[tir.Expr, ...], lanes: int, const: str = "") -> str:
    """Neighbours in memory as one vector. Raises _NoForm where lanes are no neighbours."""
    if buffer.dtype.lanes == lanes and all(i.dtype.lanes == 1 for i in indices):
        return _at(w, buffer.dtype, const, f"{base(w, buffer)}[({offset(w, buffer, indices)}) * {lanes}]")
    *around, last = indices
    step = strides(buffer)[-1]
    if buffer.dtype.lanes > 1 or type(last) is not tir.Ramp or any(i.dtype.lanes > 1 for i in around):
        raise _NoForm
    if any(type(n) is not tir.IntImm or n.value != 1 for n in (last.stride, step)):
        raise _NoForm
    dtype = buffer.dtype.with_lanes(lanes)
    _type(w, dtype)
    return _at(w, dtype, const, place(w, buffer, (*around, last.base)))


# ---- values ------------------------------------------------------------------------------------------------


def _vector(w: Writer, e: tir.Expr) -> str:
    """A value of several lanes, or of one that is the same in all. Raises _NoForm."""
    key: Any = ("whole", e)
    if key in w.memo:
        return w.memo[key]
    t = _type(w, e.dtype)
    try:
        with _undone(w):
            text = _root(w, e)
    except _NoForm:
        text = _at(w, e.dtype, "const ", f"{w.array(e)}[0]")
    if e in w.shared and type(e) is not tir.Broadcast:
        name = w.name("t")
        w.line(f"const {t} {name} = {text};")
        text = name
    w.memo[key] = text
    return text


def _root(w: Writer, e: tir.Expr) -> str:
    rule = _RULES.get(type(e))
    if rule is None:
        raise _NoForm
    _type(w, e.dtype)
    return rule(w, e)


def _load(w: Writer, e: tir.BufferLoad) -> str:
    if e.predicate is not None:
        raise _NoForm
    return f"({_memory(w, e.buffer, e.indices, e.dtype.lanes, 'const ')})"


def _variable(w: Writer, e: tir.Var) -> str:
    return f"({_at(w, e.dtype, 'const ', f'{w.env[e]}[0]')})"


def _broadcast(w: Writer, e: tir.Broadcast) -> str:
    if e.value.dtype.lanes > 1:
        raise _NoForm
    return _all(w, e.dtype, w.value(e.value))


_SIGNS = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*"}


def _ring(w: Writer, e: Any) -> str:
    sign = _SIGNS[type(e)]
    if e.dtype.is_int:  # wraps: signed integers that overflow have no meaning in C
        v, u = _type(w, e.dtype), _type(w, DType(f"uint{e.dtype.bits}").with_lanes(e.dtype.lanes))
        return f"({v})(({u}){_vector(w, e.a)} {sign} ({u}){_vector(w, e.b)})"
    if w.contract and type(e) is not tir.Mul:
        adds = type(e) is tir.Add
        if type(e.b) is tir.Mul:
            x = _vector(w, e.b.a)
            return _fma(w, x if adds else f"-{x}", _vector(w, e.b.b), _vector(w, e.a), e.dtype)
        if type(e.a) is tir.Mul:
            c = _vector(w, e.b)
            return _fma(w, _vector(w, e.a.a), _vector(w, e.a.b), c if adds else f"-{c}", e.dtype)
    return f"({_vector(w, e.a)} {sign} {_vector(w, e.b)})"


def _quotient(w: Writer, e: tir.Div) -> str:
    if not e.dtype.is_float:
        raise _NoForm
    return f"({_vector(w, e.a)} / {_vector(w, e.b)})"


def _extreme(w: Writer, e: Any) -> str:
    """A NaN is kept; a constant is none, which takes one comparison less."""
    is_min = type(e) is tir.Min
    sign, reverse = ("<", ">=") if is_min else (">", "<=")
    a, b = (e.b, e.a) if _is_number(e.a) and not _is_number(e.b) else (e.a, e.b)
    what = "min" if is_min else "max"
    if not e.dtype.is_float:
        test = f"(M)(a {sign} b)"
    elif _is_number(b):
        what, test = f"{what}_number", f"~(M)(a {reverse} b)"
    else:
        test = f"(M)(a {sign} b) | (M)(a != a)"
    body = f"const M m = {test}; (V)((m & (M)a) | (~m & (M)b))"
    return f"{_macro(w, what, e.dtype, 'V a, V b', body)}({_vector(w, a)}, {_vector(w, b)})"


def _is_number(e: tir.Expr) -> bool:
    return type(e) is tir.Broadcast and type(e.value) is tir.FloatImm and e.value.value == e.value.value


def _cast(w: Writer, e: tir.Cast) -> str:
    source, target = e.value.dtype.element, e.dtype.element
    if source not in _ELEMENTS or (source.is_float and target.is_int):
        raise _NoForm
    return f"__builtin_convertvector({_vector(w, e.value)}, {_type(w, e.dtype)})"


def _select(w: Writer, e: tir.Select | tir.IfThenElse) -> str:
    if e.condition.dtype.lanes == 1:
        if type(e) is tir.IfThenElse:
            return _chosen(w, e)
        return f"({w.value(e.condition)} ? {_vector(w, e.true_value)} : {_vector(w, e.false_value)})"
    name = _macro(w, "pick", e.dtype, "M m, V a, V b", "(V)((m & (M)a) | (~m & (M)b))")
    return f"{name}({_condition(w, e.condition, e.dtype.bits)}, {_vector(w, e.true_value)}, {_vector(w, e.false_value)})"


def _chosen(w: Writer, e: tir.IfThenElse) -> str:
    """Only the value that is chosen is computed."""
    name, condition = w.name("t"), w.value(e.condition)
    w.line(f"{_type(w, e.dtype)} {name};")
    for head, side in ((f"if ({condition}) {{", e.true_value), ("} else {", e.false_value)):
        w.line(head)
        w.depth += 1
        memo, arrays = dict(w.memo), dict(w.arrays)
        w.line(f"{name} = {_vector(w, side)};")
        w.memo, w.arrays = memo, arrays
        w.depth -= 1
    w.line("}")
    return name


_COMPARE = {tir.EQ: "==", tir.NE: "!=", tir.LT: "<", tir.LE: "<=", tir.GT: ">", tir.GE: ">="}


def _condition(w: Writer, e: Any, bits: int) -> str:
    """A condition as lanes of so many bits, all of them or none. Raises _NoForm."""
    wanted = DType(f"int{bits}").with_lanes(e.dtype.lanes)
    if type(e) in _COMPARE:
        has = _mask(w, e.a.dtype)
        text = f"({has})({_vector(w, e.a)} {_COMPARE[type(e)]} {_vector(w, e.b)})"
        return text if e.a.dtype.bits == bits else f"__builtin_convertvector({text}, {_type(w, wanted)})"
    if type(e) in (tir.And, tir.Or):
        return f"({_condition(w, e.a, bits)} {'&' if type(e) is tir.And else '|'} {_condition(w, e.b, bits)})"
    if type(e) is tir.Not:
        return f"~{_condition(w, e.a, bits)}"
    if type(e) is tir.Broadcast and e.value.dtype.lanes == 1:
        return _all(w, wanted, f"({c_type(wanted.element)})-({w.value(e.value)})")
    raise _NoForm


def _call(w: Writer, e: tir.Call) -> str:
    if e.op == "neg" and e.dtype.is_float:
        return f"(-{_vector(w, e.args[0])})"
    if e.op == "fma":
        a, b, c = (_vector(w, x) for x in e.args)
        return _fma(w, a, b, c, e.dtype)
    raise _NoForm


_RULES: dict[type, Callable[[Writer, Any], str]] = {
    tir.BufferLoad: _load,
    tir.Var: _variable,
    tir.Broadcast: _broadcast,
    **dict.fromkeys(_SIGNS, _ring),
    tir.Div: _quotient,
    tir.Min: _extreme,
    tir.Max: _extreme,
    tir.Cast: _cast,
    tir.Select: _select,
    tir.IfThenElse: _select,
    tir.Call: _call,
}
