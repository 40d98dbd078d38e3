# SPDX-License-Identifier: Apache-2.0
"""ATen reductions."""

from __future__ import annotations

from typing import Any

from ....ir import graph, tir
from ..dtypes import dtype_of
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor


def axes(x: Any, dim: Any) -> tuple[int, ...]:
    """Axes of a reduction; none given means all."""
    n = max(x.sinfo.ndim, 1)
    if dim is None or dim == []:
        return tuple(range(x.sinfo.ndim))
    return tuple(int(d) % n for d in (dim if isinstance(dim, list | tuple) else [dim]))


def along(node: NodeContext, op: str, x: Any, dim: Any, keepdim: Any) -> Any:
    """A reduction; of a scalar too, which PyTorch reduces over its axis 0 or -1."""
    if x.sinfo.ndim == 0:
        return node.make(op, at_least_1d(node, x), axis=(0,), keepdims=False)
    return node.make(op, x, axis=axes(x, dim), keepdims=bool(keepdim))


def at_least_1d(node: NodeContext, x: Any) -> Any:
    """A scalar as a vector of one element, others as they are."""
    return x if x.sinfo.ndim else node.make("reshape", x, graph.ShapeExpr((tir.index_const(1),)))


def _reduce(op: str, names: tuple[str, ...]) -> None:
    @converter(*names)
    def convert(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return along(node, op, tensor(node, x, node.out_dtype()), dim, keepdim)


_reduce("sum", ("sum.default", "sum.dim_IntList"))
_reduce("mean", ("mean.default", "mean.dim"))
_reduce("max", ("amax",))
_reduce("min", ("amin",))
_reduce("prod", ("prod.default", "prod.dim_int"))


@converter("max.default", "min.default")
def _extreme(node: NodeContext, x: Any) -> Any:
    return along(node, "max" if "max" in str(node.node.target) else "min", x, None, False)


@converter("max.dim", "min.dim")
def _extreme_along(node: NodeContext, x: Any, dim: int, keepdim: bool = False) -> Any:
    name = "max" if "max" in str(node.node.target) else "min"
    where = node.make(f"arg{name}", at_least_1d(node, x), axis=dim, keepdims=keepdim and x.sinfo.ndim > 0)
    return along(node, name, x, dim, keepdim), where


@converter("argmax", "argmin")
def _arg(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    op = "argmax" if "argmax" in str(node.node.target) else "argmin"
    if dim is None or x.sinfo.ndim == 0:
        flat = node.make("reshape", x, graph.ShapeExpr((tir.product_of(x.sinfo.shape),)))
        return node.make("reshape", node.make(op, flat, axis=0, keepdims=False), node.out_shape())
    return node.make(op, x, axis=dim, keepdims=keepdim)


@converter("any", "any.dim", "any.dims", "_is_any_true")
def _any(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _logic(node, "max", x, dim, keepdim)


@converter("all", "all.dim", "all.dims", "_is_all_true")
def _all(node: NodeContext, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _logic(node, "min", x, dim, keepdim)


def _logic(node: NodeContext, op: str, x: Any, dim: Any, keepdim: bool) -> Any:
    bits = node.make("astype", node.make("astype", x, dtype="bool"), dtype="uint8")
    return node.make("astype", along(node, op, bits, dim, keepdim), dtype="bool")


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


@converter("cumsum", "cumprod")
def _cumulative(node: NodeContext, x: Any, dim: int, *, dtype: Any = None) -> Any:
    if x.sinfo.ndim == 0:
        return tensor(node, x, node.out_dtype())
    return node.make("cumprod" if "cumprod" in str(node.node.target) else "cumsum", tensor(node, x, node.out_dtype()), axis=dim)


@converter("cummax", "cummin")
def _running_extreme(node: NodeContext, x: Any, dim: int) -> Any:
    row = x if x.sinfo.ndim else node.make("reshape", x, graph.ShapeExpr((tir.index_const(1),)))
    out = node.make("cummax" if "cummax" in str(node.node.target) else "cummin", row, axis=dim)
    both = graph.TupleGetItem(out, 0), graph.TupleGetItem(out, 1)
    return both if x.sinfo.ndim else tuple(node.make("reshape", node.emit(b), graph.ShapeExpr(())) for b in both)


@converter("logcumsumexp")
def _logcumsumexp(node: NodeContext, x: Any, dim: int) -> Any:
    return node.make("logcumsumexp", x, axis=dim) if x.sinfo.ndim else node.make("multiply", x, scalar(1, x.sinfo.dtype))


@converter("topk")
def _topk(node: NodeContext, x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    out = node.make("topk", x, k=k, axis=dim, ret_type="both", largest=largest, dtype="int64")
    return graph.TupleGetItem(out, 0), graph.TupleGetItem(out, 1)


@converter("linalg_vector_norm")
def _vector_norm(node: NodeContext, x: Any, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = node.out_dtype()
    x = tensor(node, x, out)
    if order == 2:
        return node.make("sqrt", along(node, "sum", node.make("multiply", x, x), dim, keepdim))
    size = node.make("abs", x)
    if abs(order) == float("inf"):
        return along(node, "max" if order > 0 else "min", size, dim, keepdim)
    if order == 0:
        return along(node, "sum", node.make("astype", node.make("not_equal", x, scalar(0, out)), dtype=out), dim, keepdim)
    if order == 1:
        return along(node, "sum", size, dim, keepdim)
    total = along(node, "sum", node.make("power", size, scalar(order, out)), dim, keepdim)
    return node.make("power", total, scalar(1 / order, out))


@converter("var_mean.correction")
def _var_mean(node: NodeContext, x: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    return _var(node, x, dim, correction=correction, keepdim=keepdim), along(node, "mean", x, dim, keepdim)


@converter("sort", "sort.stable")
def _sort(node: NodeContext, x: Any, *args: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    if args:
        dim, descending = (*args, descending)[:2]
    if x.sinfo.ndim == 0:
        return x, scalar(0, dtype_of("int64"))
    order = node.make("argsort", x, axis=dim, descending=descending, dtype="int64")
    return node.make("gather_elements", x, order, axis=dim % x.sinfo.ndim), order
