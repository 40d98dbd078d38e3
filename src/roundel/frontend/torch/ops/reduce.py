# SPDX-License-Identifier: Apache-2.0
"""ATen reductions."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor


def axes(x: Any, dim: Any) -> tuple[int, ...]:
    """Axes of a reduction; none given means all."""
    n = max(x.sinfo.ndim, 1)
    if dim is None or dim == []:
        return tuple(range(x.sinfo.ndim))
    return tuple(int(d) % n for d in (dim if isinstance(dim, list | tuple) else [dim]))


def _reduce(op: str, names: tuple[str, ...]) -> None:
    @converter(*names)
    def convert(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return node.make(op, tensor(node, x, node.out_dtype()), axis=axes(x, dim), keepdims=bool(keepdim))


_reduce("sum", ("sum.default", "sum.dim_IntList"))
_reduce("mean", ("mean.default", "mean.dim"))
_reduce("max", ("amax",))
_reduce("min", ("amin",))
_reduce("prod", ("prod.default", "prod.dim_int"))


@converter("max.default", "min.default")
def _extreme(node: NodeContext, x: Any) -> Any:
    return node.make("max" if "max" in str(node.node.target) else "min", x, axis=axes(x, None), keepdims=False)


@converter("max.dim", "min.dim")
def _extreme_along(node: NodeContext, x: Any, dim: int, keepdim: bool = False) -> Any:
    name = "max" if "max" in str(node.node.target) else "min"
    where = node.make(f"arg{name}", x, axis=dim, keepdims=keepdim)
    return node.make(name, x, axis=axes(x, dim), keepdims=keepdim), where


@converter("argmax", "argmin")
def _arg(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    op = "argmax" if "argmax" in str(node.node.target) else "argmin"
    if dim is None:
        flat = node.make("reshape", x, graph.ShapeExpr((tir.product_of(x.sinfo.shape),)))
        return node.make("reshape", node.make(op, flat, axis=0, keepdims=False), node.out_shape())
    return node.make(op, x, axis=dim, keepdims=keepdim)


@converter("any", "any.dim", "any.dims")
def _any(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _logic(node, "max", x, dim, keepdim)


@converter("all", "all.dim", "all.dims")
def _all(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _logic(node, "min", x, dim, keepdim)


def _logic(node: NodeContext, op: str, x: Any, dim: Any, keepdim: bool) -> Any:
    bits = node.make("astype", node.make("astype", x, dtype="bool"), dtype="uint8")
    return node.make("astype", node.make(op, bits, axis=axes(x, dim), keepdims=keepdim), dtype="bool")


@converter("var.correction", "var.dim")
def _var(node: NodeContext, x: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    where = axes(x, dim)
    mean = node.make("mean", x, axis=where, keepdims=True)
    centred = node.make("subtract", x, mean)
    total = node.make("sum", node.make("multiply", centred, centred), axis=where, keepdims=bool(keepdim))
    count = tir.product_of([x.sinfo.shape[a] for a in where]) - int(correction or 0)
    count = count.value if isinstance(count, tir.IntImm) else tir.max_(count, 0)
    if isinstance(count, int):
        return node.make("divide", total, scalar(max(count, 0), x.sinfo.dtype))
    return node.make("divide", total, node.emit(scalar(count, x.sinfo.dtype)))


@converter("cumsum")
def _cumsum(node: NodeContext, x: Any, dim: int, *, dtype: Any = None) -> Any:
    if x.sinfo.ndim == 0:
        return tensor(node, x, node.out_dtype())
    return node.make("cumsum", tensor(node, x, node.out_dtype()), axis=dim)


@converter("topk")
def _topk(node: NodeContext, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    out = node.make("topk", x, k=k, axis=dim, ret_type="both", largest=largest, dtype="int64")
    return graph.TupleGetItem(out, 0), graph.TupleGetItem(out, 1)


@converter("linalg_vector_norm")
def _vector_norm(node: NodeContext, x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = node.out_dtype()
    x = tensor(node, x, out)
    along = {"axis": axes(x, dim), "keepdims": bool(keepdim)}
    if order == 2:
        return node.make("sqrt", node.make("sum", node.make("multiply", x, x), **along))
    size = node.make("abs", x)
    if abs(order) == float("inf"):
        return node.make("max" if order > 0 else "min", size, **along)
    if order == 0:
        return node.make("sum", node.make("astype", node.make("not_equal", x, scalar(0, out)), dtype=out), **along)
    if order == 1:
        return node.make("sum", size, **along)
    total = node.make("sum", node.make("power", size, scalar(order, out)), **along)
    return node.make("power", total, scalar(1 / order, out))
