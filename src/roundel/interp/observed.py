# SPDX-License-Identifier: Apache-2.0
"""A module in the interpreter that is watched: a function of the user's is called before and after each kernel and may leave it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roundel.ir.module import IRModule

from .runtime import Runtime

Instrument = Callable[..., Any]
"""``instrument(kernel, name, before_run, result, *args)``; what it returns before a run is true where the kernel is not to run."""


class Observed(Runtime):
    """Runs a module and shows ``instrument`` each tensor program and each foreign function: their arguments end with the results where those are given."""

    def __init__(self, mod: IRModule, instrument: Instrument) -> None:
        super().__init__(mod)
        self.instrument = instrument

    def call_prim(self, func: Any, args: Any, name: str) -> Any:
        """A tensor program between two calls of the instrument."""
        inner = super().call_prim
        return self._watched(lambda *values: inner(func, values, name), name, args)

    def packed(self, name: str) -> Callable[..., Any]:
        """A foreign function between two calls of the instrument."""
        found = super().packed(name)
        return lambda *args: self._watched(found, name, args)

    def _watched(self, kernel: Callable[..., Any], name: str, args: Any) -> Any:
        if self.instrument(kernel, name, True, None, *args):
            return None
        result = kernel(*args)
        self.instrument(kernel, name, False, result, *args)
        return result
