# SPDX-License-Identifier: Apache-2.0
"""Names that ``tvm.relax`` had in 2022, when the course on machine learning compilation was written."""

from __future__ import annotations

from typing import Any

from .... import relax as _relax
from ....ir import get_op, graph
from ....ir.errors import RoundelError
from ....ir.foreign_names import named_like
from ....script import relax as _script
from ..rooms import OPERATORS


class Operators:
    """``relax.op``: every operator by name, or by the name that it had."""

    def __init__(self, room: str = "") -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._room + name
        if full == "nn":
            return Operators("nn.")
        return _script.OpRef(OPERATORS[full]) if full in OPERATORS else getattr(_relax.op.nn if self._room else _relax.op, name)


def DynTensorType(ndim: int = -1, dtype: str = "float32") -> graph.TensorInfo:
    """What is known of a tensor: the number of its dimensions."""
    return _relax.TensorStructInfo(None, dtype, ndim=ndim)


@named_like(graph.Var)
def Var(name_hint: str, struct_info: Any = None, checked_type: Any = None) -> graph.Var:
    """A variable of a graph function; with three arguments a name, a shape and a `DynTensorType`."""
    if checked_type is not None:
        struct_info = _relax.TensorStructInfo(tuple(struct_info), checked_type.dtype)
    return _relax.Var(name_hint, struct_info)


def const(value: Any, dtype: Any = None) -> graph.Constant:
    """A constant tensor; ``dtype`` may be a `DynTensorType`."""
    return _relax.const(value, getattr(dtype, "dtype", dtype))


def in_script(name: str) -> Any:
    """What a script says with ``relax`` in the place of ``R``, ``relax.dataflow()`` and ``relax.add(x, y)``; raises AttributeError for other names."""
    if name in vars(_script) and not name.startswith("_"):
        return vars(_script)[name]
    try:
        get_op(name)
    except RoundelError as e:
        raise AttributeError(name) from e
    return _script.OpRef(name)
