# SPDX-License-Identifier: Apache-2.0
"""Products of float32 tensors with constant ones from factors of 16 bits, where the option ``precision`` asks for it and the machine has dot
products of them.

    matmul(x, W)   ->   matmul(bfloat16(x), bfloat16(W), out_dtype="float32")

Sums and results stay float32; weights are rounded when the model is compiled. What convolutions become is decided together with their algorithm
(``layout/block_channels``), since Winograd's needs fewer multiplications, but of float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir import graph, options
from ...ir.choice import Later
from ...ir.dtype import DType
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import shape_text, static
from ...passes import pass_
from ...strategy.match.dot_product import fastest_group
from ...target import Target
from ..expectations import CLEARLY, Expectations, is_clearly_faster, stand_in
from ..rewriter import GraphRewriter, is_call
from .narrow_weights import rounded_constant

PLAIN, AUTO = "float32", "auto"
NARROW = ("bfloat16", "float16")
NAMES = {kind: f"{kind}_products" for kind in (PLAIN, *NARROW)}
"""Of the choices at a node."""


@pass_("precision")
def precision(mod: IRModule) -> IRModule:
    """Give matrix products factors of the type that the option ``precision`` allows, where the machine multiplies it faster than float32."""
    kind = factors(mod.attrs.get("target") or Target.host())
    return mod if kind == PLAIN else _Products(mod, kind).module()


def factors(target: Target) -> str:
    """The type to which factors of products are rounded: what the option asks for (``auto``: any of 16 bits) where the machine has dot products of
    it, else float32, of which emulating the other would be a slower and coarser way."""
    wanted = options.get("precision")
    kinds = NARROW if wanted == AUTO else [k for k in NARROW if k == wanted]
    return next((k for k in kinds if fastest_group(target, (k, k, PLAIN))), PLAIN)


def preferred(kinds: Mapping[str, Later | str], kind: str, margin: float = CLEARLY) -> str:
    """What factors become if nobody asks for something else at their node: of the type ``kind`` where they can be; with ``auto`` but where that is
    expected to take so many times as long, as with few columns for which all of the data are rounded."""
    plain, narrow = kinds[NAMES[PLAIN]], kinds[NAMES[kind]]
    if isinstance(plain, str) or isinstance(narrow, str):
        return NAMES[PLAIN]
    return NAMES[PLAIN if options.get("precision") == AUTO and is_clearly_faster(plain.cycles, narrow.cycles, margin) else kind]


def group_of(kind: str, target: Target) -> int:
    """How many products of such factors a lane of the instruction sums."""
    return next(iter(fastest_group(target, (kind, kind, PLAIN)).values())).group


class _Products(GraphRewriter):
    def __init__(self, mod: IRModule, kind: str) -> None:
        super().__init__(mod)
        self.target = mod.attrs.get("target") or Target.host()
        self.kind, self.choosing.kind, self.expectations = kind, "precision", Expectations.of(mod)
        self.narrowed: dict[graph.GraphExpr, graph.GraphExpr] = {}

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        outside, self.narrowed = self.narrowed, {}  # what is made in a branch is not seen outside of it
        out = super().seq(expr)
        self.narrowed = outside
        return out

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not is_call(call, "matmul") or not isinstance(call.args[1], graph.Constant) or call.args[1].sinfo.ndim != 2:
            return call
        data, weight = call.args
        if (data.sinfo.dtype, call.sinfo.dtype) != (PLAIN, PLAIN) or weight.sinfo.dtype not in (PLAIN, self.kind) or not data.sinfo.ndim:
            return call
        kinds: dict[str, Any] = {NAMES[kind]: Later(lambda kind=kind: self.cycles(data.sinfo.shape, weight.sinfo.shape, kind)) for kind in (PLAIN, self.kind)}
        k, n = (static(x) or 0 for x in weight.sinfo.shape)
        if why_not := self._why_not(k, n):
            kinds[NAMES[self.kind]] = why_not
        subject = f"factors of matmul {shape_text(data.sinfo.shape)} by {shape_text(weight.sinfo.shape)}"
        if self.choosing.decide(self.site, subject, kinds, preferred(kinds, self.kind), of=call) == NAMES[PLAIN]:
            return call
        if data not in self.narrowed:
            self.narrowed[data] = self.emit(make("astype", data, dtype=self.kind))
        return make("matmul", self.narrowed[data], narrow_constant(weight, self.kind), out_dtype=PLAIN)

    def cycles(self, data: Any, weight: Any, kind: str) -> float:
        """What a product of factors of a type is expected to take, with what rounds its data."""
        x, plain = stand_in("x", data, kind), kind == PLAIN
        product = self.expectations.cycles(make("matmul", x, stand_in("weight", weight, kind), out_dtype=PLAIN), (1,))
        return product if plain else product + self.expectations.cycles(make("astype", stand_in("x", data), dtype=kind))

    def _why_not(self, k: int, n: int) -> str:
        group, lanes = group_of(self.kind, self.target), min(fastest_group(self.target, (self.kind, self.kind, PLAIN)))
        if k == 0 or k % group:
            return f"its {k} products for each result are no whole number of groups of {group}"
        return f"its {n} columns are no whole number of vectors of {lanes}" if n == 0 or n % lanes else ""


def narrow_constant(weight: graph.Constant, kind: str) -> graph.Constant:
    """Float32 weights rounded to a narrower type (those that have it already as they are)."""
    return weight if weight.data.dtype == kind else rounded_constant(weight.data, DType(kind))
