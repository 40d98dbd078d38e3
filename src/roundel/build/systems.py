# SPDX-License-Identifier: Apache-2.0
"""Libraries for systems other than Linux: DLLs (PE) for Windows and dylibs (Mach-O) for macOS, linked here.

They are used by C programs, or whatever can call C, like other libraries of their system: what they export is marked in the source (``RD_API``), so they need
no list of it. Weights are given to the assembler, since what is linked may not change afterwards: files for Apple's processors are signed by their linker, page
by page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..ir.dataclass import dataclass
from ..runtime import library, toolchain


@dataclass(frozen=True)
class System:
    """``name``: the end of a triple, as zig takes it; ``options`` of the linker, where {name} is the library's, and {imports} the file that linkers of programs
    ask for (Microsoft's import library); ``data``: assembly that makes read-only data of a file, under a symbol that stays inside of the library."""

    name: str
    options: tuple[str, ...]
    data: str


IMPORTS = ".lib"  # the ending of import libraries

SYSTEMS = {
    "windows": System("windows-gnu", ("-shared", "-O1", "-w", "-s", "-Wl,--out-implib,{imports}"),
                      '.section .rdata,"dr"\n.globl {symbol}\n.balign 4096\n{symbol}:\n.incbin "{file}"\n'),
    "macos": System("macos.13.0", ("-dynamiclib", "-O1", "-w", "-fvisibility=hidden", "-Wl,-install_name,@rpath/{name}"),
                    '.section __TEXT,__const\n.globl _{symbol}\n.private_extern _{symbol}\n.p2align 12\n_{symbol}:\n.incbin "{file}"\n'),
}


def link_for(system: System, compiler: Sequence[str], parts: Sequence[Path], runtime: Path, name: str) -> Path:
    """Link ``parts`` (sources, the first one in a folder to work in, and objects) and all of the ``runtime``, a static library; returns the path of the
    library, in that folder, under the ``name`` by which programs will ask for it, beside an import library (``.lib``) where the system has such. Raises
    BuildError."""
    objects, linked = parts[0].parent / "runtime", parts[0].parent / "linked" / name
    objects.mkdir()
    linked.parent.mkdir()
    toolchain.run([*toolchain.archiver(), "x", runtime], cwd=objects)
    options = [option.format(name=name, imports=linked.with_suffix(IMPORTS)) for option in system.options]
    toolchain.run([*compiler, *options, f"-I{library.source_dir()}", *parts, *sorted(objects.iterdir()), "-o", linked])
    if system.name.startswith("windows"):
        _forget_time(linked)
    return linked


def _forget_time(dll: Path) -> None:
    """Take the time out of a file of Windows when it was linked, which not every linker can be told to leave out: the same model gives the same file."""
    with dll.open("r+b") as file:
        file.seek(60)
        file.seek(int.from_bytes(file.read(4), "little") + 8)
        file.write(bytes(4))
