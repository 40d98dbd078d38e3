# SPDX-License-Identifier: Apache-2.0
"""Families of processors: what machine code is for at all, and what the system, LLVM, ELF files and zig call each."""

from __future__ import annotations

import platform

from .dataclass import dataclass


@dataclass(frozen=True)
class Family:
    """``name``: as GNU's tools begin a triple. ``elf``: how ELF files number it. ``spellings``: what else systems and LLVM call it. ``zig``: what zig
    does, and ``zig_options``: with which it compiles for what we call so, where its own default is a smaller machine."""

    name: str
    elf: int
    spellings: tuple[str, ...] = ()
    zig: str = ""
    zig_options: tuple[str, ...] = ()


FAMILIES = {family.name: family for family in (
    Family("x86_64", 62, ("AMD64", "amd64")),
    Family("aarch64", 183, ("arm64", "arm64e")),
    Family("riscv64", 243),
    Family("arm", 40, ("armv7", "armv7l", "armv7a"), "arm", ("-mcpu=generic+v7a+vfp3d16",)),
    Family("i686", 3, ("i386", "i586"), "x86"),
)}
_NAMES = {spelling: family.name for family in FAMILIES.values() for spelling in (family.name, *family.spellings)}
OF_ELF = {family.elf: family.name for family in FAMILIES.values()}


def family_of(triple: str) -> str:
    """The name of the family of a triple such as ``armv7-linux-gnueabihf``, or of what a system calls its machine; of no family the word itself."""
    first = triple.partition("-")[0]
    return _NAMES.get(first, first)


def this_family() -> str:
    """The family of the machine that this runs on."""
    return family_of(platform.machine())
