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
from ...ops.dims import differ, equal
from ...ops.elementwise import Elementwise
from ..common.agreement import require_equal
from .values import Value

if TYPE_CHECKING:
    from .importer import NodeContext

_ONE = tir.index_const(1)
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
    require_equal(node.importer.bb, e, wanted, f"{node.title}: {name.replace('_', ' ')}")


def require(node: NodeContext, flag: Any, what: str, wanted: bool = True) -> None:
    """Have a tensor of one truth value checked when the model runs; the error names ``what``."""
    one = node.make("reshape", node.make("astype", flag, dtype="int64"), graph.ShapeExpr((tir.index_const(1),)))
    found = tir.Var("found", INT64, True)
    node.importer.bb.match_cast(node.make("tensor_to_shape", one), graph.ShapeInfo((found,)), "found")
    require_equal(node.importer.bb, found, tir.index_const(int(wanted)), f"{node.title}: {what}, which does not hold (1 is true, 0 false)")


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


def stretched(node: NodeContext, args: Sequence[Any]) -> list[Any]:
    """Operands of an operator that broadcasts. Sizes that only data tells and that meet others may be 1: these are repeated to what they meet.

    Sizes of the model's inputs are taken to be equal to what they meet: they are rarely 1 by accident, and kernels are faster so.
    """
    out, shapes = list(args), [_shape(x) for x in args]
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        dims = [(k, s[-axis]) for k, s in enumerate(shapes) if len(s) >= axis and s[-axis] is not _ONE]
        if all(equal(dims[0][1], d) for _, d in dims[1:]):
            continue
        late = [(k, d) for k, d in dims if isinstance(args[k].sinfo, graph.TensorInfo) and not free_vars(d) <= node.importer.sizes and not differ(d, _ONE)]
        firm = sorted((d for k, d in dims if (k, d) not in late), key=lambda d: not isinstance(d, tir.IntImm))
        size = firm[0] if firm else _largest(node, [d for _, d in late])
        for k, d in late:
            if not equal(d, size):
                check(node, tir.select(tir.eq(d, 1), size, d), size, "broadcast")
                index = node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (0, size, 1)), dtype="int64")
                out[k] = node.make("take", out[k], index, axis=len(shapes[k]) - axis, mode="clip")
    return out


def _largest(node: NodeContext, dims: Sequence[tir.Expr]) -> tir.Expr:
    """What sizes broadcast to, as a variable: the first that is not 1."""
    wanted = dims[-1]
    for d in reversed(dims[:-1]):
        wanted = tir.select(tir.eq(d, 1), wanted, d)
    var = tir.Var("common", INT64, True)
    node.importer.bb.match_cast(graph.ShapeExpr((wanted,)), graph.ShapeInfo((var,)), "common")
    return var


def _shape(x: Any) -> Sequence[tir.Expr]:
    info = getattr(x, "sinfo", None)
    dims = info.shape if isinstance(info, graph.TensorInfo) else info.values if isinstance(info, graph.ShapeInfo) else None
    return dims or ()
