# SPDX-License-Identifier: Apache-2.0
"""C sources that tensor programs bring along (attribute ``import_c``), as objects that are linked with them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from ..ir import IRModule, tir
from ..ir.annotations import IMPORT_C, IMPORT_C_CALLS, texts
from ..runtime import toolchain
from ..target.spec import MachineSpec
from . import object_cache
from .called_c import compiled
from .link import foreign_triple

_OPTIONS = ("-c", "-O3", "-fPIC", "-g0", "-std=gnu11", "-fvisibility=hidden")


def imported_objects(mod: IRModule, spec: MachineSpec) -> list[bytes]:
    """An object for each different source. Raises BuildError with the compiler's words, also where a function is not what programs call."""
    sources: dict[str, dict[str, None]] = {}
    for _, f in mod.items():
        for text in texts(f.attrs, IMPORT_C) if isinstance(f, tir.PrimFunc) else ():
            sources.setdefault(text, {}).update(dict.fromkeys(texts(f.attrs, IMPORT_C_CALLS)))
    return [_object(text, tuple(calls), spec) for text, calls in sources.items()]


def _object(text: str, calls: tuple[str, ...], spec: MachineSpec) -> bytes:
    triple = foreign_triple(spec.triple)
    command = (*toolchain.compiler(triple), *_OPTIONS)
    key = object_cache.object_key(hashlib.sha256("\0".join(command).encode()).hexdigest() + "\0".join((text, *calls)), spec, "c")
    found = object_cache.load(key)
    if found is None:
        found = compiled(text, calls, lambda text: _compiled(text, command))
        object_cache.store(key, found)
    return found


def _compiled(text: str, command: tuple[str | Path, ...]) -> bytes:
    with TemporaryDirectory(prefix="roundel-c-") as folder:
        source, made = Path(folder, "source.c"), Path(folder, "made.o")
        source.write_text(text)
        toolchain.run([*command, "-o", made, source])
        return made.read_bytes()
