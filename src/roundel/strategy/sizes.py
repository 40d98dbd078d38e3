# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes with values: of a model, and of the tensor programs that it calls."""

from __future__ import annotations

from collections.abc import Mapping

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.visit import free_vars, substitute


class Sizes:
    """Expressions of a model's sizes as numbers; sizes that are not given are 1."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.analyzer = Analyzer()

    def number(self, e: tir.Expr) -> int | None:
        """Of an expression of sizes alone."""
        value = self.analyzer.simplify(substitute(e, {v: tir.index_const(self.sizes.get(v.name, 1)) for v in free_vars(e) if v.size}))
        return value.value if isinstance(value, tir.IntImm) else None

    def decided(self, condition: graph.GraphExpr) -> bool | None:
        """Whether a condition on sizes holds; None for others."""
        value = self.number(condition.value) if isinstance(condition, graph.PrimValue) else None
        return None if value is None else bool(value)

    def of_program(self, func: tir.PrimFunc, call: graph.Call) -> dict[str, int]:
        """The program's own sizes, by name, in a call of it."""
        results = [i for info in call.sinfo_args for i in (info.fields if isinstance(info, graph.TupleInfo) else [info])]
        operands = [*(a.sinfo for a in call.args[1].fields), *results]
        given = [d for i in operands if isinstance(i, graph.TensorInfo) for d in i.shape or ()]
        wanted = [d for b in func.buffer_params for d in b.shape]
        pairs = list(zip(wanted, given, strict=True)) if len(wanted) == len(given) else []
        scalars = call.args[2].values if len(call.args) > 2 else ()
        pairs += zip([p for p in func.params if p not in func.buffers], scalars, strict=False)
        found = {own.name: self.number(value) for own, value in pairs if isinstance(own, tir.Var)}
        return {**self.sizes, **{name: n for name, n in found.items() if n is not None}}
