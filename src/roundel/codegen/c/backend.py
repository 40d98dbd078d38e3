# SPDX-License-Identifier: Apache-2.0
"""The code generator for whatever has a C compiler."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from ...ir.annotations import IMPORT_LLVM
from ...ir.errors import BuildError, MachineError
from ...runtime import library, toolchain
from ...target.known import check_processor
from ...target.machines import MACHINES
from ...target.spec import MachineSpec
from ..backend import Emitted, Function
from ..data import Data
from .data import data_text
from .functions import emit_function
from .writer import Helpers

PRELUDE = (Path(__file__).parent / "prelude.h").read_text()
OBJECT = '#include "roundel.h"\n' + PRELUDE + "#define RD_KERNEL static\n#define RD_TABLE RD_API\nextern const RdLibrary roundel_library;\n"
SECTION = "\n\f\n"  # between the parts of a text: declarations, helper functions, functions
_OPTIONS = ("-std=c99", "-O2", "-ftree-vectorize", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-w")


class C:
    """`roundel.codegen.Backend`."""

    @property
    def version(self) -> str:
        """The C compiler of this machine, and its options."""
        return f"C99 {_compiler_version()} {' '.join(_OPTIONS)}"

    def check(self, spec: MachineSpec) -> None:
        """C is for every machine, but a processor that is named is one that the table of machines or LLVM knows: else its figures are another's."""
        if spec.cpu != "generic" and spec.cpu not in MACHINES:
            check_processor(spec.triple, spec.cpu)

    def emit(self, functions: Sequence[Function], spec: MachineSpec, data: Sequence[Data] = ()) -> Emitted:
        """C99. What is put together into one file are the sections behind the first one."""
        helpers = Helpers()
        pieces = []
        for f in functions:
            if f.program.attrs.get(IMPORT_LLVM):
                raise BuildError("LLVM text cannot be put into C source", where=f.symbol, why="import_llvm", hint="compile for a target of kind llvm")
            pieces.append(emit_function(f, helpers, spec))
        declares = {text: None for p in pieces for text in p.declares.values()}
        sections = [OBJECT, *declares, *helpers.texts.values(), *(p.text for p in pieces), *(["\n".join(data_text(data))] if data else [])]
        return Emitted(SECTION.join(sections) + "\n", "c")

    def object(self, text: str, spec: MachineSpec, pipeline: str) -> bytes:
        """The text: C compilers do best with all of a module at once."""
        return text.encode()

    def linkable(self, objects: Sequence[bytes], spec: MachineSpec) -> list[bytes]:
        """All units, compiled together by this machine's C compiler, and objects that others have made."""
        units = [o.decode() for o in objects if is_source(o)]
        return [_compiled(OBJECT + joined(units), spec, ("-c",)), *(o for o in objects if not is_source(o))]

    def features(self, spec: MachineSpec, called: Callable[[], Collection[str]]) -> list[str]:
        """None: which instructions there are, is between the C compiler and its user."""
        return []

    def optimised(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """The text itself."""
        return text

    def assembly(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """What the C compiler makes of it, of functions too that nothing in the text calls."""
        return _compiled(text.replace("#define RD_KERNEL static\n", "#define RD_KERNEL\n", 1), spec, ("-S",)).decode()


def is_source(unit: bytes) -> bool:
    """Whether a unit is text of this code generator, not an object that was compiled elsewhere."""
    return unit.startswith(OBJECT.encode())


@functools.cache
def _compiler_version() -> str:
    done = subprocess.run([*toolchain.compiler(), "--version"], capture_output=True, text=True, check=False)
    return " ".join([*toolchain.compiler(), done.stdout.split("\n")[0]])


def _compiled(text: str, spec: MachineSpec, how: Iterable[str]) -> bytes:
    if spec.triple.split("-")[0] != MachineSpec.host().triple.split("-")[0]:
        raise MachineError(f"C source for {spec.cpu} ({spec.triple}) does not run here",
                           hint="save it under a name that ends in .o, and link it into the board's program" if spec.is_bare else
                           "save it under a name that ends in .c, and give it to that machine's C compiler")
    folder = toolchain.temporary_folder("roundel-c-")
    try:
        source, made = folder / "unit.c", folder / "made"
        source.write_text(text)
        toolchain.run([*toolchain.compiler(), *_OPTIONS, f"-I{library.source_dir()}", *how, source, "-o", made])
        return made.read_bytes()
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def joined(texts: Iterable[str]) -> str:
    """The units of a module as one text, without what each begins with: what several have is there once."""
    sections: dict[str, None] = {}
    for text in texts:
        sections |= dict.fromkeys(text.rstrip("\n").split(SECTION)[1:])
    declares = [s for s in sections if re.match(r"(RD_KERNEL|extern) [^{]*;$", s)]
    return "\n".join([*declares, *(s for s in sections if s not in set(declares))]) + "\n"


BACKEND = C()
