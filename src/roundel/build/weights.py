# SPDX-License-Identifier: Apache-2.0
"""The weights of a model: arrays that are written one after the other, into a file of their own or into that of the code."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, BinaryIO

from ..ir.errors import BuildError
from ..runtime import toolchain
from ..runtime.integrity import BLOCK, DIGEST, BlocksDigest

AHEAD = 2  # arrays that are made at a time, beside the one that is written
BLOCKS = 3  # of which one is filled while others are hashed and written


class Pieces:
    """A blob as arrays, each at its offset, that is written without being put together in memory. ``digest`` (hexadecimal): that its
    content must have, where it is known. ``written``: a side file of it that may be moved to where one is wanted."""

    def __init__(self, nbytes: int, pieces: Iterable[tuple[int, Callable[[], Any]]], digest: str | None = None, written: Path | None = None) -> None:
        self.nbytes, self.pieces, self.digest, self.written = nbytes, sorted(pieces, key=lambda p: p[0]), digest, written

    def __len__(self) -> int:
        return self.nbytes

    def __iter__(self) -> Iterator[Any]:
        """Bytes in order, zeros between pieces. While one is used the next ones are made."""
        at = 0
        with ThreadPoolExecutor(AHEAD, "roundel-weights") as threads:
            ready = deque(threads.submit(read) for _, read in self.pieces[:AHEAD])
            for k, (offset, _) in enumerate(self.pieces):
                yield bytes(offset - at)
                data = ready.popleft().result()
                ready += [threads.submit(read) for _, read in self.pieces[k + AHEAD : k + AHEAD + 1]]
                yield data
                at = offset + len(data)
        yield bytes(self.nbytes - at)


Blob = bytes | bytearray | memoryview | Path | Pieces


def nbytes_of(weights: Blob | None) -> int:
    """How many bytes there are."""
    return 0 if weights is None else weights.stat().st_size if isinstance(weights, Path) else len(weights)


def write_beside(weights: Blob, beside: Path, outputs: ExitStack) -> str:
    """Write a side file that appears with the other ``outputs``; returns its digest. One that was written before is moved. Raises BuildError, OSError."""
    temporary = outputs.enter_context(toolchain.atomic_output(beside))
    if not isinstance(weights, Pieces) or weights.written is None or not weights.written.is_file():
        return write_side_file(weights, temporary)
    shutil.move(weights.written, temporary)
    with temporary.open("rb") as file:
        file.seek(-DIGEST, os.SEEK_END)
        return file.read().decode()


def write_content(weights: Blob, sink: BinaryIO) -> bytes:
    """Write the blob, and return the digest of what was written; raises BuildError if it is not what the weights are to have."""
    digest, begun = BlocksDigest(), deque[Future[Any]]()
    with ThreadPoolExecutor(1, "roundel-digest") as hashing, ThreadPoolExecutor(1, "roundel-write") as writing:
        for block in _blocks(_chunks(weights)):
            begun += [hashing.submit(digest.add, block), writing.submit(sink.write, block)]
            while len(begun) > 2 * (BLOCKS - 1):
                begun.popleft().result()
        for done in begun:
            done.result()
    if isinstance(weights, Pieces) and weights.digest not in (None, digest.digest().hex()):
        raise BuildError("the weights are not those that were compiled", why="their file was changed or damaged since", hint="compile the model again")
    return digest.digest()


def write_side_file(weights: Blob, path: Path) -> str:
    """The blob followed by 64 characters, which are returned, by which the model knows its own: the digest of its content, as hexadecimal
    digits (see `BlocksDigest`). Raises OSError where the disk refuses; nothing is left behind then."""
    try:
        with path.open("wb") as sink:
            digest = write_content(weights, sink).hex()
            sink.write(digest.encode())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return digest


def _chunks(weights: Blob) -> Iterator[Any]:
    if isinstance(weights, Pieces):
        yield from weights
        return
    if not isinstance(weights, Path):
        yield weights
        return
    with weights.open("rb") as source:
        while chunk := source.read(1 << 24):
            yield chunk


def _blocks(chunks: Iterable[Any], size: int = BLOCK) -> Iterator[memoryview]:
    """The same bytes in blocks of ``size``, each valid until ``BLOCKS`` - 1 more were asked for. A file that is written so lies in huge pages
    of the system's file cache where it has such, and is mapped and read faster."""
    blocks = cycle([memoryview(bytearray(size)) for _ in range(BLOCKS)])
    block, filled = next(blocks), 0
    for chunk in chunks:
        data = memoryview(chunk).cast("B")
        while len(data):
            count = min(len(data), size - filled)
            block[filled : filled + count] = data[:count]
            data, filled = data[count:], filled + count
            if filled == size:
                yield block
                block, filled = next(blocks), 0
    yield block[:filled]
