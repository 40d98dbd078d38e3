# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling over one axis become those over two, the first of extent 1, so that what is done for pictures (blocked
layouts, strides, register tiles) is done for signals.

    y = relu(conv1d(x, w) + b)   ->   y = reshape(relu(conv2d(reshape(x), w2) + b2)),   reshape: [N, C, W] as [N, C, 1, W] and back

Elementwise operators between them work on the lifted tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import graph, tir
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...ops.dims import paddings, per_axis
from ...passes import pass_
from ..rewriter import GraphRewriter, may_call
from .block_channels import is_pointwise

_ONE = tir.index_const(1)


@pass_("lift_conv1d")
def lift_conv1d(mod: IRModule) -> IRModule:
    """Give convolutions with constant weights over one axis, and what lies between them, a second axis of extent 1."""
    return _Lift(mod).module() if may_call(mod, _OPS) else mod


class _Lift(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.lifted: dict[graph.Var, graph.GraphExpr] = {}

    def binding(self, binding: graph.Binding) -> None:
        value = binding.value
        if isinstance(value, graph.Call) and isinstance(value.op, OpDef) and _rank(binding.var) == 3 and isinstance(binding.var, graph.DataflowVar):
            handler = _OPS.get(value.op.name) or (_pointwise if is_pointwise(value) else None)
            made = None if handler is None else handler(self, value)
            if made is not None:
                self.lifted[binding.var] = self.emit(made, binding.var.name)
                return
        super().binding(binding)

    def _operand(self, value: Any) -> Any:
        """Plain operands; a lifted value is reshaped back where it is needed so."""
        if isinstance(value, graph.Var) and value in self.lifted and value not in self.env:
            self.env[value] = self.emit(make("reshape", self.lifted[value], graph.ShapeExpr(value.sinfo.shape)), value.name)
        return super()._operand(value)

    def lift(self, value: graph.GraphExpr) -> graph.GraphExpr:
        """A value of three dimensions with a fourth."""
        if value in self.lifted:
            return self.lifted[value]
        n, c, w = value.sinfo.shape
        return self.emit(make("reshape", self._operand(value), graph.ShapeExpr((n, c, _ONE, w))))


def _rank(value: graph.GraphExpr) -> int:
    info = value.sinfo
    return len(info.shape) if isinstance(info, graph.TensorInfo) and info.shape is not None else -1


def _convolution(self: _Lift, call: graph.Call) -> graph.GraphExpr | None:
    data, weight, *border = call.args
    a = call.attrs
    if not isinstance(weight, graph.Constant) or (a["data_layout"], a["kernel_layout"]) != ("NCW", "OIW") \
            or a.get("out_layout") or _rank(data) != 3 or data.sinfo.dtype not in ("float32", "int8", "uint8"):
        return None
    kernel = graph.Constant.of(weight.data.numpy()[:, :, None])
    around = {"fill": self._operand(border[0])} if border else {}
    return make("nn.conv2d", self.lift(data), kernel, groups=a["groups"], out_dtype=a["out_dtype"], **_geometry(a), **around)


def _transposed(self: _Lift, call: graph.Call) -> graph.GraphExpr | None:
    data, weight = call.args[0], call.args[1]
    a = call.attrs
    if not isinstance(weight, graph.Constant) or len(call.args) > 2 or (a["data_layout"], a["kernel_layout"]) != ("NCW", "IOW") \
            or a.get("out_layout") or data.sinfo.dtype != "float32":
        return None
    kernel, extra = graph.Constant.of(weight.data.numpy()[:, :, None]), (0, *per_axis(a["output_padding"], 1))
    return make("nn.conv2d_transpose", self.lift(data), kernel, groups=a["groups"], output_padding=extra, out_dtype=a["out_dtype"], **_geometry(a))


def _geometry(attrs: Any) -> dict[str, Any]:
    ((before, after),) = paddings(attrs["padding"], 1)
    return {"strides": (1, *per_axis(attrs["strides"], 1)), "dilation": (1, *per_axis(attrs["dilation"], 1)), "padding": (0, before, 0, after)}


def _pool(self: _Lift, call: graph.Call) -> graph.GraphExpr | None:
    a = call.attrs
    if call.args[0] not in self.lifted or a["layout"] != "NCW" or a.get("out_layout"):
        return None
    rest = {k: v for k, v in a.items() if k not in ("strides", "dilation", "padding", "pool_size", "layout", "out_layout")}
    name = call.op.name.replace("1d", "2d")
    return make(name, self.lift(call.args[0]), pool_size=(1, *per_axis(a["pool_size"], 1)), **_geometry(a), **rest)


def _pointwise(self: _Lift, call: graph.Call) -> graph.GraphExpr | None:
    if not any(a in self.lifted for a in call.args if isinstance(a, graph.Var)) or any(_rank(a) not in (0, 1, 2, 3) for a in call.args):
        return None
    return make(call.op.name, *(_broadcast(self, a) for a in call.args), **dict(call.attrs))


def _broadcast(self: _Lift, value: graph.GraphExpr) -> graph.GraphExpr:
    """An operand of a pointwise operator, its last axis now the second of two."""
    if _rank(value) < 2:
        return self._operand(value)
    if _rank(value) == 3:
        return self.lift(value)
    c, w = value.sinfo.shape
    return self.emit(make("reshape", self._operand(value), graph.ShapeExpr((c, _ONE, w))))


_OPS: dict[str, Callable[[_Lift, graph.Call], graph.GraphExpr | None]] = {
    "nn.conv1d": _convolution, "nn.conv1d_transpose": _transposed, "nn.max_pool1d": _pool, "nn.avg_pool1d": _pool,
}
