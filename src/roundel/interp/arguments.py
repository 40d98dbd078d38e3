# SPDX-License-Identifier: Apache-2.0
"""Binds the arguments of a tensor program: scalars, buffers to memory, size variables to what the shapes say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..ir import tir
from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.errors import CallError
from ..ir.visit import free_vars
from .memory import Pointer, View, pack, row_major, unpack
from .numeric import Machine
from .stmt import Executor
from .symbolic import evaluate, solve


@dataclass(slots=True)
class Copied:
    """An array whose elements were converted or rearranged for the call, to be written back after it."""

    array: np.ndarray
    view: View

    def write_back(self, machine: Machine) -> None:
        """Copy the elements back into the caller's array."""
        if self.view.packed:
            count = self.array.size
            self.array[...] = unpack(self.view.storage, np.arange(count), self.view.dtype).reshape(self.array.shape)
        elif self.array.size:
            kept = _elements(self.view)
            self.array[...] = kept if self.array.dtype == kept.dtype else machine.lower(kept, self.view.dtype)


def _elements(view: View) -> np.ndarray:
    """All elements; vector elements add a last dimension."""
    if view.dtype.lanes == 1:
        return view.array()
    strides = (*(s * view.itemsize for s in view.strides), view.itemsize)
    return np.ndarray((*view.shape, view.dtype.lanes), view.numpy, view.storage.data, view.offset, strides)


def bind(ex: Executor, func: tir.PrimFunc, args: Sequence[Any]) -> list[Copied]:
    """Bind parameters to arrays, Pointers and numbers; returns what must be written back after the call."""
    if len(args) != len(func.params):
        raise CallError(
            f"{ex.name} takes {len(func.params)} arguments, {len(args)} were given",
            why=f"its parameters are {', '.join(p.name for p in func.params)}",
        )
    buffers = func.buffers
    tensors = []
    for p, a in zip(func.params, args, strict=True):
        if p in buffers:
            tensors.append(
                (p, buffers[p], a if isinstance(a, Pointer | np.ndarray) else np.asarray(a, buffers[p].dtype.numpy))
            )
        else:
            ex.env[p] = _scalar(ex, p, a)
    _solve_shapes(ex, tensors)
    shared: dict[int, Pointer] = {}
    copies = []
    for p, buffer, a in tensors:
        if isinstance(a, Pointer):
            ex.env[p] = ex.env[buffer.data] = a
            if all(v in ex.env for e in buffer.shape for v in free_vars(e)):  # else its shape depends on data
                ex.declare(buffer, a)
            continue
        fresh = id(a) not in shared
        pointer = shared.setdefault(id(a), _memory(ex, buffer, a)) if fresh else shared[id(a)]
        ex.env[p] = ex.env[buffer.data] = pointer
        view = ex.declare(buffer, pointer)
        if fresh and a.size and a.flags.writeable and not np.shares_memory(pointer.storage, a):
            copies.append(Copied(a, view))
    return copies


def _scalar(ex: Executor, p: tir.Var, a: Any) -> Any:
    if p.dtype.is_handle:
        return Pointer(storage_of(ex.machine, a), 0, a.shape) if isinstance(a, np.ndarray) else a
    if isinstance(a, np.ndarray) and a.size == 1:
        a = a.reshape(()).item()
    if isinstance(a, np.ndarray | Pointer | str | tuple) or a is None:
        raise CallError(f"argument {p.name} of {ex.name} is a {p.dtype}", why=f"got {type(a).__name__}")
    if p.dtype.kind == "int" and p.dtype.bits >= 32:
        return int(a)
    return bool(a) if p.dtype.is_bool else ex.machine.const(a, p.dtype)


def _solve_shapes(ex: Executor, tensors: list[tuple]) -> None:
    equations = []
    for _, buffer, a in tensors:
        shape = a.shape
        if shape is None:
            continue
        if isinstance(a, np.ndarray):
            if a.dtype not in (buffer.dtype.numpy, ex.machine.numpy(buffer.dtype)):
                raise CallError(f"argument {buffer.name} of {ex.name} is {buffer.dtype}, got {a.dtype}")
            shape = shape[:-1] if buffer.dtype.lanes > 1 else shape
            if len(shape) != buffer.ndim:
                raise CallError(f"argument {buffer.name} of {ex.name} has {buffer.ndim} dimensions, got shape {shape}")
        elif len(shape) != buffer.ndim:
            continue
        equations += [
            (e, n, f"dimension {d} of argument {buffer.name} of {ex.name}")
            for d, (e, n) in enumerate(zip(buffer.shape, shape))
            if isinstance(a, np.ndarray) or (type(e) is tir.Var and e not in ex.env)
        ]
    solve(equations, ex.env)
    for _, buffer, _ in tensors:
        compact = row_major(tuple(evaluate(n, ex.env) for n in buffer.shape)) if buffer.strides else ()
        for stride, n in zip(buffer.strides, compact):
            if type(stride) is tir.Var:
                ex.env.setdefault(stride, n)
        if type(buffer.elem_offset) is tir.Var:
            ex.env.setdefault(buffer.elem_offset, 0)


def _memory(ex: Executor, buffer: tir.Buffer, a: np.ndarray) -> Pointer:
    """The memory of an array argument, laid out as the buffer says: shared where it is so already."""
    shape = tuple(evaluate(n, ex.env) for n in buffer.shape)
    compact = row_major(shape)
    strides = tuple(evaluate(s, ex.env) for s in buffer.strides) if buffer.strides else compact
    start = 0 if buffer.elem_offset is None else -ex.byte_offset(buffer.dtype, evaluate(buffer.elem_offset, ex.env))
    if all(s == c for s, c, n in zip(strides, compact, shape) if n != 1):
        return Pointer(storage_of(ex.machine, a, buffer.dtype.element), start, shape)
    machine, lanes = ex.machine, buffer.dtype.lanes
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if a.size else 0
    storage = np.zeros(extent * machine.itemsize(buffer.dtype) * lanes, np.uint8)
    view = View(
        buffer.name,
        buffer.dtype,
        storage,
        0,
        shape,
        tuple(s * lanes for s in strides),
        machine.numpy(buffer.dtype),
        machine.itemsize(buffer.dtype),
    )
    if a.size:
        _elements(view)[...] = machine.lift(a)
    return Pointer(storage, start, shape)


def storage_of(machine: Machine, a: np.ndarray, dtype: DType | None = None) -> np.ndarray:
    """An array's elements as bytes: shared where it is contiguous and of the type the machine keeps, else a converted
    copy.
    """
    dtype = dtype or DType(a.dtype)
    if dtype.storage_bits < 8:
        return pack(np.ascontiguousarray(a), dtype)
    size = machine.itemsize(dtype)
    if size == a.itemsize and machine.numpy(dtype) == a.dtype:
        return np.ascontiguousarray(a).reshape(-1).view(np.uint8)
    storage = np.zeros(a.size * size, np.uint8)
    if a.size:
        np.ndarray((a.size,), machine.numpy(dtype), storage.data, 0, (size,))[...] = machine.lift(a.reshape(-1))
    return storage


Region = tuple[tir.Var, np.ndarray, int, int | None]


def aliases(ex: Executor, func: tir.PrimFunc) -> dict[tir.Var, tuple[Any, int]]:
    """Data pointers of parameters that may share memory: each with a representative and its distance in bytes."""
    groups: list[list[Region]] = []
    for region in _regions(ex, func):
        apart = [g for g in groups if not any(_meet(region, r) for r in g)]
        joined = [r for g in groups if any(_meet(region, r) for r in g) for r in g]
        groups = [*apart, [*joined, region]]
    shared = [g for g in groups if len(g) > 1]
    return {p: (g[0][0], (start - g[0][2]) // ex.machine.scale) for g in shared for p, _, start, _ in g}


def _meet(a: Region, b: Region) -> bool:
    _, held, start, size = a
    _, other, low, extent = b
    if size is None or extent is None:
        return held is other
    return start < low + extent and low < start + size


def _regions(ex: Executor, func: tir.PrimFunc) -> Iterator[Region]:
    """Pointers of parameters with their storage, first address and number of bytes (None: not known)."""
    buffers = func.buffers
    for p in func.params:
        value = ex.env.get(p)
        if not isinstance(value, Pointer) or type(value.offset) is not int:
            continue
        extent = None
        if p in buffers and buffers[p] in ex.views:
            view = ex.views[buffers[p]]
            if 0 in view.shape:
                continue
            extent = (1 + sum((n - 1) * abs(s) for n, s in zip(view.shape, view.strides))) * view.itemsize
        start = value.storage.__array_interface__["data"][0] + value.offset
        yield buffers[p].data if p in buffers else p, value.storage, start, extent
