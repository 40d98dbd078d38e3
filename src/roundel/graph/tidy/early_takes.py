# SPDX-License-Identifier: Apache-2.0
"""Rows are taken out of a constant table before they are converted, not out of a converted table.

    take((astype(T, "float32") - z) * s, i)   ->   (astype(take(T, i), "float32") - z) * s

So quantisers write the table of a language model's tokens: all of its rows would be converted in each run, where a run reads some hundred.
"""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.op import FuseKind, OpDef
from ...ops import make
from ..pattern import Match, is_op, wildcard

x, i = wildcard(), wildcard()
_taken = is_op("take")(x, i)
_ONE = tir.index_const(1)


def _early(m: Match) -> Any:
    """The conversion of the rows, where the table is a constant that elementwise operators convert."""
    call = m.call(_taken)
    ndim = m[x].sinfo.ndim
    if call.attrs["axis"] is None or call.attrs["axis"] % max(ndim, 1) or isinstance(m[x], graph.Constant):
        return None
    return _converted(m, m[x], call) if _is_converted(m, m[x]) else None


def _is_converted(m: Match, value: graph.GraphExpr) -> bool:
    """Whether a value is a constant, or made of one by elementwise operators whose other operands are constants that do not enlarge it."""
    if isinstance(value, graph.Constant):
        return True
    made = m.lookup(value)
    if not isinstance(made, graph.Call) or not isinstance(made.op, OpDef) or made.op.kind > FuseKind.BROADCAST or not made.args:
        return False
    table, *others = made.args
    return table.sinfo.shape == made.sinfo.shape and all(isinstance(a, graph.Constant) for a in others) and _is_converted(m, table)


def _converted(m: Match, value: graph.GraphExpr, call: graph.Call) -> graph.Call:
    """What ``call`` takes out of ``value``, converted afterwards."""
    if isinstance(value, graph.Constant):
        return make("take", value, call.args[1], **dict(call.attrs))
    made = m.lookup(value)
    assert isinstance(made, graph.Call)
    ndim = made.sinfo.ndim
    rows = [make("take", a, call.args[1], **dict(call.attrs)) if a.sinfo.ndim == ndim and a.sinfo.shape[0] is not _ONE else a for a in made.args[1:]]
    return make(made.op.name, _converted(m, made.args[0], call), *rows, **dict(made.attrs))


EARLY_TAKES = [(_taken, _early)]
"""The rule as the table of ``simplify`` takes it."""
