# SPDX-License-Identifier: Apache-2.0
"""Weights of an ONNX file stay in the file: a copy of the protobuf message without them, which says where they lie.

Parsing a message copies all that it holds, and reading a tensor out of it copies once more. Here the bytes of large
initializers are skipped; they become external data of the very same file, and those are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Iterator

_SMALLEST = 1 << 14  # bytes of a tensor that are worth it
_GRAPH, _INITIALIZER = 7, 5  # field of ModelProto; of GraphProto
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14  # fields of TensorProto
_FIXED = {1: 8, 5: 4}  # bytes of values by wire type
_BYTES = 2  # the wire type of what has a length


def without_weights(data: memoryview, file: str) -> bytes | None:
    """The ModelProto message ``data`` with large initializers as external data in ``file``, which holds ``data``; None when
    it is no such message."""
    try:
        return b"".join(_model(data, file.encode()))
    except (IndexError, ValueError):
        return None


def _model(data: memoryview, file: bytes) -> Iterator[bytes]:
    for number, start, content, end in _fields(data, 0, len(data)):
        if number == _GRAPH:
            yield _field(_GRAPH, b"".join(_graph(data, content, end, file)))
        else:
            yield bytes(data[start:end])


def _graph(data: memoryview, begin: int, stop: int, file: bytes) -> Iterator[bytes]:
    for number, start, content, end in _fields(data, begin, stop):
        if number == _INITIALIZER and end - content >= _SMALLEST:
            yield _field(_INITIALIZER, b"".join(_tensor(data, content, end, file)))
        else:
            yield bytes(data[start:end])


def _tensor(data: memoryview, begin: int, stop: int, file: bytes) -> Iterator[bytes]:
    facts: dict[bytes, bytes] = {}
    for number, start, content, end in _fields(data, begin, stop):
        if number == _RAW_DATA and end - content >= _SMALLEST:
            facts = {b"location": file, b"offset": b"%d" % content, b"length": b"%d" % (end - content)}
        else:
            yield bytes(data[start:end])
    if facts:  # after what the file says of the place itself, which may be "here" in so many words: the last one counts
        yield from (_field(_EXTERNAL_DATA, _field(1, key) + _field(2, value)) for key, value in facts.items())
        yield bytes((_DATA_LOCATION << 3, 1))


def _fields(data: memoryview, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, start, start of the value and end of each field of a message."""
    while at < stop:
        start = at
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            content = at
            _, at = _varint(data, at)
        elif kind == _BYTES:
            length, content = _varint(data, at)
            at = content + length
        else:
            content, at = at, at + _FIXED.get(kind, stop + 1)
        if at > stop:
            raise ValueError("the field is longer than what it is in")
        yield tag >> 3, start, content, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("the number is too long")


def _field(number: int, content: bytes) -> bytes:
    out, tag, length = bytearray(), number << 3 | _BYTES, len(content)
    for value in (tag, length):
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out) + content
