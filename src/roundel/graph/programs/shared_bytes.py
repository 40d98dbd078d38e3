# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that 8 bits hold are kept in 8 bits, on machines that have little memory.

    q = minimum(..., 127.0)                          q = minimum(..., 127.0)
    a = conv2d(astype(q, "int8"), w)         ->      b = astype(q, "int8")
    c = multiply(q, 0.01)                            a = conv2d(b, w)
                                                     c = multiply(astype(b, "float32"), 0.01)

In quantised models with residual connections what is added later is such a tensor: it takes a quarter of the memory. Fusion ends kernels where their
results are narrowest.
"""

from __future__ import annotations

from ...ir import graph
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ops import make
from ...passes import pass_
from ...target import Target
from ..pattern import Match
from ..rewriter import GraphRewriter, is_call, operands
from ..tidy.whole_numbers import bounds, fits


@pass_("shared_bytes")
def shared_bytes(mod: IRModule) -> IRModule:
    """Floats that were cut off to what 8 bits hold are made of 8-bit integers where they are used."""
    return _Shared(mod).module() if (mod.attrs.get("target") or Target.host()).is_bare else mod


_LIMITS = ("minimum", "maximum", "clip")
INT8, UINT8 = DType("int8"), DType("uint8")


class _Shared(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.bytes: dict[graph.Var, graph.GraphExpr] = {}

    def binding(self, binding: graph.Binding) -> None:
        """What 8 bits hold is stored in them, as soon as it is there."""
        super().binding(binding)
        made = self.env.get(binding.var, binding.var)
        if not any(is_call(self.producer(made), name) for name in _LIMITS) or not made.sinfo.dtype.is_float:
            return
        found = bounds(made, Match(self.producer, {}))
        dtype = None if found is None else next((d for d in (INT8, UINT8) if fits(found, d)), None)
        if dtype is not None:
            self.bytes[made] = self.emit(make("astype", made, dtype=str(dtype)))

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """Operands from the 8-bit tensors."""
        if not any(a in self.bytes for a in operands(call) if isinstance(a, graph.Var)):
            return call
        if _to_bytes(call) and self.bytes[call.args[0]].sinfo.dtype is call.sinfo.dtype:
            return self.bytes[call.args[0]]
        return call.replace(args=tuple(self._again(a) for a in call.args))

    def _again(self, value: graph.GraphExpr) -> graph.GraphExpr:
        made = self.bytes.get(value) if isinstance(value, graph.Var) else None
        return value if made is None else self.emit(make("astype", made, dtype=str(value.sinfo.dtype)))


def _to_bytes(call: graph.GraphExpr) -> bool:
    return is_call(call, "astype") and isinstance(call.args[0], graph.Var) and call.args[0].sinfo.dtype.is_float and call.sinfo.dtype in ("int8", "uint8")
