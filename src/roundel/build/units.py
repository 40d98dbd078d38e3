# SPDX-License-Identifier: Apache-2.0
"""A lowered module cut into what is compiled by itself: each kernel with its tasks, and the host functions together.

Text of a kernel has no names of its own, so equal kernels are one, in a module and in the cache: the symbol is made
from the text's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import field

from ..codegen import Function, backend_of
from ..ir import IRModule, tir
from ..ir.dataclass import dataclass
from ..ir.errors import BuildError
from ..lower.facts import Facts, facts_of
from ..target.spec import MachineSpec

_PLACEHOLDER = "__kernel__"


@dataclass(frozen=True)
class Unit:
    """Text for one object. ``pipeline`` says how it is compiled, ``name`` is for people; compiling what is ``risky`` may end the process."""

    name: str
    symbol: str
    text: str
    pipeline: str
    risky: bool = False


@dataclass
class Units:
    """The kernels of a module, generated on demand, each different text once. ``numbered``: symbols are not made from texts but numbers, so those of one
    module must not meet those of another; and each function is a unit, where it can be one: candidates of a search have most of them in common."""

    mod: IRModule
    spec: MachineSpec
    numbered: bool = False
    symbols: dict[str, str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    constants: dict[str, dict[str, int]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)  # equal for equal code

    def kernels(self) -> Iterator[Unit]:
        """Units of all kernels, callees first; a kernel equal to an earlier one gives none."""
        for name, func in self.mod.items():
            if isinstance(func, tir.PrimFunc) and func.attrs.get("kind") == "kernel":
                yield from self.unit(name)

    def unit(self, name: str, callers: tuple[str, ...] = ()) -> Iterator[Unit]:
        """The kernel ``name`` and what it calls, where not yet made."""
        if name in self.symbols:
            return
        if name in callers:
            raise BuildError(f"tensor program {name} calls itself", why=" -> ".join((*callers, name)))
        facts = facts_of(self.func(name))
        for callee in facts.callees:
            yield from self.unit(callee, (*callers, name))
        try:
            emitted = backend_of(self.spec.backend).emit(self._functions(name, facts), self.spec)
        except BuildError as error:
            where = name if error.where is None or error.where.startswith(_PLACEHOLDER) else error.where
            raise BuildError(error.what, where=where, why=error.why, hint=error.hint) from error
        self.digests[name] = hashlib.sha256(emitted.text.encode()).hexdigest()[:20]
        symbol = f"rk_{len(self.symbols) if self.numbered else self.digests[name]}"
        self.symbols[name] = symbol
        self.constants[name] = facts.constants
        if symbol not in self.made:
            self.made.add(symbol)
            for text in (emitted.parts() if self.numbered else ()) or (emitted.text,):
                yield Unit(name, symbol, text.replace(_PLACEHOLDER, symbol), emitted.pipeline, emitted.risky)

    def func(self, name: str) -> tir.PrimFunc:
        """A tensor program of the module; raises BuildError when there is none."""
        func = self.mod.functions.get(name)
        if not isinstance(func, tir.PrimFunc):
            raise BuildError(
                f"{name} is called, but is not a tensor program of the module",
                hint=f"it has {', '.join(self.mod.functions)}",
            )
        return func

    def _functions(self, name: str, facts: Facts) -> list[Function]:
        """The kernel and its tasks, which may have tasks."""
        tasks: dict[str, str] = {}

        def symbol(callee: str) -> str:
            return tasks[callee] if callee in tasks else self.symbols[callee]

        functions, todo = [], [Function(_PLACEHOLDER, self.func(name), symbol, facts)]
        while todo:
            functions.append(todo.pop(0))
            for task in functions[-1].facts.tasks:
                if task not in tasks:
                    tasks[task] = f"{_PLACEHOLDER}.{len(tasks)}"
                    todo.append(Function(tasks[task], self.func(task), symbol))
        return functions
