# SPDX-License-Identifier: Apache-2.0
"""LLVM: flat tensor programs as LLVM IR text, and from there to assembly and objects."""

from .emitter import Platform
from .function import Facts, Piece, emit_function, facts_of, module_text, platform_of, read_data, written_data
from .machine import MachineSpec, check_processor, llvm_version, optimised_text, to_assembly, to_object, with_imports

__all__ = [
    "Facts",
    "MachineSpec",
    "Piece",
    "Platform",
    "check_processor",
    "emit_function",
    "facts_of",
    "llvm_version",
    "module_text",
    "optimised_text",
    "platform_of",
    "read_data",
    "to_assembly",
    "to_object",
    "with_imports",
    "written_data",
]
