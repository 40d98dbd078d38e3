# SPDX-License-Identifier: Apache-2.0
"""Sorts and selections along other axes than the last work on rows: what is looked up again and again lies together then.

    values, places = topk(x, axis=0)   ->   v, p = topk(permute_dims(x, (1, 0)), axis=1); values, places = permute_dims(v, (1, 0)), ...
"""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, may_call

_SORTS = ("sort", "argsort", "topk")


@pass_("sort_rows")
def sort_rows(mod: IRModule) -> IRModule:
    """Turn what is sorted along a strided axis."""
    return _SortRows(mod).module() if may_call(mod, _SORTS) else mod


class _SortRows(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        axis = _strided(call)
        if axis is None:
            return call
        data, *others = call.args
        axes = list(range(len(data.sinfo.shape)))
        order = [*axes[:axis], *axes[axis + 1 :], axis]
        rows = self.emit(make("permute_dims", data, axes=tuple(order)))
        attrs = {k: v for k, v in call.attrs.items() if k != "axis"}
        found = self.emit(make(call.op.name, rows, *others, **attrs, axis=axes[-1]))
        turned = lambda v: make("permute_dims", v, axes=tuple(order.index(k) for k in axes))
        if not isinstance(found.sinfo, graph.TupleInfo):
            return turned(found)
        return graph.Tuple(tuple(self.emit(turned(self.emit(graph.TupleGetItem(found, k)))) for k in range(len(found.sinfo.fields))))


def _strided(call: Any) -> int | None:
    """The axis of a sort whose elements do not lie side by side."""
    if not isinstance(call, graph.Call) or not isinstance(call.op, OpDef) or call.op.name not in _SORTS:
        return None
    info = call.args[0].sinfo
    if not isinstance(info, graph.TensorInfo) or info.shape is None:
        return None
    axis = call.attrs["axis"] % len(info.shape)
    return axis if any(not isinstance(n, tir.IntImm) or n.value > 1 for n in info.shape[axis + 1:]) else None
