# SPDX-License-Identifier: Apache-2.0
"""A lowered module cut into what is compiled by itself: each kernel with its tasks, and the host functions together.

Text of a kernel has no names of its own, so equal kernels are one, in a module and in the cache: the symbol is made
from the text's hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..codegen.llvm import Facts, MachineSpec, Piece, Platform, emit_function, facts_of, module_text, platform_of, with_imports
from ..ir import IRModule, tir
from ..ir.annotations import IMPORT_LLVM
from ..ir.errors import BuildError

_PLACEHOLDER = "__kernel__"
_MACHINE_INTRINSIC = re.compile(r"@llvm\.(x86|aarch64|arm|riscv|wasm|ppc|s390|nvvm|amdgcn)\.(?!avx512\.vpdpbusd)")


@dataclass(frozen=True)
class Unit:
    """LLVM text for one object. ``pipeline`` says what LLVM does with it, ``name`` is for people."""

    name: str
    symbol: str
    text: str
    pipeline: str

    @property
    def risky(self) -> bool:
        """Instructions of one machine by name, asked for by the program: LLVM ends the process where there is none."""
        return _MACHINE_INTRINSIC.search(self.text) is not None


@dataclass
class Units:
    """The kernels of a module, generated on demand, each different text once."""

    mod: IRModule
    spec: MachineSpec
    symbols: dict[str, str] = field(default_factory=dict)
    made: dict[str, Unit] = field(default_factory=dict)
    constants: dict[str, dict[str, int]] = field(default_factory=dict)

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
        text, vectors, constants = self._text(name, facts)
        symbol = "rk_" + hashlib.sha256(text.encode()).hexdigest()[:20]
        self.symbols[name] = symbol
        self.constants[name] = constants
        if symbol not in self.made:
            pipeline = "light" if vectors else "loops" if "checks" in self.func(name).attrs else "full"
            self.made[symbol] = Unit(name, symbol, text.replace(_PLACEHOLDER, symbol), pipeline)
            yield self.made[symbol]

    def func(self, name: str) -> tir.PrimFunc:
        """A tensor program of the module; raises BuildError when there is none."""
        func = self.mod.functions.get(name)
        if not isinstance(func, tir.PrimFunc):
            raise BuildError(
                f"{name} is called, but is not a tensor program of the module",
                hint=f"it has {', '.join(self.mod.functions)}",
            )
        return func

    def _text(self, name: str, facts: Facts) -> tuple[str, bool, dict[str, int]]:
        platform = platform_of(self.spec.triple, self.spec.features)
        tasks: dict[str, str] = {}

        def symbol(callee: str) -> str:
            if self.func(callee).attrs.get("kind") == "task":
                return tasks.setdefault(callee, f"{_PLACEHOLDER}.{len(tasks)}")
            return self.symbols[callee]

        pieces: list[Piece] = [self._piece(name, _PLACEHOLDER, platform, symbol, facts)]
        done = 0
        while done < len(tasks):  # tasks may have tasks
            task = list(tasks)[done]
            pieces.append(self._piece(task, tasks[task], platform, symbol))
            done += 1
        text = with_imports(module_text(pieces), self.func(name).attrs.get(IMPORT_LLVM, ()))
        return text, any(p.vectors for p in pieces), pieces[0].constants

    def _piece(
        self, name: str, symbol: str, platform: Platform, resolve: Callable[[str], str], facts: Facts | None = None
    ) -> Piece:
        try:
            return emit_function(self.func(name), symbol, platform, resolve, facts)
        except BuildError as error:
            raise BuildError(error.what, where=error.where or name, why=error.why, hint=error.hint) from error
