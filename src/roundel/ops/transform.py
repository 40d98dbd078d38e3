# SPDX-License-Identifier: Apache-2.0
"""Changes of layout by an index map."""

from __future__ import annotations

from typing import Any

import numpy as np

from roundel import te
from roundel.arith import Analyzer, inverse_index_map, map_shape
from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.op import FuseKind, OpDef, register
from roundel.ir.visit import substitute

from .dims import fail, simplify, tensor_info


@register
class LayoutTransform(OpDef):
    """x with the element at i moved to ``index_map``(i); places that no element goes to hold ``pad_value``."""

    name, operands, kind = "layout_transform", ("x",), FuseKind.INJECTIVE
    (attributes,) = ({"index_map": ..., "pad_value": None, "axis_separators": (), "input_axis_separators": ()},)

    def _map(self, ndim: int, attrs: Attrs, infos: Any = ()) -> tir.IndexMap:
        index_map = attrs["index_map"]
        if not isinstance(index_map, tir.IndexMap):
            index_map = tir.IndexMap.from_func(index_map, ndim)
        if len(index_map.initial_indices) != ndim:
            fail(self, f"index_map is for {len(index_map.initial_indices)} dimensions, not {ndim}", *infos)
        return index_map

    def infer(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = tensor_info(self, args[0], args)
        if x.ndim < 0:
            return graph.TensorInfo(None, x.dtype, -1)
        index_map = self._map(x.ndim, attrs, args)
        if x.shape is None:
            return graph.TensorInfo(None, x.dtype, len(index_map.final_indices))
        return graph.TensorInfo(tuple(map(simplify, map_shape(index_map, x.shape))), x.dtype)

    def compute(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        (x,) = args
        index_map = self._map(len(x.shape), attrs)
        back, padding = inverse_index_map(index_map, x.shape)
        fill = tir.const(attrs["pad_value"] or 0, x.dtype)

        def body(*at: Any) -> Any:
            empty = substitute(padding, dict(zip(back.initial_indices, at)))
            return te.if_then_else(empty, fill, x(*back.map_indices(at)))

        return te.compute(tuple(map(simplify, map_shape(index_map, x.shape))), body, "layout_transform")

    def numpy(self, args: tuple[Any, ...], attrs: Attrs) -> Any:
        x = args[0]
        index_map, an = self._map(x.ndim, attrs), Analyzer()
        shape = [an.simplify(s).value for s in map_shape(index_map, [tir.index_const(s) for s in x.shape])]
        out = np.full(shape, attrs["pad_value"] or 0, x.dtype)
        table = dict(zip(index_map.initial_indices, np.indices(x.shape)))
        out[tuple(_evaluate(e, table) for e in index_map.final_indices)] = x
        return out


_NUMPY: dict[type, Any] = {
    tir.Add: np.add,
    tir.Sub: np.subtract,
    tir.Mul: np.multiply,
    tir.FloorDiv: np.floor_divide,
    tir.FloorMod: np.mod,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
}


def _evaluate(e: tir.Expr, table: dict[Any, Any]) -> Any:
    if e in table:
        return table[e]
    if isinstance(e, tir.IntImm):
        return e.value
    return _NUMPY[type(e)](_evaluate(e.a, table), _evaluate(e.b, table))
