# SPDX-License-Identifier: Apache-2.0
"""Rules that bring constant scalar factors together, towards the matrix product whose constant weights can take them up.

    matmul(x, y * c)            -> matmul(x * c, y)          where x is not larger or is scaled itself
    (x * a) * b                 -> x * (a b)
    reshape(matmul(x, W)) * c   -> reshape(matmul(x, W) * c), through any number of reshape and permute_dims
    matmul(x, transposed y)     -> transposed matmul(y, transposed x)   for a single row x: y is read as it lies
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import graph, options, tir
from ...ops import make
from ..pattern import Match, commutative, is_const, is_op, wildcard
from .grouped_heads import repeated

x, y, a, b = wildcard(), wildcard(), is_const(), is_const()
_MOVES = ("reshape", "permute_dims")


def _scalar(value: Any) -> np.ndarray | None:
    """The value of a constant of one floating-point element; None where moving it would be seen: in types of less than 32 bits, in
    which models place scales so that products do not overflow, and with strict accuracy."""
    data = value.data
    one = data.dtype.is_float and data.dtype.bits >= 32 and all(n == 1 for n in data.shape)
    return data.numpy().reshape(()) if one and options.get("accuracy") != "strict" else None


def _uses(m: Match, value: Any) -> int:
    return m.use_count.get(value, 0)


_scaled_right = is_op("matmul")(x, commutative("multiply", y, a))


def _scale_left(m: Match) -> Any:
    """A scale of the right operand becomes one of the left."""
    call, c = m.call(_scaled_right), _scalar(m[a])
    left, right = m[x].sinfo, m[y].sinfo
    if c is None or isinstance(m[x], graph.Constant) or left.dtype != right.dtype or m[a].data.dtype != left.dtype or _uses(m, call.args[1]) > 1:
        return None
    made = m.lookup(m[x])
    scaled = isinstance(made, graph.Call) and getattr(made.op, "name", "") == "multiply" and any(isinstance(v, graph.Constant) for v in made.args)
    sizes = [i.size for i in (left, right)]
    smaller = all(isinstance(n, tir.IntImm) for n in sizes) and sizes[0].value <= sizes[1].value
    if right.shape != m.lookup(call.args[1]).sinfo.shape or not (scaled or smaller):
        return None
    return make("matmul", make("multiply", m[x], graph.Constant.of(c)), m[y], **dict(call.attrs))


_inner = commutative("multiply", x, a)
_twice = commutative("multiply", _inner, b)


def _one_factor(m: Match) -> Any:
    """Two scalar factors are one."""
    first, second = _scalar(m[a]), _scalar(m[b])
    inner = m[_inner]
    if first is None or second is None or _uses(m, inner) > 1 or m[x].sinfo.dtype != m[a].data.dtype or m[a].data.dtype != m[b].data.dtype:
        return None
    product = first.astype(np.float64) * second.astype(np.float64)
    out = make("multiply", m[x], graph.Constant.of(np.asarray(product, first.dtype)))
    return out if out.sinfo.shape == make("multiply", inner, m[b]).sinfo.shape else None


_scaled = commutative("multiply", x, a)


def _scale_first(m: Match) -> Any:
    """A scale after changes of shape of a product with a constant comes before them."""
    c, moves = _scalar(m[a]), []
    value, made = m[x], m.lookup(m[x])
    while _is(made, *_MOVES) and _uses(m, value) <= 1:
        moves.append(made)
        value, made = made.args[0], m.lookup(made.args[0])
    constant = _is(made, "matmul") and isinstance(made.args[1], graph.Constant) and _uses(m, value) <= 1
    if c is None or not moves or not constant or m[a].data.dtype != m[x].sinfo.dtype or len(m[a].data.shape) > m[x].sinfo.ndim:
        return None
    out = make("multiply", value, graph.Constant.of(c))
    for move in reversed(moves):
        out = make(move.op.name, out, *move.args[1:], **dict(move.attrs))
    return out


def _is(made: Any, *names: str) -> bool:
    return isinstance(made, graph.Call) and getattr(made.op, "name", "") in names


_turned = is_op("permute_dims")(y)
_row_by_turned = is_op("matmul")(x, _turned)


def _row_by_rows(m: Match) -> Any:
    """One row times a transposed matrix: each result is the product of two rows that lie in memory as they are read."""
    call, turned = m.call(_row_by_turned), m.call(_turned)
    left, right, ndim = m[x].sinfo, m[y].sinfo, m[y].sinfo.ndim
    axes = [int(k) % ndim for k in turned.attrs["axes"]] if turned.attrs["axes"] is not None else list(range(ndim))[::-1]
    if axes != [*range(ndim - 2), ndim - 1, ndim - 2] or left.shape is None or right.shape is None or left.ndim < 2:
        return None
    one = tir.index_const(1)
    if left.shape[-2] is not one or isinstance(m[y], graph.Constant) or repeated(m, m[y]) is not m[y]:  # rows of a group are one matrix
        return None
    column = make("reshape", m[x], graph.ShapeExpr((*left.shape[:-2], left.shape[-1], one)))
    return make("reshape", make("matmul", m[y], column, **dict(call.attrs)), graph.ShapeExpr(call.sinfo.shape))


SCALES = [(_scaled_right, _scale_left), (_twice, _one_factor), (_scaled, _scale_first), (_row_by_turned, _row_by_rows)]
"""The rules, in the order in which they are tried."""
