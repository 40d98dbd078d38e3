# SPDX-License-Identifier: Apache-2.0
"""C sources that tensor programs bring along (attribute ``import_c``), as objects that are linked with them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from ..ir import IRModule, tir
from ..ir.annotations import IMPORT_C, texts
from ..runtime import toolchain
from ..target.spec import MachineSpec
from . import object_cache
from .link import foreign_triple

_OPTIONS = ("-c", "-O3", "-fPIC", "-g0", "-std=gnu11", "-fvisibility=hidden")


def imported_objects(mod: IRModule, spec: MachineSpec) -> list[bytes]:
    """An object for each different source. Raises BuildError with the compiler's words."""
    sources = dict.fromkeys(text for _, f in mod.items() if isinstance(f, tir.PrimFunc) for text in texts(f.attrs, IMPORT_C))
    return [_object(text, spec) for text in sources]


def _object(text: str, spec: MachineSpec) -> bytes:
    triple = foreign_triple(spec.triple)
    command = (*toolchain.compiler(triple), *_OPTIONS)
    key = object_cache.object_key(hashlib.sha256("\0".join(command).encode()).hexdigest() + text, spec, "c")
    found = object_cache.load(key)
    if found is None:
        with TemporaryDirectory(prefix="roundel-c-") as folder:
            source, made = Path(folder, "source.c"), Path(folder, "made.o")
            source.write_text(text)
            toolchain.run([*command, "-o", made, source])
            found = made.read_bytes()
        object_cache.store(key, found)
    return found
