# SPDX-License-Identifier: Apache-2.0
"""Tensor programs that call C code or LLVM text they bring along: the interpreter has them compiled, and calls them with arrays of the machine's own types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import above, tir
from ..ir.annotations import IMPORT_C, IMPORT_LLVM
from ..ir.module import IRModule
from ..ir.visit import free_vars
from .stmt import Executor

_compiled: dict[tir.PrimFunc, Any] = {}
MOST = 64  # programs that are kept


def is_native(func: tir.PrimFunc) -> bool:
    """Whether a program can be run as machine code only."""
    return IMPORT_C in func.attrs or IMPORT_LLVM in func.attrs


def run_native(ex: Executor, func: tir.PrimFunc) -> None:
    """Run a program whose arguments are bound. Raises BuildError."""
    if func not in _compiled:
        if len(_compiled) >= MOST:
            _compiled.clear()
        public = func.replace(attrs=func.attrs | {"global_symbol": "native"})
        _compiled[func] = above.build().build(IRModule({"native": public}))["native"]
    sizes = {v for b in func.buffers.values() for n in b.shape for v in free_vars(n)}  # which the arrays tell
    given = [_array(ex, func.buffers[p]) if p in func.buffers else ex.env[p] for p in func.params if p not in sizes]
    _compiled[func](*given)
    for p, made in zip((p for p in func.params if p not in sizes), given, strict=True):
        if p in func.buffers and (there := ex.views[func.buffers[p]].array()).flags.writeable:  # a constant is not, and nobody writes to it
            there[...] = ex.machine.lift(made)


def _array(ex: Executor, buffer: tir.Buffer) -> np.ndarray:
    return np.array(ex.machine.lower(ex.views[buffer].array(), buffer.dtype), order="C")
