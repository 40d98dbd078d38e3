# SPDX-License-Identifier: Apache-2.0
"""The table of ONNX converters: domain, operator, first opset version it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import extensions, graph

if TYPE_CHECKING:
    from .importer import NodeContext

NEWEST = {"": 28, "ai.onnx.ml": 5}
"""The newest operator set of each of ONNX's domains that the converters follow."""

Converter = Callable[..., Any]
_table: dict[tuple[str, str], dict[int, Converter]] = {}


def converter(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Register a function ``(node: NodeContext, *inputs) -> value or tuple of values`` for operators from version ``since`` on.

    Inputs are ``Value``s, None for absent optional ones.
    """

    def mark(fn: Converter) -> Converter:
        for name in names:
            _table.setdefault((domain, name), {})[since] = fn
        return fn

    return mark


def operator(domain: str, name: str, since: int = 1) -> Callable[[Converter], Converter]:
    """Supply an operator from outside: ``@rd.onnx.operator("com.acme", "Foo")``. The function gets the node's context and its
    inputs (``graph`` expressions, None for absent ones) and returns a composition of Roundel operators, ``node.te(fn, *inputs)``
    of a tensor expression, or ``node.numpy(fn, inputs, infos)`` of a NumPy function; a tuple where it has several outputs.
    """

    def mark(fn: Converter) -> Converter:
        def convert(node: NodeContext, *inputs: Any) -> Any:
            return _results(node, fn(node, *(None if v is None else v.expr for v in inputs)))

        extensions.note(fn)
        converter(name, since=since, domain=domain)(convert)
        return fn

    return mark


def _results(node: NodeContext, made: Any) -> list[Any]:
    """What a supplied function returned, a value for each output; raises ModelError where it is something else."""
    out: list[Any] = []
    for value in made if isinstance(made, tuple | list) else (made,):
        if value is None or not isinstance(value, graph.GraphExpr):
            out.append(None if value is None else graph.Constant.of(_array(node, value)))
        elif isinstance(value.sinfo, graph.TupleInfo):
            out += [graph.TupleGetItem(value, k) for k in range(len(value.sinfo.fields))]
        else:
            out.append(value)
    wanted = [k for k, name in enumerate(node.node.output) if name]
    if any(k >= len(out) or out[k] is None for k in wanted):
        raise node.error(f"the function that was supplied for it gave {len([v for v in out if v is not None])} results, "
                         f"the node has {len(wanted)} outputs")
    return out


def _array(node: NodeContext, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype == object:
        raise node.error(f"the function that was supplied for it gave {type(value).__name__}, not a tensor")
    return array


def find(domain: str, name: str, opset: int) -> Converter | None:
    """The converter for this operator at this opset version: the newest that is not newer than it."""
    versions = _table.get((domain, name), {})
    fitting = [v for v in versions if v <= max(opset, 1)]
    return versions[max(fitting)] if fitting else None


def known() -> dict[tuple[str, str], list[int]]:
    """Every (domain, operator) with the versions that have their own converter."""
    return {k: sorted(v) for k, v in sorted(_table.items())}
