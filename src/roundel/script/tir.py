# SPDX-License-Identifier: Apache-2.0
"""The names of tensor programs: ``from roundel.script import tir as T``.

Also here by ``__getattr__``: every data type (``T.float32``, ``T.int32x4``) and every intrinsic (``T.exp``, ``T.fma``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir import tir
from ..ir.dtype import BOOL, HANDLE, INT32, INT64, VOID, DType
from ..ir.graph import GlobalVar
from ..ir.tir import IndexMap, intrin
from ..target import Target
from . import axis
from .literals import float_of
from .marks import (AssertHead, AttrHead, AttrsOf, BlockHead, BufferSpec, EnvThread, Evaluated, InitHead, Launch, LetHead, Loop, Loops, Meta, NewVar,
                    Reducer, Regions, SeqHead, Where)
from .parser.entry import macro, prim_func
from .regions import as_region, as_value, extent_between


def _operand(value: Any) -> Any:
    return as_value(value) if isinstance(value, tir.BufferRegion) else value


def _pair(a: Any, b: Any) -> tuple[tir.Expr, tir.Expr]:
    """Both operands as expressions of one dtype."""
    a, b = _operand(a), _operand(b)
    return tir.ops._pair(a if isinstance(a, tir.Expr) or isinstance(b, tir.Expr) else tir.const(a), b)


class ScalarType:
    """A data type in a script: ``T.int32`` annotates, ``T.int32(5)`` makes a constant or casts, ``n = T.int64()`` a variable."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = DType(dtype)

    def __call__(self, value: Any = None, *args: Any, is_size_var: bool = True, **kw: Any) -> Any:
        if self.dtype.is_handle and isinstance(value, int):
            return tir.IntImm(value, self.dtype)
        if value is None or self.dtype.is_handle:
            return NewVar(self.dtype, is_size_var and self.dtype.is_int)
        if isinstance(value, str):
            return tir.FloatImm(float_of(value), self.dtype)
        return tir.const(_operand(value), self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


class _BufferType:
    """``T.Buffer((128, 128), "float32")``, and in the older spelling ``T.Buffer[(128, 128), "float32"]``."""

    def __call__(self, shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = ..., scope: str = "global",
                 align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> BufferSpec:
        return _spec("param", shape, dtype, data=data, strides=strides, elem_offset=elem_offset, scope=scope, align=align, offset_factor=offset_factor)

    def __getitem__(self, key: Any) -> BufferSpec:
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], str):
            return self(*key)
        return self(key)


def _spec(role: str, shape: Any, dtype: Any, source: Any = None, annotations: Any = None, **options: Any) -> BufferSpec:
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    dtype = dtype.dtype if isinstance(dtype, ScalarType) else DType(dtype)
    return BufferSpec(role, tuple(shape), dtype, options, source, dict(annotations or {}))


Buffer = _BufferType()


def match_buffer(param: Any, shape: Any = None, dtype: Any = None, data: Any = None, strides: Any = None, elem_offset: Any = ...,
                 scope: str | None = None, align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> BufferSpec:
    """The buffer that a handle parameter is, or a view of a region inside a block."""
    if not isinstance(param, tir.Var):
        region = as_region(param)
        shape = tuple(r.extent for r in region.region) if shape is None else shape
        dtype, scope, param = dtype or region.buffer.dtype, scope or region.buffer.scope, region
    return _spec("match", shape, dtype or "float32", param, data=data, strides=strides, elem_offset=elem_offset, scope=scope or "global",
                 align=align, offset_factor=offset_factor)


def alloc_buffer(shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None, scope: str = "global",
                 align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> BufferSpec:
    """A buffer that lives in the enclosing block."""
    return _spec("alloc", shape, dtype, data=data, strides=strides, elem_offset=elem_offset, scope=scope, align=align, offset_factor=offset_factor)


def allocate(extents: Any, dtype: Any = "float32", scope: str = "global", condition: Any = None, annotations: Any = None, *, data: Any = None,
             strides: Any = None, elem_offset: Any = None, align: int = 0, offset_factor: int = 0) -> BufferSpec:
    """Memory for the rest of the body, usable as a buffer and as a pointer."""
    if condition is not None and condition is not True:
        raise ValueError("conditional allocation is not supported; put the allocation under an if")
    return _spec("allocate", extents, dtype, None, annotations, data=data, strides=strides, elem_offset=elem_offset, scope=scope, align=align,
                 offset_factor=offset_factor)


def decl_buffer(shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None, scope: str = "global",
                align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> BufferSpec:
    """A buffer over the pointer ``data``, for the rest of the body."""
    return _spec("decl", shape, dtype, data=data, strides=strides, elem_offset=elem_offset, scope=scope, align=align, offset_factor=offset_factor)


sblock_alloc_buffer = alloc_buffer

# ---- blocks and statements


def sblock(name: str = "", no_realize: bool = False) -> BlockHead:
    """``with T.sblock("B"):`` a block."""
    return BlockHead(name, no_realize)


block = sblock


def init() -> InitHead:
    """``with T.init():`` runs at the first iteration of the reduction."""
    return InitHead()


def seq() -> SeqHead:
    """``with T.seq():`` statements kept together as one."""
    return SeqHead()


def _regions(args: tuple[Any, ...]) -> tuple[Any, ...]:
    items = args[0] if len(args) == 1 and isinstance(args[0], tuple | list) else args
    return tuple(as_region(r) for r in items)


def reads(*regions: Any) -> Regions:
    """The regions that the block reads."""
    return Regions("reads", _regions(regions))


def writes(*regions: Any) -> Regions:
    """The regions that the block writes."""
    return Regions("writes", _regions(regions))


def where(predicate: Any) -> Where:
    """The block runs only where ``predicate`` holds."""
    return Where(predicate)


def func_attr(attrs: dict[str, Any]) -> AttrsOf:
    """Attributes of the function."""
    return AttrsOf("func", attrs)


def sblock_attr(attrs: dict[str, Any]) -> AttrsOf:
    """Attributes of the block."""
    return AttrsOf("block", attrs)


block_attr = sblock_attr


def attr(node: Any, attr_key: str, value: Any) -> AttrHead:
    """An attribute about ``node`` that holds for the rest of the body."""
    return AttrHead(node, attr_key, value)


def bind(value: Any, var: Any = None) -> LetHead:
    """Evaluates once: ``x = T.bind(expr)``."""
    return LetHead(_operand(value), var)


def LetStmt(value: Any, type_annotation: Any = None, *, var: Any = None) -> LetHead:
    """``with T.LetStmt(expr) as x:``"""
    return LetHead(_operand(value), var)


def let(first: Any, value: Any = None) -> LetHead:
    """``x = T.let(expr)``, or ``with T.let(x, expr):`` in the older spelling."""
    return LetHead(_operand(first), None) if value is None else LetHead(_operand(value), first)


def Assert(condition: Any, message: str = "") -> AssertHead:
    """Fails the call when the condition is false."""
    return AssertHead(condition, message)


def evaluate(value: Any) -> Evaluated:
    """Evaluates an expression for its effect."""
    return Evaluated(_operand(value))


def meta_var(value: Any) -> Meta:
    """Keeps a value as a Python value of the parser."""
    return Meta(value)


def env_thread(thread: str) -> EnvThread:
    """A thread axis, for ``launch_thread``."""
    return EnvThread(thread)


def launch_thread(thread: Any, extent: Any) -> Launch:
    """Binds a thread axis of ``extent`` for the rest of the body."""
    return Launch(thread, extent)


# ---- loops


def _loop(kind: tir.ForKind, start: Any, stop: Any, extent: Any = None, thread: str | None = None, annotations: Any = None, step: Any = None,
          dtype: Any = None) -> Loops:
    if stop is None and extent is None:
        start, stop = 0, start
    extent = extent_between(start, stop) if extent is None else extent
    return Loops([Loop(start, extent, kind, thread, dict(annotations or {}), step, dtype and DType(dtype))])


def _loop_function(name: str, kind: tir.ForKind) -> Callable[..., Loops]:
    def build(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = None, extent: Any = None, dtype: Any = None) -> Loops:
        return _loop(kind, start, stop, extent, None, annotations, step, dtype)

    build.__name__, build.__doc__ = name, f"A {kind.value} loop over [0, stop) or [start, stop)."
    return build


serial = _loop_function("serial", tir.ForKind.SERIAL)
parallel = _loop_function("parallel", tir.ForKind.PARALLEL)
vectorized = _loop_function("vectorized", tir.ForKind.VECTORIZED)
unroll = _loop_function("unroll", tir.ForKind.UNROLLED)
unrolled = unroll


def thread_binding(start: Any, stop: Any = None, thread: str | None = None, *, annotations: Any = None, step: Any = None, extent: Any = None,
                   dtype: Any = None) -> Loops:
    """A loop whose iterations are the threads of an axis such as ``threadIdx.x``."""
    if isinstance(stop, str):
        stop, thread = None, stop
    return _loop(tir.ForKind.THREAD_BINDING, start, stop, extent, thread, annotations, step, dtype)


def grid(*extents: Any) -> Loops:
    """A nest of serial loops; an extent may be (start, stop)."""
    return Loops([_loop(tir.ForKind.SERIAL, *(e if isinstance(e, tuple) else (e, None))).loops[0] for e in extents])


# ---- expressions


def Range(start: Any, extent: Any) -> Any:
    """An index item of ``extent`` values from ``min``, where ``start:stop`` cannot say it."""
    return tir.Range(tir.as_index(start), tir.as_index(extent))


def _exact(cls: type) -> Callable[[Any, Any], Any]:
    def build(a: Any, b: Any) -> Any:
        return cls(*_pair(a, b))

    build.__name__, build.__doc__ = cls.__name__, f"{cls.__doc__} Built as written, nothing folded."
    return build


Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or = (_exact(c) for c in (
    tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max, tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE,
    tir.And, tir.Or))


def _folding(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def build(a: Any, b: Any) -> Any:
        return fn(*_pair(a, b))

    build.__name__, build.__doc__ = fn.__name__, fn.__doc__
    return build


truncdiv, truncmod, floordiv, floormod, ceildiv, min, max = (_folding(f) for f in (  # noqa: A001
    tir.truncdiv, tir.truncmod, tir.floordiv, tir.floormod, tir.ceildiv, tir.min_, tir.max_))


def Not(a: Any) -> tir.Expr:
    """Negation, built as written."""
    return tir.Not(tir.const(a))


def div(a: Any, b: Any) -> tir.Expr:
    """Division of floats; of integers rounded toward zero."""
    return truncdiv(_operand(a), _operand(b))


def cast(value: Any, dtype: Any) -> tir.Expr:
    """``value`` as ``dtype``."""
    return tir.cast(_operand(value), getattr(dtype, "dtype", dtype))


def Cast(dtype: Any, value: Any) -> tir.Expr:
    """``value`` as ``dtype``, built as written."""
    return tir.Cast(DType(getattr(dtype, "dtype", dtype)), tir.const(_operand(value)))


def Select(condition: Any, true_value: Any, false_value: Any) -> tir.Expr:
    """Eager choice."""
    return tir.Select(tir.ops._truth(_operand(condition)), *_pair(true_value, false_value))


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> tir.Expr:
    """Lazy choice: only the chosen value is evaluated."""
    return tir.IfThenElse(tir.ops._truth(_operand(condition)), *_pair(true_value, false_value))


def Ramp(base: Any, stride: Any, lanes: int) -> tir.Expr:
    """The vector ``base, base + stride, ...``."""
    base, stride = _pair(base, stride)
    return tir.Ramp(base, stride, _int(lanes))


def Broadcast(value: Any, lanes: int) -> tir.Expr:
    """A vector of copies."""
    return tir.Broadcast(tir.const(_operand(value)), _int(lanes))


def Shuffle(vectors: Sequence[Any], indices: Sequence[int]) -> tir.Expr:
    """Elements picked from the concatenation of vectors."""
    return tir.Shuffle(tuple(tir.const(_operand(v)) for v in vectors), tuple(_int(i) for i in indices))


def vectorlow(dtype: Any, vec: Any) -> tir.Expr:
    """The lower half of a vector."""
    half = vec.dtype.lanes // 2
    return tir.Shuffle((vec,), tuple(range(half)))


def vectorhigh(dtype: Any, vec: Any) -> tir.Expr:
    """The upper half of a vector."""
    half = vec.dtype.lanes // 2
    return tir.Shuffle((vec,), tuple(range(half, 2 * half)))


def vectorcombine(dtype: Any, low: Any, high: Any) -> tir.Expr:
    """Two vectors one after another."""
    return tir.Shuffle((low, high), tuple(range(low.dtype.lanes + high.dtype.lanes)))


def _int(value: Any) -> int:
    return value.value if isinstance(value, tir.IntImm) else int(value)


def min_value(dtype: Any) -> tir.Expr:
    """The smallest finite value of a type."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return tir.const(float(_float_info(dtype).min) if dtype.is_float else _int_bounds(dtype)[0], dtype)


def max_value(dtype: Any) -> tir.Expr:
    """The largest finite value of a type."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return tir.const(float(_float_info(dtype).max) if dtype.is_float else _int_bounds(dtype)[1], dtype)


def infinity(dtype: Any) -> tir.Expr:
    """Positive infinity."""
    return tir.FloatImm(float("inf"), getattr(dtype, "dtype", dtype))


def _float_info(dtype: DType) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype.numpy) if dtype.numpy.kind != "f" else np.finfo(dtype.numpy)


def _int_bounds(dtype: DType) -> tuple[int, int]:
    if dtype.is_bool:
        return 0, 1
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)


# ---- calls


def _exprs(args: Sequence[Any]) -> tuple[tir.Expr, ...]:
    return tuple(tir.const(a.data if isinstance(a, tir.Buffer) else _operand(a)) for a in args)


def call(function: Any, *args: Any, dtype: Any = VOID) -> tir.Expr:
    """A call of another function of the module, with the dtype of its result."""
    return tir.Call(function if isinstance(function, GlobalVar) else str(function), _exprs(args), DType(dtype))


def call_intrin(dtype: Any, op: str, *args: Any) -> tir.Expr:
    """A call of the intrinsic ``op`` with an explicit result dtype."""
    return tir.Call(op.removeprefix("tir."), _exprs(args), DType(getattr(dtype, "dtype", dtype)))


def call_extern(dtype: Any, name: str, *args: Any) -> tir.Expr:
    """A call of a C function."""
    return call_intrin(dtype, "call_extern", name, *args)


def call_pure_extern(dtype: Any, name: str, *args: Any) -> tir.Expr:
    """A call of a C function without effects."""
    return call_intrin(dtype, "call_pure_extern", name, *args)


def call_llvm_pure_intrin(dtype: Any, name: Any, *args: Any) -> tir.Expr:
    """A call of an LLVM intrinsic; the first operand may be the number of signature operands."""
    return call_intrin(dtype, "call_llvm_pure_intrin", name, *args)


def call_llvm_intrin(dtype: Any, name: Any, *args: Any) -> tir.Expr:
    """A call of an LLVM intrinsic with effects."""
    return call_intrin(dtype, "call_llvm_intrin", name, *args)


def call_packed(name: str, *args: Any, dtype: Any = INT32) -> tir.Expr:
    """A call of a function registered with the FFI."""
    return call_intrin(dtype, "call_packed", name, *args)


tvm_call_packed = call_cpacked = call_packed


def type_annotation(dtype: Any) -> tir.Expr:
    """A data type as an operand."""
    return tir.StringImm(str(DType(getattr(dtype, "dtype", dtype))))


def string(value: str) -> tir.Expr:
    """A string as an expression (for attribute values; operands of calls are plain strings)."""
    return tir.StringImm(value)


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> tir.Expr:
    """A pointer for external code."""
    return call_intrin(HANDLE, "access_ptr", ptype, data, offset, extent, rw_mask)


def reinterpret(dtype: Any, value: Any) -> tir.Expr:
    """The bits of ``value`` as another dtype."""
    return call_intrin(dtype, "reinterpret", value)


def ret(value: Any) -> tir.Expr:
    """Returns a scalar from the function."""
    return tir.Call("ret", _exprs((value,)), VOID)


def target(spec: Any = "llvm", host: Any = None) -> Target:
    """A machine, as the value of an attribute."""
    return Target(spec)


def comm_reducer(combine: Callable[..., Any], identity: Sequence[Any]) -> Reducer:
    """A commutative reduction: how two values combine, and the identity."""
    return Reducer(combine, tuple(identity))


def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None, ndim: int | None = None) -> IndexMap:
    """A map of indices, for layouts."""
    return IndexMap.from_func(mapping, ndim)


def var(dtype: Any = "int64", name: str | None = None) -> NewVar:
    """A shape variable that takes its name from what it is assigned to."""
    dtype = DType(getattr(dtype, "dtype", dtype))
    return NewVar(dtype, dtype.is_int, name)


def Var(name: str, dtype: Any = "int64") -> NewVar:
    """A variable with a name."""
    return NewVar(DType(getattr(dtype, "dtype", dtype)), False, name)


def SizeVar(name: str = "", dtype: Any = "int64") -> NewVar:
    """A shape variable with a name (``T.SizeVar`` alone annotates an int64 parameter)."""
    return NewVar(DType(getattr(dtype, "dtype", dtype)), True, name or None)


def ptr(dtype: Any = None, storage_scope: str = "global") -> NewVar:
    """A pointer; as an annotation the same as ``T.handle``."""
    return NewVar(HANDLE, False)


Ptr = ptr
boolean = ScalarType(BOOL)
handle = ScalarType(HANDLE)
int32, int64 = ScalarType(INT32), ScalarType(INT64)
_ALIASES = {"power": "pow", "left_shift": "shift_left", "right_shift": "shift_right", "nearby_int": "nearbyint"}


def _intrinsic(name: str) -> Callable[..., tir.Expr]:
    found = intrin.get(name)

    def build(*args: Any, dtype: Any = None) -> tir.Expr:
        if found.arity >= 0 and len(args) != found.arity:
            raise TypeError(f"T.{name} takes {found.arity} operands, {len(args)} given")
        items: Sequence[Any] = [_operand(a.data if isinstance(a, tir.Buffer) else a) for a in args]
        if found.arity == 2:
            items = _pair(*items)
        return tir.call(name, *items, dtype=dtype)

    build.__name__, build.__doc__ = name, found.doc or f"The intrinsic {name}."
    return build


_FOREIGN = ("tvm_", "ptx_", "mma_", "simdgroup_", "cuda_", "dma_", "metal_")  # families of device intrinsics, kept as opaque calls


def _foreign(name: str) -> Callable[..., tir.Expr]:
    def build(*args: Any) -> tir.Expr:
        typed = bool(args) and isinstance(args[0], str) and not name.startswith("tvm_")
        return call_intrin(args[0] if typed else HANDLE, name, *args[typed:])

    build.__name__, build.__doc__ = name, f"A call of the device intrinsic {name}."
    return build


@cache  # not into globals(): T.bool and T.abs must not hide Python's in this file
def __getattr__(name: str) -> Any:
    name = _ALIASES.get(name, name)
    if name in intrin.REGISTRY:
        made: Any = _intrinsic(name)
    elif name.startswith(_FOREIGN):
        made = _foreign(name)
    else:
        try:
            made = ScalarType(name)
        except ValueError:
            from difflib import get_close_matches

            near = get_close_matches(name, [*globals(), *intrin.REGISTRY], 3)
            raise AttributeError(f"T has no {name!r}" + (f"; did you mean {', '.join('T.' + n for n in near)}?" if near else "")) from None
    return made


__all__ = ["Buffer", "axis", "macro", "prim_func"]
