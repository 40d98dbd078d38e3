# SPDX-License-Identifier: Apache-2.0
"""Constant folding: calls of pure operators on constants are computed at compile time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import graph, tir
from ..ir.constants import ConstData
from ..ir.module import IRModule
from ..ir.op import OpDef
from ..passes import pass_
from .rewriter import GraphRewriter

_LIMIT = 64 << 20  # bytes that folding may add to a model for one value (broadcasts and ranges blow up)


@pass_("fold_constants")
def fold_constants(mod: IRModule) -> IRModule:
    """Evaluate pure calls whose operands are all constants by the operator's NumPy definition."""
    return _Fold(mod).module()


class _Fold(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        return folded(call) if _is_small(call) else call


def folded(call: graph.Call) -> graph.GraphExpr:
    """The value of a pure call on constants, else the call itself."""
    op = call.op
    if not (isinstance(op, OpDef) and op.pure and op.has("numpy")):
        return call
    values = [_value(a) for a in call.args]
    if any(v is _UNKNOWN for v in values):
        return call
    with np.errstate(all="ignore"):
        return _constant(op.numpy(tuple(values), call.attrs), call.sinfo)


_UNKNOWN = object()


def _is_small(call: graph.Call) -> bool:
    fields = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    total = sum(a.data.nbytes for a in call.args if isinstance(a, graph.Constant))
    for info in fields:
        if not isinstance(info, graph.TensorInfo) or info.shape is None or not all(isinstance(s, tir.IntImm) for s in info.shape):
            return False
        total -= info.dtype.nbytes(int(np.prod([s.value for s in info.shape], dtype=np.int64))) if info.dtype else 0
    return -total <= _LIMIT


def _value(arg: Any) -> Any:
    if isinstance(arg, graph.Constant):
        return arg.data.numpy()
    if isinstance(arg, graph.Tuple):
        fields = tuple(map(_value, arg.fields))
        return _UNKNOWN if any(f is _UNKNOWN for f in fields) else fields
    if isinstance(arg, graph.ShapeExpr):
        static = all(isinstance(v, tir.IntImm) for v in arg.values)
        return tuple(v.value for v in arg.values) if static else _UNKNOWN
    if isinstance(arg, graph.PrimValue):
        return arg.value.value if isinstance(arg.value, tir.IntImm | tir.FloatImm) else _UNKNOWN
    return _UNKNOWN


def _constant(result: Any, sinfo: graph.StructInfo) -> graph.GraphExpr:
    if isinstance(result, tuple | list):
        return graph.Tuple(tuple(_constant(r, s) for r, s in zip(result, sinfo.fields, strict=True)))
    array = np.asarray(result)
    if isinstance(sinfo, graph.TensorInfo) and sinfo.dtype is not None and array.dtype != sinfo.dtype.numpy:
        array = array.astype(sinfo.dtype.numpy)
    return graph.Constant(ConstData(array), graph.TensorInfo(array.shape, array.dtype))
