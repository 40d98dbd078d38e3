# SPDX-License-Identifier: Apache-2.0
"""ELF objects: one that keeps a place for data, so that hundreds of megabytes of weights need not pass through an assembler and the linker; and the
sections and symbols of others."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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


class Section(NamedTuple):
    """An entry of an object's table of sections: ``name`` is where its name begins, ``link`` and ``info`` are numbers of other sections."""

    name: int
    kind: int
    flags: int
    address: int
    begin: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Symbol(NamedTuple):
    """A symbol of an object, and the number of the section that defines it (0: others have to)."""

    name: str
    kind: int
    binding: int
    section: int


SYMBOLS, RELOCATIONS, EMPTY, RELOCATIONS_IN_PLACE = 2, 4, 8, 9
"""Kinds of sections: symbols, relocations with addends, those that take no room in the file, and relocations whose addends are where they are applied."""
FUNCTION, SECTION = 2, 3  # kinds of symbols


def sections_of(content: bytes) -> list[Section]:
    """The table of sections of an object (little endian)."""
    wide = is_wide(content)
    (at,) = struct.unpack_from("<Q" if wide else "<I", content, 40 if wide else 32)
    size, count = struct.unpack_from("<HH", content, 58 if wide else 46)
    layout = _CLASSES[64 if wide else 32].section
    return [Section(*struct.unpack_from(layout, content, at + k * size)) for k in range(count)]


def is_wide(content: bytes) -> bool:
    """Whether the addresses of an object have 64 bits."""
    return content[4] == 2


def machine_of(content: bytes) -> int:
    """The number of the processors that an object is for."""
    (machine,) = struct.unpack_from("<H", content, 18)
    return int(machine)


def name_of(content: bytes, sections: Sequence[Section], section: Section) -> str:
    """The name of a section."""
    (names,) = struct.unpack_from("<H", content, 62 if is_wide(content) else 50)
    return text_at(content, sections[names], section.name)


def text_at(content: bytes, table: Section, name: int) -> str:
    """A name in a section of names."""
    start = table.begin + name
    return content[start : content.index(b"\0", start)].decode(errors="replace")


def symbols_of(content: bytes, sections: Sequence[Section]) -> list[Symbol]:
    """All symbols of an object."""
    found = []
    for table in (s for s in sections if s.kind == SYMBOLS):
        for at in range(table.begin, table.begin + table.size, table.entry):
            if is_wide(content):
                name, info, _, section = struct.unpack_from("<IBBH", content, at)
            else:
                name, _, _, info, _, section = struct.unpack_from("<IIIBBH", content, at)
            found.append(Symbol(text_at(content, sections[table.link], name), info & 15, info >> 4, section))
    return found


def linked_symbols(content: bytes) -> tuple[set[str], set[str]]:
    """The symbols that an object (64 bits, little endian) defines for others, and those that others have to define, without optional ones."""
    if content[:6] != b"\x7fELF\2\1":
        return set(), set()
    symbols = [s for s in symbols_of(content, sections_of(content)) if s.name and s.binding]  # 0 is LOCAL, 1 GLOBAL, 2 WEAK
    return {s.name for s in symbols if s.section}, {s.name for s in symbols if not s.section and s.binding == 1}
