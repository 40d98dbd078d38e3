# SPDX-License-Identifier: Apache-2.0
"""Constant tensors as handles into a content-hashed pool: the IR holds keys, never literals."""

from __future__ import annotations

import hashlib
import math
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .dtype import DType

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_pool: weakref.WeakValueDictionary[str, ConstData] = weakref.WeakValueDictionary()

SMALL = 4096
"""Bytes of a constant that is not worth waiting with."""
_LARGE = 1 << 20  # bytes of an array whose lines the caches do not keep until their neighbours are copied
_TOGETHER = 64    # elements of its last axis that are copied at a time: some lines of what is written


def in_order(array: np.ndarray) -> np.ndarray:
    """The array, C-contiguous, copied only if need be. A large transposed one is copied in blocks (NumPy goes along whole rows of it, and reads each line
    of what it was transposed from many times)."""
    if array.flags.c_contiguous or array.nbytes < _LARGE or array.strides[-1] <= array.itemsize or array.shape[-1] <= _TOGETHER:
        return np.ascontiguousarray(array)
    out = np.empty(array.shape, array.dtype)
    for at in range(0, array.shape[-1], _TOGETHER):
        out[..., at : at + _TOGETHER] = array[..., at : at + _TOGETHER]
    return out


class ConstData:
    """An array (or what reads it from a file whenever it is asked for) with a key made from its content.

    ``key`` is ``"sha:<hex>"`` over dtype, shape and bytes, or of a constant made from others (``derived``) over their keys
    and how it is made; computed on first use.
    """

    __slots__ = ("__weakref__", "_array", "_hashed", "_key", "_load", "_pooled", "_recipe", "_seen", "dtype", "shape")

    def __init__(self, array: np.ndarray | None = None, *, load: Callable[[], np.ndarray] | None = None,
                 shape: tuple[int, ...] | None = None, dtype: DType | None = None) -> None:
        if array is not None:
            array = np.asarray(array)
            array = array if array.flags.c_contiguous else in_order(array)
        self._array, self._load, self._key = array, load, None
        self._recipe: tuple[tuple[ConstData, ...], str] | None = None
        self._hashed: Future[str] | None = None
        self._seen: weakref.ref[np.ndarray] | None = None
        self._pooled: ConstData | None = None
        self.shape = tuple(array.shape) if array is not None else tuple(shape or ())
        self.dtype = DType(array.dtype if array is not None else dtype)

    @classmethod
    def derived(cls, function: Callable[..., np.ndarray], sources: tuple[ConstData, ...], recipe: str, *,
                shape: tuple[int, ...], dtype: DType) -> ConstData:
        """``function`` of the arrays of ``sources``, made when it is asked for and kept no longer than somebody holds it: packed
        weights are as large as the model. ``recipe`` says what the function does; equal recipes of equal sources are equal.
        Small constants are made at once."""
        if dtype.nbytes(math.prod(shape)) <= SMALL:  # scripts write them out: content decides what is equal
            small = cls(np.ascontiguousarray(function(*(s.numpy() for s in sources))).reshape(shape))
            small.dtype = DType(dtype)
            return small
        made = cls(load=lambda: function(*(s.numpy() for s in sources)), shape=shape, dtype=dtype)
        made._recipe = sources, recipe
        return made

    def numpy(self) -> np.ndarray:
        """The array, C-contiguous; do not write to it."""
        array = self._array if self._seen is None else self._seen()
        if array is None:
            array = in_order(self._load())  # type: ignore[misc]
            self._seen = weakref.ref(array)
        return array

    @property
    def nbytes(self) -> int:
        """Bytes of the content, elements of less than a byte packed."""
        return self.dtype.nbytes(math.prod(self.shape))

    @property
    def key(self) -> str:
        """The hash of type, shape and content, by which the pool knows it."""
        if self._key is None:
            hashed, self._hashed = self._hashed, None
            self._key = "sha:" + (self._digest() if hashed is None or hashed.cancel() else hashed.result())[:32]
            known = _pool.setdefault(self._key, self)
            self._pooled = known if known is not self else None  # an equal constant stands for this one and must live as long
        return self._key

    def _digest(self) -> str:
        digest = hashlib.sha256(f"{self.dtype}{self.shape}".encode())
        if self._recipe is None:
            array = self.numpy()
            digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
        else:
            sources, recipe = self._recipe
            digest.update(repr((recipe, [s.key for s in sources])).encode())
        return digest.hexdigest()

    def hash_ahead(self, threads: Executor) -> None:
        """Have the content hashed by a thread meanwhile; who asks for the key before it has begun does so himself."""
        if self._key is None and self._hashed is None and self._recipe is None:
            self._hashed = threads.submit(self._digest)

    def leaves(self) -> Iterator[ConstData]:
        """The constants that this one is made from in the end, or itself."""
        if self._recipe is None:
            yield self
        else:
            for source in self._recipe[0]:
                yield from source.leaves()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstData):
            return NotImplemented
        return self is other or (self.shape == other.shape and self.dtype == other.dtype and self.key == other.key)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ConstData({self.dtype}{list(self.shape)})"


def restored(key: str, array: np.ndarray, dtype: DType) -> ConstData:
    """The constant of this key, which was kept elsewhere; the living one where there is one."""
    made = ConstData(array)
    made.dtype, made._key = dtype, key
    return _pool.setdefault(key, made)


def lookup(key: str) -> ConstData:
    """The live constant with this key; raises KeyError when no module of this process holds it."""
    return _pool[key]
