# SPDX-License-Identifier: Apache-2.0
"""Reading ONNX files safely: clear errors for broken files, external data read when it is needed and confined to the model's folder."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.constants import SMALL, ConstData
from ...ir.dtype import INT64, DType
from ...ir.errors import ModelError
from ...runtime import text
from .folder import ModelFolder
from .limits import Limits, graphs
from .mapped import without_weights
from .wire import FileBytes

if TYPE_CHECKING:
    import onnx

STRING = 8  # the code of string tensors
_MOST_BYTES = (1 << 31) - 1  # of a protobuf message
_LARGE = 1 << 20  # bytes of a file whose weights are read one by one, when they are needed
MAX_BYTES = 1 << 40  # a larger tensor is a mistake
MAX_RANK = 64  # dimensions of a tensor, NumPy's limit
_DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
           12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
           19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2"}


def dtype_of(code: int, where: Any = None) -> DType:
    """The data type of an ONNX TensorProto code (of strings that of the numbers that stand for them); raises ModelError."""
    if code == STRING:
        return INT64
    if code not in _DTYPES:
        raise ModelError(f"data type {code} cannot be compiled", where=where)
    return DType(_DTYPES[code])


def check_rank(rank: int, where: str) -> None:
    """Raises ModelError for a tensor of more dimensions than arrays can have."""
    if rank > MAX_RANK:
        raise ModelError(f"a tensor of {rank} dimensions", where=where, why=f"arrays have at most {MAX_RANK}, in NumPy and when the model runs",
                         hint="reshape it to fewer dimensions")


_CODES = {name: code for code, name in _DTYPES.items()}


def code_of(dtype: DType) -> int:
    """The ONNX TensorProto code of a data type."""
    return _CODES[dtype]


def load_model(source: Any) -> tuple[onnx.ModelProto, ModelFolder | None]:
    """A ModelProto from a path, bytes or a ModelProto, and the folder of its external data.

    Raises ModelError for a missing, empty, truncated or foreign file.
    """
    import onnx
    from google.protobuf.message import DecodeError

    if isinstance(source, onnx.ModelProto):
        _check_text(source, "the model")
        return source, None
    folder, where = None, "the model"
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
    else:
        path = Path(source)
        where = str(path)
        try:
            folder = ModelFolder.of(path)
            data = _read(path)
        except (OSError, ValueError) as e:  # ValueError: a name with a zero byte
            raise ModelError("cannot read the model", where=where, why=getattr(e, "strerror", None) or str(e)) from None
    if not data:
        raise ModelError("the file is empty", where=where)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        if data.startswith(b"version https://git-lfs"):
            raise ModelError("this is not the model but Git LFS's note of where it is", where=where, hint="fetch the file itself: git lfs pull") from None
        raise ModelError("this is not an ONNX model, or it is cut off", where=where, why="it does not parse as a ModelProto protobuf message",
                         hint="check the download (size, checksum) and that the file is .onnx") from None
    if not model.HasField("graph") or not model.opset_import:
        raise ModelError("this is not an ONNX model, or it is cut off", where=where, why="it has no graph or no operator set",
                         hint="check the download (size, checksum)")
    _check_text(model, where)
    return model, folder


def _read(path: Path) -> bytes:
    """The message in a file, large weights left there."""
    with open(path, "rb", opener=_without_waiting) as file:
        facts = os.fstat(file.fileno())
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if facts.st_size < _LARGE:
            return file.read()
        kept = without_weights(FileBytes(file.fileno()), path.name)
        if not kept and facts.st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, "it has more than 2 GiB, which protobuf cannot hold; larger models keep weights in other files (external data)")
        return kept or file.read()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not make us wait for a writer


def _check_text(model: onnx.ModelProto, where: str) -> None:
    """Raises ModelError when a name is not UTF-8 (protobuf then gives bytes), UnsupportedError when graphs are nested too deeply."""
    for g in graphs(model, Limits()):
        _check_names(g, where)


def _check_names(g: onnx.GraphProto, where: str) -> None:
    for node in g.node:
        attributes = [*(a.name for a in node.attribute), *(a.ref_attr_name for a in node.attribute)]
        if bytes in map(type, (node.op_type, node.domain, node.name, *node.input, *node.output, *attributes)):
            raise ModelError("a name in the file is not text", where=where, why=f"at the node of output {list(node.output)!r}",
                             hint="the file is damaged; check the download (size, checksum)")
    if bytes in map(type, (g.name, *(t.name for t in g.initializer), *(v.name for v in (*g.input, *g.output)))):
        raise ModelError("a name in the file is not text", where=where, hint="the file is damaged; check the download (size, checksum)")


def tensor_data(tensor: onnx.TensorProto, folder: ModelFolder | None) -> ConstData:
    """The content of a TensorProto, read when it is needed where it lies in an external file; raises ModelError."""
    where = f"tensor {tensor.name!r}"
    shape = tuple(tensor.dims)
    check_rank(len(shape), where)
    if any(d < 0 for d in shape):
        raise ModelError("a dimension is negative", where=where, why=f"its shape is {list(shape)}")
    dtype = dtype_of(tensor.data_type, where)
    count = math.prod(shape)
    if dtype.nbytes(math.prod(max(d, 1) for d in shape)) > MAX_BYTES:  # an extent of 0 does not excuse the others
        raise ModelError("the tensor is absurdly large", where=where, why=f"its shape is {list(shape)}, elements are {dtype}")
    if tensor.data_location == 1:
        return _external(tensor, dtype, shape, count, folder, where)
    if tensor.data_type == STRING:
        return _strings(tensor, shape, count, where)
    if tensor.HasField("raw_data"):
        raw = tensor.raw_data
        if len(raw) != dtype.nbytes(count):
            raise ModelError("the tensor's data does not fit its shape", where=where, why=f"shape {list(shape)} of {dtype} takes "
                             f"{dtype.nbytes(count)} bytes, the file holds {len(raw)}")
        return ConstData(_decode(np.frombuffer(raw, np.uint8), dtype, shape, count))
    return ConstData(_typed(tensor, shape, where))


def _strings(tensor: onnx.TensorProto, shape: tuple[int, ...], count: int, where: str) -> ConstData:
    if len(tensor.string_data) != count:
        raise ModelError("the tensor's data does not fit its shape", where=where, why=f"shape {list(shape)}, {len(tensor.string_data)} strings")
    try:
        return ConstData(text.numbers_of(np.array(tensor.string_data, object)).reshape(shape))
    except UnicodeDecodeError as error:
        raise ModelError("a string is not UTF-8", where=where, why=str(error)) from None


def _typed(tensor: onnx.TensorProto, shape: tuple[int, ...], where: str) -> np.ndarray:
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(tensor)).reshape(shape)
    except (ValueError, TypeError, IndexError) as e:
        raise ModelError("the tensor's data does not fit its shape or type", where=where, why=str(e)) from None


def _decode(raw: np.ndarray, dtype: DType, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Bytes to elements; types below a byte are packed, lowest bits first."""
    bits = dtype.storage_bits
    if bits >= 8:
        return raw.view(dtype.numpy).reshape(shape)
    per = 8 // bits
    codes = np.stack([(raw >> (bits * k)) & ((1 << bits) - 1) for k in range(per)], axis=-1).reshape(-1)[:count]
    if dtype.is_float:
        return codes.astype(np.uint8).view(dtype.numpy).reshape(shape)
    signed = codes.astype(np.int8) - ((codes >> (bits - 1)) << bits).astype(np.int8) if dtype.kind == "int" else codes
    return signed.astype(dtype.numpy).reshape(shape)


def _whole(text: str) -> int | None:
    """A number of bytes in decimal digits."""
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else None


def _external(tensor: onnx.TensorProto, dtype: DType, shape: tuple[int, ...], count: int, folder: ModelFolder | None, where: str) -> ConstData:
    facts = {e.key: e.value for e in tensor.external_data}
    location = facts.get("location", "")
    if len(facts) < len(tensor.external_data):
        raise ModelError("the external data entry is broken", where=where, why="it says something twice")
    if folder is None:
        raise ModelError("the tensor lies in an external file, but the model was not given as a path", where=where, why=f"file {location!r}")
    path = folder.find(location, where)
    offset, length = (_whole(facts.get(name, str(default))) for name, default in (("offset", 0), ("length", dtype.nbytes(count))))
    if offset is None or length is None:
        raise ModelError("the external data entry is broken", where=where, why=f"{facts}")
    if length != dtype.nbytes(count) or offset < 0 or offset + length > path.stat().st_size:
        raise ModelError("the external data does not fit", where=where, why=f"{location} has {path.stat().st_size} bytes; the tensor "
                         f"says offset {offset}, length {length}, and shape {list(shape)} of {dtype} takes {dtype.nbytes(count)}")

    if "checksum" in facts:
        _check_sum(path, facts["checksum"], where)

    def read() -> np.ndarray:
        return _decode(_read_part(path, offset, length, where), dtype, shape, count)

    return ConstData(read()) if length <= SMALL else ConstData(load=read, shape=shape, dtype=dtype)


def _check_sum(path: Path, written: str, where: str) -> None:
    """Raises ModelError unless a file has the SHA-1 that the model says, in hexadecimal as the standard wants it."""
    if not re.fullmatch("[0-9a-fA-F]{40}", written):
        raise ModelError("the checksum of the external data is none", where=where, why=f"it is {written[:100]!r}; the standard has SHA-1, 40 digits",
                         hint="leave the entry 'checksum' out of external_data, or write the file's SHA-1")
    facts = path.stat()
    if (found := _sha1(path, facts.st_size, facts.st_mtime_ns)) != written.lower():
        raise ModelError("the external data is not what the model was saved with", where=where, why=f"{path} has the SHA-1 {found}, the model says {written}",
                         hint="the file is damaged or was exchanged: fetch it again")


@lru_cache(maxsize=16)
def _sha1(path: Path, size: int, time: int) -> str:
    """The digest of a file, computed once for its tensors while size and time stay what they are."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha1").hexdigest()
    except OSError as error:
        raise ModelError("the external data cannot be read", why=f"{path}: {error.strerror}") from None


def _read_part(path: Path, offset: int, length: int, where: str) -> np.ndarray:
    """Bytes of a file, read and not mapped: one that is written to meanwhile neither ends the process nor changes what was read."""
    raw = np.empty(length, np.uint8)
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            got = 0
            while got < length and (count := file.readinto(memoryview(raw)[got:])):
                got += count
    except OSError as error:
        raise ModelError("the external data cannot be read", where=where, why=f"{path}: {error.strerror}") from None
    if got < length:
        raise ModelError("the external data became shorter while it was read", where=where, why=str(path), hint="compile again when it is complete")
    return raw
