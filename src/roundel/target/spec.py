# SPDX-License-Identifier: Apache-2.0
"""`MachineSpec`: what a code generator is told of a machine."""

from __future__ import annotations

import functools

from ..ir.dataclass import dataclass
from .machines import MACHINES


def ending_of(kind: str, triple: str) -> str:
    """The ending of the files that models for a machine are saved as, where they are no shared libraries: ``.c`` or ``.wasm``; else empty."""
    return ".c" if kind == "c" else ".wasm" if triple.startswith("wasm") else ""


def system_of(triple: str) -> str:
    """The system that programs of a machine run on: ``windows``, ``macos``, ``wasi``, or whatever else the triple says, which is Linux where it
    says nothing."""
    if "windows" in triple or "mingw" in triple:
        return "windows"
    if triple.startswith("wasm"):
        return "wasi" if "wasi" in triple else ""
    return "macos" if "darwin" in triple or "macos" in triple else "" if is_bare(triple) else "linux"


def library_ending(triple: str) -> str:
    """The ending of shared libraries on a machine's system."""
    return {"windows": ".dll", "macos": ".dylib"}.get(system_of(triple), ".so")


def is_bare(triple: str) -> bool:
    """Whether programs of a machine run without a system, on memory of some hundred kilobytes: a microcontroller."""
    return "none" in triple.split("-") or triple.endswith("-elf")


@dataclass(frozen=True)
class MachineSpec:
    """The machine in LLVM's words, and which code generator (``roundel.codegen.BACKENDS``) makes code for it. ``level``: 0 to 3, the effort of
    instruction selection and register allocation."""

    triple: str
    cpu: str
    features: str
    level: int = 2
    backend: str = "llvm"

    @property
    def is_bare(self) -> bool:
        """Whether its programs run without a system."""
        return is_bare(self.triple)

    @property
    def ending(self) -> str:
        """`ending_of` this machine."""
        return ending_of(self.backend, self.triple)

    @property
    def adds_apart(self) -> bool:
        """Whether the processor adds vectors elsewhere than where it multiplies and adds them."""
        return MACHINES.get(self.cpu, {}).get("add_ports", 0) > 0

    @staticmethod
    @functools.cache
    def host() -> MachineSpec:
        """This machine."""
        import llvmlite.binding as llvm

        return MachineSpec(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
