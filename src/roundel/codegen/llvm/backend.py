# SPDX-License-Identifier: Apache-2.0
"""The code generator for machines that LLVM knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from ...ir.annotations import IMPORT_LLVM, texts
from ...ir.errors import BuildError
from ...target.known import check_processor
from ...target.spec import MachineSpec, system_of
from ..backend import Emitted, Function
from ..data import Data
from . import machine
from .data import data_text
from .features import checked_features, of_llvm
from .function import emit_function, module_text, platform_of

_MACHINE_INTRINSIC = re.compile(r"@llvm\.(x86|aarch64|arm|riscv|wasm|ppc|s390|nvvm|amdgcn)\.(?!avx512\.(vpdpbusd|min|max))")

_OWN = re.compile(r"^(define |@roundel_library\w* = )(?!internal|private|hidden)", re.MULTILINE)


class LLVM:
    """`roundel.codegen.Backend`. A unit with data, which has the functions that run once for each call, is not worth LLVM's passes."""

    @property
    def version(self) -> str:
        """LLVM's version and options."""
        return machine.llvm_version()

    def check(self, spec: MachineSpec) -> None:
        """Ask LLVM, in another process, which a name that it does not know may end."""
        check_processor(spec.triple, spec.cpu, of_llvm(spec.features))

    def emit(self, functions: Sequence[Function], spec: MachineSpec, data: Sequence[Data] = ()) -> Emitted:
        """LLVM text; instructions of one machine by name, asked for by the program, are risky: LLVM ends the process where there is none."""
        platform, pieces = platform_of(spec), []
        for f in functions:
            try:
                pieces.append(emit_function(f.program, f.symbol, platform, f.symbols, f.facts))
            except BuildError as error:
                raise BuildError(error.what, where=error.where or f.symbol, why=error.why, hint=error.hint) from error
        attrs = functions[0].program.attrs if functions else {}
        imports = texts(attrs, IMPORT_LLVM)
        text = machine.with_imports(module_text(pieces, data_text(data)), imports)
        if system_of(spec.triple) == "macos":  # whose linker exports what is not hidden
            text = _OWN.sub(r"\1hidden ", text)
        pipeline = "none" if data else "light" if any(p.vectors for p in pieces) else "loops" if "checks" in attrs else "full"
        risky = _MACHINE_INTRINSIC.search(text) is not None
        return Emitted(text, pipeline, risky) if data or imports else Emitted(text, pipeline, risky, lambda: [module_text([p]) for p in pieces])

    def object(self, text: str, spec: MachineSpec, pipeline: str) -> bytes:
        """Compiled by LLVM, whose fatal errors end the process."""
        return machine.to_object(text, spec, pipeline)

    def linkable(self, objects: Sequence[bytes], spec: MachineSpec) -> list[bytes]:
        """The objects as they are."""
        return list(objects)

    def features(self, spec: MachineSpec, called: Callable[[], Collection[str]]) -> list[str]:
        """Those that the runtime checks for."""
        return checked_features(spec, called)

    def optimised(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """LLVM text after LLVM's passes."""
        return machine.optimised_text(text, spec, pipeline)

    def assembly(self, text: str, spec: MachineSpec, pipeline: str) -> str:
        """Assembly."""
        return machine.to_assembly(text, spec, pipeline)


BACKEND = LLVM()
