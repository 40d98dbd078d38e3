# SPDX-License-Identifier: Apache-2.0
"""Reading GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little endian): metadata, and tensors as mapped bytes.

Nothing in a file is trusted: counts, lengths and offsets are compared with the size of the file before anything is made of them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from ...ir import escape
from ...ir.dataclass import dataclass
from ...ir.errors import ModelError
from .blocks import KINDS

MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_DEEPEST = 4  # of arrays of arrays
_MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class Tensor:
    """A tensor of the file: its shape as NumPy has it (the file says it the other way around), the kind of its blocks, and its bytes."""

    name: str
    shape: tuple[int, ...]
    kind: int
    data: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class GGUF:
    """A file: what it says of the model, and its tensors by name."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def read(path: str | Path) -> GGUF:
    """The file; raises ModelError for one that is broken."""
    path = Path(path)
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read", why=str(error)) from None
    try:
        return _Reader(path, data).file()
    except (struct.error, UnicodeDecodeError, OverflowError, MemoryError):
        raise ModelError(f"{path} is no sound GGUF file", why="it ends before what it announces") from None


class _Reader:
    def __init__(self, path: Path, data: np.ndarray) -> None:
        self.path, self.data, self.at = path, data, 0

    def file(self) -> GGUF:
        """All of it."""
        version = self.one("I") if bytes(self.data[:4]) == MAGIC and self.skip(4) else 0
        if version not in (2, 3):
            raise self.error("it does not begin as GGUF of version 2 or 3, little endian")
        tensors, pairs = self.one("Q"), self.one("Q")
        if max(tensors, pairs) > len(self.data):
            raise self.error("it announces more than it holds")
        metadata = {}
        for _ in range(pairs):
            key = self.string()
            metadata[key] = self.value(self.one("I"), 0)
        infos = [self.info() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise self.error("its alignment is no small number")
        start = -(-self.at // alignment) * alignment
        return GGUF(self.path, metadata, {name: self.tensor(name, shape, kind, start + offset) for name, shape, kind, offset in infos})

    def info(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape, kind and offset of a tensor."""
        name, rank = self.string(), self.one("I")
        if rank > _MOST_DIMENSIONS:
            raise self.error(f"tensor {escape.value(name)} has {rank} dimensions")
        sizes = [self.one("Q") for _ in range(rank)]
        return name, tuple(reversed(sizes)), self.one("I"), self.one("Q")

    def tensor(self, name: str, shape: tuple[int, ...], kind: int, begin: int) -> Tensor:
        """With its bytes."""
        if kind not in KINDS:
            raise ModelError(f"tensor {escape.value(name)} is of a kind that is not known: {kind}", where=str(self.path),
                             hint=f"those that are: {', '.join(k.name for k in KINDS.values())}")
        found = KINDS[kind]
        if shape and shape[-1] % found.numbers:
            raise self.error(f"rows of tensor {escape.value(name)} are no whole blocks")
        size = math.prod(shape) // found.numbers * found.nbytes
        if begin + size > len(self.data):
            raise self.error(f"tensor {escape.value(name)} reaches beyond its end")
        return Tensor(name, shape, kind, self.data[begin: begin + size])

    def value(self, kind: int, depth: int) -> Any:
        """A value of the metadata."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY and depth < _DEEPEST:
            inner, count = self.one("I"), self.one("Q")
            if count > len(self.data):
                raise self.error("a list is longer than it")
            if inner in _SCALARS:
                size = struct.calcsize("<" + _SCALARS[inner])
                out = np.frombuffer(self.bytes(count * size), "<" + _SCALARS[inner])
                return out.tolist()
            return [self.value(inner, depth + 1) for _ in range(count)]
        if kind not in _SCALARS:
            raise self.error(f"a value has the type {kind}, which there is not")
        return self.one(_SCALARS[kind])

    def string(self) -> str:
        """A text with its length before it."""
        return self.bytes(self.one("Q")).decode(errors="replace")

    def one(self, code: str) -> Any:
        """A number."""
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def bytes(self, count: int) -> bytes:
        """So many of them."""
        if count > len(self.data) - self.at:
            raise self.error("it ends before what it announces")
        self.skip(count)
        return bytes(self.data[self.at - count: self.at])

    def skip(self, count: int) -> int:
        """Go on; returns where."""
        self.at += count
        return self.at

    def error(self, why: str) -> ModelError:
        """About the file."""
        return ModelError(f"{self.path} is no sound GGUF file", why=why)
