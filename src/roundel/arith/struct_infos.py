# SPDX-License-Identifier: Apache-2.0
"""What follows between struct infos: results of calls, of branches, contradictions to annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import tir
from ..ir.graph import FuncInfo, ObjectInfo, PrimInfo, ShapeInfo, StructInfo, TensorInfo, TupleInfo
from ..ir.visit import Rewriter, free_vars, substitute
from .analyzer import Analyzer


def _exprs(info: StructInfo) -> tuple[tir.Expr, ...]:
    return _PARTS.get(type(info), lambda i: ())(info)


_PARTS: dict[type, Callable[[Any], tuple[tir.Expr, ...]]] = {
    TensorInfo: lambda i: i.shape or (),
    ShapeInfo: lambda i: i.values or (),
    PrimInfo: lambda i: () if i.value is None else (i.value,),
    TupleInfo: lambda i: tuple(e for f in i.fields for e in _exprs(f)),
    FuncInfo: lambda i: (*(e for p in i.params or () for e in _exprs(p)), *_exprs(i.ret)),
}


def symbols_of(infos: Sequence[StructInfo]) -> set[tir.Var]:
    """Variables in struct infos."""
    return {v for i in infos for e in _exprs(i) for v in free_vars(e)}


def dimensions_of(infos: Sequence[StructInfo]) -> set[tir.Var]:
    """Variables that are whole dimensions in struct infos, so that a value of that type tells them."""
    return {e for i in infos for e in _exprs(i) if isinstance(e, tir.Var)}


def erase(info: StructInfo, params: Sequence[StructInfo]) -> StructInfo:
    """What a caller knows of a result: shapes with variables that the parameters do not define are forgotten."""
    return _forget(info, symbols_of(params))


def _forget(info: StructInfo, known: set[tir.Var]) -> StructInfo:
    if isinstance(info, TupleInfo):
        return TupleInfo(tuple(_forget(f, known) for f in info.fields))
    if symbols_of([info]) <= known:
        return info
    if isinstance(info, TensorInfo):
        return TensorInfo(None, info.dtype, info.ndim, info.vdevice, info.layout)
    if isinstance(info, ShapeInfo):
        return ShapeInfo(None, info.ndim)
    return PrimInfo(info.dtype) if isinstance(info, PrimInfo) else ObjectInfo()


def deduce(params: Sequence[StructInfo], ret: StructInfo, args: Sequence[StructInfo]) -> StructInfo:
    """The result of a call: variables of the parameters replaced by what the arguments have there."""
    table = matched(params, args)
    unknown = symbols_of([ret]) - set(table)
    forgotten = _forget(ret, symbols_of([ret]) - unknown)
    return _Simplified().rewrite(substitute(forgotten, table))


def matched(params: Sequence[StructInfo], args: Sequence[StructInfo]) -> dict[tir.Var, tir.Expr]:
    """Variables that are dimensions of parameters to what the arguments have there."""
    table: dict[tir.Var, tir.Expr] = {}
    for p, a in zip(params, args):
        _match(p, a, table)
    return table


class _Simplified(Rewriter):
    """Struct info with simple dimensions."""

    def rewrite(self, node: Any) -> Any:
        return Analyzer().simplify(node) if isinstance(node, tir.Expr) else super().rewrite(node)


def _match(param: StructInfo, arg: StructInfo, table: dict[tir.Var, tir.Expr]) -> None:
    if isinstance(param, TupleInfo) and isinstance(arg, TupleInfo):
        for p, a in zip(param.fields, arg.fields):
            _match(p, a, table)
    elif type(param) is type(arg):
        for p, a in zip(_exprs(param), _exprs(arg)):
            if isinstance(p, tir.Var):
                table.setdefault(p, a)


def join(a: StructInfo, b: StructInfo) -> StructInfo:
    """What holds of both."""
    if a is b:
        return a
    if isinstance(a, TensorInfo) and isinstance(b, TensorInfo):
        return TensorInfo(
            a.shape if a.shape == b.shape else None,
            a.dtype if a.dtype is b.dtype else None,
            a.ndim if a.ndim == b.ndim else -1,
        )
    if isinstance(a, TupleInfo) and isinstance(b, TupleInfo) and len(a.fields) == len(b.fields):
        return TupleInfo(tuple(join(x, y) for x, y in zip(a.fields, b.fields)))
    if isinstance(a, ShapeInfo) and isinstance(b, ShapeInfo):
        return ShapeInfo(None, a.ndim if a.ndim == b.ndim else -1)
    return (
        PrimInfo(a.dtype)
        if isinstance(a, PrimInfo) and isinstance(b, PrimInfo) and a.dtype is b.dtype
        else ObjectInfo()
    )


def contradiction(declared: StructInfo, inferred: StructInfo) -> str:
    """Why an annotation cannot hold, or an empty text."""
    if isinstance(declared, ObjectInfo) or isinstance(inferred, ObjectInfo):
        return ""
    if type(declared) is not type(inferred):
        return f"annotated as a {_noun(declared)}, inferred as a {_noun(inferred)}"
    if isinstance(declared, TupleInfo) and isinstance(inferred, TupleInfo):
        if len(declared.fields) != len(inferred.fields):
            return f"annotated with {len(declared.fields)} fields, inferred with {len(inferred.fields)}"
        return next((w for d, i in zip(declared.fields, inferred.fields) if (w := contradiction(d, i))), "")
    if isinstance(declared, TensorInfo) and isinstance(inferred, TensorInfo):
        if declared.dtype is not None and inferred.dtype is not None and declared.dtype is not inferred.dtype:
            return f"annotated as {declared.dtype}, inferred as {inferred.dtype}"
        if -1 not in (declared.ndim, inferred.ndim) and declared.ndim != inferred.ndim:
            return f"annotated with {declared.ndim} dimensions, inferred with {inferred.ndim}"
    for k, (d, i) in enumerate(zip(_exprs(declared), _exprs(inferred))):
        if isinstance(d, tir.IntImm) and isinstance(i, tir.IntImm) and d.value != i.value:
            return f"dimension {k} is annotated as {d.value}, inferred as {i.value}"
    return ""


def _noun(info: StructInfo) -> str:
    return {TensorInfo: "tensor", ShapeInfo: "shape", TupleInfo: "tuple", PrimInfo: "scalar", FuncInfo: "function"}.get(
        type(info), "value"
    )
