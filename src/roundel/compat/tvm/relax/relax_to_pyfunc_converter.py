# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.relax_to_pyfunc_converter``: graph functions on tensors of PyTorch, without a compiler in between."""

from __future__ import annotations

from collections.abc import Sequence

from .... import api
from ....ir.module import IRModule
from .base_py_module import to_array, to_torch


class ConvertedModule:
    """A module and, by name, its graph functions on tensors of PyTorch, which the interpreter runs."""

    def __init__(self, mod: IRModule, names: Sequence[str]) -> None:
        functions = api.interpret(mod)
        self.ir_mod = mod
        self.pyfuncs = {name: (lambda *args, f=functions[name]: to_torch(f(*map(to_array, args)))) for name in names}


class RelaxToPyFuncConverter:
    """``RelaxToPyFuncConverter(mod).convert(["main"]).pyfuncs["main"](x)``"""

    def __init__(self, ir_module: IRModule) -> None:
        self.ir_module = ir_module

    def convert(self, relax_functions: str | Sequence[str]) -> ConvertedModule:
        """The module with these functions callable from Python. Raises KeyError for a name that it does not have."""
        return ConvertedModule(self.ir_module, [relax_functions] if isinstance(relax_functions, str) else list(relax_functions))


__all__ = ["RelaxToPyFuncConverter"]
