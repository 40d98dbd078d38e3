# SPDX-License-Identifier: Apache-2.0
"""What calls in expressions do: pure intrinsics, pointers, external functions, other functions of the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import tir
from ..ir.constants import lookup
from ..ir.dtype import DType
from ..ir.errors import InterpretError
from . import lanes, numeric
from .llvm_meanings import Meaning, Place, action_of, meaning_of
from .memory import Pointer, View, allocate, row_major

if TYPE_CHECKING:
    from .stmt import Executor

SYNCHRONOUS = frozenset(
    "prefetch touch keep_order storage_sync tvm_storage_sync start_profile stop_profile assume".split()
)  # no effect on lanes run in step


def is_lane_safe(e: tir.Call) -> bool:
    """Whether a call may run for many lanes at once."""
    if not isinstance(e.op, str):
        return False
    if e.op in ("call_extern", "call_pure_extern", "call_llvm_pure_intrin", "call_llvm_intrin"):
        return math_name(e) is not None or _meaning(e) is not None
    return e.op in SYNCHRONOUS or e.op in _MATH or (e.op in _TABLE and e.op not in _EFFECTS)


def math_name(e: tir.Call) -> str | None:
    """The intrinsic that an external call of a C (or LLVM) math function means: ``expf`` is ``exp``."""
    if not isinstance(e.args[0], tir.StringImm):
        return None
    name = e.args[0].value
    if name.startswith("llvm."):
        part = name.split(".")[1]
        return _LLVM.get(part, part if part in _MATH else None)
    for candidate in (name, name.removesuffix("f"), _C.get(name.removesuffix("f"), "")):
        if candidate in _MATH:
            return candidate
    return None


_MATH = frozenset(numeric.FLOAT) | frozenset(numeric.INTEGER) | frozenset(numeric.ANY) | {"fma"}
_C = {"fabs": "abs", "rint": "nearbyint"}
_LLVM = {
    "fabs": "abs",
    "rint": "nearbyint",
    "fmuladd": "fma",
    "ctpop": "popcount",
    "ctlz": "clz",
    "cttz": "ctz",
    "roundeven": "nearbyint",
}


def evaluate(ex: Executor, e: tir.Call) -> Any:
    """The value of a call."""
    if not isinstance(e.op, str):
        return ex.runtime.call_from_program(e.op.name, [ex.eval(a) for a in e.args])
    special = _TABLE.get(e.op)
    if special is not None:
        return special(ex, e)
    if e.op in SYNCHRONOUS:
        return 0
    return _math(ex, e.op, e.args, e.dtype)


def _math(ex: Executor, name: str, args: tuple[tir.Expr, ...], result: DType) -> Any:
    values = [ex.value(a) for a in args]
    dtype = args[0].dtype.element if args else result.element
    if name == "fma":
        return ex.machine.fma(values[0], values[1], values[2], dtype)
    return ex.machine.intrinsic(name, values, dtype, result.element)


def _extern(ex: Executor, e: tir.Call) -> Any:
    name = math_name(e)
    operands = tir.intrin.llvm_operands(e) if e.op.startswith("call_llvm") else e.args[1:]
    if name is None:
        meaning, action = _meaning(e), action_of(e.args[0].value) if e.op == "call_llvm_intrin" else None
        if action is not None:
            return action(*(_place(ex, a) if a.dtype.is_handle else plain(ex, ex.value(a), a.dtype) for a in operands))
        return _packed(ex, e) if meaning is None else meaning(*(ex.vector(a) if a.dtype.lanes > 1 else ex.value(a) for a in operands))
    return _math(ex, name, operands[: tir.intrin.get(name).arity], e.dtype)


def _meaning(e: tir.Call) -> Meaning | None:
    """What the LLVM intrinsic of a single processor computes that is called, if anybody told."""
    name = e.args[0].value if isinstance(e.args[0], tir.StringImm) else ""
    return meaning_of(name) if name.startswith("llvm.") else None


def _place(ex: Executor, e: tir.Expr) -> Place:
    """The elements that the address of one leads to. Raises InterpretError for another kind of pointer."""
    if not isinstance(e, tir.Call) or e.op != "address_of":
        raise InterpretError(f"{e.script()} is not the address of an element", where=ex.name, hint="T.address_of(buffer[...])")
    load = e.args[0]
    view, at = ex.view(load.buffer), int(ex.address_of(load).offset)
    return Place(np.frombuffer(view.storage.data, view.numpy, (view.storage.size - at) // view.itemsize, at), view.dtype.bits // 8)


def _packed(ex: Executor, e: tir.Call) -> Any:
    name = ex.eval(e.args[0])
    args = [plain(ex, ex.eval(a), a.dtype) for a in e.args[1:]]
    out = ex.runtime.packed(name)(*args)
    return 0 if e.dtype == "void" or out is None else _typed(ex, out, e.dtype)


def _packed_into(ex: Executor, e: tir.Call) -> int:
    """A foreign function whose result is copied into the last operand."""
    *args, result = (plain(ex, ex.eval(a), a.dtype) for a in e.args[1:])
    made = np.asarray(ex.runtime.packed(ex.eval(e.args[0]))(*args))
    if made.shape != result.shape or made.dtype != result.dtype:
        raise InterpretError(
            f"{ex.eval(e.args[0])} returned {made.dtype} of shape {made.shape}",
            where=ex.name,
            why=f"{result.dtype} of shape {result.shape} was declared",
        )
    result[...] = made
    return 0


def _typed(ex: Executor, out: Any, dtype: DType) -> Any:
    if dtype.is_handle:
        return out
    return bool(out) if dtype.is_bool else ex.machine.const(out, dtype)


def plain(ex: Executor, v: Any, dtype: DType) -> Any:
    """A value as foreign code gets it: Python numbers and strings, arrays, addresses."""
    if isinstance(v, lanes.Lin) or (isinstance(v, np.ndarray) and v.ndim and not dtype.is_handle):
        raise InterpretError("a foreign function cannot be called from lanes that run at once", where=ex.name)
    if isinstance(v, Pointer):
        return v.storage.ctypes.data + int(v.offset)
    return v.item() if isinstance(v, np.generic) and not isinstance(v, np.void) else v


def _tensor_view(ex: Executor, e: tir.Call) -> Any:
    dtype, pointer, ndim = DType(ex.eval(e.args[0])), ex.eval(e.args[1]), ex.index(e.args[2])
    shape = tuple(ex.index(a) for a in e.args[3 : 3 + ndim])
    view = View(
        "tensor_view",
        dtype,
        pointer.storage,
        pointer.offset,
        shape,
        row_major(shape),
        ex.machine.numpy(dtype),
        ex.machine.itemsize(dtype),
    )
    return view.array()


def _if_then_else(ex: Executor, e: tir.Call) -> Any:
    return ex.eval(tir.IfThenElse(*e.args))


def _likely(ex: Executor, e: tir.Call) -> Any:
    return ex.eval(e.args[0])


def _reinterpret(ex: Executor, e: tir.Call) -> Any:
    source = e.args[0].dtype
    if e.dtype.is_handle or source.is_handle:
        return ex.eval(e.args[0])
    value = ex.value(e.args[0])
    if e.dtype.element.bits != source.element.bits:
        value = np.ascontiguousarray(ex.vector(e.args[0]))
    return ex.machine.reinterpret(value, source.element, e.dtype.element)


def _reduce(ex: Executor, e: tir.Call) -> Any:
    out = ex.machine.reduce(e.op, ex.vector(e.args[0]))
    return out.reshape(())[()] if out.size == 1 else out


def _dot(ex: Executor, e: tir.Call) -> Any:
    acc, a, b = (ex.vector(x) for x in e.args)
    wide = a.astype(np.int32) * b.astype(np.int32)
    return acc + wide.reshape(*wide.shape[:-1], -1, wide.shape[-1] // acc.shape[-1]).sum(-1, dtype=acc.dtype)


def _address_of(ex: Executor, e: tir.Call) -> Pointer:
    return ex.address_of(e.args[0])


def _access_ptr(ex: Executor, e: tir.Call) -> Pointer:
    kind, data, offset = e.args[0], e.args[1], e.args[2]
    dtype = DType(kind.value) if isinstance(kind, tir.StringImm) else kind.dtype
    pointer = ex.eval(data)
    return Pointer(pointer.storage, lanes.add(pointer.offset, ex.byte_offset(dtype, ex.index(offset))))


def _constant(ex: Executor, e: tir.Call) -> Pointer:
    key = ex.eval(e.args[0])
    held = ex.runtime.mod.constants or {}
    try:
        array = (held[key] if key in held else lookup(key)).numpy()
    except KeyError:
        raise InterpretError(
            f"there is no constant {key}", where=ex.name, why="no module of this process holds it"
        ) from None
    return ex.runtime.constant(key, array)


def _parallel_for(ex: Executor, e: tir.Call) -> Any:
    name, extent = ex.eval(e.args[0]), ex.index(e.args[1])
    ex.runtime.call_from_program(name, [0, extent, *(ex.eval(a) for a in e.args[3:])])
    return ex.machine.const(0, e.dtype)


def _alloc_output(ex: Executor, e: tir.Call) -> Pointer:
    return ex.allocate_output(ex.index(e.args[0]), tuple(ex.index(a) for a in e.args[1:]))


def _heap_alloc(ex: Executor, e: tir.Call) -> Pointer:
    return allocate(max(ex.index(e.args[0]), 1) * ex.machine.scale, [])


def _heap_keep(ex: Executor, e: tir.Call) -> int:
    ex.slots[ex.index(e.args[0])] = ex.eval(e.args[1])
    return 0


def _heap_kept(ex: Executor, e: tir.Call) -> Pointer:
    slot = ex.index(e.args[0])
    if slot not in ex.slots:
        raise InterpretError(f"slot {slot} holds no memory yet", where=ex.name)
    return ex.slots[slot]


def _copy_bytes(ex: Executor, e: tir.Call) -> int:
    target, source = ex.eval(e.args[0]), ex.eval(e.args[1])
    count = ex.index(e.args[2]) * ex.machine.scale
    target.storage[target.offset : target.offset + count] = source.storage[source.offset : source.offset + count]
    return 0


def _arena(ex: Executor, e: tir.Call) -> Pointer:
    return Pointer(ex.runtime.arena(), ex.index(e.args[0]) * ex.machine.scale)


def _undef(ex: Executor, e: tir.Call) -> Any:
    return ex.machine.const(0, e.dtype.element)


def _ret(ex: Executor, e: tir.Call) -> Any:
    raise Returned(ex.value(e.args[0]) if e.args else None)


class Returned(Exception):
    """Carries the value of ``ret`` out of the function."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


_TABLE: dict[str, Callable] = {
    "likely": _likely,
    "rarely": lambda ex, e: ex.eval(tir.Select(*e.args)),
    "if_then_else": _if_then_else,
    "reinterpret": _reinterpret,
    "undef": _undef,
    "dot_accumulate": _dot,
    "reduce_add": _reduce,
    "reduce_mul": _reduce,
    "reduce_max": _reduce,
    "reduce_max_number": _reduce,
    "reduce_min": _reduce,
    "address_of": _address_of,
    "access_ptr": _access_ptr,
    "tvm_access_ptr": _access_ptr,
    "call_extern": _extern,
    "call_pure_extern": _extern,
    "call_llvm_pure_intrin": _extern,
    "call_llvm_intrin": _extern,
    "call_packed": _packed,
    "tensor_view": _tensor_view,
    "constant_ptr": _constant,
    "parallel_for": _parallel_for,
    "checkpoint": lambda ex, e: 0,
    "alloc_output": _alloc_output,
    "heap_alloc": _heap_alloc,
    "heap_free": lambda ex, e: 0,
    "heap_keep": _heap_keep,
    "heap_kept": _heap_kept,
    "copy_bytes": _copy_bytes,
    "call_packed_into": _packed_into,
    "arena_ptr": _arena,
    "ret": _ret,
}
_EFFECTS = frozenset(
    "call_packed call_packed_into tensor_view constant_ptr parallel_for checkpoint alloc_output arena_ptr ret "
    "heap_alloc heap_free heap_keep heap_kept copy_bytes".split()
)
