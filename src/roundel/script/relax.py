# SPDX-License-Identifier: Apache-2.0
"""The names of graph functions: ``from roundel.script import relax as R``.

Every operator of the table is here too, by ``__getattr__``: ``R.add``, ``R.nn.relu``. All work in plain Python too.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable as Function
from typing import Any

import numpy as np

from ..ir import above, constants, graph, tir
from ..ir.attrs import Attrs
from ..ir.dtype import DType
from ..ir.graph import (
    ExternFunc,
    FuncInfo,
    GlobalVar,
    Layout,
    ObjectInfo,
    PrimInfo,
    ShapeInfo,
    StructInfo,
    TensorInfo,
    TupleInfo,
)
from ..ir.graph.make_call import as_operand, make_call
from ..ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE, CALL_TIR_WITH_GRAD, get_op
from .marks import (
    AttrsOf,
    BindingBlockHead,
    Closure,
    DataflowHead,
    EmitTe,
    Looping,
    MatchCasting,
    Output,
    Symbolic,
    Typed,
)
from .parser.entry import function, macro, module_of

Dim = Function[[Any], Any]


class OpRef:
    """An operator by name, or a namespace of operators (``R.nn``)."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpRef:
        if name.startswith("__"):
            raise AttributeError(name)
        return OpRef(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> graph.Call:
        return make_call(get_op(self._name), args, kwargs)

    def __repr__(self) -> str:
        return f"R.{self._name}"


# ---- struct info


def _info(value: Any, dim: Dim) -> StructInfo:
    """A part of a struct info: built already, textual, or the bare name of a kind (``R.Object``)."""
    if isinstance(value, Symbolic):
        return value.build(dim)
    return value if isinstance(value, StructInfo) else value()


def _known(value: Any) -> StructInfo:
    return _info(value, lambda d: d)


def _built(build: Function[[Dim], StructInfo], *parts: Any) -> Any:
    """The struct info at once, or later where dimensions are text."""
    return Symbolic(build) if any(isinstance(p, builtins.str | Symbolic) for p in parts) else build(lambda d: d)


def Tensor(
    shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1, layout: Layout | None = None
) -> Any:
    """A tensor: ``R.Tensor((n, 4), "float32")``, ``R.Tensor(("n", "4 * m"))``, ``R.Tensor(ndim=2)``."""
    if isinstance(shape, builtins.str) and dtype is None:
        shape, dtype = None, shape
    dtype = getattr(dtype, "dtype", dtype)
    if isinstance(shape, graph.GraphExpr):
        known = shape.sinfo
        shape, ndim = (known.values, known.ndim) if isinstance(known, ShapeInfo) else (None, ndim)
    if not isinstance(ndim, int) or ndim < -1:
        raise ValueError(f"ndim is the number of dimensions, or -1 where it is unknown, not {ndim!r}")
    if shape is None:
        return TensorInfo(None, dtype, ndim, vdevice, layout)
    dims = builtins.tuple(shape)
    if ndim not in (-1, len(dims)):
        raise ValueError(f"the shape has {len(dims)} dimensions, and ndim={ndim}")
    return _built(lambda dim: TensorInfo(builtins.tuple(dim(d) for d in dims), dtype, -1, vdevice, layout), *dims)


def Shape(values: Any = None, ndim: int = -1) -> Any:
    """A shape: ``R.Shape([n, 4])``, ``R.Shape(ndim=2)``."""
    if values is None:
        return ShapeInfo(None, ndim)
    dims = builtins.tuple(values)
    return _built(lambda dim: ShapeInfo(builtins.tuple(dim(d) for d in dims)), *dims)


def Prim(dtype: Any = None, value: Any = None) -> Any:
    """A scalar: ``R.Prim("int64")``, ``R.Prim(value=n)``."""
    if value is None:
        return PrimInfo(DType(getattr(dtype, "dtype", dtype)))

    def build(dim: Dim) -> StructInfo:
        expr = tir.const(dim(value), dtype)
        return PrimInfo(expr.dtype, expr)

    return _built(build, value)


def Object() -> StructInfo:
    """Anything."""
    return ObjectInfo()


def Tuple(*fields: Any) -> Any:
    """A tuple: ``R.Tuple(R.Tensor(...), R.Shape(...))``."""
    items = fields[0] if len(fields) == 1 and isinstance(fields[0], list | builtins.tuple) else fields
    return _built(lambda dim: TupleInfo(builtins.tuple(_info(f, dim) for f in items)), *items)


def Callable(params: Any = None, ret: Any = None, purity: bool = True, *, pure: bool = True) -> Any:
    """A function: ``R.Callable((R.Tensor(...),), R.Tensor(...))``."""
    parts = (
        None if params is None else builtins.tuple(params) if isinstance(params, list | builtins.tuple) else (params,)
    )
    result = ObjectInfo() if ret is None else ret

    def build(dim: Dim) -> StructInfo:
        return FuncInfo(
            None if parts is None else builtins.tuple(_info(p, dim) for p in parts), _info(result, dim), purity and pure
        )

    return _built(build, *(parts or ()), result)


# ---- values


def const(value: Any, dtype: Any = None, sinfo: StructInfo | None = None) -> graph.Constant:
    """A constant: a number, nested lists, an array, or ``"sha:..."`` for one that this process holds."""
    if isinstance(value, builtins.str) and value.startswith("sha:"):
        try:
            made = graph.Constant.of(constants.lookup(value))
        except KeyError:
            raise ValueError(
                f"constant {value} is not alive: its content is in the module that printed it, not in the script;"
                " mod.script(constants=file) keeps both"
            ) from None
    elif isinstance(value, np.ndarray) and dtype is None:
        made = graph.Constant.of(value)
    else:
        made = graph.Constant.of(value, getattr(dtype, "dtype", dtype))
    return made if sinfo is None else made.replace(sinfo=_known(sinfo))


def shape(values: Any) -> graph.ShapeExpr:
    """A shape value."""
    return graph.ShapeExpr(builtins.tuple(tir.as_index(v) for v in values))


def prim_value(value: Any) -> graph.PrimValue:
    """A scalar value."""
    return graph.PrimValue(tir.const(value))


def str(value: builtins.str) -> graph.StringValue:  # noqa: A001
    """A string value."""
    return graph.StringValue(value)


def dtype(value: Any) -> graph.DTypeValue:
    """A data type as a value."""
    return graph.DTypeValue(DType(value))


def tuple(*fields: Any) -> graph.Tuple:  # noqa: A001
    """A tuple of values."""
    return graph.Tuple(builtins.tuple(as_operand(f) for f in fields))


def get_item(value: graph.GraphExpr, index: int) -> graph.TupleGetItem:
    """A field of a tuple."""
    return graph.TupleGetItem(value, index)


TupleGetItem, ShapeExpr = get_item, shape


# ---- calls


_NEWER = {"out_ty": "out_sinfo", "ty_args": "sinfo_args", "struct_info_args": "sinfo_args"}
"""Names of arguments since TVM 0.24, where struct info is called type."""


def _newer(call: Function[..., Any]) -> Function[..., Any]:
    @functools.wraps(call)
    def named(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **{_NEWER.get(k, k): v for k, v in kwargs.items()})

    return named


def _args(args: Any) -> graph.GraphExpr:
    if isinstance(args, list | builtins.tuple):
        return tuple(*args)
    alone = isinstance(args, graph.GraphExpr) and isinstance(args.sinfo, TupleInfo)
    return args if alone else tuple(args)


def _out(out_sinfo: Any, dtype: Any) -> StructInfo:
    out_sinfo = out_sinfo() if callable(out_sinfo) and not isinstance(out_sinfo, StructInfo) else out_sinfo
    if isinstance(out_sinfo, graph.ShapeExpr):
        return TensorInfo(out_sinfo.values, dtype)
    if isinstance(out_sinfo, list | builtins.tuple):
        if dtype is not None or not any(isinstance(o, StructInfo) or callable(o) for o in out_sinfo):
            return TensorInfo(builtins.tuple(out_sinfo), dtype)
        return _known(out_sinfo[0]) if len(out_sinfo) == 1 else TupleInfo(builtins.tuple(map(_known, out_sinfo)))
    if not isinstance(out_sinfo, StructInfo):
        raise TypeError("the call needs out_sinfo=R.Tensor(...), what it makes")
    return out_sinfo


@_newer
def call_tir(
    func: Any, args: Any = (), out_sinfo: Any = None, tir_vars: Any = None, *, dtype: Any = None
) -> graph.Call:
    """A call of a tensor program, destination passing."""
    if isinstance(func, builtins.str | ExternFunc):
        return call_dps_packed(func, args, out_sinfo, dtype=dtype)
    out = _out(out_sinfo, dtype)
    extra = () if tir_vars is None else (tir_vars if isinstance(tir_vars, graph.GraphExpr) else shape(tir_vars),)
    return graph.Call(CALL_TIR, (func, _args(args), *extra), sinfo_args=(out,), sinfo=out)


@_newer
def call_tir_with_grad(
    func: Any, args: Any, out_sinfo: Any, te_grad_name: builtins.str, te_grad_kwargs: dict[builtins.str, Any] | None = None, tir_vars: Any = None
) -> graph.Call:
    """``call_tir`` that says by name which tensor expression computes its gradient."""
    made = call_tir(func, args, out_sinfo, tir_vars)
    return made.replace(op=CALL_TIR_WITH_GRAD, attrs=Attrs({"te_grad_name": te_grad_name, "te_grad_kwargs": te_grad_kwargs or {}}))


@_newer
def call_tir_inplace(
    func: Any, args: Any, inplace_indices: Any = (), out_sinfo: Any = None, tir_vars: Any = None
) -> graph.Call:
    """``call_tir`` whose outputs overwrite operands."""
    if isinstance(args, graph.GraphExpr) and not isinstance(args, graph.Tuple) and isinstance(args.sinfo, TupleInfo):
        raise TypeError("R.call_tir_inplace takes its operands as a tuple that is written out, (x, y), not as a variable")
    out = _out(out_sinfo, None)
    indices = inplace_indices if isinstance(inplace_indices, list | builtins.tuple) else (inplace_indices,)
    extra = () if tir_vars is None else (tir_vars if isinstance(tir_vars, graph.GraphExpr) else shape(tir_vars),)
    attrs = Attrs({"inplace_indices": builtins.tuple(indices)})
    return graph.Call(CALL_TIR_INPLACE, (func, _args(args), *extra), attrs, (out,), out)


@_newer
def call_dps_packed(func: Any, args: Any = (), out_sinfo: Any = None, *, dtype: Any = None) -> graph.Call:
    """A call of a function known to the FFI, destination passing."""
    out = _out(out_sinfo, dtype)
    func = ExternFunc(func) if isinstance(func, builtins.str) else func
    return graph.Call(CALL_DPS_PACKED, (func, _args(args)), sinfo_args=(out,), sinfo=out)


@_newer
def call_py_func(func_name: builtins.str, args: Any, out_sinfo: Any) -> graph.Call:
    """A call of a Python function of the module (``@I.pyfunc``), or of one that is registered and writes into arrays behind its operands."""
    return call_dps_packed(func_name, args, out_sinfo)


@_newer
def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> graph.Call:
    """A call of a function known to the FFI, which returns its result."""
    infos = (
        ()
        if sinfo_args is None
        else builtins.tuple(sinfo_args)
        if isinstance(sinfo_args, list | builtins.tuple)
        else (sinfo_args,)
    )
    infos = builtins.tuple(map(_known, infos))
    func = ExternFunc(func) if isinstance(func, builtins.str) else func
    result = infos[0] if len(infos) == 1 else TupleInfo(infos) if infos else ObjectInfo()
    return graph.Call(func, builtins.tuple(as_operand(a) for a in args), Attrs(attrs), infos, result)


call_pure_packed = call_packed


def call(op: Any, *args: Any, attrs: Any = None, sinfo_args: Any = ()) -> graph.Call:
    """A call as it stands: operator (by name) or function, operands, all attributes; nothing filled in or inferred."""
    op = get_op(op) if isinstance(op, builtins.str) else op
    operands = builtins.tuple(a if isinstance(a, GlobalVar) else as_operand(a) for a in args)
    return graph.Call(op, operands, Attrs(attrs or {}), builtins.tuple(map(_known, sinfo_args)))


def print(*values: Any, format: builtins.str = "") -> graph.Call:  # noqa: A001, A002
    """Prints values when the model runs."""
    whole = len(values) == 1 and isinstance(values[0], graph.Tuple | list | builtins.tuple)
    return make_call(get_op("print"), (values[0] if whole else tuple(*values),), {"format": _text(format)})


def assert_op(condition: Any, format_args: Any = None, format: builtins.str = "") -> graph.Call:  # noqa: A002
    """Fails the call when ``condition`` is false."""
    if format_args is not None and not isinstance(format_args, graph.Tuple):
        format_args = tuple(*format_args) if isinstance(format_args, list | builtins.tuple) else tuple(format_args)
    return make_call(get_op("assert_op"), (condition, format_args), {"format": _text(format)})


def to_vdevice(data: Any, dst_vdevice: Any) -> graph.Call:
    """The tensor on another virtual device."""
    return make_call(get_op("to_vdevice"), (data,), {"dst_vdevice": _text(dst_vdevice)})


def hint_on_device(data: Any, dst_vdevice: Any = None, memory_scope: Any = None) -> Any:
    """The tensor itself: there is one device."""
    return data


def cpu(device_id: int = 0) -> builtins.str:
    """A processor as a device."""
    return device(1, device_id)


def opencl(device_id: int = 0) -> builtins.str:
    """A graphics processor by OpenCL as a device."""
    return device(4, device_id)


def device(device_type: int = 1, device_id: int = 0) -> builtins.str:
    """A device as text."""
    return f"{device_type}:{device_id}"


def _text(value: Any) -> Any:
    return value.value if isinstance(value, graph.StringValue) else value


def emit_te(function: Any, *args: Any, primfunc_name_hint: builtins.str | None = None, **kwargs: Any) -> EmitTe:
    """The call of the tensor program that a function of tensor expressions describes; it joins the module."""
    return EmitTe(function, args, kwargs, primfunc_name_hint)


def make_closure(func: Any, args: Any = ()) -> Closure:
    """A function of the module with its first arguments given."""
    return Closure(func, builtins.tuple(args) if isinstance(args, list | builtins.tuple) else builtins.tuple(args.fields))


@_newer
def invoke_closure(closure: Closure, args: Any = (), sinfo_args: Any = None) -> graph.Call:
    """Calls a closure with the rest of its arguments."""
    rest = args.fields if isinstance(args, graph.Tuple) else args
    infos = sinfo_args[0] if isinstance(sinfo_args, list | builtins.tuple) else sinfo_args
    known = ObjectInfo() if infos is None else _known(infos)
    return graph.Call(closure.function, builtins.tuple(as_operand(a) for a in (*closure.args, *rest)), sinfo=known)


invoke_pure_closure = invoke_closure


# ---- statements


def dataflow() -> DataflowHead:
    """``with R.dataflow():`` bindings without side effects."""
    return DataflowHead()


def binding_block() -> BindingBlockHead:
    """``with R.binding_block():`` a block of bindings of its own."""
    return BindingBlockHead()


def output(*variables: Any) -> Output:
    """The variables that leave the dataflow block."""
    return Output(variables)


def match_cast(value: Any, sinfo: Any) -> MatchCasting:
    """Checked at run time; defines the symbolic variables that are new in ``sinfo``."""
    return MatchCasting(value, _known(sinfo))


emit_match_cast = match_cast


def typed(value: graph.Call, sinfo: StructInfo) -> Typed:
    """A call with the struct info it knows of itself."""
    return Typed(value.replace(sinfo=_known(sinfo)))


def emit(value: Any, *args: Any) -> Any:
    """The value (bound by the assignment)."""
    return value


def func_attr(attrs: dict[builtins.str, Any]) -> AttrsOf:
    """Attributes of the function."""
    return AttrsOf("func", attrs)


def rewriter(cls: type) -> Any:
    """``@R.rewriter``: the class with the graph functions ``pattern`` and ``replacement`` as a function of modules: `roundel.relax.pattern_rewriter`."""
    return above.relax().PatternRewriter.from_module(module_of(cls, sys._getframe(1)))


def while_loop(condition: Any, body: Any, init: Any) -> Looping:
    """Repeats ``body`` (a function defined above, of the loop variables, that returns their next values) while
    ``condition`` of them holds, from ``init`` on; the value is the tuple of the last ones.
    """
    return Looping(condition, body, builtins.tuple(init) if isinstance(init, list | builtins.tuple) else (init,))


def __getattr__(name: builtins.str) -> OpRef:
    if name.startswith("__"):
        raise AttributeError(name)
    return OpRef(name)


__all__ = ["ExternFunc", "Layout", "function", "macro"]
