# SPDX-License-Identifier: Apache-2.0
"""Host functions: what a graph function becomes. Called with its inputs, returns its outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import tir
from ..ir.errors import InterpretError
from ..ir.visit import free_vars
from .memory import Pointer, View, allocate, row_major
from .stmt import Executor
from .symbolic import evaluate, solve

if TYPE_CHECKING:
    from .runtime import Runtime


class HostExecutor(Executor):
    """Adds outputs whose shape is known only while running."""

    def __init__(self, runtime: Runtime, name: str, outputs: list[tir.Buffer]) -> None:
        super().__init__(runtime, name)
        self.declared = outputs
        self.made: dict[int, View] = {}

    def allocate_output(self, index: int, shape: tuple[int, ...]) -> Pointer:
        """Memory for an output whose shape only the run tells."""
        dtype = self.declared[index].dtype
        size = self.machine.itemsize(dtype)
        pointer = allocate(max(math.prod(shape), 1) * size, [])
        pointer.shape = shape
        self.made[index] = View(
            self.declared[index].name,
            dtype,
            pointer.storage,
            0,
            shape,
            row_major(shape),
            self.machine.numpy(dtype),
            size,
        )
        return pointer


def call_host(runtime: Runtime, func: tir.PrimFunc, args: Sequence[Any], name: str) -> Any:
    """Call a host function with its inputs: outputs are allocated and returned (a tuple when there are several)."""
    if "object_inputs" in func.attrs:
        from ..runtime import objects  # on use, as all of the runtime

        with objects.known():
            return _call_with_objects(runtime, func, args, name)
    return _call(runtime, func, args, name)


def _call_with_objects(runtime: Runtime, func: tir.PrimFunc, args: Sequence[Any], name: str) -> Any:
    from ..runtime import objects

    template, results = func.attrs.get("arguments"), func.attrs.get("result", 0 if func.attrs["num_outputs"] == 1 else None)
    flat = objects.take(_spread(template, args), func.attrs)
    found = _call(runtime, func.with_attr("arguments", None).with_attr("result", tuple(range(func.attrs["num_outputs"]))), flat, name)
    return _assemble(tuple(range(len(found))) if results is None else results, objects.give(found, func.attrs))


def _call(runtime: Runtime, func: tir.PrimFunc, args: Sequence[Any], name: str) -> Any:
    count = int(func.attrs["num_inputs"])
    if len(args) == len(func.params):
        return runtime.call_prim(func, args, name)
    buffers = func.buffers
    inputs = func.params[:count]
    outputs = [buffers[p] for p in func.params[count:] if p in buffers]
    args = _spread(func.attrs.get("arguments"), args)
    if len(args) not in (count, count + len(outputs)):
        raise InterpretError(f"{name} takes {count} inputs, {len(args)} were given")
    dims: dict[tir.Var, Any] = {}
    equations = []
    for p, a in zip(inputs, args):
        if p in buffers:
            equations += [
                (e, n, f"dimension {d} of argument {p.name} of {name}")
                for d, (e, n) in enumerate(zip(buffers[p].shape, np.shape(a)))
            ]
        elif p.dtype.is_int:
            dims[p] = int(a)
    solve(equations, dims)
    caches = func.attrs.get("caches", ())
    dims |= {v: 0 for _, k, axis in caches for v in free_vars(outputs[k].shape[axis]) if v not in dims}  # no room behind results
    sizes = [dims[p] for p in func.params[count:] if p not in buffers]  # explicit after lowering
    if len(args) > count:
        _keep_past(caches, args, args[count:])
        return runtime.call_prim(func, [*args, *sizes], name)
    arrays = [_output(runtime, b, dims) for b in outputs]
    _keep_past(caches, args, arrays)
    ex = HostExecutor(runtime, name, outputs)
    runtime.execute(ex, func, [*args, *arrays, *sizes])
    results = [ex.made[k].array() if k in ex.made else a for k, a in enumerate(arrays)]
    return _assemble(func.attrs.get("result", 0 if len(results) == 1 else tuple(range(len(results)))), results)


def _keep_past(caches: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Put what results append to where they begin, as callers of host functions do."""
    for i, k, axis in caches:
        np.moveaxis(outputs[k], axis, 0)[: inputs[i].shape[axis]] = np.moveaxis(inputs[i], axis, 0)


def _spread(template: Any, args: Sequence[Any]) -> list[Any]:
    """The inputs in order, from arguments of which some are tuples."""
    if template is None:
        return list(args)
    return [x for t, a in zip(template, args) for x in (_spread(t, a) if isinstance(t, tuple) else [a])]


def _assemble(template: Any, results: list[Any]) -> Any:
    return tuple(_assemble(t, results) for t in template) if isinstance(template, tuple) else results[template]


def _output(runtime: Runtime, buffer: tir.Buffer, dims: dict) -> Any:
    """An array for an output, or a placeholder when its shape depends on data."""
    if any(v not in dims for e in buffer.shape for v in free_vars(e)):
        return Pointer(np.zeros(0, np.uint8), 0, None)
    return np.full(
        tuple(evaluate(e, dims) for e in buffer.shape),
        runtime.machine.blank(buffer.dtype),
        runtime.machine.numpy(buffer.dtype),
    )
