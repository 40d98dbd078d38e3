# SPDX-License-Identifier: Apache-2.0
"""Arrays between pages that may not be touched: whatever is read or written outside of them ends the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Guarded:
    """Memory for one array of at most ``pages`` pages at a time."""

    def __init__(self, pages: int = 256) -> None:
        self.room = pages * PAGE
        self.memory = mmap.mmap(-1, self.room + 2 * PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for page in (self.base, self.base + PAGE + self.room):
            if _libc.mprotect(page, PAGE, mmap.PROT_READ * 0):
                raise OSError(ctypes.get_errno(), "mprotect failed")

    def array(self, shape: Sequence[int], dtype: np.dtype, at_end: bool) -> np.ndarray:
        """An array right before the page behind, or right behind the page before."""
        dtype = np.dtype(dtype)
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if nbytes > self.room:
            raise ValueError(f"{nbytes} bytes do not fit into {self.room}")
        start = PAGE + (self.room - nbytes if at_end else 0)
        return np.ndarray(shape, dtype, self.memory, start)


class Pool:
    """Guarded memory for the arrays of one call, each of at most ``pages`` pages, used again in the next."""

    def __init__(self, pages: int = 256) -> None:
        self.pages = pages
        self.free: list[Guarded] = []
        self.used: list[Guarded] = []
        self.at_end = True

    def reset(self, at_end: bool) -> None:
        """What was given out may be used again; ``at_end``: where arrays lie from now on."""
        self.free += self.used
        self.used, self.at_end = [], at_end

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """A new array with ones in all bits."""
        place = self.free.pop() if self.free else Guarded(self.pages)
        self.used.append(place)
        out = place.array(tuple(shape), dtype, self.at_end)
        out.reshape(-1).view(np.uint8)[...] = 0xFF
        return out

    def copy(self, array: np.ndarray) -> np.ndarray:
        """The array in guarded memory."""
        place = self.free.pop() if self.free else Guarded(self.pages)
        self.used.append(place)
        out = place.array(array.shape, array.dtype, self.at_end)
        out[...] = array
        return out
