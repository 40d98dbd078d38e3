# SPDX-License-Identifier: Apache-2.0
"""Legalisation: graph operators become calls of tensor programs made from their tensor expressions.

Composed operators are taken apart first. Operators that only change the shape stay; they become views in the host function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...builder import Program, call_signature, operator_program
from ...ir import graph, tir
from ...ir.equal import StructuralMap
from ...ir.errors import LowerError
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...passes import pass_
from ..rewriter import GraphRewriter
from . import range_copies

VIEWS = ("reshape", "squeeze", "expand_dims", "flatten")
"""Operators that only change the shape: the host function has no code for them."""

KEPT = {*VIEWS, "assert_op", "null_value", "call_tir", "call_tir_inplace", "call_dps_packed", "shape_of", "shape_to_tensor", "tensor_to_shape",
        "check_indices"}


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
        self.programs = StructuralMap()
        self.made: dict[tuple, tuple[graph.GlobalVar, Program, list[int]]] = {}
        self.parts: Mapping[Any, int] = {}

    def function(self, func: graph.Function) -> graph.Function:
        self.parts = range_copies.parts(func)
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        op = call.op
        if not isinstance(op, OpDef) or (op.name in KEPT and not _moves_units(call)) or range_copies.is_copied(call, self.parts):
            return call
        if not op.has("compute"):
            raise LowerError(f"R.{op.name} has no tensor expression", where=binding.span, hint="give the operator `compute` or `decompose`")
        operands: list[graph.GraphExpr] = []
        key = (call_signature(call, operands), call.sinfo if op.name in VIEWS else None)
        if key in self.made:
            name, program, positions = self.made[key]
            made = replace(program, args=tuple(operands[k] for k in positions)).call(name)
        else:
            name, program = self._program(op, call)
            if all(any(a is o for o in operands) for a in program.args):
                self.made[key] = name, program, [next(k for k, o in enumerate(operands) if o is a) for a in program.args]
            made = program.call(name)
        info = call.sinfo if _complete(call.sinfo) else made.sinfo
        return made.replace(sinfo=info, sinfo_args=(info,), span=binding.span)

    def _program(self, op: OpDef, call: graph.Call) -> tuple[graph.GlobalVar, Program]:
        program = operator_program(call)
        single = isinstance(program.sinfo, graph.TensorInfo)
        kind = FuseKind.ELEMENTWISE if op.name in VIEWS else op.kind if single else FuseKind.OPAQUE
        facts = _view(call) | ({} if op.contract else {"contract": False}) | ({"append": call.attrs["axis"] % call.sinfo.ndim} if op.name == "append" else {})
        func = program.func.replace(attrs=program.func.attrs | {"fuse_kind": int(kind), **facts})
        return self.programs.setdefault(func, lambda: self.add_function(op.name.split(".")[-1], func)), program


def _moves_units(call: graph.Call) -> bool:
    """Whether a reshape only adds or drops dimensions of extent 1: then it can be fused through, and alone it is a view."""
    if call.op.name not in VIEWS:
        return False
    before, after = call.args[0].sinfo, call.sinfo
    return isinstance(before, graph.TensorInfo) and before.shape is not None and after.shape is not None and \
        without_units(before.shape) == without_units(after.shape)


def _view(call: graph.Call) -> dict[str, Any]:
    """``view``: the elements from which on the result is the operand's memory, where it is (if nothing else is fused with it)."""
    if call.op.name in VIEWS:
        return {"view": 0}
    if call.op.name != "strided_slice" or call.sinfo.shape is None or call.sinfo.dtype.storage_bits < 8:
        return {}
    _, axes, begin, _, *strides = call.args
    shape, result = call.args[0].sinfo.shape, call.sinfo.shape
    cut = [k for k, (a, b) in enumerate(zip(shape, result, strict=True)) if a is not b]
    static = all(isinstance(n, tir.IntImm) for n in shape) and all(isinstance(b, tir.IntImm) and b.value >= 0 for b in begin.values)
    if len(cut) != 1 or not static or any(shape[k].value != 1 for k in range(cut[0])):
        return {}
    where = {a.value % len(shape): k for k, a in enumerate(axes.values)}
    steps = strides[0].values if strides else ()
    if any(steps[k].value != 1 for k in range(len(steps))):
        return {}
    return {"view": begin.values[where[cut[0]]].value * math.prod(n.value for n in shape[cut[0] + 1:])}


def without_units(shape: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
    """The dimensions that are not 1."""
    return tuple(n for n in shape if not (isinstance(n, tir.IntImm) and n.value == 1))


def _complete(info: graph.StructInfo) -> bool:
    fields = info.fields if isinstance(info, graph.TupleInfo) else (info,)
    return all(isinstance(f, graph.TensorInfo) and f.shape is not None and f.dtype is not None for f in fields)
