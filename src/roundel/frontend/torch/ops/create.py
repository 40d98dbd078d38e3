# SPDX-License-Identifier: Apache-2.0
"""ATen operators that make tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir import graph, tir
from ....ir.dtype import DType
from ..importer import NodeContext
from ..registry import converter
from .math import scalar, tensor


def _full(node: NodeContext, value: Any) -> Any:
    return node.make("full", node.out_shape(), node.emit(scalar(value, node.out_dtype())), dtype=node.out_dtype())


@converter("full", "full_like", "new_full")
def _filled(node: NodeContext, x: Any, *rest: Any, **_: Any) -> Any:
    return _full(node, rest[-1])


@converter("zeros", "zeros_like", "new_zeros", "empty.memory_format", "new_empty", "empty_like", "empty_strided")
def _zeros(node: NodeContext, *_: Any, **__: Any) -> Any:
    return _full(node, 0)


@converter("ones", "ones_like", "new_ones")
def _ones(node: NodeContext, *_: Any, **__: Any) -> Any:
    return _full(node, 1)


@converter("scalar_tensor")
def _scalar_tensor(node: NodeContext, value: Any, **_: Any) -> Any:
    return node.emit(scalar(value, node.out_dtype()))


@converter("arange", "arange.start", "arange.start_step")
def _arange(node: NodeContext, start: Any, end: Any = None, step: Any = 1, **_: Any) -> Any:
    if end is None:
        start, end = 0, start
    dtype = node.out_dtype()
    if dtype.is_float or any(isinstance(v, float) for v in (start, end, step)):
        if any(not isinstance(v, int | float) for v in (start, end, step)):
            return _steps(node, start, step, DType("float64"))
        return graph.Constant.of(np.arange(start, end, step).astype(dtype.numpy))
    if not isinstance(step, int):
        return _steps(node, start, step, DType("int64"))
    s, e, d = (graph.PrimValue(tir.as_index(v)) for v in (start, end, step))
    return node.make("arange", s, e, d, dtype=dtype)


def _range(node: NodeContext, count: tir.Expr) -> Any:
    return node.make("arange", *(graph.PrimValue(tir.as_index(v)) for v in (0, count, 1)), dtype="int64")


def _steps(node: NodeContext, start: Any, step: Any, wide: DType) -> Any:
    """A range of symbolic size or step, of numbers of a type that are converted at last."""
    place = node.make("astype", _range(node, node.out_shape().values[0]), dtype=wide)
    out = node.make("add", node.make("multiply", place, tensor(node, step, wide)), tensor(node, start, wide))
    return node.make("astype", out, dtype=node.out_dtype())


@converter("eye", "eye.m")
def _eye(node: NodeContext, *_: Any, **__: Any) -> Any:
    rows, cols = node.out_shape().values
    if isinstance(rows, tir.IntImm) and isinstance(cols, tir.IntImm):
        return graph.Constant.of(np.eye(rows.value, cols.value).astype(node.out_dtype().numpy))
    same = node.make("equal", node.make("expand_dims", _range(node, rows), axis=(1,)), _range(node, cols))
    return node.make("astype", same, dtype=node.out_dtype())


@converter("triu_indices", "tril_indices")
def _triangle_indices(node: NodeContext, rows: int, cols: int, offset: int = 0, **_: Any) -> Any:
    if not isinstance(rows, int) or not isinstance(cols, int):
        raise node.unsupported("indices of a triangle of symbolic size")
    places = (np.triu_indices if "triu" in str(node.node.target) else np.tril_indices)(rows, offset, cols)
    return graph.Constant.of(np.stack(places).astype(node.out_dtype().numpy))
