# SPDX-License-Identifier: Apache-2.0
"""What products read in 16 bits is stored in 16 bits, where the option ``precision`` asks for such products.

    y = relu(...)                                    y = relu(...)
    h = astype(y, "bfloat16")                        h = astype(y, "bfloat16")
    c = nn.conv2d(h, W, out_dtype="float32")   ->    c = nn.conv2d(h, W, out_dtype="float32")
    z = add(c, y)                                    z = add(c, astype(h, "float32"))

The conversion is then a part of the kernel that makes y, which is never in memory itself: of a residual network all of the trunk, of which half the
bytes are written and read. What only operators of other kinds read (normalisation) stays as it is, and so do results of the function and what is added
to something that is normalised: the trunk of a transformer that normalises after each sum would be rounded twice in each layer, and no later sum makes
that error small again (it doubles that of BERT).
"""

from __future__ import annotations

from ...ir import graph, options
from ...ir.module import IRModule
from ...ir.op import FuseKind, OpDef
from ...ir.visit import walk
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call
from .precision import NARROW, PLAIN


@pass_("narrow_results")
def narrow_results(mod: IRModule) -> IRModule:
    """Have every reader of a float32 tensor that products read rounded to 16 bits read it so."""
    if options.get("precision") == PLAIN:
        return mod
    rewriter = _Narrow(mod)
    return rewriter.module()


class _Narrow(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.kinds: dict[graph.Var, str] = {}
        self.stored: dict[graph.Var, graph.GraphExpr] = {}

    def function(self, func: graph.Function) -> graph.Function:
        self.kinds, self.stored = _rounded(func), {}
        return super().function(func) if self.kinds else func

    def binding(self, binding: graph.Binding) -> None:
        super().binding(binding)
        kind = self.kinds.get(binding.var)
        if kind is not None:
            made = self.env.get(binding.var, binding.var)
            self.stored[made] = self.emit(make("astype", made, dtype=kind))

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if _rounds(call):
            return self.stored.get(call.args[0], call) if call.attrs["dtype"] == self.kinds.get(call.args[0]) else call
        args = tuple(self.emit(make("astype", self.stored[a], dtype=PLAIN)) if isinstance(a, graph.Var) and a in self.stored else a for a in call.args)
        return call if args == call.args else call.replace(args=args)


def _rounds(value: graph.GraphExpr | None) -> bool:
    return is_call(value, "astype") and value.args[0].sinfo.dtype == PLAIN and value.attrs["dtype"] in NARROW


def _rounded(func: graph.Function) -> dict[graph.Var, str]:
    """The tensors made in the function's own body that are rounded there, to one type, and that only calls read beside that."""
    kinds: dict[graph.Var, set[str]] = {}
    made, kept = set(), {n for n in walk(func.body.body) if isinstance(n, graph.Var)} | _normalised(func)
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, graph.Call):
                made.add(binding.var)
                kept.update(n for a in value.args if not isinstance(a, graph.Var) for n in walk(a) if isinstance(n, graph.Var))
                if _rounds(value):
                    kinds.setdefault(value.args[0], set()).add(str(value.attrs["dtype"]))
            else:
                kept.update(n for n in walk(value) if isinstance(n, graph.Var))
    return {v: next(iter(found)) for v, found in kinds.items() if v in made - kept and len(found) == 1}


def _normalised(func: graph.Function) -> set[graph.Var]:
    """The tensors from whose elements the operands of normalisations are computed, element by element."""
    found: set[graph.Var] = set()
    for block in reversed(func.body.blocks):
        for binding in reversed(block.bindings):
            value = binding.value
            if isinstance(value, graph.Call) and isinstance(value.op, OpDef) and (_normalises(value) or (binding.var in found and _is_pointwise(value))):
                found.update(a for a in value.args if isinstance(a, graph.Var))
    return found


def _normalises(call: graph.Call) -> bool:
    """Whether totals of the operand go into every element of a result of the same shape."""
    return call.op.kind is FuseKind.REDUCTION and getattr(call.sinfo, "shape", None) == getattr(call.args[0].sinfo, "shape", ())


def _is_pointwise(call: graph.Call) -> bool:
    return call.op.kind in (FuseKind.ELEMENTWISE, FuseKind.BROADCAST) and not _rounds(call)
