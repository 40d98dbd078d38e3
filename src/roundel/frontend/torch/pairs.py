# SPDX-License-Identifier: Apache-2.0
"""Complex tensors as pairs of real ones. Operators that are linear in them run on each part; the others have converters here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils import _pytree as pytree

from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ops import make

TABLE: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True, eq=False)
class Pair:
    """Real and imaginary part, of one shape and dtype."""

    re: Any
    im: Any

    @property
    def sinfo(self) -> Any:
        """The struct info of either part."""
        return self.re.sinfo


def on_pairs(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a converter for nodes with complex operands or results."""

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(names, fn))
        return fn

    return mark


PADS = tuple(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3))
"""Paddings that repeat what is inside; PyTorch would index with tables of positions."""
LINEAR = frozenset((
    "view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "t", "expand", "cat", "slice", "select", "split_with_sizes", "split",
    "unbind", "flip", "roll", "repeat", "tril", "triu", "index", "_unsafe_index", "index_select", "gather", "sum", "mean", "neg", "clone", "alias",
    "detach", "contiguous", "constant_pad_nd", *PADS, "add", "sub", "where", "slice_scatter", "select_scatter", "index_put", "copy", "lift_fresh_copy",
    "cumsum", "permute_copy", "view_copy", "scatter", "scatter_add", "embedding", "masked_fill", "expand_copy", "rsub"))
_PROMOTED = {"add": (0, 1), "sub": (0, 1), "rsub": (0, 1), "where": (1, 2), "cat": (0,), "slice_scatter": (0, 1), "select_scatter": (0, 1),
             "index_put": (0, 2), "copy": (0, 1), "scatter": (3,), "scatter_add": (3,)}


def supports(name: str) -> bool:
    """Whether an operator takes or gives complex tensors."""
    return _short(name) in LINEAR or _short(name) in TABLE


def _short(name: str) -> str:
    return name.removeprefix("aten.").split(".")[0]


def convert(node: Any, real: Callable[..., Any] | None, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The value of a node with complex operands or results; ``real`` is the converter for real ones."""
    name = _short(str(node.node.target))
    if name in TABLE:
        return TABLE[name](node, *args, **kwargs)
    if name not in LINEAR or real is None:
        raise node.unsupported("complex numbers here")
    for k in _PROMOTED.get(name, ()):
        if k < len(args):
            args[k] = [promoted(node, a) for a in args[k]] if isinstance(args[k], list | tuple) else promoted(node, args[k])
    if any(isinstance(v, complex) for v in pytree.tree_leaves(kwargs)):
        raise node.unsupported("a complex factor")
    parts = []
    for k in range(2):
        mine = [_part(a, k) for a in args]
        parts.append(real(node, *mine, **kwargs))
    if isinstance(parts[0], tuple | list):
        return [Pair(node.emit(a), node.emit(b)) for a, b in zip(*parts, strict=True)]
    return Pair(*map(node.emit, parts))


def _part(arg: Any, k: int) -> Any:
    if isinstance(arg, list | tuple):
        return type(arg)(_part(a, k) for a in arg)
    if isinstance(arg, complex):
        return (arg.real, arg.imag)[k]
    return (arg.re, arg.im)[k] if isinstance(arg, Pair) else arg


def promoted(node: Any, value: Any) -> Any:
    """A tensor or number as a pair; numbers stay numbers where their imaginary part is 0."""
    from .ops.math import scalar, tensor

    if isinstance(value, Pair):
        return value
    dtype = node.out_dtype()
    if not isinstance(value, graph.GraphExpr):
        number = complex(value)
        return Pair(node.emit(scalar(number.real, dtype)), node.emit(scalar(number.imag, dtype)))
    re = tensor(node, value, dtype)
    return Pair(re, node.make("full", graph.ShapeExpr(re.sinfo.shape), node.emit(scalar(0, dtype)), dtype=dtype))


def join(emit: Callable[..., Any], value: Pair) -> Any:
    """The pair as one tensor, its parts along a new last axis."""
    parts = tuple(emit(make("expand_dims", p, axis=(p.sinfo.ndim,))) for p in (value.re, value.im))
    return emit(make("concat", graph.Tuple(parts), axis=value.sinfo.ndim))


def split(emit: Callable[..., Any], value: Any) -> Pair:
    """The inverse of ``join``."""
    axis = value.sinfo.ndim - 1
    parts = []
    for k in range(2):
        part = emit(make("strided_slice", value, axes=(axis,), begin=(tir.index_const(k),), end=(tir.index_const(k + 1),), strides=(tir.index_const(1),)))
        parts.append(emit(make("reshape", part, graph.ShapeExpr(value.sinfo.shape[:-1]))))
    return Pair(*parts)
