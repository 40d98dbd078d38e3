# SPDX-License-Identifier: Apache-2.0
"""LLVM: flat tensor programs as LLVM IR text, and from there to assembly and objects."""

from .emitter import Platform
from .function import Piece, emit_function, module_text, platform_of

__all__ = ["Piece", "Platform", "emit_function", "module_text", "platform_of"]
