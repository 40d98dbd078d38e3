# SPDX-License-Identifier: Apache-2.0
"""ELF objects: one that keeps a place for data, so that hundreds of megabytes of weights need not pass through an assembler and the linker; and which
symbols an object does not define."""

from __future__ import annotations

import struct
from pathlib import Path

from ..ir.dataclass import dataclass
from ..ir.processors import FAMILIES
from ..runtime.integrity import ELF_HEADERS

_ALIGN = 4096


@dataclass(frozen=True)
class _Class:
    """How ELF files of one size of addresses are laid out: its number, the format of a section, and the bytes that a table of symbols is
    aligned to."""

    number: int
    section: str
    align: int

    def symbol(self, name: int, kind: int, visibility: int, section: int, size: int) -> bytes:
        """An entry of the table of symbols, at the beginning of its section."""
        if self.number == 1:
            return struct.pack("<IIIBBH", name, 0, size, kind, visibility, section)
        return struct.pack("<IBBHQQ", name, kind, visibility, section, 0, size)


_CLASSES = {32: _Class(1, "<10I", 4), 64: _Class(2, "<IIQQQQIIQQ", 8)}
_BITS = {"arm": 32, "i686": 32}  # of addresses; 64 for all others
_FLAGS = {"riscv64": 5, "arm": 0x05000400}  # compressed code, floats of double precision in registers; version 5 of the interface, floats in registers


def write_data_object(path: Path, machine: str, symbol: str, size: int, mark: bytes) -> None:
    """A relocatable object (little endian) with ``size`` read-only bytes under a hidden ``symbol``: ``mark``, then a hole in the file."""
    layout = _CLASSES[_BITS.get(machine, 64)]
    names = [b"", b".rodata." + symbol.encode(), b".symtab", b".strtab", b".shstrtab", b".note.GNU-stack"]
    table = b"\0".join(names[1:]).join((b"\0", b"\0"))
    name_at = [0] + [table.index(b"\0" + n + b"\0") + 1 for n in names[1:]]
    data = layout.symbol(1, 1 << 4 | 1, 2, 1, size)  # global object, hidden, in section 1
    symbols = bytes(len(data)) + data
    strings = b"\0" + symbol.encode() + b"\0"
    tail = [symbols, strings, table]
    offsets, at = [], _ALIGN + (size + 15) // 16 * 16
    for part in tail:
        offsets.append(at)
        at += (len(part) + 15) // 16 * 16
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (name_at[1], 1, 2, 0, _ALIGN, size, 0, 0, _ALIGN, 0),  # PROGBITS, ALLOC
        (name_at[2], 2, 0, 0, offsets[0], len(symbols), 3, 1, layout.align, len(data)),  # SYMTAB; one local symbol
        (name_at[3], 3, 0, 0, offsets[1], len(strings), 0, 0, 1, 0),  # STRTAB
        (name_at[4], 3, 0, 0, offsets[2], len(table), 0, 0, 1, 0),
        (name_at[5], 1, 0, 0, at, 0, 0, 0, 1, 0),  # its presence says that the stack need not be executable
    ]
    identity = b"\x7fELF" + bytes([layout.number, 1, 1]) + bytes(9)
    form = ELF_HEADERS[layout.number]
    sizes = struct.calcsize(form), struct.calcsize(layout.section)
    header = struct.pack(form, identity, 1, FAMILIES[machine].elf, 1, 0, 0, at, _FLAGS.get(machine, 0), sizes[0], 0, 0, sizes[1], len(sections), 4)
    with path.open("wb") as out:
        out.write(header.ljust(_ALIGN, b"\0"))
        out.write(mark)
        out.seek(offsets[0])
        for part in tail:
            out.write(part.ljust((len(part) + 15) // 16 * 16, b"\0"))
        for section in sections:
            out.write(struct.pack(layout.section, *section))


def linked_symbols(content: bytes) -> tuple[set[str], set[str]]:
    """The symbols that an object (64 bits, little endian) defines for others, and those that others have to define, without optional ones."""
    defined: set[str] = set()
    undefined: set[str] = set()
    if content[:6] != b"\x7fELF\2\1":
        return defined, undefined
    layout = _CLASSES[64].section
    at, (size, count) = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from(layout, content, at + k * size) for k in range(count)]
    for _, kind, _, _, begin, length, link, *_ in sections:
        for entry in range(begin, begin + length, 24) if kind == 2 else ():  # SYMTAB
            name, info, _, section = struct.unpack_from("<IBBH", content, entry)
            if name and info >> 4 and (section or info >> 4 == 1):  # 0 is LOCAL, 1 GLOBAL, 2 WEAK
                start = sections[link][4] + name
                (defined if section else undefined).add(content[start : content.index(b"\0", start)].decode(errors="replace"))
    return defined, undefined
