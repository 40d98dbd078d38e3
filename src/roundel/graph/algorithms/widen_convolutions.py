# SPDX-License-Identifier: Apache-2.0
"""Convolutions of 16-bit floats are computed in float32, for which there are blocked layouts, register tiles and Winograd's algorithm.

    y = conv2d(x, w)   ->   y = astype(conv2d(astype(x, "float32"), astype(w, "float32")), "float16")

Their sums are float32 either way, so results are the same; the conversions go into the neighbouring kernels, that of weights is done once.
"""

from __future__ import annotations

from ...ir import graph
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, may_call

_NAMES = {f"nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")}


@pass_("widen_convolutions")
def widen_convolutions(mod: IRModule) -> IRModule:
    """Convert operands and results of convolutions of 16-bit floats."""
    return _Widen(mod).module() if may_call(mod, _NAMES) else mod


class _Widen(GraphRewriter):
    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not isinstance(call.op, OpDef) or call.op.name not in _NAMES or call.attrs["out_dtype"]:
            return call
        types = {str(a.sinfo.dtype) for a in call.args if isinstance(a.sinfo, graph.TensorInfo)}
        if types not in ({"float16"}, {"bfloat16"}):
            return call
        operands = [self.emit(make("astype", a, dtype="float32")) if isinstance(a.sinfo, graph.TensorInfo) else a for a in call.args]
        return make("astype", make(call.op.name, *operands, **dict(call.attrs)), dtype=types.pop())
