# SPDX-License-Identifier: Apache-2.0
"""Memory of results that append to an input (KV caches): allocated with room, and handed out row by row.

A result is a view of a larger memory that remembers how many of its rows have been given out. When a call's input is exactly what was
given out last, the result is the same view with more rows, and only these are written. Otherwise (the memory is foreign, full, or has
grown from that input already) the result gets new memory, and what the input holds is copied there once. There is room in it if the input
is empty or a result itself: who appends to an array of his own gets a compact result, and it is copied once more if it comes back.

Nobody's result changes behind his back: while several results (as NumPy arrays) lie in one memory, none of them can be written into.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.dtype import DType
from . import tensors

_ROOM_BYTES = 1 << 20  # that much room even where a cache is short, for at most _ROOM_ROWS rows
_ROOM_ROWS = 64
_ALIGNMENT = 64


class Memory:
    """One memory, ``rows`` of whose rows along ``axis`` have been given out. It does not keep itself alive: its views do."""

    __slots__ = ("address", "axis", "capacity", "dtype", "inner", "offset", "outer", "owner", "results", "rows", "strides")

    def __init__(self, shape: Sequence[int], axis: int, dtype: DType, room: bool) -> None:
        self.outer, self.rows, self.inner, self.axis, self.dtype = tuple(shape[:axis]), shape[axis], tuple(shape[axis + 1 :]), axis, dtype
        self.capacity = _capacity(shape, axis, dtype.numpy.itemsize) if room else self.rows
        self.strides, self.address, self.offset, self.owner = (), 0, 0, None
        self.results: list[weakref.ref[np.ndarray]] = []

    def allocate(self) -> np.ndarray:
        """Its bytes, known by their address as long as they are alive."""
        strides, step = [], self.dtype.numpy.itemsize
        for dim in reversed((*self.outer, self.capacity, *self.inner)):
            strides.append(step)
            step *= dim
        self.strides = tuple(reversed(strides))
        raw = np.empty(step + _ALIGNMENT, np.uint8)
        address = tensors.address(raw)
        self.offset = -address % _ALIGNMENT
        self.address = address + self.offset
        self.owner = weakref.ref(raw, functools.partial(_forget, self.address))
        _known[self.address] = self
        return raw

    def holds(self, past: Any, shape: tuple[int, ...]) -> bool:
        """Whether ``past``, which begins where the memory does, has the rows that were given out, and there is room for ``shape``."""
        axis = self.axis
        if type(past) is np.ndarray:
            strides = past.strides
        else:
            size = self.dtype.numpy.itemsize
            strides = tuple(s * size for s in past.stride())
        return strides == self.strides and past.shape[axis] == self.rows and shape[axis] <= self.capacity \
            and self.outer == shape[:axis] and self.inner == shape[axis + 1 :]

    def share(self, result: np.ndarray) -> None:
        """One more array that lies here."""
        if self.results:
            others = [array for r in self.results.copy() if (array := r()) is not None]
            for array in (*others, result) if others else ():
                array.setflags(write=False)
        self.results.append(weakref.ref(result, self._gone))

    def _gone(self, result: weakref.ref[np.ndarray]) -> None:
        self.results.remove(result)
        if len(self.results) == 1 and (last := self.results[0]()) is not None:
            last.setflags(write=True)


def _forget(address: int, _: Any) -> None:
    _known.pop(address, None)


_known: dict[int, Memory] = {}  # by address, while a view is alive
_lock = threading.Lock()  # of all their `rows`


def _capacity(shape: Sequence[int], axis: int, itemsize: int) -> int:
    """Half as many rows again, so that copying adds up to a constant per row; odd, so that heads do not fall on the same cache sets."""
    row = itemsize
    for k, dim in enumerate(shape):
        row *= dim if k != axis else 1
    rows = shape[axis]
    return (rows + max(rows // 2, min(_ROOM_ROWS, -(-_ROOM_BYTES // max(row, 1))))) | 1


class Growth:
    """The results of one call that are caches: gives them memory, and takes back what was given when the call fails."""

    def __init__(self) -> None:
        self.claimed: list[tuple[Memory, int, int]] = []  # and how many rows it had, and has now
        self.arrays: list[tuple[Memory, np.ndarray]] = []

    def __enter__(self) -> Growth:
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        if error is None:
            for memory, array in self.arrays:
                memory.share(array)
            return
        with _lock:
            for memory, before, now in self.claimed:
                if memory.rows == now:
                    memory.rows = before

    def result(self, past: Any, shape: tuple[int, ...], axis: int, dtype: DType, torch: Any) -> Any:
        """An array (a PyTorch tensor with ``torch``) of this shape that begins with ``past``, if that is known to be possible."""
        array = self.array(past, shape, axis, dtype, torch is None)
        return array if torch is None else _as_torch(array, dtype, torch)

    def array(self, past: Any, shape: tuple[int, ...], axis: int, dtype: DType, is_shared: bool = True) -> np.ndarray:
        """The same as an array; ``is_shared``: it is what the caller gets."""
        if 0 in shape and 0 in (*shape[:axis], *shape[axis + 1 :]):
            return tensors.empty(shape, dtype.numpy)
        memory = _known.get(_address(past))
        owner = None if memory is None else memory.owner()
        if owner is None or memory.dtype is not dtype or not self._claims(memory, past, shape):
            memory, owner = _new(shape, axis, dtype, memory is not None or 0 in past.shape)
        array = np.ndarray(shape, dtype.numpy, owner, memory.offset, memory.strides)
        if is_shared:
            self.arrays.append((memory, array))
        return array

    def _claims(self, memory: Memory, past: Any, shape: tuple[int, ...]) -> bool:
        """Take more rows of a memory, where they can be had."""
        with _lock:
            if not memory.holds(past, shape):
                return False
            rows = shape[memory.axis]
            self.claimed.append((memory, memory.rows, rows))
            memory.rows = rows
        return True


def _new(shape: tuple[int, ...], axis: int, dtype: DType, room: bool) -> tuple[Memory, np.ndarray]:
    memory = Memory(shape, axis, dtype, room)
    return memory, memory.allocate()


def _address(value: Any) -> int:
    if type(value) is np.ndarray:
        return tensors.address(value)
    return value.data_ptr() if tensors.torch_module(value) is not None else 0


def _as_torch(array: np.ndarray, dtype: DType, torch: Any) -> Any:
    kind = getattr(torch, dtype.element, None)
    if kind is None:
        return array
    if array.dtype.kind in "biufc":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"i{array.dtype.itemsize}")).view(kind)
