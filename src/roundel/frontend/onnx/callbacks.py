# SPDX-License-Identifier: Apache-2.0
"""Operators computed by a Python function on NumPy arrays, called back from the compiled model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import graph
from ...ir.op import CALL_DPS_PACKED
from ...runtime.registry import register_func

if TYPE_CHECKING:
    from .importer import NodeContext

_numbers = itertools.count()


def emit_callback(node: NodeContext, fn: Callable[..., Any], inputs: Sequence[graph.GraphExpr], infos: Sequence[Any]) -> Any:
    """The call of ``fn`` on the inputs; it is registered with the FFI under a name of its own."""
    results = [i if isinstance(i, graph.TensorInfo) else graph.TensorInfo(tuple(i[0]), i[1]) for i in infos]
    name = f"roundel.onnx.{node.node.op_type}.{next(_numbers)}"
    count = len(inputs)

    def call(*arrays: Any) -> None:
        made = fn(*arrays[:count])
        made = made if isinstance(made, tuple | list) else (made,)
        if len(made) != len(arrays) - count:
            raise ValueError(f"the function for {node.name} gave {len(made)} results, not {len(arrays) - count}")
        for out, value in zip(arrays[count:], made, strict=True):
            if np.shape(value) != out.shape:
                raise ValueError(f"the function for {node.name} gave shape {np.shape(value)}, not {out.shape}")
            out[...] = value

    register_func(name, call)
    node.importer.python[node.node.op_type] = None
    single = len(results) == 1
    info = results[0] if single else graph.TupleInfo(tuple(results))
    out = node.emit(graph.Call(CALL_DPS_PACKED, (graph.ExternFunc(name), graph.Tuple(tuple(inputs))), sinfo_args=(info,), sinfo=info))
    return out if single else tuple(node.emit(graph.TupleGetItem(out, k)) for k in range(len(results)))
