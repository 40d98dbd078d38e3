# SPDX-License-Identifier: Apache-2.0
"""Sizes that have to be equal and of which only the run can tell: the check and what its error says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...builder import BlockBuilder
from ...ir import graph, tir
from ...ir.escape import assertion
from ...ops import make


def require_equal(bb: BlockBuilder, a: tir.Expr, b: tir.Expr, what: str, operands: Sequence[Any] = ()) -> None:
    """Have ``a == b`` checked when the model runs. ``what`` names the node that needs it; where the sizes are those of its ``operands``
    is said as well: "MatMul m: dimension 0 of operand 2 is 2 and dimension 1 of operand 1 is 3, they must be equal"."""
    places = _place(a, operands), _place(b, operands)
    if all(places):
        text = f"{assertion(what)}: {places[0]} is {{0}} and {places[1]} is {{1}}, they must be equal"
    elif any(places):
        text = f"{assertion(what)}: {places[0] or places[1]} is {{{0 if places[0] else 1}}}, it must be {{{1 if places[0] else 0}}}"
    else:  # ``what`` says it all
        text = f"{assertion(what)}: {{0}} and {{1}}"
    sides = graph.Tuple((graph.PrimValue(a), graph.PrimValue(b)))
    bb.emit(make("assert_op", graph.PrimValue(tir.eq(a, b)), sides, format=text), "sizes_agree")


def _place(size: tir.Expr, operands: Sequence[Any]) -> str:
    """The operand and dimension that have the size, as text; empty where none has."""
    if isinstance(size, tir.IntImm):
        return ""
    flat = [f for o in operands for f in (o.fields if isinstance(o, graph.Tuple) else (o,))]
    for k, operand in enumerate(flat):
        for axis, dim in enumerate(getattr(getattr(operand, "sinfo", None), "shape", None) or ()):
            if dim is size:
                name = f" ({operand.name})" if isinstance(operand, graph.Var) else ""
                return f"dimension {axis} of operand {k + 1}{assertion(name)}"
    return ""
