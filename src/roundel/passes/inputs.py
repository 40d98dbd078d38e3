# SPDX-License-Identifier: Apache-2.0
"""Random arguments for a function, from its parameters' struct infos or from its buffers, and running it on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..interp import Runtime
from ..interp.graph import ShapeValue
from ..interp.symbolic import Dims, evaluate
from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.tir import BaseFunc
from ..ir.visit import free_vars

SIZES = ((3, 5, 2, 7, 4), (4, 4, 4, 4, 4), (8, 16, 8, 16, 8), (1, 1, 1, 1, 1), (64, 64, 64, 64, 64))
"""What symbolic dimensions are tried as, in order of appearance (an assertion may rule some out)."""


@dataclass
class Case:
    """Arguments of a function: ``dims`` by name; ``outputs``: the arguments that it writes (a tensor program's
    buffers).
    """

    dims: dict[str, int]
    args: list[Any]

    def copy(self) -> list[Any]:
        """The arguments again, arrays copied (tensor programs write into theirs)."""
        return [_copy(a) for a in self.args]


def _copy(a: Any) -> Any:
    return a.copy() if isinstance(a, np.ndarray) else type(a)(_copy(x) for x in a) if type(a) is tuple else a


def size_vars(func: BaseFunc) -> list[tir.Var]:
    """Symbolic dimensions of the parameters, in order of appearance; then scalar integer parameters that are sizes."""
    found: dict[tir.Var, None] = {}
    for e in _dimensions(func):
        found.update(dict.fromkeys(sorted(free_vars(e), key=lambda v: v.name)))
    if isinstance(func, tir.PrimFunc):
        found.update(dict.fromkeys(p for p in func.params if p.size))
    return list(found)


def _dimensions(func: BaseFunc) -> Iterator[tir.Expr]:
    if isinstance(func, tir.PrimFunc):
        for buffer in func.buffer_params:
            yield from buffer.shape
    elif isinstance(func, graph.Function):
        for p in func.params:
            yield from _info_dims(p.sinfo)


def _info_dims(info: graph.StructInfo) -> Iterator[tir.Expr]:
    if isinstance(info, graph.TensorInfo):
        yield from info.shape or ()
    elif isinstance(info, graph.ShapeInfo):
        yield from info.values or ()
    elif isinstance(info, graph.TupleInfo):
        for f in info.fields:
            yield from _info_dims(f)


def runnable(func: BaseFunc) -> bool:
    """Whether arguments can be made up: every parameter is a tensor of known rank and dtype, a shape or a number."""
    if isinstance(func, tir.PrimFunc):
        return all(p in func.buffers or not p.dtype.is_handle for p in func.params) and func.attrs.get("kind") != "task"
    return isinstance(func, graph.Function) and all(_known(p.sinfo) for p in func.params)


def _known(info: graph.StructInfo) -> bool:
    if isinstance(info, graph.TupleInfo):
        return all(map(_known, info.fields))
    if isinstance(info, graph.TensorInfo):
        return info.shape is not None and info.dtype is not None
    return isinstance(info, graph.PrimInfo) or (isinstance(info, graph.ShapeInfo) and info.values is not None)


def make_case(func: BaseFunc, sizes: tuple[int, ...], seed: int = 0, positive: bool = False) -> Case:
    """Arguments for ``func`` with its symbolic dimensions set from ``sizes``; ``positive``: no negative numbers, ints
    all 0.
    """
    rng = np.random.default_rng(seed)
    dims: Dims = {v: sizes[k % len(sizes)] for k, v in enumerate(size_vars(func))}
    named = {v.name: n for v, n in dims.items()}
    if isinstance(func, tir.PrimFunc):
        return Case(named, [_argument(func, p, dims, rng, positive) for p in host_params(func)])
    return Case(named, [_value(p.sinfo, dims, rng, positive) for p in func.params])  # type: ignore[attr-defined]


def host_params(func: tir.PrimFunc) -> tuple[tir.Var, ...]:
    """The parameters that a caller gives: of a host function its inputs alone."""
    return (
        func.params[: int(func.attrs["num_inputs"])]
        if func.attrs.get("kind") == "host" and "num_inputs" in func.attrs
        else func.params
    )


def _argument(func: tir.PrimFunc, p: tir.Var, dims: Dims, rng: np.random.Generator, positive: bool) -> Any:
    buffer = func.buffers.get(p)
    if buffer is None:
        return dims[p] if p in dims else draw((), p.dtype, rng, positive).item()
    shape = tuple(evaluate(e, dims) for e in buffer.shape)
    return draw(shape if buffer.dtype.lanes == 1 else (*shape, buffer.dtype.lanes), buffer.dtype.element, rng, positive)


def _value(info: graph.StructInfo, dims: Dims, rng: np.random.Generator, positive: bool) -> Any:
    if isinstance(info, graph.TupleInfo):
        return tuple(_value(f, dims, rng, positive) for f in info.fields)
    if isinstance(info, graph.ShapeInfo):
        return ShapeValue(evaluate(e, dims) for e in info.values or ())
    if isinstance(info, graph.PrimInfo):
        return evaluate(info.value, dims) if info.value is not None else draw((), info.dtype, rng, positive).item()
    assert isinstance(info, graph.TensorInfo) and info.dtype is not None
    return draw(tuple(evaluate(e, dims) for e in info.shape or ()), info.dtype, rng, positive)


def draw(shape: tuple[int, ...], dtype: DType, rng: np.random.Generator, positive: bool = False) -> np.ndarray:
    """Random elements: normal floats, integers that are likely to be valid indices, bytes over their whole range."""
    if dtype.is_bool:
        return rng.random(shape) < 0.5
    if dtype.is_float:
        values = rng.standard_normal(shape)
        return np.asarray(np.abs(values) + 0.1 if positive else values).astype(dtype.numpy)
    if positive:
        return np.zeros(shape, dtype.numpy)
    if dtype.bits == 8:
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype.numpy)
    return rng.integers(0, 2, shape).astype(dtype.numpy)


def execute(runtime: Runtime, name: str, case: Case) -> Any:
    """The results on a copy of the arguments: what a graph or host function returns, or all arguments of a tensor
    program.
    """
    args = case.copy()
    out = runtime.call(name, args)
    func = runtime.mod[name]
    if isinstance(func, tir.PrimFunc) and func.attrs.get("kind") != "host":
        return tuple(a for a in args if isinstance(a, np.ndarray))
    return out
