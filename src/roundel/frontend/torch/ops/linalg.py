# SPDX-License-Identifier: Apache-2.0
"""ATen's factorisations of matrices, and polynomials; what is composed of them is in ``decompose/linalg.py``."""

from __future__ import annotations

from typing import Any

from ....ir import graph
from ....ir.op import get_op
from ....ops.dims import broadcast_shapes
from ....ops.polynomials import KINDS
from ..importer import NodeContext
from ..registry import converter
from .math import tensor


def swapped(node: NodeContext, x: Any) -> Any:
    """Matrices transposed."""
    n = x.sinfo.ndim
    return node.make("permute_dims", x, axes=(*range(n - 2), n - 1, n - 2))


def _parts(node: NodeContext, value: Any, count: int) -> list[Any]:
    return [node.emit(graph.TupleGetItem(value, k)) for k in range(count)]


@converter("linalg_cholesky_ex")
def _cholesky(node: NodeContext, x: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    low, info = _parts(node, node.make("linalg.cholesky", swapped(node, x) if upper else x), 2)
    return swapped(node, low) if upper else low, info


@converter("linalg_lu_factor_ex")
def _lu(node: NodeContext, x: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    return tuple(_parts(node, node.make("linalg.lu", x, pivot=pivot), 3))


@converter("linalg_solve_triangular")
def _solve_triangular(node: NodeContext, a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        a, b, upper = swapped(node, a), swapped(node, b), not upper
    batch = broadcast_shapes(get_op("broadcast_to"), [a.sinfo.shape[:-2], b.sinfo.shape[:-2]])
    a, b = (node.make("broadcast_to", v, graph.ShapeExpr((*batch, *v.sinfo.shape[-2:]))) for v in (a, b))
    out = node.make("linalg.solve_triangular", a, b, upper=upper, unit=unitriangular)
    return out if left else swapped(node, out)


@converter("geqrf")
def _geqrf(node: NodeContext, x: Any) -> Any:
    return tuple(_parts(node, node.make("linalg.householder", x), 2))


@converter("linalg_householder_product")
def _householder_product(node: NodeContext, x: Any, tau: Any) -> Any:
    return node.make("linalg.householder_product", x, tau)


for _family in KINDS:
    _base, _, _letter = _family.rpartition("_")

    def _polynomial(node: NodeContext, x: Any, n: Any, family: str = _family) -> Any:
        dtype = node.out_dtype()
        return node.make("polynomial", tensor(node, x, dtype), tensor(node, n, dtype), family=family)

    converter(f"special_{_base}_polynomial_{_letter}")(_polynomial)
