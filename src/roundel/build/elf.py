# SPDX-License-Identifier: Apache-2.0
"""An ELF object that keeps a place for data: hundreds of megabytes of weights need not pass through an assembler and the linker."""

from __future__ import annotations

import struct
from pathlib import Path

from ..runtime.integrity import MACHINES

_ALIGN = 4096
_HEADER, _SECTION, _SYMBOL = "<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ"


def write_data_object(path: Path, machine: str, symbol: str, size: int, mark: bytes) -> None:
    """A relocatable object (64 bits, little endian) with ``size`` read-only bytes under a hidden ``symbol``: ``mark``, then a hole in the file."""
    names = [b"", b".rodata." + symbol.encode(), b".symtab", b".strtab", b".shstrtab", b".note.GNU-stack"]
    table = b"\0".join(names[1:]).join((b"\0", b"\0"))
    name_at = [0] + [table.index(b"\0" + n + b"\0") + 1 for n in names[1:]]
    symbols = bytes(24) + struct.pack(_SYMBOL, 1, 1 << 4 | 1, 2, 1, 0, size)  # global object, hidden, in section 1
    strings = b"\0" + symbol.encode() + b"\0"
    tail = [symbols, strings, table]
    offsets, at = [], _ALIGN + (size + 15) // 16 * 16
    for part in tail:
        offsets.append(at)
        at += (len(part) + 15) // 16 * 16
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (name_at[1], 1, 2, 0, _ALIGN, size, 0, 0, _ALIGN, 0),  # PROGBITS, ALLOC
        (name_at[2], 2, 0, 0, offsets[0], len(symbols), 3, 1, 8, 24),  # SYMTAB; one local symbol
        (name_at[3], 3, 0, 0, offsets[1], len(strings), 0, 0, 1, 0),  # STRTAB
        (name_at[4], 3, 0, 0, offsets[2], len(table), 0, 0, 1, 0),
        (name_at[5], 1, 0, 0, at, 0, 0, 0, 1, 0),  # its presence says that the stack need not be executable
    ]
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)
    flags = 5 if machine == "riscv64" else 0  # compressed code, floats of double precision in registers
    header = struct.pack(_HEADER, identity, 1, MACHINES[machine], 1, 0, 0, at, flags, 64, 0, 0, 64, len(sections), 4)
    with path.open("wb") as out:
        out.write(header.ljust(_ALIGN, b"\0"))
        out.write(mark)
        out.seek(offsets[0])
        for part in tail:
            out.write(part.ljust((len(part) + 15) // 16 * 16, b"\0"))
        for section in sections:
            out.write(struct.pack(_SECTION, *section))
