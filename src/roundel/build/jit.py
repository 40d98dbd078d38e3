# SPDX-License-Identifier: Apache-2.0
"""Objects linked in memory by LLVM's ORC, each module in a library of its own."""

from __future__ import annotations

import functools
import itertools
import platform
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.errors import BuildError, MachineError
from ..ir.processors import FAMILIES, OF_ELF, this_family
from ..target.linker import memory_linker
from ..target.spec import MachineSpec
from .elf import linked_symbols

_numbers = itertools.count()


@functools.cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    spec = MachineSpec.host()
    machine = llvm.Target.from_triple(spec.triple).create_target_machine(
        cpu=spec.cpu, features=spec.features, reloc="pic", codemodel="small"
    )
    return memory_linker(machine)


def link_in_memory(objects: Sequence[bytes], imports: Mapping[str, int], *exports: str) -> tuple[list[int], Any]:
    """The addresses of the ``exports`` and what keeps the code in memory. ``imports``: symbols and their addresses."""
    import llvmlite.binding as llvm

    _check_machine(objects)
    library = llvm.JITLibraryBuilder()
    for content in objects:
        library.add_object_img(content)
    for name, address in imports.items():
        library.import_symbol(name, address)
    library.add_current_process()
    for export in exports:
        library.export_symbol(export)
    try:
        tracker = library.link(_linker(), f"roundel_{next(_numbers)}")
        return [tracker[export] for export in exports], tracker
    except RuntimeError as error:
        missing = _nowhere(objects, imports)
        raise BuildError(
            "the module cannot be linked",
            why=f"no object and no loaded library defines {', '.join(missing)}" if missing else str(error),
            hint="define it in the C or LLVM text of the kernel that calls it, or load its library with RTLD_GLOBAL" if missing else
            "LLVM wrote what is missing to standard error: memory, or a C function that call_extern names, which must be in a loaded library",
        ) from error


def _nowhere(objects: Sequence[bytes], imports: Mapping[str, int]) -> list[str]:
    """The functions that objects call, and that neither one of them nor this process has."""
    import llvmlite.binding as llvm

    tables = list(map(linked_symbols, objects))
    undefined = set().union(*(of for _, of in tables)).difference(imports, *(defined for defined, _ in tables))
    return sorted(name for name in undefined if not llvm.address_of_symbol(name))


def _check_machine(objects: Sequence[bytes]) -> None:
    """Code of another machine or system would link, and crash when it is called."""
    if platform.system() != "Linux":
        return
    here = this_family()
    for content in objects:
        number = int.from_bytes(content[18:20], "little") if content[:4] == b"\x7fELF" else None
        if here in FAMILIES and number != FAMILIES[here].elf:
            there = OF_ELF.get(number, "another system")
            raise MachineError(f"the code is for {there}, this machine is {here} with Linux")
