# SPDX-License-Identifier: Apache-2.0
"""Integers that only the run can tell, as variables: shapes, bounds and counts that a model computes from its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.dtype import INT64
from ...ir.op import get_op
from ...ir.visit import free_vars
from ...ops.elementwise import Elementwise
from .values import Value

if TYPE_CHECKING:
    from .importer import NodeContext

_MOST = 64  # elements of a tensor that is read as a list of sizes


def integers(node: NodeContext, value: Value, what: str, *, signed: bool = False, upper: Any = None) -> list[tir.Var]:
    """The elements of a short integer tensor as new variables, checked to be >= 0 unless ``signed``, and at most ``upper``."""
    x = value.expr
    count = x.sinfo.size if isinstance(x.sinfo, graph.TensorInfo) else None
    if not isinstance(count, tir.IntImm) or count.value > _MOST or not x.sinfo.dtype.is_int:
        raise node.data_dependent(what)
    if x.sinfo.dtype != INT64:
        x = node.make("astype", x, dtype="int64")
    if x.sinfo.ndim != 1:
        x = node.make("reshape", x, graph.ShapeExpr((count,)))
    bounds = () if upper is None else (graph.ShapeExpr((tir.as_index(upper),) * count.value),)
    shape = node.make("tensor_to_shape", x, *bounds)
    name = "".join(c if c.isalnum() else "_" for c in what.removeprefix("the "))
    variables = [tir.Var(f"{name}_{k}" if count.value > 1 else name, INT64, not signed) for k in range(count.value)]
    node.importer.bb.match_cast(shape, graph.ShapeInfo(tuple(variables)), name)
    return variables


def unsure(e: Any) -> bool:
    """Whether an integer was read from data and may be negative."""
    return isinstance(e, tir.Expr) and any(not v.size for v in free_vars(e))


def sized(node: NodeContext, e: Any, name: str, *, signed: bool = False) -> tir.Expr:
    """An expression over data as a variable, checked to be >= 0 unless ``signed``; others as they are."""
    e = Analyzer().simplify(tir.as_index(e))
    if not unsure(e):
        return e
    var = tir.Var(name, INT64, not signed)
    node.importer.bb.match_cast(graph.ShapeExpr((e,)), graph.ShapeInfo((var,)), name)
    return var


def check(node: NodeContext, e: tir.Expr, wanted: tir.Expr, name: str) -> None:
    """Have ``e == wanted`` checked when the model runs."""
    node.importer.bb.match_cast(graph.ShapeExpr((e,)), graph.ShapeInfo((wanted,)), name)


def require(node: NodeContext, flag: Any, what: str, wanted: bool = True) -> None:
    """Have a tensor of one truth value checked when the model runs; the error names ``what``."""
    one = node.make("reshape", node.make("astype", flag, dtype="int64"), graph.ShapeExpr((tir.index_const(1),)))
    name = "".join(c if c.isalnum() else "_" for c in what)
    node.importer.bb.match_cast(node.make("tensor_to_shape", one), graph.ShapeInfo((tir.index_const(int(wanted)),)), name)


def sizes_in(info: Any) -> list[tir.Var]:
    """The variables in a shape."""
    dims = info.values if isinstance(info, graph.ShapeInfo) else getattr(info, "shape", None)
    return [v for d in dims or () for v in free_vars(d)]


def inner_sizes(node: NodeContext, body: graph.SeqExpr) -> set[tir.Var]:
    """Sizes that only a body knows: bound in it, and not known outside of it."""
    inner = {v for block in body.blocks for b in block.bindings if isinstance(b, graph.MatchCast) for v in sizes_in(b.sinfo)}
    return inner - {v for x in node.importer.values.values() if isinstance(x, Value) and x.content is None for v in sizes_in(x.expr.sinfo)}


def broadcasts(op: str) -> bool:
    """Whether an operator repeats along dimensions of 1, as NumPy does."""
    return op in ("where", "broadcast_to") or isinstance(get_op(op), Elementwise)


def stretched(node: NodeContext, args: Sequence[Any], notes: Sequence[tuple[tir.Expr, tir.Expr]]) -> list[Any] | None:
    """Operands of which a size that only data tells meets a number, repeated to that number where it is 1; None if there are none.

    Sizes of the model's inputs are taken to be equal to what they meet: they are rarely 1 by accident, and kernels are faster so.
    """
    wanted = {a: b for pair in notes for a, b in (pair, pair[::-1])
              if isinstance(b, tir.IntImm) and not free_vars(a) <= node.importer.sizes}
    out = list(args)
    for k, x in enumerate(args):
        for axis, size in enumerate(_shape(x)):
            if size in wanted:
                check(node, tir.select(tir.eq(size, 1), wanted[size], size), wanted[size], "broadcast")
                index = node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (0, wanted[size], 1)), dtype="int64")
                out[k] = node.make("take", out[k], index, axis=axis, mode="clip")
    return out if any(a is not b for a, b in zip(out, args, strict=True)) else None


def _shape(x: Any) -> Sequence[tir.Expr]:
    info = getattr(x, "sinfo", None)
    return info.shape if isinstance(info, graph.TensorInfo) and info.shape is not None else ()
