# SPDX-License-Identifier: Apache-2.0
"""Calls whose arguments are NumPy arrays: the C runtime reads them where they are, and what depends on the function alone is prepared once.

A compiled extension relies on the same layout of NumPy's arrays. It is compared with an array's own account before it is used; where it is
another one (another interpreter, a build for debugging), calls go the general way, through DLPack.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from ctypes import c_int, c_int32, c_ssize_t, c_uint32, c_void_p

import numpy as np

from . import library


class _Array(ctypes.Structure):
    """What follows an object's header in an array."""

    _fields_ = (("data", c_void_p), ("nd", c_int), ("dimensions", c_void_p), ("strides", c_void_p), ("base", c_void_p), ("type", c_void_p),
                ("flags", c_int))


class _RdArrays(ctypes.Structure):
    """``RdArrays`` of the runtime."""

    _fields_ = (("model", c_void_p), ("function", c_int32), ("header", c_int32), ("type_at", c_int32), ("items", c_int32), ("array_type", c_void_p),
                ("types", c_void_p), ("save_thread", c_void_p), ("restore_thread", c_void_p))


class _Exchange(ctypes.Structure):
    """``DLPackExchangeAPI`` of DLPack 1."""

    _fields_ = (("major", c_uint32), ("minor", c_uint32), *((name, c_void_p) for name in ("older", "allocate", "take", "give", "describe", "stream")))


Invoke = Callable[..., int]
HEADER, _ITEMS = object.__basicsize__, tuple.__basicsize__
_TYPE_AT = HEADER - ctypes.sizeof(c_void_p)  # the last of the header


@functools.cache
def readable() -> bool:
    """Do arrays and tuples lie in memory as the runtime reads them?"""
    if sys.implementation.name != "cpython":
        return False
    array = np.zeros((3, 5), np.float32)[:, 1:]
    places = (array, None)
    seen = _Array.from_address(id(array) + HEADER)
    if c_void_p.from_address(id(array) + _TYPE_AT).value != id(np.ndarray) or (seen.data, seen.nd) != (array.ctypes.data, 2):
        return False
    if (seen.type, seen.flags, seen.base) != (id(array.dtype), array.flags.num, id(array.base)):
        return False
    sizes = tuple((c_ssize_t * 4).from_address(seen.dimensions)) if seen.strides == seen.dimensions + 2 * ctypes.sizeof(c_ssize_t) else ()
    return sizes == (*array.shape, *array.strides) and c_void_p.from_address(id(places) + _ITEMS).value == id(array)


def caller(runtime: ctypes.CDLL, handle: int, index: int, dtypes: Sequence[np.dtype]) -> Invoke | None:
    """Runs a function, whose parameters and results have those types, on a tuple of arrays and a tuple of as many arrays for its results.

    With a third argument they are tensors, which the function at an address that `describer` gave describes; it raises what that does.
    The status of the run is returned, or -1 where one of them is no array of its type, and nothing was done. None: this
    interpreter, or the runtime in a file of an earlier version, cannot.
    """
    if not hasattr(runtime, "rd_call_arrays") or not readable():
        return None
    types = (c_void_p * len(dtypes))(*map(id, dtypes))
    save, restore = (ctypes.cast(getattr(ctypes.pythonapi, n), c_void_p).value for n in ("PyEval_SaveThread", "PyEval_RestoreThread"))
    call = _RdArrays(handle, index, HEADER, _TYPE_AT, _ITEMS, id(np.ndarray), ctypes.addressof(types), save, restore)
    run, place = _function(library.address(runtime, "rd_call_arrays")), ctypes.addressof(call)
    kept = (call, types, tuple(dtypes), runtime)

    def invoke(arguments: tuple, results: tuple, describe: int | None = None, kept: tuple = kept) -> int:
        status: int = run(place, id(arguments), id(results), describe)
        return status

    return invoke


@functools.cache
def describer(kind: type) -> int | None:
    """Address of the C function by which a library describes tensors of its type (DLPack's ``__dlpack_c_exchange_api__``), or None."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or sys.implementation.name != "cpython":
        return None
    table = _Exchange.from_address(_capsule_pointer(capsule, b"dlpack_exchange_api"))
    return table.describe if table.major == 1 else None


_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_function = ctypes.PYFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)  # unlike CFUNCTYPE, it keeps Python's lock
