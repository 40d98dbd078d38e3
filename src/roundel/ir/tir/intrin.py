# SPDX-License-Identifier: Apache-2.0
"""The table of intrinsics that ``Call`` may name: their effect and the dtype of their result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dataclass import dataclass
from ..dtype import BOOL, HANDLE, INT32, VOID, DType
from .effect import Effect, llvm_effect
from .expr import Call, Expr, IntImm, StringImm


@dataclass(frozen=True)
class Intrinsic:
    """``arity`` -1: any number. ``result``: ``first`` (dtype of the first operand), ``bool`` (with its lanes), or a dtype."""

    name: str
    arity: int
    effect: Effect = Effect.PURE
    result: str = "first"
    doc: str = ""
    operands: str = "any"  # what it is defined for: see OPERANDS


REGISTRY: dict[str, Intrinsic] = {}


def _define(names: str, arity: int, effect: Effect = Effect.PURE, result: str = "first", doc: str = "", operands: str = "any") -> None:
    for name in names.split():
        REGISTRY[name] = Intrinsic(name, arity, effect, result, doc, operands)


OPERANDS: dict[str, tuple[str, Callable[[DType], bool]]] = {
    "any": ("anything", lambda d: True),
    "float": ("floating-point numbers", lambda d: d.is_float),
    "int": ("integers", lambda d: d.is_int and not d.is_bool),
    "bits": ("integers and bools", lambda d: not d.is_float),
    "number": ("numbers", lambda d: not d.is_bool),
}
"""Kinds of operands: in words, and whether a type is of it."""

_define("neg abs floor ceil trunc round nearbyint sign", 1, operands="number")
_define("sqrt rsqrt exp exp_flushed exp2 exp10 log log2 log10 log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
        "erf erfc sigmoid lgamma tgamma", 1, operands="float")
_define("popcount clz ctz", 1, operands="int")
_define("bitwise_not", 1, operands="bits")
_define("pow", 2, operands="number")
_define("atan2 fmod hypot copysign nextafter ldexp", 2, operands="float")
_define("bitwise_and bitwise_or bitwise_xor", 2, operands="bits")
_define("shift_left shift_right", 2, operands="int")
_define("fma", 3, doc="a * b + c with one rounding where the target has it (contraction allowed otherwise)")
_define("isnan isinf isfinite", 1, result="bool")
_define("rarely", 3, result="explicit", doc="(condition, otherwise, usual): per lane; otherwise is computed only where the condition holds for a lane")
_define("likely", 1, doc="a condition that is almost always true")
_define("reinterpret", 1, result="explicit", doc="the bits of the operand as another dtype of equal width")
_define("reduce_add reduce_mul reduce_max reduce_min", 1, result="element", doc="horizontal reduction of a vector")
_define("reduce_max_number", 1, result="element", doc="the largest lane of a vector, none of which may be NaN")
_define("dot_accumulate", 3, result="first", doc="acc[i] + sum over j of a[4i+j] * b[4i+j], 8-bit a and b, 32-bit acc")
_define("undef", 0, result="int32", doc="any value; of another type than int32 where the call says so")
_define("address_of", 1, result="handle", doc="pointer to the element that the operand (a BufferLoad) names")
_define("access_ptr", -1, Effect.OPAQUE, "handle", "(type, data, offset, extent, rw mask): a pointer handed to external code")
_define("prefetch", -1, Effect.OPAQUE, "void", "(load, rw, locality): hint that the loaded place is needed soon")
_define("touch", 1, Effect.OPAQUE, "void", "(load): the place is read, and so is near when it is needed: for machines without instructions for prefetch")
_define("keep_order", 0, Effect.OPAQUE, "void", "no load is made one with a load on the other side, nor moved across; no instruction")
_define("call_extern", -1, Effect.OPAQUE, "explicit", "(name, operands...): call of a C function")
_define("call_pure_extern", -1, Effect.PURE, "explicit", "(name, operands...): call of a C function without effects")
_define("call_engine", -1, Effect.OPAQUE, "explicit",
        "(name, engine, roles, addresses..., numbers...): a C function gives an instruction to an engine of an accelerator; roles such as rw256,r64 say which "
        "elements from each address on it reads and writes")
_define("call_packed", -1, Effect.OPAQUE, "explicit", "(name, operands...): call of a function registered with the FFI")
_define("call_packed_into", -1, Effect.OPAQUE, "int32", "(name, operands..., result tensor_view): the returned tensor is copied into the last operand")
_define("tensor_view", -1, Effect.PURE, "handle", "(dtype, pointer, ndim, extents...): a tensor operand of a packed call")
_define("copy_bytes", 3, Effect.OPAQUE, "void", "(target pointer, source pointer, bytes): memory copy, not overlapping")
_define("call_llvm_pure_intrin", -1, Effect.PURE, "explicit", "(name, number of signature operands, operands...): an LLVM intrinsic said to be pure")
_define("call_llvm_intrin", -1, Effect.OPAQUE, "explicit", "(name, number of signature operands, operands...): its effect is that of the LLVM intrinsic")
_define("parallel_for", -1, Effect.OPAQUE, "int32", "(task GlobalVar is the op's first operand by name, extent, grain, operands...)")
_define("checkpoint", 1, Effect.OPAQUE, "void", "(work): the run may end here; so much work was done, in operations, since the place was last passed")
_define("alloc_output", -1, Effect.OPAQUE, "handle", "(index, extents...): memory for an output whose shape is known only now")
_define("heap_alloc", 1, Effect.OPAQUE, "handle", "(bytes): memory until heap_free, or the end of the call")
_define("heap_free", 1, Effect.OPAQUE, "void", "(pointer): give memory of heap_alloc back")
_define("heap_keep", 2, Effect.OPAQUE, "void", "(slot, pointer of heap_alloc): the slot's memory from here on; what it held before is freed")
_define("heap_kept", 1, Effect.READ, "handle", "(slot): the memory that the slot holds")
_define("constant_ptr", 1, Effect.PURE, "handle", "(key): pointer to a constant of the pool")
_define("arena_ptr", 1, Effect.PURE, "handle", "(byte offset): pointer into the call's arena")
_define("tvm_storage_sync storage_sync", -1, Effect.OPAQUE, "void", "barrier among the threads of a scope")
_define("assume", 1, Effect.OPAQUE, "void", "(condition): a fact that holds here and the compiler may use")
_define("start_profile stop_profile", 1, Effect.OPAQUE, "void")
_define("break_loop continue_loop", 0, Effect.OPAQUE, "void", "leave the loop around; leave this iteration of it")
_define("vscale", 0, result="int32", doc="how many times 128 bits a vector register of the machine holds")
_define("get_active_lane_mask", 2, result="explicit", doc="(base, limit): in lane k whether base + k < limit")
_define("ret", 1, Effect.OPAQUE, "void")


def get(name: str) -> Intrinsic:
    """The intrinsic; raises KeyError when there is none of that name."""
    return REGISTRY[name]


def effect(call: Call) -> Effect:
    """The effect of a call; of what is unknown (another function, an unlisted name) anything. A call of an LLVM intrinsic has that
    intrinsic's effect, whichever of the two ways of calling it is taken; one that the table lacks is pure if the call says so."""
    op = call.op
    if op == "call_llvm_intrin" or op == "call_llvm_pure_intrin":
        known = llvm_effect(call.args[0].value) if call.args and type(call.args[0]) is StringImm else None
        return known or REGISTRY[op].effect
    found = REGISTRY.get(op) if isinstance(op, str) else None
    return found.effect if found else Effect.OPAQUE


def check_operands(op: object, args: Sequence[Expr]) -> None:
    """Raises TypeError for the exponential function of an integer, the bits of a float and the like, which no machine has."""
    found = REGISTRY.get(op) if isinstance(op, str) else None
    if found is None or not args or OPERANDS[found.operands][1](args[0].dtype):
        return
    to = "float32" if found.operands == "float" else "int32"
    raise TypeError(f"{op} is of {OPERANDS[found.operands][0]}, not of {args[0].dtype}: cast first, x.astype(\"{to}\")")


def of_floats(op: object) -> bool:
    """Whether an intrinsic is of floating-point numbers alone."""
    return isinstance(op, str) and op in REGISTRY and REGISTRY[op].operands == "float"


def llvm_operands(call: Call) -> tuple[Expr, ...]:
    """The operands of the LLVM intrinsic that is called, behind its name and, in TVM's older spelling, the number of those with a signature."""
    first = call.args[1] if len(call.args) > 1 else None
    counted = type(first) is IntImm and (str(first.dtype) == "uint32" or first.value == len(call.args) - 2)
    return call.args[2 if counted else 1 :]


def result_dtype(op: object, args: Sequence[Expr]) -> DType:
    """The dtype of a call's result by the intrinsic's rule; raises TypeError where it must be given."""
    found = REGISTRY.get(op) if isinstance(op, str) else None
    rule = found.result if found else "explicit"
    if rule == "first":
        return args[0].dtype
    if rule == "element":
        return args[0].dtype.element
    if rule == "bool":
        return BOOL.with_lanes(args[0].dtype.lanes)
    fixed = {"handle": HANDLE, "void": VOID, "int32": INT32}.get(rule)
    if fixed is None:
        raise TypeError(f"a call of {op} needs its result dtype")
    return fixed
