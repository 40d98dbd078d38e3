# SPDX-License-Identifier: Apache-2.0
"""Memory of interpreted programs: byte storages, pointers into them, typed views, loads and stores of many lanes at
once.

A pointer is (storage, byte offset); buffers are views over pointers, so buffers that share a ``data`` pointer alias as
in native code. The offset may vary over lanes: memory allocated inside lanes is private to each and simply has their
strides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.errors import InterpretError
from . import lanes
from .lanes import Lin, bounds, dense

POISON = 0xFF  # fresh memory: NaN for floats


@dataclass(slots=True)
class Pointer:
    """``offset`` bytes (an index value) into ``storage`` (a uint8 array); ``shape`` is what the buffer it came from
    has, where known.
    """

    storage: np.ndarray
    offset: Any = 0
    shape: tuple[int, ...] | None = None


@dataclass(slots=True)
class View:
    """A typed view: ``offset`` in bytes; ``strides`` in elements; ``numpy`` the type elements are kept as, ``itemsize``
    bytes apart.
    """

    name: str
    dtype: DType
    storage: np.ndarray
    offset: Any
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    numpy: np.dtype
    itemsize: int

    @property
    def packed(self) -> bool:
        """Several elements per byte (int4 and the like)."""
        return self.dtype.storage_bits < 8

    def array(self) -> np.ndarray:
        """The whole view as an array that shares memory (unpacked copy for packed types); uniform views only."""
        if self.packed:
            count = int(np.prod(self.shape, dtype=np.int64))
            return unpack(self.storage, np.arange(count) + self.offset * 8 // self.dtype.bits, self.dtype).reshape(
                self.shape
            )
        if 0 in self.shape:
            return np.empty(self.shape, self.numpy)
        return np.ndarray(
            self.shape, self.numpy, self.storage.data, self.offset, tuple(s * self.itemsize for s in self.strides)
        )


def row_major(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides in elements of a C-contiguous array."""
    strides: list[Any] = []
    step: Any = 1
    for n in reversed(shape):
        strides.append(step)
        step = lanes.mul(step, n)
    return tuple(reversed(strides))


def allocate(nbytes: int, axes: list[int]) -> Pointer:
    """Fresh poisoned memory, ``nbytes`` for each lane of ``axes`` (their extents, outermost first)."""
    size = (nbytes + 63) // 64 * 64
    terms, step = {}, size
    for axis, extent in enumerate(axes, 1):
        if extent != 1:
            terms[axis] = (step, extent)
        step *= extent
    storage = np.full(step, POISON, np.uint8)
    return Pointer(storage, Lin(0, terms) if terms else 0)


def pack(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements of a sub-byte type, stored contiguously as bytes, low bits first."""
    per = 8 // dtype.bits
    codes = array.reshape(-1).view(np.uint8) & ((1 << dtype.bits) - 1)
    codes = np.concatenate([codes, np.zeros(-len(codes) % per, np.uint8)]).reshape(-1, per)
    return np.bitwise_or.reduce(codes << (np.arange(per, dtype=np.uint8) * dtype.bits), axis=1).astype(np.uint8)


def unpack(storage: np.ndarray, elements: Any, dtype: DType) -> np.ndarray:
    """The elements at these positions of packed storage."""
    per = 8 // dtype.bits
    elements = np.asarray(elements)
    codes = (storage[elements // per] >> ((elements % per) * dtype.bits).astype(np.uint8)) & np.uint8(
        (1 << dtype.bits) - 1
    )
    if dtype.kind == "int":
        sign = 1 << (dtype.bits - 1)
        return ((codes.astype(np.int8) ^ sign) - sign).astype(np.int8).astype(dtype.numpy)
    return codes.astype(np.uint8).view(dtype.numpy)


def _insert(storage: np.ndarray, elements: np.ndarray, values: np.ndarray, dtype: DType) -> None:
    per = 8 // dtype.bits
    field = (1 << dtype.bits) - 1
    codes = np.ascontiguousarray(values).view(np.uint8) & field
    shifts = ((elements % per) * dtype.bits).astype(np.uint8)
    for k in range(per):  # two elements of one byte must not be written at once
        at = shifts == k * dtype.bits
        where = elements[at] // per
        storage[where] = (storage[where] & np.uint8(~(field << (k * dtype.bits)) & 0xFF)) | (
            codes[at] << np.uint8(k * dtype.bits)
        )


def _outside(view: View, indices: list[Any], mask: Any) -> None:
    """Raises for the first active lane whose index is out of bounds."""
    for d, (i, n) in enumerate(zip(indices, view.shape, strict=True)):
        bad = lanes.less(i, 0) | lanes.less(lanes.sub(n, 1), i)
        bad = bad if mask is None else bad & mask
        if np.any(bad):
            where, *values = np.broadcast_arrays(bad, *map(dense, indices))
            at = tuple(int(v[where][0]) for v in values)
            shape = tuple(bounds(s)[1] for s in view.shape)
            raise InterpretError(
                f"index {at} is out of bounds of buffer {view.name} of shape {shape}",
                why=f"dimension {d} has indices 0 to {shape[d] - 1}",
            )


def _inside(view: View, indices: list[Any]) -> bool:
    """Whether every lane, active or not, is within bounds (decided from ranges)."""
    for i, n in zip(indices, view.shape, strict=True):
        if type(i) is int and type(n) is int:
            if not 0 <= i < n:
                return False
        else:
            lo, hi = bounds(i)
            if lo < 0 or hi >= bounds(n)[0]:
                return False
    return True


def address(view: View, indices: list[Any]) -> Any:
    """Byte address in the storage of an element (for packed types its number), as an index value."""
    if view.packed:
        return _number(view, indices, lanes.floordiv(lanes.mul(view.offset, 8), view.dtype.bits), 1)
    return _number(view, indices, view.offset, view.itemsize)


def _number(view: View, indices: list[Any], start: Any, size: int) -> Any:
    """``start`` plus the element's number times ``size``."""
    out = start
    for i, s in zip(indices, view.strides, strict=True):
        out = lanes.add(out, lanes.mul(i, lanes.mul(s, size)))
    return lanes.add(out, Lin(0, {0: (size, view.dtype.lanes)})) if view.dtype.lanes > 1 else out


def _in_storage(view: View, at: Any) -> bool:
    """Whether the address is affine and every lane's element, active or not, lies in memory (a view may begin outside in inactive ones)."""
    if isinstance(at, np.ndarray):
        return False
    low, high = bounds(at)
    return low >= 0 and high + view.itemsize <= view.storage.size


def _strided(view: View, at: Any) -> np.ndarray:
    """The elements at an affine address, as a view of memory; axes on which it does not depend have extent 1."""
    if type(at) is int:
        return np.ndarray((), view.numpy, view.storage.data, at)
    rank = max(at.terms) + 1
    shape, strides = [1] * rank, [0] * rank
    for axis, (c, n) in at.terms.items():
        shape[-1 - axis], strides[-1 - axis] = n, c
    return np.ndarray(tuple(shape), view.numpy, view.storage.data, at.base, tuple(strides))


def load(view: View, indices: list[Any], mask: Any = None) -> Any:
    """The elements at ``indices`` (index values, one per dimension), in lanes where ``mask`` holds; others get any
    value.

    The result may share memory: consume or copy it before the next store.
    """
    if not _inside(view, indices):
        _outside(view, indices, mask)
        if not np.any(True if mask is None else mask):
            return np.zeros((), view.numpy)[()]
        indices = [
            lanes.maximum(lanes.minimum(i, lanes.sub(n, 1)), 0) for i, n in zip(indices, view.shape, strict=True)
        ]
    if view.packed:
        return unpack(view.storage, dense(address(view, indices)), view.dtype)[()]
    at = (
        None
        if isinstance(view.offset, np.ndarray) or any(isinstance(i, np.ndarray) for i in indices)
        else address(view, indices)
    )
    if at is None or not _in_storage(view, at):
        flat, places = _flat(view, indices)
        return flat[places] if mask is None else flat[np.clip(places, 0, len(flat) - 1)]
    return _strided(view, at) if type(at) is Lin else _strided(view, at)[()]


def _flat(view: View, indices: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The storage as elements, and the positions in it of the elements at ``indices``."""
    phase = bounds(view.offset)[0] % view.itemsize
    flat = np.ndarray(
        ((view.storage.size - phase) // view.itemsize,), view.numpy, view.storage.data, phase, (view.itemsize,)
    )
    start = lanes.floordiv(lanes.sub(view.offset, phase), view.itemsize)
    return flat, np.asarray(dense(_number(view, indices, start, 1)))


def store(view: View, indices: list[Any], value: Any, mask: Any = None) -> None:
    """Writes ``value`` (typed, broadcast over lanes) at ``indices`` in lanes where ``mask`` holds; of lanes that meet,
    one wins.
    """
    if not view.storage.flags.writeable:
        raise InterpretError(f"buffer {view.name} is written, but the array passed for it is read-only")
    if not _inside(view, indices):
        _outside(view, indices, mask)
    elif not view.packed and _store_strided(view, address(view, indices), value, mask):
        return
    if view.packed:
        places, values = _chosen(np.asarray(dense(address(view, indices))), value, mask, view)
        _insert(view.storage, places, values, view.dtype)
        return
    flat, at = _flat(view, indices)
    places, values = _chosen(at, value, mask, view)
    flat[places] = values


def _chosen(at: np.ndarray, value: Any, mask: Any, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Places and values of the active lanes, flat."""
    shape = np.broadcast_shapes(at.shape, np.shape(value), np.shape(mask))
    places, values = np.broadcast_to(at, shape), np.broadcast_to(np.asarray(value, view.numpy), shape)
    if mask is None:
        return places.reshape(-1), values.reshape(-1)
    where = np.broadcast_to(mask, shape)
    return places[where], values[where]


def _store_strided(view: View, at: Any, value: Any, mask: Any) -> bool:
    """Store through a view of memory, when the address is affine and covers every axis of value and mask."""
    if not _in_storage(view, at):
        return False
    out = _strided(view, at)
    if not (fits(out, value) and fits(out, mask)):
        return False
    if mask is None:
        out[...] = trim(value, out.ndim)
    else:
        np.copyto(out, trim(value, out.ndim), where=trim(mask, out.ndim))
    return True


def affine_place(view: View, indices: list[Any]) -> np.ndarray | None:
    """The elements at ``indices`` as a writable view of memory; None where that is impossible or out of bounds."""
    if view.packed or not view.storage.flags.writeable or not _inside(view, indices):
        return None
    at = address(view, indices)
    return _strided(view, at) if _in_storage(view, at) else None


def fits(out: np.ndarray, other: Any) -> bool:
    """Whether ``other`` broadcasts to ``out`` once its leading dimensions of extent 1 are dropped."""
    if not isinstance(other, np.ndarray):
        return True
    extra = max(other.ndim - out.ndim, 0)
    rest = other.shape[extra:]
    return all(n == 1 for n in other.shape[:extra]) and all(
        n in (1, m) for n, m in zip(rest, out.shape[out.ndim - len(rest) :], strict=True)
    )


def trim(value: Any, ndim: int) -> Any:
    """``value`` without leading dimensions beyond ``ndim``."""
    return (
        value.reshape(value.shape[value.ndim - ndim :])
        if isinstance(value, np.ndarray) and value.ndim > ndim
        else value
    )
