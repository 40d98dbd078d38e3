# SPDX-License-Identifier: Apache-2.0
"""IRModule: graph functions and tensor programs side by side."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import Any

from .attrs import EMPTY, Attrs
from .choice import Choices
from .graph.expr import ExternFunc, GlobalVar
from .node import Node, node
from .tir.func import BaseFunc


@node(hidden=("constants", "choices"), weak=True)
class IRModule(Node):
    """A set of functions by name. ``mod["main"]`` gets one; ``with_functions`` makes a changed copy. No pass or primitive changes a module.

    ``constants`` keeps the data of constants alive that host functions name by key (None: none do). ``choices`` are the algorithms that
    passes have chosen and those that are asked for. Neither is part of the program's text or equality.
    """

    functions: Mapping[str, BaseFunc]
    attrs: Attrs = EMPTY
    constants: Any = None
    choices: Choices = Choices()

    __hash__ = object.__hash__

    def __getitem__(self, name: Any) -> Any:
        name = getattr(name, "name", name)
        if name not in self.functions:
            raise KeyError(f"the module has no function {name!r}; it has {', '.join(self.functions) or 'none'}")
        return self.functions[name]

    def __setitem__(self, name: Any, func: Any) -> None:
        raise TypeError("a module is not changed in place: mod = mod.with_functions({name: func}); programs written for TVM: mod.update_func(name, func)")

    def update_func(self, var: Any, func: BaseFunc) -> None:
        """Put a function into this object, as programs written for TVM do; modules made from it before keep theirs. New code: ``with_functions``."""
        object.__setattr__(self, "functions", {**self.functions, getattr(var, "name", var): func})

    def update(self, other: Mapping[Any, BaseFunc]) -> None:
        """Put all functions of another module into this object, as programs written for TVM do."""
        for name, func in other.items():
            self.update_func(name, func)

    def __contains__(self, name: object) -> bool:
        return getattr(name, "name", name) in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def keys(self) -> KeysView[str]:
        """Names of the functions."""
        return self.functions.keys()

    def items(self) -> ItemsView[str, BaseFunc]:
        """Name and function pairs."""
        return self.functions.items()

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """Reference and function pairs."""
        return [(GlobalVar(name), func) for name, func in self.functions.items()]

    def with_functions(self, changes: Mapping[str, BaseFunc | None]) -> IRModule:
        """A copy with functions added or replaced (None removes); the same object when nothing differs."""
        if all(self.functions.get(k) is f for k, f in changes.items()):
            return self
        merged = {**self.functions, **changes}
        return IRModule({k: f for k, f in merged.items() if f is not None}, self.attrs, self.constants, self.choices)

    def without_externs(self) -> IRModule:
        """Without names of functions that are elsewhere (``ExternFunc``); those who call them name them themselves."""
        found = [name for name, func in self.functions.items() if isinstance(func, ExternFunc)]
        return self.with_functions(dict.fromkeys(found)) if found else self

    @staticmethod
    def from_expr(func: BaseFunc) -> IRModule:
        """A module of one function, under its ``global_symbol`` or ``main``."""
        return IRModule({str(func.attrs.get("global_symbol", "main")): func})

    def get_global_var(self, name: str) -> GlobalVar:
        """The reference to a function of the module; raises KeyError."""
        self[name]
        return GlobalVar(name)

    def get_global_vars(self) -> list[GlobalVar]:
        """References to all functions."""
        return list(map(GlobalVar, self.functions))

    def unique_name(self, hint: str) -> str:
        """``hint``, or with a number appended when a function has that name."""
        name, k = hint, 0
        while name in self.functions:
            k += 1
            name = f"{hint}_{k}"
        return name
