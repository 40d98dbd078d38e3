# SPDX-License-Identifier: Apache-2.0
"""Weights of an ONNX file stay in the file: a copy of the protobuf message without them, which says where they lie.

Parsing a message copies all that it holds, and reading a tensor out of it copies once more. Here the bytes of large
initializers are skipped; they become external data of the very same file, which is read where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from .wire import Data, field, fields

_SMALLEST = 1 << 14  # bytes of a tensor that are worth it
_GRAPH, _INITIALIZER = 7, 5  # field of ModelProto; of GraphProto
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14  # fields of TensorProto


def without_weights(data: Data, file: str) -> bytes | None:
    """The ModelProto message ``data`` with large initializers as external data in ``file``, which holds ``data``; None when
    it is no such message."""
    try:
        return b"".join(_model(data, file.encode()))
    except (IndexError, ValueError):
        return None


def _model(data: Data, file: bytes) -> Iterator[bytes]:
    for number, start, content, end in fields(data, 0, len(data)):
        if number == _GRAPH:
            yield field(_GRAPH, b"".join(_graph(data, content, end, file)))
        else:
            yield bytes(data[start:end])  # type: ignore[arg-type]


def _graph(data: Data, begin: int, stop: int, file: bytes) -> Iterator[bytes]:
    for number, start, content, end in fields(data, begin, stop):
        if number == _INITIALIZER and end - content >= _SMALLEST:
            yield field(_INITIALIZER, b"".join(_tensor(data, content, end, file)))
        else:
            yield bytes(data[start:end])  # type: ignore[arg-type]


def _tensor(data: Data, begin: int, stop: int, file: bytes) -> Iterator[bytes]:
    facts: dict[bytes, bytes] = {}
    for number, start, content, end in fields(data, begin, stop):
        if number == _RAW_DATA and end - content >= _SMALLEST:
            facts = {b"location": file, b"offset": b"%d" % content, b"length": b"%d" % (end - content)}
        else:
            yield bytes(data[start:end])  # type: ignore[arg-type]
    if facts:  # after what the file says of the place itself, which may be "here" in so many words: the last one counts
        yield from (field(_EXTERNAL_DATA, field(1, key) + field(2, value)) for key, value in facts.items())
        yield bytes((_DATA_LOCATION << 3, 1))
