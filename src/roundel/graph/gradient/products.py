# SPDX-License-Identifier: Apache-2.0
"""Gradients of matrix products and sums of products by subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import graph
from ...ops import make
from ...ops.dims import same
from .rules import Step, rule, shaped


def _transposed(x: Any) -> Any:
    ndim = x.sinfo.ndim
    return make("permute_dims", x, axes=(*range(ndim - 2), ndim - 1, ndim - 2))


@rule("matmul")
def matmul(s: Step, g: Any) -> Sequence[Any]:
    """d(X Y): G Y', X' G, vectors as matrices of one row or column"""
    x, y = s.args
    left, right = x.sinfo.ndim == 1, y.sinfo.ndim == 1
    x_matrix = make("expand_dims", x, axis=[0]) if left else x
    y_matrix = make("expand_dims", y, axis=[1]) if right else y
    if right:
        g = make("expand_dims", g, axis=[-1])
    if left:
        g = make("expand_dims", g, axis=[-2])
    by_x, by_y = make("matmul", s.emit(g), _transposed(y_matrix)), make("matmul", _transposed(x_matrix), s.emit(g))
    return _summed(by_x, x_matrix, x), _summed(by_y, y_matrix, y)


def _summed(value: Any, matrix: Any, operand: Any) -> Any:
    """Without the axes of other operands' batches, in the shape of the operand."""
    if len(value.sinfo.shape) != len(matrix.sinfo.shape) or not all(map(same, value.sinfo.shape, matrix.sinfo.shape)):
        value = make("collapse_sum_to", value, graph.ShapeExpr(matrix.sinfo.shape))
    return shaped(value, operand)


@rule("einsum")
def einsum(s: Step, g: Any) -> Sequence[Any]:
    """By each operand a product of the others with the gradient, broadcast along what only that operand has"""
    tensors, text = s.args[0], s.attrs["subscripts"].replace(" ", "")
    tensors = tensors.fields if isinstance(tensors, graph.Tuple) else [graph.TupleGetItem(tensors, k) for k in range(len(tensors.sinfo.fields))]
    sides, _, result = text.partition("->")
    parts = sides.split(",")
    if "->" not in text or "." in text or any(len(set(p)) < len(p) for p in parts):
        raise s.refuse("its subscripts have dots, repeat a letter within an operand or do not name the result")
    return ([_by(k, tensors, parts, result, g) for k in range(len(parts))],)


def _by(k: int, tensors: Sequence[Any], parts: Sequence[str], result: str, g: Any) -> Any:
    others = [j for j in range(len(parts)) if j != k]
    known = set(result).union(*(parts[j] for j in others))
    there = "".join(c for c in parts[k] if c in known)
    product = make("einsum", [g, *(tensors[j] for j in others)], subscripts=f"{','.join([result, *(parts[j] for j in others)])}->{there}")
    alone = [i for i, c in enumerate(parts[k]) if c not in known]
    if alone:
        product = make("expand_dims", product, axis=alone)
    return make("broadcast_to", product, graph.ShapeExpr(tensors[k].sinfo.shape))
