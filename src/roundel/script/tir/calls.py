# SPDX-License-Identifier: Apache-2.0
"""Calls: of intrinsics, C functions, FFI functions, other functions of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ir import tir
from ...ir.dtype import HANDLE, INT32, VOID, DType
from ...ir.graph import GlobalVar
from ...ir.tir import intrin
from ...target import Target
from ..regions import operand
from .types import pair


def _exprs(args: Sequence[Any]) -> tuple[tir.Expr, ...]:
    return tuple(tir.const(a.data if isinstance(a, tir.Buffer) else operand(a)) for a in args)


def call(function: Any, *args: Any, dtype: Any = VOID) -> tir.Expr:
    """A call of another function of the module, with the dtype of its result."""
    return tir.Call(function if isinstance(function, GlobalVar) else str(function), _exprs(args), DType(dtype))


def call_intrin(dtype: Any, op: str, *args: Any) -> tir.Expr:
    """A call of the intrinsic ``op`` with an explicit result dtype."""
    return tir.Call(op.removeprefix("tir."), _exprs(args), DType(getattr(dtype, "dtype", dtype)))


def _external(kind: str, doc: str) -> Callable[..., tir.Expr]:
    """``T.kind(dtype, name, *operands)``, in the older spelling ``T.kind(name, *operands, dtype=dtype)``."""

    def build(*args: Any, dtype: Any = None) -> tir.Expr:
        if dtype is None:
            dtype, *args = args  # type: ignore[assignment]
        return call_intrin(dtype or VOID, kind, *args)

    build.__name__, build.__doc__ = kind, doc
    return build


call_extern = _external("call_extern", "A call of a C function.")
call_engine = _external("call_engine", "An instruction of an accelerator (intrinsics/accelerators.py).")
call_pure_extern = _external("call_pure_extern", "A call of a C function without effects.")
call_llvm_pure_intrin = _external(
    "call_llvm_pure_intrin", "A call of an LLVM intrinsic; the first operand may be the number of signature operands."
)
call_llvm_intrin = _external("call_llvm_intrin", "A call of an LLVM intrinsic with effects.")


def call_packed(name: str, *args: Any, dtype: Any = INT32) -> tir.Expr:
    """A call of a function registered with the FFI. Buffers arrive as tensors, bare pointers (``A.data``) as addresses. Raises ValueError for a
    buffer whose elements do not follow one another."""
    return call_intrin(dtype, "call_packed", name, *(_tensor(a) if isinstance(a, tir.Buffer) else a for a in args))


call_tir = call


def address_of(place: Any, dtype: Any = HANDLE) -> tir.Expr:
    """The pointer to an element; of a buffer, to its first."""
    place = tir.BufferLoad(place, (tir.index_const(0),) * place.ndim) if isinstance(place, tir.Buffer) else operand(place)
    return tir.Call("address_of", (place,), HANDLE)


def llvm_lookup_intrinsic_id(name: str) -> tir.Expr:
    """An LLVM intrinsic, as an operand of ``T.call_llvm_intrin``: here its name."""
    return tir.StringImm(name)


def likely(cond: Any, dtype: Any = None) -> tir.Expr:
    """A condition that is almost always true."""
    return tir.call("likely", operand(cond))


def assume(cond: Any, dtype: Any = None) -> tir.Expr:
    """A fact that holds here and that the compiler may use."""
    return tir.call("assume", operand(cond))


def _tensor(b: tir.Buffer) -> tir.Expr:
    """A buffer as a tensor operand."""
    if b.strides and tuple(b.strides) != tuple(tir.product_of(b.shape[k + 1 :]) for k in range(b.ndim)):
        raise ValueError(f"buffer {b.name} has strides; only a buffer in row-major order can be passed as a tensor")
    first = tir.Call("address_of", (tir.BufferLoad(b, (tir.index_const(0),) * b.ndim),), HANDLE)
    return tir.Call("tensor_view", (tir.StringImm(str(b.dtype)), first, tir.index_const(b.ndim), *b.shape), HANDLE)


tvm_call_packed = call_cpacked = call_packed


def type_annotation(dtype: Any) -> tir.Expr:
    """A data type as an operand."""
    return tir.StringImm(str(DType(getattr(dtype, "dtype", dtype))))


def string(value: str) -> tir.Expr:
    """A string as an expression (for attribute values; operands of calls are plain strings)."""
    return tir.StringImm(value)


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any, *, dtype: Any = HANDLE) -> tir.Expr:
    """A pointer for external code."""
    return call_intrin(HANDLE, "access_ptr", ptype, data, offset, extent, rw_mask)


def reinterpret(first: Any, value: Any = None, *, dtype: Any = None) -> tir.Expr:
    """The bits of a value as another dtype: ``T.reinterpret("int32", x)`` or ``T.reinterpret(x, dtype="int32")``."""
    dtype, value = (first, value) if dtype is None else (dtype, first)
    (bits,) = _exprs((value,))
    return bits if bits.dtype == DType(getattr(dtype, "dtype", dtype)) else call_intrin(dtype, "reinterpret", bits)


def ret(value: Any, dtype: Any = VOID) -> tir.Expr:
    """Returns a scalar from the function."""
    return tir.Call("ret", _exprs((value,)), VOID)


def target(spec: Any = "llvm", host: Any = None) -> Target:
    """A machine, as the value of an attribute; the machine of its host is kept as text."""
    if host is None and not isinstance(spec, Mapping):
        return Target(spec)
    fields = dict(spec) if isinstance(spec, Mapping) else {"kind": str(spec)}
    fields |= {} if host is None else {"host": host}
    return Target(str(Target({k: str(v) if isinstance(v, Target) else v for k, v in fields.items()})))  # as its text reads back


_ROUNDING = ("floor", "ceil", "trunc", "round", "nearbyint")


def intrinsic(name: str) -> Callable[..., tir.Expr]:
    """The function ``T.name`` of an intrinsic of the table."""
    found = intrin.get(name)

    def build(*args: Any, dtype: Any = None) -> tir.Expr:
        if found.arity >= 0 and len(args) != found.arity:
            raise TypeError(f"T.{name} takes {found.arity} operands, {len(args)} given")
        items: Sequence[Any] = [operand(a.data if isinstance(a, tir.Buffer) else a) for a in args]
        if found.arity == 2 and found.result == "first":
            items = pair(*items)
            tir.ops.check_bits(name, *items)
        if name in _ROUNDING and items[0].dtype.is_int:
            return items[0]  # is a whole number
        return tir.call(name, *items, dtype=dtype)

    build.__name__, build.__doc__ = name, found.doc or f"The intrinsic {name}."
    return build


FOREIGN = {  # device and runtime functions outside of the families, with the types of their results
    "isnullptr": "bool", "lookup_param": "handle", "create_barriers": "int32", "dp4a": "int32",
    "TVMBackendAllocWorkspace": "handle", "TVMBackendFreeWorkspace": "int32",
}


def foreign(name: str) -> Callable[..., tir.Expr]:
    """A device intrinsic that is not in the table, kept as an opaque call."""

    def build(*args: Any, dtype: Any = None) -> tir.Expr:
        typed = dtype is None and bool(args) and isinstance(args[0], str) and not name.startswith("tvm_") and name not in FOREIGN
        if dtype is None and name.startswith("tvm_warp_shuffle"):
            dtype = operand(args[1]).dtype  # the value of another lane
        dtype = FOREIGN.get(name) if dtype is None else dtype
        return call_intrin(args[0] if typed else HANDLE if dtype is None else dtype, name, *args[typed:])

    build.__name__, build.__doc__ = name, f"A call of the device intrinsic {name}."
    return build
