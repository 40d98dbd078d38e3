# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format: the fields of a message, found without parsing it; and a file as bytes that are read when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator

BYTES = 2  # the wire type of what has a length
_FIXED = {1: 8, 5: 4}  # bytes of values by wire type
_WINDOW = 1 << 16


class FileBytes:
    """The content of an open file, to be indexed like bytes. It is read and not mapped: a file that gets shorter meanwhile is an error
    (IndexError, ValueError), where reading mapped memory would end the process."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.size = descriptor, os.fstat(descriptor).st_size
        self.begin, self.window = 0, b""

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int | slice) -> int | bytes:
        if isinstance(place, slice):
            return self._read(place.start, min(place.stop, self.size) - place.start)
        at = place - self.begin
        if not 0 <= at < len(self.window):
            self.begin, self.window, at = place, os.pread(self.descriptor, _WINDOW, place), 0
        return self.window[at]

    def _read(self, begin: int, count: int) -> bytes:
        at = begin - self.begin
        if 0 <= at and at + count <= len(self.window):
            return self.window[at : at + count]
        parts = []
        while count > 0:
            part = os.pread(self.descriptor, count, begin)
            if not part:
                raise ValueError("the file became shorter")
            parts.append(part)
            begin, count = begin + len(part), count - len(part)
        return b"".join(parts)


Data = bytes | memoryview | FileBytes


def fields(data: Data, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, start, start of the value and end of each field of a message. Raises ValueError, IndexError when it is none."""
    while at < stop:
        start = at
        tag, at = varint(data, at)
        kind = tag & 7
        if tag < 8:
            raise ValueError("there is no field 0")
        if kind == 0:
            content = at
            _, at = varint(data, at)
        elif kind == BYTES:
            length, content = varint(data, at)
            at = content + length
        else:
            content, at = at, at + _FIXED.get(kind, stop + 1)
        if at > stop:
            raise ValueError("the field is longer than what it is in")
        yield tag >> 3, start, content, at


def varint(data: Data, at: int) -> tuple[int, int]:
    """A number of variable length at ``at``, and where it ends."""
    value = shift = 0
    while True:
        byte: int = data[at]  # type: ignore[assignment]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("the number is too long")


def field(number: int, content: bytes) -> bytes:
    """A field that has a length."""
    out, tag, length = bytearray(), number << 3 | BYTES, len(content)
    for value in (tag, length):
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out) + content
