# SPDX-License-Identifier: Apache-2.0
"""Constant tensors as handles into a content-hashed pool: the IR holds keys, never literals."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable

import numpy as np

from .dtype import DType

_pool: weakref.WeakValueDictionary[str, ConstData] = weakref.WeakValueDictionary()


class ConstData:
    """An array (or the recipe that reads it, for memory-mapped weights) with a key made from its content.

    ``key`` is ``"sha:<hex>"`` over dtype, shape and bytes, computed on first use.
    """

    __slots__ = ("__weakref__", "_array", "_key", "_load", "dtype", "shape")

    def __init__(self, array: np.ndarray | None = None, *, load: Callable[[], np.ndarray] | None = None,
                 shape: tuple[int, ...] | None = None, dtype: DType | None = None) -> None:
        if array is not None:
            array = np.asarray(array)
            array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        self._array, self._load, self._key = array, load, None
        self.shape = tuple(array.shape) if array is not None else tuple(shape or ())
        self.dtype = DType(array.dtype if array is not None else dtype)

    def numpy(self) -> np.ndarray:
        """The array, C-contiguous; do not write to it."""
        if self._array is None:
            self._array = np.ascontiguousarray(self._load())  # type: ignore[misc]
        return self._array

    @property
    def nbytes(self) -> int:
        return self.dtype.nbytes(int(np.prod(self.shape, dtype=np.int64)))

    @property
    def key(self) -> str:
        if self._key is None:
            array = self.numpy()
            digest = hashlib.sha256(f"{self.dtype}{self.shape}".encode())
            digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
            self._key = "sha:" + digest.hexdigest()[:32]
            _pool.setdefault(self._key, self)
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstData):
            return NotImplemented
        return self is other or (self.shape == other.shape and self.dtype == other.dtype and self.key == other.key)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ConstData({self.dtype}{list(self.shape)})"


def lookup(key: str) -> ConstData:
    """The live constant with this key; raises KeyError when no module of this process holds it."""
    return _pool[key]
