# SPDX-License-Identifier: Apache-2.0
"""Heads of keys and values that each serve a group of heads of queries: recognised, and not repeated for a few queries.

    reshape(broadcast_to(k))    ->   repeat(k)
    matmul(q, repeat(k))        ->   reshape(matmul(reshape(q), k))    for few queries: those of a group make one matrix
"""

from __future__ import annotations

from typing import Any

from ...ir import graph
from ...ops import make
from ...ops.dims import static
from ..pattern import Match, is_op, wildcard

FEW = 4  # queries of a head
x, y = wildcard(), wildcard()
_product = is_op("matmul")(x, y)


def repeated(m: Match, value: Any) -> Any:
    """Heads that a reshape of a broadcast repeats, perhaps with axes permuted, as the operator that says so; else the value."""
    made = m.lookup(value)
    if _is(made, "permute_dims"):
        inner = repeated(m, made.args[0])
        return value if inner is made.args[0] else make("permute_dims", inner, **dict(made.attrs))
    wide = m.lookup(made.args[0]) if _is(made, "reshape") else None
    if not _is(wide, "broadcast_to"):
        return value
    before, after, out = wide.args[0].sinfo.shape, wide.sinfo.shape, made.sinfo.shape
    grown = [k for k, (a, b) in enumerate(zip(before or (), after, strict=False)) if a is not b]
    if before is None or len(before) != len(after) or len(grown) != 1 or not grown[0] or static(before[grown[0]]) != 1:
        return value
    at, times = grown[0], static(after[grown[0]])
    if times is None or (*out[: at - 1], *out[at:]) != (*after[: at - 1], *after[at + 1:]):
        return value
    narrow = make("reshape", wide.args[0], graph.ShapeExpr((*before[:at], *before[at + 1:])))
    return make("repeat", narrow, repeats=times, axis=at - 1)


def _together(m: Match) -> Any:
    """One matrix of the few queries of a group."""
    call, queries = m.call(_product), m[x].sinfo
    rows = static(queries.shape[-2]) if queries.shape is not None and queries.ndim > 2 else None
    if rows is None or rows > FEW:
        return None
    found = _heads(m, repeated(m, m[y]), queries.ndim)
    if found is None:
        return None
    heads, times = found
    if heads.sinfo.shape is None or queries.shape[:-3] != heads.sinfo.shape[:-3] or static(queries.shape[-3]) != (static(heads.sinfo.shape[-3]) or 0) * times:
        return None
    matrix = make("reshape", m[x], graph.ShapeExpr((*heads.sinfo.shape[:-2], rows * times, queries.shape[-1])))
    return make("reshape", make("matmul", matrix, heads, **dict(call.attrs)), graph.ShapeExpr(call.sinfo.shape))


def _heads(m: Match, value: Any, ndim: int) -> tuple[Any, int] | None:
    """The heads before they were repeated along the last axis but two, and how often."""
    made = value if isinstance(value, graph.Call) else m.lookup(value) if isinstance(value, graph.Var) else None
    if _is(made, "permute_dims") and tuple(made.attrs["axes"] or ()) == (*range(ndim - 2), ndim - 1, ndim - 2):
        inner = _heads(m, made.args[0], ndim)
        return None if inner is None else (make("permute_dims", inner[0], **dict(made.attrs)), inner[1])
    if not _is(made, "repeat") or made.sinfo.ndim != ndim or made.attrs["axis"] is None or made.attrs["axis"] % ndim != ndim - 3:
        return None
    return made.args[0], int(made.attrs["repeats"])


def _is(made: Any, name: str) -> bool:
    return isinstance(made, graph.Call) and getattr(made.op, "name", "") == name


GROUPED = [(_product, _together)]
"""The rule as the table of ``simplify`` takes it."""
