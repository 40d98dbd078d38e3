# SPDX-License-Identifier: Apache-2.0
"""A model as one WebAssembly module: generated objects, the C runtime and the weights, linked so that nothing is imported but the memory, and with threads a
clock. For the system interface WASI it is a program with a memory of its own.

What WebAssembly does not tell who loads a module stands in a section of its own, `roundel`, as JSON: how many pages its memory needs at
first (``pages``), the bits of its pointers (``bits``), where its weights are, if they are in a file beside it (``weights``: ``file``, ``nbytes`` and
``digest``), what engines must have beyond vectors of 128 bits (``needs``: LLVM's names of features, and ``memory64``), and at its end the ``digest`` of
all bytes before it, so that the loader finds damage anywhere in the file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from .. import __version__
from ..ir.dataclass import dataclass
from ..ir.errors import BuildError, OptionError
from ..ir.escape import c_string
from ..runtime import toolchain, web
from ..runtime.integrity import BLOCK, DIGEST, BlocksDigest, weights_name
from ..target.spec import system_of
from .interface import Interface, values_beside_tensors
from .wasm_link import linked_module
from .weights import Blob, nbytes_of, write_beside, write_content

_EMBED_AT_MOST = 1 << 29  # bytes; engines keep a module's bytes besides the memory that its data are copied to, and take 1 GiB of them at most
_MOST = {32: 3 << 30, 64: 15 << 30}  # bytes of weights by bits of pointers, of the 4 GiB that these reach and the 16 that engines give, for everything
_COMMON = ("", "simd128", "bulk-memory")  # features that need not be told
_THREADS = "atomics"  # the feature that modules with threads have
_WIDE = "memory64"  # and those with pointers of 64 bits
_CUSTOM, _IMPORT, _MEMORY, _GLOBAL, _EXPORT, _START, _DATA, _DATA_COUNT = 0, 2, 5, 6, 7, 8, 11, 12  # sections, by the numbers of the standard (5.5.2)
_CONST, _END = {32: 0x41, 64: 0x42}, 0x0B  # what begins and ends the constant that is an address
_STUB = """\
#include "runtime.h"
extern const RdLibrary roundel_library;
_Alignas(64) char roundel_weights[{room}];
RdPackage roundel_package = {{&roundel_library, {weights}, {file}, {digest}, 0, 0}};
"""


def write_module(objects: Sequence[bytes], functions: Sequence[Interface], weights: Blob | None, out: Path, *, triple: str = "wasm32-unknown-unknown",
                 features: str = "", side_file: bool | str = False, header: bool = False) -> Path:
    """Write ``out``, a module for JavaScript and other hosts, or for a ``triple`` with the system wasi a program; with ``side_file`` (and always above 512
    MiB, or with threads) the weights go to ``<name>.weights`` beside it, or to the file that it names, and with ``header`` the ES module that runs it, with
    what belongs to it (``roundel.mjs``). Raises BuildError, OptionError for another ending."""
    if out.suffix != ".wasm":
        raise OptionError(f"{out.name}: a model compiled to WebAssembly is no such file", hint="a name that ends in .wasm gives a module")
    is_program, bits = system_of(triple) == "wasi", 64 if triple.startswith("wasm64") else 32
    if header and is_program:
        raise OptionError(f"{out.name} is a program, for which no ES module is needed", hint="leave header out, or compile for wasm32")
    if values := values_beside_tensors(functions):
        raise BuildError("the model cannot be a WebAssembly module", why=f"it takes or gives {', '.join(values)}, and modules are given tensors of numbers")
    size, wanted = nbytes_of(weights), features.replace("+", "").split(",")
    has_threads = _THREADS in wanted  # each has an instance, which would copy embedded weights anew
    if size > _MOST[bits]:
        raise BuildError(f"{size:,} bytes of weights are too many for {triple.split('-')[0]}, whose memory has {4 if bits == 32 else 16} GiB",
                         hint='store them in 16 bits (weights="float16")' + (', or compile for wasm64, for engines that have memory64' if bits == 32 else ''))
    is_beside = size and (side_file or has_threads or size > _EMBED_AT_MOST)
    beside = out.with_name(side_file if isinstance(side_file, str) else weights_name(out)) if is_beside else None
    with ExitStack() as outputs:
        temporary = outputs.enter_context(toolchain.atomic_output(out))
        work = toolchain.temporary_folder("roundel-wasm-")
        outputs.callback(shutil.rmtree, work, ignore_errors=True)
        digest = write_beside(weights, beside, outputs) if beside is not None and weights is not None else ""
        embedded = weights if size and beside is None else None
        (work / "stub.c").write_text(_stub(size if embedded is not None else 0, beside, digest))
        linked = _Module.read(linked_module(objects, work, bits, has_threads=has_threads, is_program=is_program), has_threads)
        told = {"version": __version__, "pages": linked.pages, "weights": beside and {"file": beside.name, "nbytes": size + DIGEST, "digest": digest},
                "needs": [name for name in wanted if name not in _COMMON] + [_WIDE] * (bits == 64), "bits": bits, "digest": "0" * DIGEST}
        with temporary.open("w+b") as sink:
            for part in linked.parts(embedded, json.dumps(told).encode(), bits):
                if isinstance(part, bytes):
                    sink.write(part)
                else:
                    write_content(part, sink)
            _seal(sink)
    if header:
        web.copy_into(out.parent)
    return out


def _stub(room: int, beside: Path | None, digest: str) -> str:
    return _STUB.format(room=max(room, 1), weights="roundel_weights" if room else "0", file=f'"{c_string(beside.name)}"' if beside else "0",
                        digest=f'"{digest}"' if beside else "0")


def _seal(module: BinaryIO) -> None:
    """Write the digest of all bytes before it where the JSON at a module's end has room for it."""
    digest, end = BlocksDigest(), module.tell() - DIGEST - len('"}')
    module.seek(0)
    for at in range(0, end, BLOCK):
        digest.add(module.read(min(BLOCK, end - at)))
    module.seek(end)
    module.write(digest.digest().hex().encode())


@dataclass(frozen=True)
class _Module:
    """A module's sections: number and content, in order. There is none that starts it without threads: the linker's only clears what is to be zero,
    the place of the weights with it, and memory that a host makes is zero. With threads it also copies data, in the first instance alone."""

    sections: tuple[tuple[int, bytes], ...]

    @staticmethod
    def read(content: bytes, starts: bool = False) -> _Module:
        """Of a module's bytes."""
        found, at = [], 8  # behind the magic number and the version
        while at < len(content):
            size, begin = _number(content, at + 1)
            if starts or content[at] != _START:
                found.append((content[at], content[begin : begin + size]))
            at = begin + size
        return _Module(tuple(found))

    def section(self, number: int) -> bytes:
        """The content of a section, empty where there is none."""
        return next((content for n, content in self.sections if n == number), b"")

    @property
    def pages(self) -> int:
        """Pages of 64 KiB that its memory, its own or the first that it imports, must have at least."""
        if own := self.section(_MEMORY):
            return _number(own, 2)[0]
        content = self.section(_IMPORT)
        at = 1
        for _ in range(2):  # the two names
            length, at = _number(content, at)
            at += length
        return _number(content, at + 2)[0]

    def place(self) -> int:
        """The address of ``roundel_weights``: what is exported by that name is a global that holds it."""
        content, name = self.section(_EXPORT), b"roundel_weights"
        index, _ = _number(content, content.index(bytes([len(name)]) + name) + len(name) + 2)
        content = self.section(_GLOBAL)
        _, at = _number(content, 0)
        for _ in range(index):
            at = content.index(_END, _number(content, at + 3)[1]) + 1
        return _number(content, at + 3)[0]  # behind its type, whether it changes, and the instruction

    def parts(self, weights: Blob | None, told: bytes, bits: int = 32) -> Iterator[bytes | Blob]:
        """What is written: the sections, the weights as one more segment of data, and ``told`` as the section `roundel`."""
        yield b"\0asm\1\0\0\0"
        for number, content in self.sections:
            if weights is None or number not in (_DATA, _DATA_COUNT):
                yield bytes([number]) + _leb(len(content)) + content
                continue
            count, at = _number(content, 0)
            if number == _DATA_COUNT:
                yield bytes([number]) + _sized(_leb(count + 1))
                continue
            size = nbytes_of(weights)
            segment = bytes([0, _CONST[bits]]) + _leb(self.place(), signed=True) + bytes([_END]) + _leb(size)
            head = _leb(count + 1) + content[at:] + segment
            yield bytes([number]) + _leb(len(head) + size) + head
            yield weights
        yield bytes([_CUSTOM]) + _sized(_sized(b"roundel") + told)


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A number of the format (LEB128, unsigned, or signed where it is positive), and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _leb(value: int, signed: bool = False) -> bytes:
    """A number that is not negative, as LEB128."""
    out = bytearray()
    while value >= (0x40 if signed else 0x80):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _sized(content: bytes) -> bytes:
    return _leb(len(content)) + content

