# SPDX-License-Identifier: Apache-2.0
"""Is a saved model's file what was written? Sizes and digests are read and compared before anything of the file is loaded.

A saved library ends in a *trailer* of 120 bytes behind the ELF image: the sizes, where the weights lie, the digest of the weights and
the digest of everything else. The loader of the operating system does not look there, so C programs use the file like any other.

What is compared at every load: both files are regular and have their sizes, everything but the weights has its digest, weights of up to
4 MiB too. Larger weights have theirs compared when it is asked for (``contents``), because reading them takes as long as their size asks.
The digest tells damage, not forgery: who can write the file can write its digest.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.errors import MachineError, ModelError
from ..ir.processors import OF_ELF, this_family
from . import metadata
from .metadata import FunctionInfo

BLOCK = 8 << 20  # bytes of weights that are hashed together
DIGEST = 64  # characters behind the weights in a file of their own
NAME_ROOM = 256  # bytes that a library keeps for the name of that file, the zero byte at its end included
SMALL = 4 << 20  # bytes of weights that are always read and compared: milliseconds

_MAGIC = b"Roundel trailer\n"
_LAYOUT = struct.Struct("<16sIIQQQQ32s32s")
_RELOCATABLE = 1  # the type of an ELF file that is an object to link
ELF_HEADERS = {1: "<16sHHIIIIIHHHHHH", 2: "<16sHHIQQQIHHHHHH"}  # of files with addresses of 32 bits and of 64 (the fifth byte says which)
_FROM_C = "call it from C, by the header that `--header` writes, or compile the model for this machine"
_FOREIGN = {  # by the first bytes of a file: what it is, and how it is run
    b"MZ": ("a library for Windows", _FROM_C), b"\xcf\xfa\xed\xfe": ("a library for macOS", _FROM_C),
    b"\0asm": ("a module for WebAssembly", "a page or node runs it through the ES module that `--header` writes, wasmtime what was compiled for wasm32-wasi; "
                "compile the model for this machine to run it from Python"),
}
_ELF_HEADER = struct.Struct(ELF_HEADERS[1])  # whose first fields both have


def weights_name(library: Path) -> str:
    """Name of the file beside a library (or object to link) that holds its weights: no two that lie in one folder share it."""
    return (library.stem if library.suffix == ".so" else library.name) + ".weights"


class BlocksDigest:
    """The digest of data that comes in order: SHA-256 of the SHA-256 of each block of 8 MiB, so that several cores can compute it."""

    def __init__(self, blocks: Iterable[bytes] = ()) -> None:
        self.blocks = [*blocks]

    def add(self, block: Any) -> None:
        """One more block of ``BLOCK`` bytes, or the last and shorter one."""
        if len(block):
            self.blocks.append(hashlib.sha256(block).digest())

    def digest(self) -> bytes:
        """Of all blocks: 32 bytes."""
        return hashlib.sha256(b"".join(self.blocks)).digest()


@dataclass(frozen=True)
class Trailer:
    """What the end of a saved library tells. Sizes and offsets count bytes.

    ``image``: the ELF file before the trailer. ``start``: where in it the embedded weights begin, 0 without such. ``nbytes``: of the
    weights, embedded or beside. ``name_at``: where the name of the weights' file is, 0 without one.
    """

    image: int
    start: int = 0
    nbytes: int = 0
    name_at: int = 0
    weights: bytes = bytes(32)
    code: bytes = bytes(32)

    def pack(self) -> bytes:
        """As it is written."""
        return _LAYOUT.pack(_MAGIC, 1, 0, self.image, self.start, self.nbytes, self.name_at, self.weights, self.code)

    @staticmethod
    def unpack(data: bytes) -> Trailer | None:
        """The inverse of `pack`; None for other bytes."""
        if len(data) != _LAYOUT.size:
            return None
        magic, version, zero, image, start, nbytes, name_at, weights, code = _LAYOUT.unpack(data)
        known = magic == _MAGIC and version == 1 and zero == 0
        return Trailer(image, start, nbytes, name_at, weights, code) if known else None

    def sealed(self, head: Any, tail: Any) -> Trailer:
        """With the digest of the image before and behind the embedded weights, and of the trailer itself."""
        digest = hashlib.sha256(head)
        digest.update(tail)
        digest.update(replace(self, code=bytes(32)).pack())
        return replace(self, code=digest.digest())


class SavedFile:
    """A saved library and the file of its weights, open, and found whole. Raises ModelError for anything else.

    ``contents``: weights are compared whatever their size. Use it as a context manager: it holds open files.
    """

    def __init__(self, path: str | Path, *, contents: bool = False) -> None:
        self.path = Path(path)
        self.file = _open(self.path, "")
        self.weights_file: int | None = None
        try:
            self.trailer = self._trailer()
            self._check_code()
            if self.weights_name is not None:
                self.weights_file = self._open_weights(self.weights_name)
            if self.trailer.nbytes and (contents or self.trailer.nbytes <= SMALL):
                self._check_weights()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SavedFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close both files."""
        for file in (self.file, self.weights_file):
            if file is not None and file >= 0:
                os.close(file)
        self.file, self.weights_file = -1, None

    @cached_property
    def head(self) -> bytes:
        """The image up to the embedded weights; without such all of it."""
        return _read(self.file, 0, self.trailer.start or self.trailer.image, self.path)

    @cached_property
    def tail(self) -> bytes:
        """The image behind the embedded weights."""
        t = self.trailer
        return _read(self.file, t.start + t.nbytes, t.image - t.start - t.nbytes, self.path) if t.start else b""

    @cached_property
    def weights_name(self) -> str | None:
        """Name of the weights' file, which lies in the library's folder; None where they are embedded or there are none."""
        at = self.trailer.name_at
        return self.head[at : at + NAME_ROOM].partition(b"\0")[0].decode(errors="replace") if at else None

    @cached_property
    def weights_path(self) -> Path | None:
        """The weights' file: beside the library as it was named or, where that is a link, as it is stored."""
        name = self.weights_name
        if name is None:
            return None
        beside = [folder / name for folder in (self.path.parent, Path(os.path.realpath(self.path)).parent)]
        return next((p for p in beside if os.path.lexists(p)), beside[0])

    @property
    def machine(self) -> str:
        """The processor family that the code is for, as ``platform.machine()`` calls it."""
        number = _ELF_HEADER.unpack(self.head[: _ELF_HEADER.size])[2]
        return OF_ELF.get(number, f"ELF machine {number}")

    def metadata(self) -> tuple[dict[str, FunctionInfo], dict[str, Any]]:
        """The functions by name, and what the compiler noted, as ``metadata.read`` gives them; read from the image, whatever machine it
        is for."""
        for part in (self.head, self.tail):
            at = part.find(metadata.BEGIN)
            while at >= 0:
                with suppress(ValueError, KeyError, TypeError):
                    return metadata.read(part[at : part.index(0, at)].decode())
                at = part.find(metadata.BEGIN, at + 1)
        return {}, {}

    def check_machine(self) -> None:
        """Raises MachineError for code of another processor family."""
        here = this_family()
        if self.machine != here:
            raise MachineError(f"{self.path.name} is for {self.machine}, this machine is {here}", hint="compile it for this machine, or load it there")

    def small_weights(self) -> bytes | None:
        """Weights of up to 4 MiB, which were compared; None for larger ones, which are to be mapped."""
        return b"".join(self.blocks()) if 0 < self.trailer.nbytes <= SMALL else None

    def blocks(self) -> Iterator[bytes]:
        """The weights in blocks of ``BLOCK`` bytes and a rest."""
        return map(self._block, range(0, self.trailer.nbytes, BLOCK))

    def renamed(self, name: str) -> tuple[bytes, Trailer]:
        """The image of a library whose weights lie beside it, referring to a weights' file of another name; and its trailer."""
        data, at = bytearray(self.head), self.trailer.name_at
        data[at : at + NAME_ROOM] = encoded_name(name)
        return bytes(data), self.trailer.sealed(data, b"")

    def _block(self, offset: int) -> bytes:
        count = min(BLOCK, self.trailer.nbytes - offset)
        if self.weights_file is None:
            return _read(self.file, self.trailer.start + offset, count, self.path)
        return _read(self.weights_file, offset, count, self.path)

    def _trailer(self) -> Trailer:
        size = os.fstat(self.file).st_size
        start = _read(self.file, 0, min(64, size), self.path)
        if len(start) < 64 or start[:4] != b"\x7fELF" or start[5] != 1:
            if self.path.suffix == ".onnx":
                raise ModelError(f"{self.path.name} is not a compiled model", why="ONNX files are compiled first, and what comes of it is loaded",
                                 hint="`roundel compile` or rd.compile makes one of it, `roundel check` looks at it")
            if foreign := next((said for magic, said in _FOREIGN.items() if start.startswith(magic)), None):
                raise ModelError(f"{self.path.name} cannot be loaded", why=f"it is {foreign[0]}, and Python loads libraries for Linux", hint=foreign[1])
            raise ModelError(f"{self.path.name} cannot be loaded", why="the file is empty" if not size else "it is not a shared library",
                             hint="give a file that `roundel compile` or Model.save wrote")
        end = _read(self.file, max(size - _LAYOUT.size, 0), min(_LAYOUT.size, size), self.path)
        found = Trailer.unpack(end)
        if found is not None and found.image + _LAYOUT.size == size and _in_order(found):
            return found
        if _ELF_HEADER.unpack_from(start)[1] == _RELOCATABLE:
            raise ModelError(f"{self.path.name} is an object to link into a program, not a shared library", hint="save the model under a name that ends in .so")
        if found is None and _is_whole(start, size) and not _mentions(self.file, b"roundel_package\0"):
            raise ModelError(f"{self.path.name} is a shared library, but not one of Roundel's", hint="make it with `roundel compile`")
        raise ModelError(f"{self.path.name} is not whole", why="it does not end as Model.save ended it: it was cut off, or something was put behind it "
                         "or changed in it (strip, patchelf), or another version of Roundel wrote it", hint="copy it again, or compile it again")

    def _check_code(self) -> None:
        if self.trailer.sealed(self.head, self.tail) != self.trailer:
            raise ModelError(f"{self.path.name} is damaged", why="its code and tables do not have the digest that was written with them",
                             hint="copy it again, or compile it again")

    def _open_weights(self, name: str) -> int:
        path, wanted = self.weights_path, self.trailer.nbytes + DIGEST
        if name in ("", ".", "..") or "/" in name or path is None:
            raise ModelError(f"{self.path.name} is damaged", why=f"{name!r} cannot be the name of its weights' file")
        file = _open(path, f"the weights of {self.path.name}: ")
        size = os.fstat(file).st_size
        if size != wanted:
            os.close(file)
            raise ModelError(f"{path.name} is not the weights of {self.path.name}, or not all of them", why=f"it has {size} bytes, {wanted} are expected",
                             hint="copy both files again, or compile the model again")
        if _read(file, self.trailer.nbytes, DIGEST, path) != self.trailer.weights.hex().encode():
            os.close(file)
            raise ModelError(f"{path.name} belongs to another model than {self.path.name}", why="it ends in another digest than the library names",
                             hint="copy both files again, or compile the model again")
        return file

    def _digests(self) -> list[bytes]:
        """Of each block of the weights."""
        if self.trailer.nbytes <= BLOCK:
            return [hashlib.sha256(block).digest() for block in self.blocks()]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8), "roundel-verify") as threads:
            return [*threads.map(lambda at: hashlib.sha256(self._block(at)).digest(), range(0, self.trailer.nbytes, BLOCK))]

    def _check_weights(self) -> None:
        if BlocksDigest(self._digests()).digest() != self.trailer.weights:
            raise ModelError(f"the weights in {(self.weights_path or self.path).name} are damaged",
                             why="they do not have the digest that was written with them", hint="copy the file again, or compile it again")


def check_file(path: str | Path, *, contents: bool = False) -> None:
    """Raises ModelError unless ``path`` is a saved model that is whole, as far as can be told in milliseconds; with ``contents``
    large weights are read and compared with their digest as well."""
    SavedFile(path, contents=contents).close()


def encoded_name(name: str) -> bytes:
    """The name of a weights' file in the room that a library keeps for it; raises ModelError for one that is too long."""
    data = name.encode()
    if len(data) >= NAME_ROOM:
        raise ModelError(f"the name {name[:40]!r}... is too long for a file", why=f"it has {len(data)} bytes, a library keeps {NAME_ROOM - 1}")
    return data.ljust(NAME_ROOM, b"\0")


def _open(path: Path, whose: str) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a named pipe is opened without waiting for a writer
    except FileNotFoundError:
        raise ModelError(f"{whose}there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{whose}{path} cannot be read", why=getattr(error, "strerror", None) or str(error)) from None
    kind = os.fstat(file).st_mode
    if stat.S_ISREG(kind):
        return file
    os.close(file)
    raise ModelError(f"{whose}{path} is {'a folder' if stat.S_ISDIR(kind) else 'not a regular file'}")


def _read(file: int, offset: int, count: int, path: Path) -> bytes:
    """So many bytes; raises ModelError when the file ends before."""
    parts, left = [], count
    while left > 0:
        try:
            part = os.pread(file, left, offset)
        except OSError as error:
            raise ModelError(f"{path} cannot be read", why=error.strerror) from None
        if not part:
            raise ModelError(f"{path.name} became shorter while it was read", hint="replace files by renaming others over them")
        parts.append(part)
        left, offset = left - len(part), offset + len(part)
    return b"".join(parts)


def _in_order(t: Trailer) -> bool:
    """Whether what the trailer names lies inside of the image."""
    embedded = t.start >= _ELF_HEADER.size and t.start + t.nbytes <= t.image and t.name_at == 0
    beside = t.start == 0 and t.name_at + NAME_ROOM <= t.image and (t.name_at > 0) == (t.nbytes > 0)
    return t.image >= _ELF_HEADER.size and (embedded or beside)


def _is_whole(header: bytes, size: int) -> bool:
    """Whether an ELF file is as long as its table of sections says."""
    fields = struct.unpack_from(ELF_HEADERS.get(header[4], ELF_HEADERS[2]), header)
    return bool(fields[6] + fields[11] * fields[12] <= size)


def _mentions(file: int, text: bytes) -> bool:
    """Whether a text is in the first 64 MiB of a file."""
    at, before = 0, b""
    while at < 64 << 20 and (block := os.pread(file, BLOCK, at)):
        if text in before + block:
            return True
        at, before = at + len(block), block[-len(text) :]
    return False
