# SPDX-License-Identifier: Apache-2.0
"""Tensors as TVM's files hold them: one after its header, and the file of a model's parameters.

A tensor is a magic number and a reserved one (uint64 each), the device (two int32), the rank (int32), the dtype (uint8 code, uint8 bits,
uint16 lanes), the shape (int64 each), the number of bytes (int64) and the bytes, all little-endian. A file of parameters
(``relay.save_param_dict``) is a magic number and a reserved one, the names (uint64 count; uint64 length and bytes each) and the tensors.
"""

from __future__ import annotations

import base64
import binascii
import struct
from math import prod

import numpy as np

from ...ir.errors import ModelError

_TENSOR, _LIST = 0xDD5E40F096B4A13F, 0xF7E58D4F05049CB7
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


class _Reader:
    """Bytes read from the front; raises ModelError where they end too early."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at = memoryview(data), what, 0

    def bytes(self, count: int) -> memoryview:
        if not 0 <= count <= len(self.data) - self.at:
            raise ModelError(f"{self.what} ends too early", why=f"{count} bytes are promised at byte {self.at} and {len(self.data) - self.at} follow")
        self.at += count
        return self.data[self.at - count:self.at]

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def magic(self, expected: int) -> None:
        if self.numbers("QQ")[0] != expected:
            raise ModelError(f"{self.what} does not begin as TVM's files do")


def _dtype(code: int, bits: int, lanes: int, what: str) -> np.dtype:
    import ml_dtypes

    name = f"{_KINDS.get(code, 'unknown')}{bits}"
    if lanes == 1 and (code, bits) == (1, 1):
        return np.dtype(bool)
    if lanes == 1 and name == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    if lanes != 1 or _KINDS.get(code) not in ("int", "uint", "float") or bits not in (8, 16, 32, 64) or name == "float8":
        raise ModelError(f"{what} has a tensor of a type that cannot be read", why=f"type code {code}, {bits} bits, {lanes} lanes")
    return np.dtype(name)


def _tensor(reader: _Reader) -> np.ndarray:
    reader.magic(_TENSOR)
    rank = reader.numbers("iii")[2]
    code, bits, lanes = reader.numbers("BBH")
    dtype = _dtype(code, bits, lanes, reader.what)
    if not 0 <= rank <= 32:
        raise ModelError(f"{reader.what} has a tensor of {rank} dimensions")
    shape = reader.numbers(f"{rank}q")
    (size,) = reader.numbers("q")
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != size:
        raise ModelError(f"{reader.what} is damaged", why=f"a tensor of shape {shape} and dtype {dtype} has not {size} bytes")
    return np.frombuffer(reader.bytes(size), dtype).reshape(shape)


def tensor_of_base64(text: str) -> np.ndarray:
    """A tensor of a JSON file; raises ModelError."""
    try:
        data = base64.b64decode(text)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ModelError("a tensor of the JSON file is damaged", why=str(error)) from error
    return _tensor(_Reader(data, "the JSON file"))


def load_params(data: bytes | bytearray | memoryview) -> dict[str, np.ndarray]:
    """The parameters that ``relay.save_param_dict`` wrote, by name; raises ModelError where the file is none or is damaged."""
    reader = _Reader(bytes(data), "the file of parameters")
    reader.magic(_LIST)
    names = []
    for _ in range(_count(reader)):
        try:
            names.append(str(reader.bytes(_count(reader)), "utf-8"))
        except UnicodeDecodeError as error:
            raise ModelError("the file of parameters is damaged", why="a name is not UTF-8") from error
    if _count(reader) != len(names):
        raise ModelError("the file of parameters is damaged", why="it has not one tensor for each name")
    return {name: _tensor(reader) for name in names}


def _count(reader: _Reader) -> int:
    (count,) = reader.numbers("Q")
    if count > len(reader.data):
        raise ModelError("the file of parameters is damaged", why=f"it promises {count} entries and has {len(reader.data)} bytes")
    return count
