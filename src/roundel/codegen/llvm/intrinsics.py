# SPDX-License-Identifier: Apache-2.0
"""Calls of intrinsics: elementary functions, bit operations, reductions, foreign functions.

Elementary functions of float32 and narrower that ``expand.math`` knows are written out as polynomials; the rest are
calls of the C library, one lane at a time for vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import tir
from ...ir.dtype import DType
from ...ir.errors import BuildError
from ..expand.convert import narrow, widen
from ..expand.math import expand_call
from ..storage import element_bytes, is_packed
from ..writes import writes
from .address import offset, packed_place, pointer
from .arithmetic import build_vector, concat, extract_lanes, float_min_max, multiply_add, shuffle
from .emitter import CALLS, EXPR, Emitter
from .statements import ask, leave_with
from .types import computes_in_float32, float_text, is_storage_float, llvm_type, splat, suffix, zero

_INSTRUCTIONS = {  # LLVM intrinsics that are instructions, or short sequences, on the targets
    "sqrt": "sqrt",
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "nearbyint": "rint",
    "round": "roundeven",
    "fma": "fmuladd",
    "copysign": "copysign",
}
_LIBRARY = {  # C library functions; with the suffix f for float32
    "exp": "exp",
    "exp2": "exp2",
    "exp10": "exp10",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "expm1": "expm1",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "erf": "erf",
    "erfc": "erfc",
    "lgamma": "lgamma",
    "tgamma": "tgamma",
    "pow": "pow",
    "atan2": "atan2",
    "fmod": "fmod",
    "hypot": "hypot",
    "nextafter": "nextafter",
}


@writes(EXPR, tir.Call)
def _call(em: Emitter, e: tir.Call) -> str:
    if not isinstance(e.op, str):
        return call_function(em, e)
    expanded = expand_call(e, _scales(em, e.dtype))
    if expanded is not None:
        return em.value(expanded)
    if e.op in CALLS:
        return CALLS[e.op](em, e)
    raise BuildError(f"the intrinsic {e.op} cannot be compiled", hint="call_extern calls any C function")


def _scales(em: Emitter, dtype: DType) -> bool:
    """Whether the target multiplies such vectors by powers of two in one instruction."""
    return em.platform.is_x86 and "avx512f" in em.platform.features and dtype.lanes % 16 == 0


def call_function(em: Emitter, e: tir.Call) -> str:
    """A call of another tensor program of the module: the context first, then its operands."""
    params = ", ".join(["ptr %ctx", *(em.typed(a) for a in e.args)])
    types = ["ptr", *(llvm_type(a.dtype) for a in e.args)]
    symbol = em.declare(em.symbol(e.op.name), llvm_type(e.dtype), *types)
    if e.dtype == "void":
        em.line(f"call void {symbol}({params})")
        _go_on(em)
        return ""
    return em.op(f"call {llvm_type(e.dtype)} {symbol}({params})")


KERNELS = 16  # of a host function, from one question whether to go on to the next


def _go_on(em: Emitter) -> None:
    """Leave where the run has failed; every so many kernels the runtime is asked, too."""
    em.kernels += 1
    if em.kernels % KERNELS == 0:
        ask(em)
    else:
        leave_with(em, em.op(f"load i32, ptr {em.context('status')}, align 4"))


def in_float32(rule: Callable[[Emitter, tir.Call], str]) -> Callable[[Emitter, tir.Call], str]:
    """float16 and storage floats are widened first and the result is rounded."""

    def write(em: Emitter, e: tir.Call) -> str:
        if not any(computes_in_float32(a.dtype) for a in e.args):
            return rule(em, e)
        wide = tuple(widen(a) if a.dtype.is_float else a for a in e.args)
        if not e.dtype.is_float:
            return em.value(tir.Call(e.op, wide, e.dtype))
        return em.value(
            narrow(
                tir.Call(e.op, wide, wide[0].dtype if e.dtype.lanes == wide[0].dtype.lanes else DType("float32")),
                e.dtype,
            )
        )

    return write


@writes(CALLS, *_INSTRUCTIONS)
@in_float32
def _instruction(em: Emitter, e: tir.Call) -> str:
    args = [em.before_rounding(a) if e.op == "nearbyint" else em.value(a) for a in e.args]
    if e.dtype.is_float:
        if e.op == "fma":
            return multiply_add(em, e.dtype, *args)
        return em.intrinsic(_INSTRUCTIONS[e.op], e.dtype, *args)
    if e.op == "abs":
        t = llvm_type(e.dtype)
        if e.dtype.kind == "uint":
            return args[0]
        full = em.declare(f"llvm.abs.{suffix(e.dtype)}", t, t, "i1")
        return em.op(f"call {t} {full}({t} {args[0]}, i1 false)")
    if e.op == "fma":
        return em.value(tir.Add(tir.Mul(e.args[0], e.args[1]), e.args[2]))
    if len(args) == 1 and e.op != "sqrt":
        return args[0]  # an integer is its own floor
    raise BuildError(f"{e.op} of {e.dtype} is not defined", hint="cast to a float first")


@writes(CALLS, *_LIBRARY)
@in_float32
def _library(em: Emitter, e: tir.Call) -> str:
    element = e.dtype.element
    if not element.is_float:
        if e.op == "pow":
            return _int_pow(em, e)
        raise BuildError(f"{e.op} of {e.dtype} is not defined", hint="cast to a float first")
    t = llvm_type(element)
    name = em.declare(
        _LIBRARY[e.op] + ("f" if element.bits == 32 else ""),
        t,
        *[t] * len(e.args),
        attrs="nounwind willreturn memory(none)",
    )
    return _by_lane(em, e, lambda args: em.op(f"call {t} {name}({', '.join(f'{t} {a}' for a in args)})"))


def _by_lane(em: Emitter, e: tir.Call, one: Callable[[list[str]], str]) -> str:
    args = [em.value(a) for a in e.args]
    if e.dtype.lanes == 1:
        return one(args)
    columns = [
        extract_lanes(em, v, a.dtype) if a.dtype.lanes > 1 else [v] * e.dtype.lanes for v, a in zip(args, e.args)
    ]
    return build_vector(em, [one([c[k] for c in columns]) for k in range(e.dtype.lanes)], e.dtype)


_POW = """define linkonce_odr hidden {t} @{name}({t} %base, {t} %power) nounwind {{
entry:
  %negative = icmp slt {t} %power, 0
  br i1 %negative, label %below, label %loop
below:
  %is_one = icmp eq {t} %base, 1
  %is_minus = icmp eq {t} %base, -1
  %odd = trunc {t} %power to i1
  %sign = select i1 %odd, {t} -1, {t} 1
  %unit = select i1 %is_minus, {t} %sign, {t} 0
  %small = select i1 %is_one, {t} 1, {t} %unit
  ret {t} %small
loop:
  %acc = phi {t} [ 1, %entry ], [ %next, %loop ]
  %b = phi {t} [ %base, %entry ], [ %square, %loop ]
  %n = phi {t} [ %power, %entry ], [ %half, %loop ]
  %bit = trunc {t} %n to i1
  %product = mul {t} %acc, %b
  %next = select i1 %bit, {t} %product, {t} %acc
  %square = mul {t} %b, %b
  %half = lshr {t} %n, 1
  %done = icmp eq {t} %half, 0
  br i1 %done, label %exit, label %loop
exit:
  ret {t} %next
}}"""


def _int_pow(em: Emitter, e: tir.Call) -> str:
    """Powers of integers wrap; a negative power gives 0 except for 1 and -1."""
    element = e.dtype.element
    t, name = llvm_type(element), f"rd_pow_{element}"
    text = _POW.format(t=t, name=name)
    if element.kind == "uint":
        text = text.replace("icmp slt", "icmp ult")
    em.declares.setdefault(name, text)
    return _by_lane(em, e, lambda args: em.op(f"call {t} @{name}({t} {args[0]}, {t} {args[1]})"))


# ---- small ones --------------------------------------------------------------------------------------------


@writes(CALLS, "neg")
def _neg(em: Emitter, e: tir.Call) -> str:
    a, t = e.args[0], llvm_type(e.dtype)
    if is_storage_float(e.dtype):
        return em.value(narrow(tir.Call("neg", (widen(a),), widen(a).dtype), e.dtype))
    return em.op(f"fneg {t} {em.value(a)}" if e.dtype.is_float else f"sub {t} {zero(e.dtype)}, {em.value(a)}")


@writes(CALLS, "rsqrt")
@in_float32
def _rsqrt(em: Emitter, e: tir.Call) -> str:
    root = em.intrinsic("sqrt", e.dtype, em.value(e.args[0]))
    return em.op(f"fdiv {llvm_type(e.dtype)} {splat(float_text(1.0, e.dtype), e.dtype)}, {root}")


@writes(CALLS, "sigmoid")
def _sigmoid(em: Emitter, e: tir.Call) -> str:
    one, x = tir.const(1.0, e.dtype), e.args[0]
    return em.value(one / (one + tir.Call("exp", (tir.Call("neg", (x,), x.dtype),), x.dtype)))


@writes(CALLS, "sign")
@in_float32
def _sign(em: Emitter, e: tir.Call) -> str:
    x, zero_, one = e.args[0], tir.const(0, e.dtype), tir.const(1, e.dtype)
    if e.dtype.kind == "uint":
        return em.value(tir.Select(tir.GT(x, zero_), one, zero_))
    signed = tir.Select(tir.GT(x, zero_), one, tir.Select(tir.LT(x, zero_), tir.const(-1, e.dtype), zero_))
    return em.value(tir.Select(tir.NE(x, x), x, signed) if e.dtype.is_float else signed)


@writes(CALLS, "isnan", "isinf", "isfinite")
@in_float32
def _classify(em: Emitter, e: tir.Call) -> str:
    x = e.args[0]
    if not x.dtype.is_float:
        return em.value(tir.const(e.op == "isfinite", e.dtype))
    t, v = llvm_type(x.dtype), em.value(x)
    if e.op == "isnan":
        return em.op(f"fcmp uno {t} {v}, {zero(x.dtype)}")
    infinity = splat(float_text(float("inf"), x.dtype), x.dtype)
    return em.op(f"fcmp {'oeq' if e.op == 'isinf' else 'one'} {t} {em.intrinsic('fabs', x.dtype, v)}, {infinity}")


@writes(CALLS, "likely")
def _likely(em: Emitter, e: tir.Call) -> str:
    return em.value(e.args[0])


@writes(CALLS, "rarely")
def _rarely(em: Emitter, e: tir.Call) -> str:
    """Branches to where all lanes are computed the other way, if any wants it."""
    condition, other, usual = e.args
    flags, value, lanes, t = em.value(condition), em.value(usual), e.dtype.lanes, llvm_type(e.dtype)
    some = flags if lanes == 1 else em.op(f"icmp ne i{lanes} {em.op(f'bitcast <{lanes} x i1> {flags} to i{lanes}')}, 0")
    yes, done, start = em.name("rare"), em.name("done"), em.block
    em.branch(some, yes, done, ", !prof !2")
    em.start(yes)
    with em.branch_values():
        exact = em.op(f"select {llvm_type(condition.dtype)} {flags}, {t} {em.value(other)}, {t} {value}")
    end = em.block
    em.jump(done)
    em.start(done)
    return em.op(f"phi {t} [ {value}, %{start} ], [ {exact}, %{end} ]")


@writes(CALLS, "ldexp")
@in_float32
def _ldexp(em: Emitter, e: tir.Call) -> str:
    """The exponent is an integer, or a float with the value of one."""
    if e.dtype.element == "float32" and e.args[1].dtype == e.dtype and _scales(em, e.dtype):
        return _scale(em, e)
    exponent = tir.cast(e.args[1], DType("int32").with_lanes(e.dtype.lanes))
    t, i = llvm_type(e.dtype), llvm_type(exponent.dtype)
    name = em.declare(f"llvm.ldexp.{suffix(e.dtype)}.{suffix(exponent.dtype)}", t, t, i)
    return em.op(f"call {t} {name}({t} {em.value(e.args[0])}, {i} {em.value(exponent)})")


def _scale(em: Emitter, e: tir.Call) -> str:
    """AVX-512's instruction, for 16 lanes at a time."""
    element, lanes, t = e.dtype.element, e.dtype.lanes, "<16 x float>"
    name = em.declare("llvm.x86.avx512.mask.scalef.ps.512", t, t, t, t, "i16", "i32")
    x, n = em.value(e.args[0]), em.value(e.args[1])
    done, count = "", 0
    for k in range(0, lanes, 16):
        a, b = (v if lanes == 16 else _part(em, v, element, lanes, k, 16) for v in (x, n))
        piece = em.op(f"call {t} {name}({t} {a}, {t} {b}, {t} zeroinitializer, i16 -1, i32 4)")
        done, count = (piece, 16) if not k else concat(em, done, count, piece, 16, element)
    return done


@writes(CALLS, "popcount", "clz", "ctz")
def _count_bits(em: Emitter, e: tir.Call) -> str:
    x = e.args[0]
    if e.op == "popcount":
        return em.intrinsic("ctpop", x.dtype, em.value(x))
    t = llvm_type(x.dtype)
    name = em.declare(f"llvm.{'ctlz' if e.op == 'clz' else 'cttz'}.{suffix(x.dtype)}", t, t, "i1")
    return em.op(f"call {t} {name}({t} {em.value(x)}, i1 false)")


_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


@writes(CALLS, *_BITWISE)
def _bitwise(em: Emitter, e: tir.Call) -> str:
    return em.op(f"{_BITWISE[e.op]} {em.typed(e.args[0])}, {em.value(e.args[1])}")


@writes(CALLS, "bitwise_not")
def _bitwise_not(em: Emitter, e: tir.Call) -> str:
    return em.op(f"xor {em.typed(e.args[0])}, {splat('true' if e.dtype.is_bool else '-1', e.dtype)}")


@writes(CALLS, "shift_left", "shift_right")
def _shift(em: Emitter, e: tir.Call) -> str:
    """Shifting by the width or more leaves 0 (or the sign)."""
    x, by = e.args
    t, bits = llvm_type(e.dtype), e.dtype.bits
    op = "shl" if e.op == "shift_left" else "ashr" if e.dtype.kind == "int" else "lshr"
    amount = by.value if type(by) is tir.Broadcast else by
    v, n = em.value(x), em.value(by)
    if type(amount) is tir.IntImm and 0 <= amount.value < bits:
        return em.op(f"{op} {t} {v}, {n}")
    limit = splat(str(bits - 1), e.dtype)
    if op == "ashr":
        return em.op(f"ashr {t} {v}, {em.intrinsic('umin', e.dtype, n, limit)}")
    shifted = em.op(f"{op} {t} {v}, {em.intrinsic('umin', e.dtype, n, limit)}")
    over = em.op(f"icmp ugt {t} {n}, {limit}")
    return em.op(
        f"select {'i1' if e.dtype.lanes == 1 else f'<{e.dtype.lanes} x i1>'} {over}, {t} {zero(e.dtype)}, {t} {shifted}"
    )


@writes(CALLS, "undef")
def _undef(em: Emitter, e: tir.Call) -> str:
    return "undef"


# ---- vectors -----------------------------------------------------------------------------------------------


@writes(CALLS, "reduce_add", "reduce_mul", "reduce_max", "reduce_min", "reduce_max_number")
@in_float32
def _reduce(em: Emitter, e: tir.Call) -> str:
    """Halves are combined until one lane is left (what is left over by odd numbers of lanes comes last)."""
    x = e.args[0]
    element, lanes, v = x.dtype.element, x.dtype.lanes, em.value(x)
    rest: list[str] = []
    while lanes > 1:
        t, half = llvm_type(element.with_lanes(lanes)), lanes // 2
        if lanes % 2:
            rest.append(em.op(f"extractelement {t} {v}, i64 {lanes - 1}"))
        low, high = (_part(em, v, element, lanes, k * half, half) for k in (0, 1))
        v, lanes = _combine(em, e.op, element.with_lanes(half), low, high), half
    for r in rest:
        v = _combine(em, e.op, element, v, r)
    return v


def _part(em: Emitter, v: str, element: DType, lanes: int, start: int, count: int) -> str:
    if count == 1:
        return em.op(f"extractelement {llvm_type(element.with_lanes(lanes))} {v}, i64 {start}")
    return shuffle(em, v, element.with_lanes(lanes), range(start, start + count))


def _combine(em: Emitter, op: str, dtype: DType, a: str, b: str) -> str:
    name = op[7:]
    if name in ("add", "mul"):
        return em.op(f"{'f' if dtype.is_float else ''}{name} {llvm_type(dtype)} {a}, {b}")
    if dtype.is_float and name == "max_number":
        larger = em.op(f"fcmp olt {llvm_type(dtype)} {a}, {b}")
        return em.op(f"select {'i1' if dtype.lanes == 1 else f'<{dtype.lanes} x i1>'} {larger}, {llvm_type(dtype)} {b}, {llvm_type(dtype)} {a}")
    if dtype.is_float:
        return float_min_max(em, dtype, name, a, b)
    return em.intrinsic(("s" if dtype.kind == "int" else "u") + name[:3], dtype, a, b)


@writes(CALLS, "dot_accumulate")
def _dot_accumulate(em: Emitter, e: tir.Call) -> str:
    """acc[i] + sum over j < 4 of a[4i + j] * b[4i + j], by plain vectors."""
    acc, a, b = e.args
    lanes = acc.dtype.lanes
    wide = acc.dtype.element.with_lanes(4 * lanes)
    product = tir.Mul(tir.cast(a, wide), tir.cast(b, wide))
    total = acc
    for j in range(4):
        total = tir.Add(total, tir.Shuffle((product,), tuple(4 * i + j for i in range(lanes))))
    return em.value(total)


# ---- memory and foreign functions --------------------------------------------------------------------------


@writes(CALLS, "address_of")
def _address_of(em: Emitter, e: tir.Call) -> str:
    load = e.args[0]
    first = tuple(i.base if type(i) is tir.Ramp else i for i in load.indices)
    where = offset(em, load.buffer, first)
    return packed_place(em, load.buffer, where)[0] if is_packed(load.buffer.dtype) else pointer(em, load.buffer, where)


@writes(CALLS, "access_ptr")
def _access_ptr(em: Emitter, e: tir.Call) -> str:
    """(type, data, offset in elements, extent, mask)"""
    element = DType(e.args[0].value if type(e.args[0]) is tir.StringImm else e.args[0].dtype)
    per = 8 // element.bits if is_packed(element) else 1
    where = em.value(tir.floordiv(tir.cast(e.args[2], "int64"), per))
    return em.op(f"getelementptr i{8 * element_bytes(element)}, ptr {em.value(e.args[1])}, i64 {where}")


@writes(CALLS, "prefetch")
def _prefetch(em: Emitter, e: tir.Call) -> str:
    if em.platform.is_wasm:  # which has no such instruction
        return ""
    numbers = [a.value for a in e.args[1:] if type(a) is tir.IntImm] + [0, 3][len(e.args) - 1 :]
    name = em.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    where = _address_of(em, e) if type(e.args[0]) is tir.BufferLoad else em.value(e.args[0])
    em.line(f"call void {name}(ptr {where}, i32 {numbers[0]}, i32 {numbers[1]}, i32 1)")
    return ""


@writes(CALLS, "touch")
def _touch(em: Emitter, e: tir.Call) -> str:
    em.op(f"load volatile i8, ptr {_address_of(em, e)}, align 1")
    return ""


@writes(CALLS, "keep_order")
def _keep_order(em: Emitter, e: tir.Call) -> str:
    """A fence within the thread, which is for the compiler alone."""
    em.line('fence syncscope("singlethread") acq_rel')
    return ""


@writes(CALLS, "assume")
def _assume(em: Emitter, e: tir.Call) -> str:
    """What is assumed was of use to passes before; as an instruction it would cost more than it gains."""
    return ""


@writes(CALLS, "call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin")
def _extern(em: Emitter, e: tir.Call) -> str:
    """(name, operands...); of LLVM intrinsics (full name, number of signature operands, operands...). A pure C function of vectors is
    called for each lane."""
    if e.op == "call_pure_extern" and e.dtype.lanes > 1:
        t = llvm_type(e.dtype.element)
        name = em.declare(e.args[0].value, t, *(llvm_type(a.dtype.element) for a in e.args[1:]), attrs="nounwind willreturn memory(none)")
        call = tir.Call(e.op, e.args[1:], e.dtype)
        types = [llvm_type(a.dtype.element) for a in call.args]
        return _by_lane(em, call, lambda args: em.op(f"call {t} {name}({', '.join(f'{k} {a}' for k, a in zip(types, args, strict=True))})"))
    if "llvm" in e.op:
        return _llvm_intrinsic(em, e)
    operands = [f"ptr {em.string(a.value)}" if type(a) is tir.StringImm else em.typed(a) for a in e.args[1:]]
    return _called(em, e, llvm_type(e.dtype), operands, [llvm_type(a.dtype) if o.startswith("<") else o.split(" ", 1)[0] for o, a in zip(operands, e.args[1:])])


def _llvm_intrinsic(em: Emitter, e: tir.Call) -> str:
    """A call of an LLVM intrinsic. Of bfloat16 it takes and gives LLVM's own type, where registers hold the bits as integers."""
    args = tir.intrin.llvm_operands(e)
    types = [_own_type(a.dtype) for a in args]
    values = [em.string(a.value) if type(a) is tir.StringImm else em.value(a) for a in args]
    operands = [f"{t} {v if t == llvm_type(a.dtype) else em.op(f'bitcast {llvm_type(a.dtype)} {v} to {t}')}" for a, v, t in zip(args, values, types)]
    made = _called(em, e, _own_type(e.dtype), operands, types)
    return made if _own_type(e.dtype) == llvm_type(e.dtype) else em.op(f"bitcast {_own_type(e.dtype)} {made} to {llvm_type(e.dtype)}")


def _own_type(dtype: DType) -> str:
    """LLVM's type for numbers of this type."""
    if dtype.element != "bfloat16":
        return llvm_type(dtype)
    return "bfloat" if dtype.lanes == 1 else f"<{dtype.lanes} x bfloat>"


def _called(em: Emitter, e: tir.Call, t: str, operands: list[str], types: list[str]) -> str:
    name = em.declare(e.args[0].value, t, *types)
    text = f"call {t} {name}({', '.join(operands)})"
    if t == "void":
        em.line(text)
        return ""
    return em.op(text)
