# SPDX-License-Identifier: Apache-2.0
"""Constant folding: calls of pure operators on constants are computed at compile time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arith import Analyzer
from ...interp.positions import first_outside
from ...ir import graph, options, tir
from ...ir.constants import ConstData
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call

_LIMIT = 64 << 20  # bytes that folding may add to a model for one value (broadcasts and ranges blow up); for all: option max_folded_bytes
_WORK = 1 << 34  # multiply-adds of contractions that folding does in all: a few seconds
_LARGE = 1 << 20  # bytes of constants from which on values are not kept in memory


@pass_("fold_constants")
def fold_constants(mod: IRModule) -> IRModule:
    """Evaluate pure calls whose operands are all constants by the operator's NumPy definition."""
    return _Fold(mod).module()


class _Fold(GraphRewriter):
    """``made``: constants that were computed here, which count in full where something is computed of them again."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.left, self.work = options.get("max_folded_bytes"), _WORK
        self.made: set[ConstData] = set()

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        more = _added(call, self.made)
        if more is None or more > min(_LIMIT, self.left) or (work := _work(call)) > self.work:
            return call
        value = folded(call)
        if value is not call:
            self.left, self.work = self.left - max(more, 0), self.work - work
            self.made.update(c.data for c in (value.fields if isinstance(value, graph.Tuple) else (value,)) if isinstance(c, graph.Constant))
        return value


def folded(call: graph.Call) -> graph.GraphExpr:
    """The value of a pure call on constants, else the call itself. A large value is made when it is asked for."""
    op = call.op
    if not (isinstance(op, OpDef) and op.pure and op.has("numpy")):
        return call
    values = tuple(map(_value, call.args))
    if any(v is _UNKNOWN for v in values) or not _inside(call, values):
        return call
    sources: list[ConstData] = []
    _arrays(values, lambda data: sources.append(data))

    def compute(*arrays: np.ndarray) -> Any:
        given = iter(arrays)
        with np.errstate(all="ignore"):
            return op.numpy(_arrays(values, lambda _: next(given)), call.attrs)

    info = call.sinfo
    known = isinstance(info, graph.TensorInfo) and info.dtype and info.shape is not None and all(isinstance(n, tir.IntImm) for n in info.shape)
    if not known or sum(s.nbytes for s in sources) < _LARGE:
        return _constant(compute(*(s.numpy() for s in sources)), info)
    others = _arrays(values, lambda _: None)
    shape, dtype = tuple(n.value for n in info.shape), info.dtype
    data = ConstData.derived(lambda *arrays: np.asarray(compute(*arrays)).astype(dtype.numpy, copy=False).reshape(shape), tuple(sources),
                             f"{op.name} {others} {call.attrs}", shape=shape, dtype=dtype)
    return graph.Constant(data, info)


def _inside(call: graph.Call, values: tuple) -> bool:
    """Whether all positions are inside; what is not is told when the model runs."""
    wanted = call.op.positions(tuple(a.sinfo for a in call.args), call.attrs) if call.op.has("positions") else ()  # type: ignore[union-attr]
    for w in wanted:
        limits = [Analyzer().value(n) for n in w.limits]
        if None in limits or first_outside(values[w.operand].numpy(), limits, w.negative) is not None:  # type: ignore[arg-type]
            return False
    return True


def _arrays(values: tuple, read: Callable[[ConstData], Any]) -> tuple:
    """Operands with constants read."""
    return tuple(_arrays(v, read) if isinstance(v, tuple) else read(v) if isinstance(v, ConstData) else v for v in values)


_UNKNOWN = object()


def _work(call: graph.Call) -> int:
    """Multiply-adds of a contraction of constants, at most; 0 for what takes no longer than to write its result."""
    sizes = [a.data.shape for a in call.args if isinstance(a, graph.Constant)]
    if getattr(call.op, "kind", None) != FuseKind.ANCHOR or not isinstance(call.sinfo, graph.TensorInfo) or len(sizes) < 2:
        return 0
    made = math.prod(d.value for d in call.sinfo.shape)
    return made * (sizes[0][-1] if is_call(call, "matmul") and sizes[0] else min(map(math.prod, sizes)))


def _added(call: graph.Call, made: set[ConstData]) -> int | None:
    """Bytes that the value has more than the constants it is made of; None where its size is not known."""
    fields = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    total = -sum(a.data.nbytes for a in call.args if isinstance(a, graph.Constant) and a.data not in made)
    for info in fields:
        if not isinstance(info, graph.TensorInfo) or info.shape is None or not all(isinstance(s, tir.IntImm) for s in info.shape):
            return None
        total += info.dtype.nbytes(math.prod(s.value for s in info.shape)) if info.dtype else 0
    return total


def _value(arg: Any) -> Any:
    if isinstance(arg, graph.Constant):
        return arg.data
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
    if isinstance(sinfo, graph.ShapeInfo):
        return graph.ShapeExpr(tuple(tir.index_const(int(size)) for size in result))
    if isinstance(result, tuple | list):
        return graph.Tuple(tuple(_constant(r, s) for r, s in zip(result, sinfo.fields, strict=True)))
    array = np.asarray(result)
    if isinstance(sinfo, graph.TensorInfo) and sinfo.dtype is not None and array.dtype != sinfo.dtype.numpy:
        array = array.astype(sinfo.dtype.numpy)
    return graph.Constant(ConstData(array), graph.TensorInfo(array.shape, array.dtype))
