# SPDX-License-Identifier: Apache-2.0
"""Arrays at the boundary: NumPy's, PyTorch's and others' go in without a copy where they can."""

from __future__ import annotations

import ctypes
import math
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.errors import CallError
from . import arrays, native

_ALIGNED_FROM = 4096  # bytes; smaller results do not gain from 64-byte alignment
_KEPT_FROM = 256 << 10  # bytes; the C library may give such memory back at once, and the system clears it for the next result
_KEPT_COUNT = 16
_KEPT_MOST = 256 << 20
Block = tuple[np.ndarray, int]
"""Memory, and where it is aligned to 64 bytes."""
_kept: deque[Block] = deque()  # memory of large results, the oldest first, whether they are still used or gone
_unused: Block = (np.empty(0, np.uint8), 0)
_ALONE = sys.getrefcount(_unused[0])  # references to memory that no array uses
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """A new array; large ones are aligned to 64 bytes."""
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _ALIGNED_FROM:
        return _few(shape, dtype)
    if not _KEPT_FROM <= nbytes <= _KEPT_MOST:
        return np.ndarray(shape, dtype, *_block(nbytes))
    block = _kept_block(nbytes)
    array = np.ndarray(shape, dtype, *block)
    _kept.append(block)
    return array


def is_small(shape: Sequence[int], dtype: np.dtype) -> bool:
    """Is `empty` just NumPy's for such an array? Raises CallError where NumPy has none."""
    small = math.prod(shape) * dtype.itemsize < _ALIGNED_FROM
    if small:
        _few(shape, dtype)
    return small


def _few(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array of few elements or none; raises CallError where NumPy has none because the other dimensions than one of size 0 are too large."""
    try:
        return np.empty(shape, dtype)
    except ValueError as refused:
        raise CallError(f"a result of shape {tuple(shape)} cannot be a NumPy array", why=str(refused)) from refused


def aligned_copy(data: Any) -> np.ndarray:
    """Bytes in memory of their own, aligned to 64 bytes."""
    given = np.frombuffer(data, np.uint8)
    copy = aligned_memory(given.size)
    copy[:] = given
    return copy


def aligned_memory(nbytes: int) -> np.ndarray:
    """Bytes of any value, aligned to 64 bytes. NumPy asks for huge pages from 4 MB on."""
    raw, start = _block(nbytes)
    return raw[start : start + nbytes]


def address(array: np.ndarray) -> int:
    """Where the first element of an array is in memory."""
    if arrays.readable():
        return ctypes.c_size_t.from_address(id(array) + arrays.HEADER).value  # a seventh of the time of array.ctypes.data
    return array.__array_interface__["data"][0]


def _block(nbytes: int) -> Block:
    raw = np.empty(nbytes + 64, np.uint8)
    return raw, -address(raw) % 64


def _kept_block(nbytes: int) -> Block:
    """Memory for a large result: that of the last one of this size that is gone, where there is one, for it may still be in caches. Whoever has it has
    taken it out of the list, so that no other thread finds it."""
    for _ in range(len(_kept)):
        try:
            block = _kept.pop()
        except IndexError:  # another thread has the last one
            break
        if block[0].size == nbytes + 64 and sys.getrefcount(block[0]) == _ALONE:
            return block
        _kept.appendleft(block)
    while len(_kept) >= _KEPT_COUNT or (_kept and nbytes + sum(raw.size for raw, _ in _kept.copy()) > _KEPT_MOST):
        try:
            _kept.popleft()
        except IndexError:
            break
    return _block(nbytes)


class Described:
    """A DLTensor made by hand, for what DLPack cannot say (read-only, bfloat16, packed int4) or what C fills in."""

    __slots__ = ("keep", "shape", "tensor")

    def __init__(
        self,
        data: int | None,
        dtype: DType,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        keep: Any = None,
    ) -> None:
        code, bits, lanes = native.dlpack_code(dtype)
        ndim = len(shape) if data is not None else -1  # -1: the runtime is to allocate it
        dims = (ctypes.c_int64 * max(ndim, 1))(*shape)
        steps = None if strides is None else (ctypes.c_int64 * max(ndim, 1))(*strides)
        self.tensor = native.DLTensor(
            data, 1, 0, ndim, code, bits, lanes, ctypes.addressof(dims), ctypes.addressof(steps) if steps else None, 0
        )
        self.shape, self.keep = tuple(shape), (dims, steps, keep)


def describe_array(array: np.ndarray, dtype: DType | None = None) -> Described:
    """A NumPy array of any type and strides as a DLTensor; types of less than a byte are packed first (a copy)."""
    if isinstance(array, np.ma.MaskedArray):
        raise CallError("a masked array was given", why="its mask would be lost", hint="pass array.filled(value)")
    try:
        dtype = dtype or DType(array.dtype.newbyteorder("="))
    except (TypeError, ValueError, KeyError):
        kind = "a structured" if array.dtype.names else "an"
        raise CallError(f"{kind} array of {array.dtype} is not a tensor", hint="pass an array of numbers, such as array.astype(numpy.float32)") from None
    if is_packed(dtype):
        packed = pack(array, dtype.bits)
        return Described(packed.ctypes.data, dtype, array.shape, keep=packed)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    size = array.dtype.itemsize
    if any(s % size for s in array.strides):
        array = np.ascontiguousarray(array)
    return Described(address(array), dtype, array.shape, [s // size for s in array.strides], keep=array)


def is_packed(dtype: DType) -> bool:
    """Does the type share bytes (4 bits and less)? NumPy gives each of its elements a byte."""
    return dtype.bits < 8 and dtype.kind != "bool"


def pack(array: np.ndarray, bits: int = 4) -> np.ndarray:
    """Elements of less than a byte, packed along the whole array, the first in the lowest bits."""
    per = 8 // bits
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // per) * per, np.uint8)
    padded[: flat.size] = flat
    packed = padded[0::per].copy()
    for k in range(1, per):
        packed |= padded[k::per] << (k * bits)
    return packed


def unpack(packed: np.ndarray, dtype: DType, shape: Sequence[int]) -> np.ndarray:
    """The inverse of `pack`."""
    bits, mask, count = dtype.bits, (1 << dtype.bits) - 1, int(np.prod(shape, dtype=np.int64))
    parts = np.stack([(packed >> k) & mask for k in range(0, 8, bits)], axis=-1).reshape(-1)[:count]
    if dtype.kind == "int":
        sign = 1 << (bits - 1)
        return ((parts ^ sign).astype(np.int8) - sign).astype(dtype.numpy).reshape(shape)
    return parts.astype(dtype.numpy).reshape(shape) if dtype.kind == "uint" else parts.view(dtype.numpy).reshape(shape)


def torch_module(value: Any) -> Any:
    """PyTorch if ``value`` is one of its tensors, else None; never imports it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(value, getattr(torch, "Tensor", ())) else None


def _itself(array: np.ndarray, dtype: DType) -> np.ndarray:
    return array


def _from_python(value: Any, dtype: DType) -> Any:
    try:
        array = np.asarray(value)
        fits = np.can_cast(array.dtype, dtype.numpy, "same_kind") or array.size == 0
        if fits or (array.dtype.kind in "iu" and dtype.is_int):
            return array.astype(dtype.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise CallError(f"{type(value).__name__} cannot be taken as a tensor of {dtype}", why=str(error)) from error
    raise CallError(f"{type(value).__name__} with elements of {array.dtype} cannot be taken as a tensor of {dtype}")


def torch_of(values: Sequence[Any]) -> Any:
    """PyTorch if one of ``values`` is its tensor, else None."""
    return next((t for v in values if (t := torch_module(v)) is not None), None)


_PREPARE: dict[type, Callable[[Any, DType], Any]] = {
    np.ndarray: _itself,
    bool: _from_python,
    int: _from_python,
    float: _from_python,
    complex: _from_python,
    list: _from_python,
    tuple: _from_python,
}


def prepare(value: Any, dtype: DType) -> Any:
    """``value`` as something with a shape that `view` takes. Python numbers and lists become arrays of ``dtype``;
    arrays are never converted. Raises CallError for what is no tensor."""
    handler = _PREPARE.get(type(value))
    if handler is not None:
        return handler(value, dtype)
    torch = torch_module(value)
    if torch is not None:
        return _dense(value, torch)
    if isinstance(value, np.ma.MaskedArray):
        return describe_array(value)  # says why not
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, type):
            return value if all(isinstance(n, int) for n in getattr(value, "shape", (None,))) else np.from_dlpack(value)
        if hasattr(value, "__array__") and not isinstance(value, type):
            return np.asarray(value)
    except Exception as error:  # whatever its own methods raise
        raise CallError(f"{type(value).__name__} does not give its elements", why=f"{type(error).__name__}: {error}") from error
    raise CallError(
        f"{type(value).__name__} is not a tensor", hint="pass NumPy arrays, torch tensors, or anything with __dlpack__"
    )


def _dense(value: Any, torch: Any) -> Any:
    """A tensor of PyTorch whose memory holds its elements as they are, or CallError that says how to get one."""
    if value.is_nested or value.layout is not torch.strided:
        kind = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        hint = "torch.nested.to_padded_tensor(tensor, 0.0)" if value.is_nested else "tensor.to_dense()"
        raise CallError(f"a {kind} tensor was given, models take dense ones", hint=f"pass {hint}")
    if value.device.type != "cpu":
        what = "has no data" if value.device.type == "meta" else f"is on {value.device}"
        raise CallError(f"a tensor that {what} was given, models take tensors in CPU memory", hint="pass tensor.cpu()")
    if value.is_quantized:
        raise CallError(f"a quantised tensor ({value.dtype}) was given", hint="pass tensor.dequantize(), or tensor.int_repr() for the integers")
    value = value.detach() if value.requires_grad else value
    value = value.resolve_conj() if value.is_conj() else value
    return value.resolve_neg() if value.is_neg() else value


def view(value: Any) -> tuple[int, Any]:
    """Address of a DLTensor over the memory of ``value``, and what must live as long as it is used."""
    kind = type(value)
    if kind is Described:
        return ctypes.addressof(value.tensor), value
    torch = None if kind is np.ndarray else torch_module(value)
    try:
        capsule = value.__dlpack__() if torch is None else torch.utils.dlpack.to_dlpack(value)
        return _capsule_pointer(capsule, b"dltensor"), capsule
    except Exception as error:  # whatever its own methods raise
        described = _describe(value, torch, error)
        return ctypes.addressof(described.tensor), described


def _describe(value: Any, torch: Any, error: Exception) -> Described:
    """By hand what DLPack refuses: read-only memory, and types that it or an exporter does not know."""
    if isinstance(value, np.ndarray):
        return describe_array(value)
    try:
        if torch is None:
            raise error
        dtype = DType(str(value.dtype).removeprefix("torch."))
        return Described(value.data_ptr(), dtype, value.shape, value.stride(), keep=value)
    except Exception as refused:  # whatever its own methods raise
        raise CallError(f"{type(value).__name__} cannot be passed without a copy", why=str(refused), hint="pass a dense tensor or a NumPy array") from error


def owned_array(output: native.DLTensor, release: Callable[[native.DLTensor], None]) -> np.ndarray:
    """An array over memory that the runtime allocated; ``release`` gives it back when the last view is gone."""
    dtype = native.dtype_of(output.code, output.bits, output.lanes)
    shape = tuple((ctypes.c_int64 * output.ndim).from_address(output.shape)) if output.ndim else ()
    count = int(np.prod(shape, dtype=np.int64))
    if is_packed(dtype):
        result = unpack(native.view(output.data, dtype.nbytes(count)), dtype, shape)
        release(output)
        return result
    if count == 0:
        release(output)
        return _few(shape, dtype.numpy)
    memory = (ctypes.c_char * dtype.nbytes(count)).from_address(output.data)
    weakref.finalize(memory, release, output).atexit = False
    return np.frombuffer(memory, dtype.numpy).reshape(shape)
