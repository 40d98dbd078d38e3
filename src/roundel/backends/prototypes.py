# SPDX-License-Identifier: Apache-2.0
"""How kernels call C functions, as a C programmer writes it: what the attribute ``import_c_calls`` of their programs holds, which the build checks.

    mykit: int32_t scale(const float *operand0, float *result, int64_t number0, int64_t first, int64_t count)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.prototype import Prototype

_TYPES = {"float16": "_Float16", "bfloat16": "__bf16", "float32": "float", "float64": "double", "bool": "bool", "complex64": "void", "complex128": "void",
          **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}}


def prototype(who: str, symbol: str, operands: Sequence[tuple[int, Any]], result: Any, numbers: Sequence[Any], *, status: bool, workspace: bool,
              parts: Sequence[str]) -> Prototype:
    """The call of a kernel's function. ``operands``: the position and the type of each; ``result``: its type; ``parts``: the names of the last
    numbers, which say what of the result is computed."""
    given = [f"const {_TYPES.get(str(dtype), 'uint8_t')} *operand{k}" for k, dtype in operands]
    given += [f"{_TYPES.get(str(result), 'uint8_t')} *result", *(["void *workspace"] if workspace else ())]
    given += [f"{'double' if is_real(n) else 'int64_t'} number{k}" for k, n in enumerate(numbers)]
    return Prototype(who, "int32_t" if status else "void", symbol, (*given, *(f"int64_t {p}" for p in parts)))


def guard_prototype(who: str, symbol: str, numbers: Sequence[Any]) -> Prototype:
    """The call of a function that is asked whether a kernel can run."""
    return Prototype(who, "int32_t", symbol, tuple(f"int64_t number{k}" for k in range(len(numbers))))


def is_real(number: Any) -> bool:
    """Is it a number that C functions get as ``double``?"""
    return isinstance(number, float | np.floating)
