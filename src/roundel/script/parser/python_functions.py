# SPDX-License-Identifier: Apache-2.0
"""Python functions of modules (``@I.pyfunc``), which graph functions call by ``R.call_py_func``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from ...interp.runtime import Runtime
from ...ir.module import IRModule
from ...runtime.registry import register_func
from .source import Source

_numbers = count()


class PythonFunctions:
    """The functions of one module: each is registered with the FFI under symbols of its own. As methods they get the module as ``self``,
    whose functions they may call (interpreted): ``self.add(x, y)``."""

    def __init__(self) -> None:
        self.functions: dict[str, tuple[Callable[..., Any], bool]] = {}
        self.symbols: dict[tuple[str, int], str] = {}
        self.mod: IRModule | None = None

    def add(self, source: Source, node: ast.FunctionDef, names: Mapping[str, Any]) -> None:
        """One more, from its syntax; it sees ``names``."""
        plain = copy.copy(node)
        plain.decorator_list = []
        space = dict(names)
        exec(compile(ast.Module([plain], []), source.file, "exec"), space)
        self.functions[node.name] = space[node.name], bool(node.args.args) and node.args.args[0].arg == "self"

    def symbol(self, name: str, results: int) -> str:
        """The symbol under which a function of so many results is called, destination passing."""
        key = name, results
        if key not in self.symbols:
            self.symbols[key] = f"python.{name}.{next(_numbers)}"
            register_func(self.symbols[key], self._writing(name, results))
        return self.symbols[key]

    def _writing(self, name: str, results: int) -> Callable[..., None]:
        """The function with arrays for its results behind its operands; it is looked up when it is called."""

        def call(*arrays: Any) -> None:
            function, method = self.functions[name]
            operands, outs = arrays[: len(arrays) - results], arrays[len(arrays) - results :]
            found = function(*([_Functions(self.mod)] if method else []), *operands)
            for out, value in zip(outs, found if isinstance(found, tuple | list) else (found,), strict=True):
                out[...] = value

        return call


class _Functions:
    """``self`` of a Python function."""

    def __init__(self, mod: IRModule | None) -> None:
        self._mod = mod

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if self._mod is None or name not in self._mod:
            raise AttributeError(f"the module has no function {name}")
        return Runtime(self._mod)[name]
