# SPDX-License-Identifier: Apache-2.0
"""Calls of intrinsics as C: elementary functions (the polynomials of ``expand``), the C library's, bit operations, reductions, foreign functions."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import escape, tir
from ...ir.dtype import DType
from ..expand.convert import narrow, widen
from ..expand.math import COMPOSED, EXPANSIONS, expand_call
from ..storage import element_bytes, is_packed
from ..writes import writes
from . import instructions, prelude, vectors
from .expressions import base, both, neighbours, offset, place, reinterpreted
from .types import c_type, storage_float
from .writer import CALLS, EXPR, Writer

_LIBRARY = {  # C99's functions of floats; with the suffix f for float32
    "sqrt": "sqrt", "abs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "nearbyint": "rint", "round": "nearbyint", "copysign": "copysign",
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "expm1": "expm1", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh",
    "atanh": "atanh", "erf": "erf", "erfc": "erfc", "lgamma": "lgamma", "tgamma": "tgamma", "pow": "pow", "atan2": "atan2", "fmod": "fmod",
    "hypot": "hypot", "nextafter": "nextafter",
}
_DECLARED = frozenset(_LIBRARY.values()) | {f"{name}f" for name in _LIBRARY.values()} | {"memcpy", "memmove", "memset", "memcmp", "strlen"}
"""Functions that the headers declare which every file includes."""


@writes(EXPR, tir.Call)
def _call(w: Writer, e: tir.Call) -> str:
    if not isinstance(e.op, str):
        return call_function(w, e)
    if e.op in EXPANSIONS and e.dtype.is_float and e.dtype.bits <= 32:
        if e.dtype.bits < 32:
            return w.value(narrow(tir.Call(e.op, tuple(map(widen, e.args)), widen(e.args[0]).dtype), e.dtype))
        from .functions import helper_function

        made = helper_function(w, f"rd_{e.op}_f32", tuple(a.dtype.element for a in e.args), lambda *x: EXPANSIONS[e.op](*x, scales=False))
        return f"{w.helpers.use(made)}({', '.join(map(w.value, e.args))})"
    if e.op in CALLS:
        return CALLS[e.op](w, e)
    raise w.fail(f"the intrinsic {e.op} cannot be compiled to C", e, "call_extern calls any C function")


def operands(w: Writer, args: tuple[tir.Expr, ...]) -> str:
    """Arguments of a function, pointers without ``const``."""
    return ", ".join(f"(void *){w.value(a)}" if a.dtype.is_handle else w.value(a) for a in args)


def call_function(w: Writer, e: tir.Call) -> str:
    """A call of another tensor program of the module: the context first, then its operands."""
    name = w.symbol(e.op.name)
    result = c_type(e.dtype)
    w.declares.setdefault(name, f"RD_KERNEL {result} {name}(RdContext *{''.join(f', {c_type(a.dtype)}' for a in e.args)});")
    return f"{name}(ctx{''.join(f', {o}' for o in [operands(w, e.args)] if o)})"


def in_float32(rule: Callable[[Writer, tir.Call], str]) -> Callable[[Writer, tir.Call], str]:
    """float16 and storage floats are widened first and the result is rounded."""

    def write(w: Writer, e: tir.Call) -> str:
        if not any(storage_float(a.dtype) for a in e.args):
            return rule(w, e)
        wide = tuple(widen(a) if a.dtype.is_float else a for a in e.args)
        if not e.dtype.is_float:
            return w.value(tir.Call(e.op, wide, e.dtype))
        return w.value(narrow(tir.Call(e.op, wide, wide[0].dtype if e.dtype.lanes == wide[0].dtype.lanes else DType("float32")), e.dtype))

    return write


@writes(CALLS, *_LIBRARY)
@in_float32
def _library(w: Writer, e: tir.Call) -> str:
    dtype, args = e.dtype.element, [w.value(a) for a in e.args]
    if dtype.is_float and e.op in ("round", "nearbyint"):
        return f"{w.helpers.use(prelude.nearest(dtype))}({args[0]})"
    if dtype.is_float:
        return f"{_LIBRARY[e.op]}{'f' if dtype.bits == 32 else ''}({', '.join(args)})"
    if e.op == "pow":
        return f"{w.helpers.use(prelude.integer_power(dtype))}({', '.join(args)})"
    if e.op == "abs":
        negated = f"{w.helpers.use(prelude.ring('sub', dtype))}(0, {args[0]})"
        return args[0] if dtype.kind == "uint" else f"({args[0]} < 0 ? {negated} : {args[0]})"
    if e.op in ("floor", "ceil", "trunc", "round", "nearbyint"):
        return args[0]  # an integer is its own floor
    raise w.fail(f"{e.op} of {e.dtype} is not defined", e, "cast to a float first")


@writes(CALLS, *COMPOSED)
def _composed(w: Writer, e: tir.Call) -> str:
    return w.value(expand_call(e))


@writes(CALLS, "exp10")
def _exp10(w: Writer, e: tir.Call) -> str:
    return f"pow(10.0, {w.value(e.args[0])})"


@writes(CALLS, "sigmoid")
def _sigmoid(w: Writer, e: tir.Call) -> str:
    return f"(1.0 / (1.0 + exp(-{w.value(e.args[0])})))"


@writes(CALLS, "fma")
@in_float32
def _fma(w: Writer, e: tir.Call) -> str:
    if e.dtype.is_float:
        return f"{w.helpers.use(prelude.fused(e.dtype.element))}({', '.join(map(w.value, e.args))})"
    return w.value(tir.Add(tir.Mul(e.args[0], e.args[1]), e.args[2]))


@writes(CALLS, "neg")
@in_float32
def _neg(w: Writer, e: tir.Call) -> str:
    text = w.value(e.args[0])
    return f"(-{text})" if e.dtype.is_float else f"{w.helpers.use(prelude.ring('sub', e.dtype.element))}(0, {text})"


@writes(CALLS, "rsqrt")
@in_float32
def _rsqrt(w: Writer, e: tir.Call) -> str:
    f = "f" if e.dtype.bits == 32 else ""
    return f"(1.0{f} / sqrt{f}({w.value(e.args[0])}))"


@writes(CALLS, "sign")
@in_float32
def _sign(w: Writer, e: tir.Call) -> str:
    x, zero, one = e.args[0], tir.const(0, e.dtype), tir.const(1, e.dtype)
    if e.dtype.kind == "uint":
        return w.value(tir.Select(tir.GT(x, zero), one, zero))
    signed = tir.Select(tir.GT(x, zero), one, tir.Select(tir.LT(x, zero), tir.const(-1, e.dtype), zero))
    return w.value(tir.Select(tir.NE(x, x), x, signed) if e.dtype.is_float else signed)


@writes(CALLS, "isnan", "isinf", "isfinite")
@in_float32
def _classify(w: Writer, e: tir.Call) -> str:
    x = e.args[0]
    if not x.dtype.is_float:
        return str(int(e.op == "isfinite"))
    text, f = w.value(x), "f" if x.dtype.bits == 32 else ""
    if e.op == "isnan":
        return f"({text} != {text})"
    return f"(fabs{f}({text}) {'==' if e.op == 'isinf' else '<'} {'' if f else '(double)'}INFINITY)"


@writes(CALLS, "ldexp")
@in_float32
def _ldexp(w: Writer, e: tir.Call) -> str:
    """The exponent is an integer, or a float with the value of one."""
    exponent = tir.cast(e.args[1], DType("int32").with_lanes(e.dtype.lanes))
    return f"ldexp{'f' if e.dtype.bits == 32 else ''}({w.value(e.args[0])}, {w.value(exponent)})"


@writes(CALLS, "likely")
def _likely(w: Writer, e: tir.Call) -> str:
    return w.value(e.args[0])


@writes(CALLS, "rarely")
def _rarely(w: Writer, e: tir.Call) -> str:
    condition, other, usual = e.args
    if e.dtype.lanes == 1:
        return w.choose(e.dtype, w.value(condition), other, usual)
    return f"({w.value(condition)} ? {w.value(other)} : {w.value(usual)})"


@writes(CALLS, "reinterpret")
def _reinterpret(w: Writer, e: tir.Call) -> str:
    return reinterpreted(w, e)


@writes(CALLS, "undef")
def _undef(w: Writer, e: tir.Call) -> str:
    return "0"


# ---- bits --------------------------------------------------------------------------------------------------


@writes(CALLS, "bitwise_and", "bitwise_or", "bitwise_xor")
def _bitwise(w: Writer, e: tir.Call) -> str:
    sign = {"and": "&", "or": "|", "xor": "^"}[e.op.removeprefix("bitwise_")]
    a, b = w.value(e.args[0]), w.value(e.args[1])
    return f"({c_type(e.dtype)}){both(sign, a, b) if e.dtype.is_bool else f'({a} {sign} {b})'}"


@writes(CALLS, "bitwise_not")
def _bitwise_not(w: Writer, e: tir.Call) -> str:
    text = w.value(e.args[0])
    return f"(!{text})" if e.dtype.is_bool else prelude.narrowed(f"~{text}", e.dtype.element)


@writes(CALLS, "shift_left", "shift_right")
def _shift(w: Writer, e: tir.Call) -> str:
    by = e.args[1].value if type(e.args[1]) is tir.Broadcast else e.args[1]
    text, bits = w.value(e.args[0]), e.dtype.bits
    if e.dtype.kind == "uint" and bits >= 32 and type(by) is tir.IntImm and 0 <= by.value < bits:
        return f"({text} {'<<' if e.op == 'shift_left' else '>>'} {by.value})"
    return f"{w.helpers.use(prelude.shift(e.op, e.dtype.element))}({text}, {w.value(e.args[1])})"


@writes(CALLS, "popcount", "clz", "ctz")
def _count(w: Writer, e: tir.Call) -> str:
    return f"{w.helpers.use(prelude.count_bits(e.op, e.dtype.element))}({w.value(e.args[0])})"


# ---- vectors -----------------------------------------------------------------------------------------------


@writes(CALLS, "reduce_add", "reduce_mul", "reduce_max", "reduce_min", "reduce_max_number")
def _reduce(w: Writer, e: tir.Call) -> str:
    """Halves are combined until one lane is left (what is left over by odd numbers of lanes comes last)."""
    x = e.args[0]
    if storage_float(x.dtype):
        return w.value(narrow(tir.Call(e.op, (widen(x),), DType("float32")), e.dtype))
    op, dtype, lanes, rest = e.op.removeprefix("reduce_"), x.dtype.element, x.dtype.lanes, []
    v = w.name("v")
    w.line(f"{c_type(dtype)} {v}[{lanes}];")
    w.assign(v, x)
    while lanes > 1:
        if lanes % 2:
            rest.append(f"{v}[{lanes - 1}]")
        lanes //= 2
        w.line(f"for (int l = 0; l < {lanes}; l++) {v}[l] = {_combined(w, op, dtype, f'{v}[l]', f'{v}[l + {lanes}]')};")
    total = f"{v}[0]"
    for r in rest:
        total = _combined(w, op, dtype, total, r)
    return total


def _combined(w: Writer, op: str, dtype: DType, a: str, b: str) -> str:
    if op in ("add", "mul"):
        return f"({a} {'+' if op == 'add' else '*'} {b})" if dtype.is_float else f"{w.helpers.use(prelude.ring(op, dtype))}({a}, {b})"
    return f"{w.helpers.use(prelude.extreme(op, dtype))}({a}, {b})"


@writes(CALLS, "dot_accumulate")
def _dot_accumulate(w: Writer, e: tir.Call) -> str:
    """acc[i] + sum over j < 4 of a[4i + j] * b[4i + j]."""
    acc, a, b = e.args
    lanes = acc.dtype.lanes
    wide = acc.dtype.element.with_lanes(4 * lanes)
    product, total = tir.Mul(tir.cast(a, wide), tir.cast(b, wide)), acc
    for j in range(4):
        total = tir.Add(total, tir.Shuffle((product,), tuple(4 * i + j for i in range(lanes))))
    return w.value(total)


# ---- memory and foreign functions --------------------------------------------------------------------------


@writes(CALLS, "address_of")
def _address_of(w: Writer, e: tir.Call) -> str:
    load = e.args[0]
    first = tuple(i.base if type(i) is tir.Ramp else i for i in load.indices)
    if is_packed(load.buffer.dtype):
        return f"(void *)({base(w, load.buffer)} + ({offset(w, load.buffer, first)}) / {8 // load.buffer.dtype.bits})"
    return f"(void *)({base(w, load.buffer)} + ({offset(w, load.buffer, first)}){f' * {load.buffer.dtype.lanes}' if load.buffer.dtype.lanes > 1 else ''})"


@writes(CALLS, "access_ptr")
def _access_ptr(w: Writer, e: tir.Call) -> str:
    """(type, data, offset in elements, extent, mask)"""
    element = DType(e.args[0].value if type(e.args[0]) is tir.StringImm else e.args[0].dtype)
    where = w.value(tir.cast(e.args[2], "int64"))
    bytes_ = f"{where} / {8 // element.bits}" if is_packed(element) else f"{where} * {element_bytes(element)}"
    return f"(void *)((char *){w.value(e.args[1])} + {bytes_})"


@writes(CALLS, "prefetch", "touch", "keep_order", "assume")
def _hint(w: Writer, e: tir.Call) -> str:
    """What tells a processor or a compiler how to be faster is left to the C compiler."""
    return ""


@writes(CALLS, "call_extern", "call_pure_extern")
def _extern(w: Writer, e: tir.Call) -> str:
    """(name, operands...); a pure C function of vectors is called for each lane."""
    name, args = e.args[0].value, e.args[1:]
    if name not in _DECLARED:
        types = ", ".join(c_type(a.dtype) for a in args) or "void"
        w.declares.setdefault(name, f"extern {c_type(e.dtype)} {name}({types});")
    return f"{name}({operands(w, args)})"


@writes(CALLS, "call_llvm_intrin", "call_llvm_pure_intrin")
def _llvm_intrinsic(w: Writer, e: tir.Call) -> str:
    """Those of few operands and one lane that `instructions` has in C."""
    name, args = e.args[0].value, e.args[1:]
    if name in instructions.DOTS:
        first = [neighbours(a.value if type(a) is tir.Cast else a) for a in args[-2:]]
        if None not in first:
            return f"{vectors.use(w, instructions.DOTS[name])}({', '.join(f'&{place(w, a.buffer, a.indices)}' for a in first)}, {w.value(args[3])})"
    found = instructions.turned(name, args) or (name, args)
    if found[0] in instructions.IN_C:
        return f"{w.helpers.use(instructions.IN_C[found[0]])}({', '.join(map(w.value, found[1]))})"
    raise w.fail(f"C has no {escape.name(str(e.args[0].value))}", e, "compile for a target of kind llvm, or describe the instruction by a tensor program")


__all__ = ["operands", "place"]
