# SPDX-License-Identifier: Apache-2.0
"""Names for building graph functions in Python the way TVM's documentation does: ``from roundel import relax``.

    x = relax.Var("x", relax.TensorStructInfo([n, 4], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]), bb.dataflow(): ...
    lv = bb.emit(relax.op.nn.relu(x))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from roundel.builder import BlockBuilder
from roundel.ir import graph
from roundel.ir.dtype import DType
from roundel.ir.foreign_names import named_like
from roundel.ir.graph import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    VarBinding,
)
from roundel.ir.graph import DTypeValue as DataTypeImm
from roundel.ir.graph import StringValue as StringImm
from roundel.ir.tir import as_index
from roundel.script import relax as script
from roundel.script.relax import (
    OpRef,
    call_dps_packed,
    call_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
    const,
    prim_value,
)

from .pattern_rewriter import PatternRewriter

_CALLS = ("call_tir", "call_tir_with_grad", "call_tir_inplace", "call_dps_packed", "call_pure_packed", "print", "assert_op", "to_vdevice", "hint_on_device",
          "make_closure", "invoke_closure", "invoke_pure_closure")  # operators with more than operands and attributes


class _Operators:
    """``relax.op``: every operator by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(script, name) if name in _CALLS else OpRef(name)


op = _Operators()


@named_like(graph.Var)
def Var(name_hint: str, struct_info: Any = None) -> graph.Var:
    """A variable of a graph function."""
    if struct_info is not None and not isinstance(struct_info, graph.StructInfo):
        raise TypeError(f"what is known of {name_hint} is a struct info whose dimensions are numbers or variables (te.size_var), not {struct_info!r}: "
                        f'relax.Var("{name_hint}", R.Tensor((4, 8), "float32"))')
    return graph.Var(name_hint, graph.ObjectInfo() if struct_info is None else struct_info)


@named_like(graph.TensorInfo)
def TensorStructInfo(shape: Any = None, dtype: Any = "float32", vdevice: Any = None, ndim: int = -1) -> graph.TensorInfo:
    """What is known of a tensor: its shape, or only the number of its dimensions; ``dtype=""``: of any type."""
    if shape is not None and ndim != -1:
        raise ValueError("a shape tells the number of dimensions: give one of shape and ndim")
    values = shape.values if isinstance(shape, ShapeExpr) else shape
    dtype = None if not dtype else DType(dtype)
    return graph.TensorInfo(None if values is None else tuple(map(as_index, values)), dtype, ndim, vdevice)


@named_like(graph.ShapeInfo)
def ShapeStructInfo(values: Sequence[Any] | None = None, ndim: int = -1) -> graph.ShapeInfo:
    """What is known of a shape: its dimensions, or only their number."""
    if values is not None and ndim != -1:
        raise ValueError("the values tell the number of dimensions: give one of values and ndim")
    return graph.ShapeInfo(None if values is None else tuple(map(as_index, values)), ndim)


@named_like(graph.TupleInfo)
def TupleStructInfo(fields: Sequence[graph.StructInfo]) -> graph.TupleInfo:
    """What is known of a tuple."""
    return graph.TupleInfo(tuple(fields))


@named_like(graph.PrimInfo)
def PrimStructInfo(dtype: Any = None, value: Any = None) -> graph.PrimInfo:
    """What is known of a scalar."""
    value = None if value is None else as_index(value)
    return graph.PrimInfo(DType(dtype) if value is None else value.dtype, value)


@named_like(graph.FuncInfo)
def FuncStructInfo(params: Sequence[graph.StructInfo] | None, ret: graph.StructInfo, purity: bool = True) -> graph.FuncInfo:
    """What is known of a function."""
    return graph.FuncInfo(None if params is None else tuple(params), ret, purity)


def _opaque_func(*, ret: graph.StructInfo | None = None, derive_func: Any = None, purity: bool = False) -> graph.FuncInfo:
    """A function of which the parameters are not known."""
    if derive_func is not None:
        raise TypeError("a function that derives the struct info of results is not supported; give ret")
    return graph.FuncInfo(None, ret or graph.ObjectInfo(), purity)


FuncStructInfo.opaque_func = _opaque_func


@named_like(graph.TensorInfo)
def TensorType(shape: Any = None, dtype: Any = "float32", vdevice: Any = None, ndim: int = -1) -> graph.TensorInfo:
    """``TensorStructInfo`` by its name since TVM 0.24; a number instead of a shape is that of dimensions (-1: any), as before."""
    return TensorStructInfo(None, dtype, vdevice, shape) if isinstance(shape, int) else TensorStructInfo(shape, dtype, vdevice, ndim)


@named_like(graph.ShapeInfo)
def ShapeType(values: Any = None, ndim: int = -1) -> graph.ShapeInfo:
    """``ShapeStructInfo`` by its name since TVM 0.24; a number instead of values is that of dimensions (-1: any), as before."""
    return ShapeStructInfo(None, values) if isinstance(values, int) else ShapeStructInfo(values, ndim)


@named_like(graph.ObjectInfo)
def ObjectStructInfo() -> graph.ObjectInfo:
    """Nothing is known."""
    return graph.ObjectInfo()


def get_shape_of(value: graph.GraphExpr) -> Any:
    """The shape of a tensor as a value: its dimensions where they are known, else a call that finds them when the model runs."""
    shape = getattr(value.sinfo, "shape", None)
    return OpRef("shape_of")(value) if shape is None else ShapeExpr(shape)


__all__ = [
    "BindingBlock",
    "BlockBuilder",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowVar",
    "ExternFunc",
    "FuncStructInfo",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
    "ObjectStructInfo",
    "PatternRewriter",
    "PrimStructInfo",
    "PrimValue",
    "SeqExpr",
    "ShapeExpr",
    "ShapeStructInfo",
    "ShapeType",
    "StringImm",
    "TensorStructInfo",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleStructInfo",
    "Var",
    "VarBinding",
    "call_dps_packed",
    "call_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "const",
    "get_shape_of",
    "op",
    "prim_value",
]
