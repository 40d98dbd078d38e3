# SPDX-License-Identifier: Apache-2.0
"""Index maps: functions from indices to indices, for layouts and schedule primitives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dtype import INT64, DType
from ..errors import ArithError
from ..node import Node, node
from .expr import Add, Cast, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var
from .ops import as_index, const

_ON_ARRAYS: dict[type, Callable[[Any, Any], Any]] = {
    Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide, FloorMod: np.mod, Min: np.minimum, Max: np.maximum,
}


def _places(e: Any, at: Mapping[Var, Any]) -> Any:
    """An index for all elements at once."""
    if type(e) is Var and e in at:
        return at[e]
    if type(e) is IntImm:
        return e.value
    if type(e) is Cast:
        return _places(e.value, at)
    if type(e) not in _ON_ARRAYS:
        raise ArithError(f"{e.script()} is no number for every element")
    return _ON_ARRAYS[type(e)](_places(e.a, at), _places(e.b, at))


@node
class IndexMap(Node):
    """``final_indices`` as expressions over ``initial_indices``. ``separators`` mark where axes are cut (as in ``IndexMap.AXIS_SEPARATOR``)."""

    initial_indices: tuple[Var, ...]
    final_indices: tuple[Expr, ...]
    separators: tuple[int, ...] = ()

    AXIS_SEPARATOR = "axis_separator"

    @staticmethod
    def from_func(fn: Callable[..., Any], ndim: int | None = None, index_dtype: Any = INT64) -> IndexMap:
        """From a Python function of index variables (of type ``index_dtype``), e.g. ``lambda i, j: (i // 4, j, i % 4)``; ``*args`` need ``ndim``."""
        names: list[str] = []
        for p in inspect.signature(fn).parameters.values():
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                names += [f"{p.name}_{k}" for k in range((ndim or 0) - len(names))]
            else:
                names.append(p.name)
        variables = tuple(Var(n, DType(index_dtype)) for n in names)
        out = fn(*variables)
        items: Sequence[Any] = out if isinstance(out, list | tuple) else (out,)
        exprs: list[Expr] = []
        cuts: list[int] = []
        for item in items:
            if isinstance(item, str) and item == IndexMap.AXIS_SEPARATOR:
                cuts.append(len(exprs))
            else:
                exprs.append(as_index(item))
        return IndexMap(variables, tuple(exprs), tuple(cuts))

    def map_tensor(self, values: Any) -> Any:
        """An array laid out by the map: element ``i`` of ``values`` stands at ``map(i)``, and 0 stands where the map leads nowhere to.

        Raises ArithError for another number of dimensions, and for a map by other operations than +, -, *, //, %, min and max.
        """
        at = np.indices(values.shape)
        if len(at) != len(self.initial_indices):
            raise ArithError(f"an index map of {len(self.initial_indices)} indices is given an array of {len(at)} dimensions", why=repr(self))
        places = tuple(np.broadcast_to(_places(e, dict(zip(self.initial_indices, at))), values.shape) for e in self.final_indices)
        out = np.zeros([int(k.max()) + 1 if k.size else 0 for k in places], values.dtype)
        out[places] = values
        return out.view(type(values))

    def map_indices(self, indices: Sequence[Any]) -> tuple[Expr, ...]:
        """The map applied to index expressions."""
        from ..specialize import substitute_and_fold  # it rewrites functions, too

        if len(self.initial_indices) != len(indices):
            raise ArithError(f"an index map of {len(self.initial_indices)} indices is given {len(indices)}", why=repr(self))
        exprs = (const(i, v.dtype) if isinstance(i, int) else as_index(i) for v, i in zip(self.initial_indices, indices, strict=True))
        table = dict(zip(self.initial_indices, exprs))
        return tuple(substitute_and_fold(f, table) for f in self.final_indices)
