# SPDX-License-Identifier: Apache-2.0
"""What ``R.print`` calls in compiled models: a function that is given to every runtime that Python loads."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np

from . import native, tensors

NAME = "roundel.print"


class _Value(ctypes.Union):
    _fields_ = (("i", c_int64), ("f", c_double), ("tensor", POINTER(native.DLTensor)), ("string", ctypes.c_char_p))


class _Arg(ctypes.Structure):
    _fields_ = (("kind", c_int64), ("value", _Value))


def _array(tensor: Any) -> np.ndarray:
    """A copy of a dense tensor."""
    dtype = native.dtype_of(tensor.code, tensor.bits, tensor.lanes)
    shape = tuple((c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()
    memory = native.view(tensor.data + tensor.byte_offset, dtype.nbytes(int(np.prod(shape, dtype=np.int64))))
    if tensors.is_packed(dtype):
        return tensors.unpack(memory, dtype, shape)
    return memory.view(dtype.numpy).reshape(shape).copy()


_READ = {
    1: lambda v: v.i,
    2: lambda v: v.f,
    3: lambda v: _array(v.tensor.contents),
    4: lambda v: v.string.decode(),
}


@ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, POINTER(_Arg))
def _print(user: Any, context: Any, count: int, args: Any) -> int:
    form, *values = (_READ[args[k].kind](args[k].value) for k in range(count))
    print(form.format(*values) if form else " ".join(map(str, values)), flush=True)
    return 0


def install(library: ctypes.CDLL) -> None:
    """Make the function known to a runtime."""
    register = library.roundel_register
    register.restype, register.argtypes = c_int32, [ctypes.c_char_p, c_void_p, c_void_p]
    register(NAME.encode(), ctypes.cast(_print, c_void_p), None)


def remove(library: ctypes.CDLL) -> None:
    """The inverse of `install`, for a runtime that is to be unloaded."""
    library.roundel_register(NAME.encode(), None, None)
