# SPDX-License-Identifier: Apache-2.0
"""Products of float32 tensors with constant ones from factors of 16 bits, where the option ``precision`` asks for it and the machine has dot
products of them.

    matmul(x, W)   ->   matmul(bfloat16(x), bfloat16(W), out_dtype="float32")

Sums and results stay float32; weights are rounded when the model is compiled, and filled up with columns of zeros where theirs are no whole vectors.
What convolutions become is decided together with their algorithm (``layout/block_channels``), since Winograd's needs fewer multiplications, but of
float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...ir import graph, options, tir
from ...ir.choice import Later
from ...ir.constants import ConstData
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


def unit_of(kind: str, target: Target) -> tuple[int, int]:
    """How many products of such factors a lane of the instruction sums, and how many lanes the shortest vector has that it exists for."""
    by_lanes = fastest_group(target, (kind, kind, PLAIN))
    return next(iter(by_lanes.values())).group, min(by_lanes)


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
        k, n = (static(x) or 0 for x in weight.sinfo.shape)
        if (data.sinfo.dtype, call.sinfo.dtype) != (PLAIN, PLAIN) or weight.sinfo.dtype not in (PLAIN, self.kind) or not data.sinfo.ndim:
            return call
        kinds: dict[str, Any] = {NAMES[kind]: Later(lambda kind=kind: self.cycles(data.sinfo.shape, (k, n), kind)) for kind in (PLAIN, self.kind)}
        if why_not := self._why_not(k, n):
            kinds[NAMES[self.kind]] = why_not
        subject = f"factors of matmul {shape_text(data.sinfo.shape)} by {shape_text(weight.sinfo.shape)}"
        if self.choosing.decide(self.site, subject, kinds, preferred(kinds, self.kind), of=call) == NAMES[PLAIN]:
            return call
        if data not in self.narrowed:
            self.narrowed[data] = self.emit(make("astype", data, dtype=self.kind))
        filled = n + self._missing(n)
        made = make("matmul", self.narrowed[data], narrow_constant(_filled(weight, filled), self.kind), out_dtype=PLAIN)
        return made if filled == n else _first(self.emit(made), n)

    def cycles(self, data: Any, weight: Any, kind: str) -> float:
        """What a product of factors of a type is expected to take, with what rounds its data, and what leaves out the columns that fill it up."""
        k, n = weight
        if kind == PLAIN:
            return self.expectations.cycles(make("matmul", stand_in("x", data, kind), stand_in("weight", weight, kind), out_dtype=PLAIN), (1,))
        filled = n + self._missing(n)
        product = make("matmul", stand_in("x", data, kind), stand_in("weight", (k, filled), kind), out_dtype=PLAIN)
        beside = [make("astype", stand_in("x", data), dtype=kind), *([] if filled == n else [_first(stand_in("sums", product.sinfo.shape), n)])]
        return self.expectations.cycles(product, (1,)) + sum(map(self.expectations.cycles, beside))

    def _why_not(self, k: int, n: int) -> str:
        group, lanes = unit_of(self.kind, self.target)
        n += self._missing(n)
        if k == 0 or k % group:
            return f"its {k} products for each result are no whole number of groups of {group}"
        return f"its {n} columns are no whole number of vectors of {lanes}" if n == 0 or n % lanes else ""

    def _missing(self, n: int) -> int:
        """Columns of zeros with which the vectors of these are whole: none where some vector is, or hardly one would be."""
        by_lanes = fastest_group(self.target, (self.kind, self.kind, PLAIN))
        return -n % max(by_lanes) if n % min(by_lanes) and n >= max(by_lanes) else 0


def _first(sums: graph.GraphExpr, columns: int) -> graph.Call:
    """The first columns of a tensor."""
    begin, end, step = ((tir.index_const(x),) for x in (0, columns, 1))
    return make("strided_slice", sums, axes=(sums.sinfo.ndim - 1,), begin=begin, end=end, strides=step)


def _filled(weight: graph.Constant, columns: int) -> graph.Constant:
    """A matrix with columns of zeros behind its own, so many in all."""
    k, n = weight.data.shape
    if n == columns:
        return weight
    stored = ConstData.derived(lambda a: np.pad(a, ((0, 0), (0, columns - n))), (weight.data,), f"filled up to {columns} columns", shape=(k, columns),
                               dtype=weight.data.dtype)
    return graph.Constant(stored, graph.TensorInfo((k, columns), weight.data.dtype))


def narrow_constant(weight: graph.Constant, kind: str) -> graph.Constant:
    """Float32 weights rounded to a narrower type (those that have it already as they are)."""
    return weight if weight.data.dtype == kind else rounded_constant(weight.data, DType(kind))
