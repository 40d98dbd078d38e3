# SPDX-License-Identifier: Apache-2.0
"""Legalisation: graph operators become calls of tensor programs made from their tensor expressions.

Composed operators are taken apart first. Operators that only change the shape stay; they become views in the host function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import te
from ..ir import graph, tir
from ..ir.errors import LowerError
from ..ir.module import IRModule
from ..ir.op import CALL_TIR, FuseKind, OpDef
from ..ir.visit import free_vars
from ..passes import pass_
from .lower_host import VIEWS
from .rewriter import GraphRewriter

KEPT = {*VIEWS, "call_tir", "call_tir_inplace", "call_dps_packed", "shape_of", "shape_to_tensor"}


@pass_("decompose")
def decompose(mod: IRModule) -> IRModule:
    """Take operators that are defined by simpler ones apart."""
    return _Decompose(mod).module()


class _Decompose(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        op = call.op
        if isinstance(op, OpDef) and op.has("decompose") and not op.has("compute"):
            return self.settle(op.decompose(self, call.args, call.attrs))
        return call

    def emit(self, value: graph.GraphExpr, name_hint: str = "lv") -> graph.GraphExpr:
        return super().emit(self.settle(value), name_hint)

    def settle(self, value: graph.GraphExpr) -> graph.GraphExpr:
        """Decompose what a decomposition consists of."""
        while isinstance(value, graph.Call) and isinstance(value.op, OpDef) and value.op.has("decompose") and not value.op.has("compute"):
            value = value.op.decompose(self, value.args, value.attrs)
        return value


@pass_("legalize")
def legalize(mod: IRModule) -> IRModule:
    """Replace operators by ``call_tir`` of their tensor programs; equal programs are shared."""
    return _Legalize(mod).module()


class _Legalize(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.made: dict[Any, graph.GlobalVar] = {}

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        op = call.op
        if not isinstance(op, OpDef) or op.name in KEPT:
            return call
        if not op.has("compute"):
            raise LowerError(f"R.{op.name} has no tensor expression", where=binding.span, hint="give the operator `compute` or `decompose`")
        tensors, values = [], []
        args = tuple(_argument(a, tensors, values) for a in call.args)
        for v, t in zip(values, tensors, strict=True):
            if v.sinfo.shape is None or v.sinfo.dtype is None:
                raise LowerError(f"an operand of R.{op.name} has no known shape", where=binding.span, why=f"{t.name}: {v.sinfo!r}")
        target, scalars = self._program(op, call, args, tensors, values)
        more = (graph.ShapeExpr(scalars),) if scalars else ()
        return graph.Call(CALL_TIR, (target, graph.Tuple(tuple(values)), *more), sinfo_args=(call.sinfo,), sinfo=call.sinfo, span=binding.span)

    def _program(self, op: OpDef, call: graph.Call, args: tuple, tensors: list, values: list) -> tuple[graph.GlobalVar, tuple[tir.Var, ...]]:
        infos = tuple(v.sinfo for v in values)
        key = (op.name, infos, call.attrs, tuple(_rest(a) for a in call.args), call.sinfo)
        out = op.compute(args, call.attrs)
        outputs = list(out) if isinstance(out, tuple | list) else [out]
        scalars = _extra_scalars(tensors, outputs, call)
        if key not in self.made:
            kind = op.kind if len(outputs) == 1 and not scalars else FuseKind.OPAQUE
            func = te.create_prim_func([*tensors, *outputs, *scalars], None, {"fuse_kind": int(kind)})
            self.made[key] = self.add_function(op.name.split(".")[-1], func)
        return self.made[key], scalars


def _rest(arg: Any) -> Any:
    if isinstance(arg, graph.Tuple):
        return ("tuple", len(arg.fields))
    return arg.values if isinstance(arg, graph.ShapeExpr) else arg.value if isinstance(arg, graph.PrimValue | graph.DTypeValue) else None


def _argument(value: Any, tensors: list, values: list) -> Any:
    """A graph operand as ``compute`` wants it; tensors are collected in order."""
    handler = _ARGUMENTS.get(type(value))
    if handler is not None:
        return handler(value, tensors, values)
    info = value.sinfo
    if isinstance(info, graph.TupleInfo):
        return tuple(_argument(graph.TupleGetItem(value, i), tensors, values) for i in range(len(info.fields)))
    if not isinstance(info, graph.TensorInfo):
        raise LowerError(f"an operand is neither a tensor nor a shape: {info!r}")
    if info.shape is None or info.dtype is None:
        raise LowerError(f"the shape of operand {getattr(value, 'name', '')} is not known", why=repr(info), hint="bind it with R.match_cast")
    tensor = te.placeholder(info.shape, info.dtype, getattr(value, "name", "const"))
    tensors.append(tensor)
    values.append(value)
    return tensor


_ARGUMENTS: dict[type, Callable[[Any, list, list], Any]] = {
    graph.Tuple: lambda v, t, o: tuple(_argument(f, t, o) for f in v.fields),
    graph.ShapeExpr: lambda v, t, o: v.values,
    graph.PrimValue: lambda v, t, o: v.value,
    graph.DTypeValue: lambda v, t, o: v.value,
    graph.StringValue: lambda v, t, o: v.value,
    type(None): lambda v, t, o: None,
}


def _extra_scalars(tensors: list, outputs: list, call: graph.Call) -> tuple[tir.Var, ...]:
    """Variables of the program (in shapes or attributes) that no parameter has as a plain dimension."""
    plain = {d for t in (*tensors, *outputs) for d in t.shape if type(d) is tir.Var}
    needed: dict[tir.Var, None] = {}
    exprs = [d for t in (*tensors, *outputs) for d in t.shape]
    stack: list[Any] = [*call.attrs.values(), *(_rest(a) for a in call.args)]
    while stack:
        v = stack.pop()
        if isinstance(v, tir.Expr):
            exprs.append(v)
        elif isinstance(v, tuple):
            stack.extend(v)
    for e in exprs:
        needed.update(dict.fromkeys(sorted(free_vars(e), key=lambda v: v.name)))
    return tuple(v for v in needed if v not in plain)
