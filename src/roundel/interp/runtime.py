# SPDX-License-Identifier: Apache-2.0
"""Runs the functions of a module: the table that ``interpret`` returns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import graph, tir
from ..ir.errors import InterpretError
from ..ir.jumps import without_jumps
from ..ir.module import IRModule
from ..ir.scalable import fix_vectors
from . import arguments
from .dependence import Plan
from .graph import GraphEvaluator
from .host import call_host
from .intrinsics import Returned
from .memory import Pointer
from .native import is_native, run_native
from .numeric import Machine
from .stmt import Executor

Packed = Callable[..., Any]
PLANS = 1024  # analyses of functions that are kept


class Runtime:
    """A module ready to run. ``rt["name"](...)``: a tensor program writes into the arrays passed for its outputs, a
    graph function (or the host function it became) returns its results.

    ``packed`` gives foreign functions by name (asked before the FFI's registry). With ``order`` the iterations of parallel, vectorized
    and thread-bound loops run one after another in a random order: what the loop says must not matter.
    """

    def __init__(
        self,
        mod: IRModule,
        machine: Machine | None = None,
        packed: Mapping[str, Packed] | None = None,
        order: random.Random | None = None,
    ) -> None:
        self.mod, self.machine, self.order = mod, machine or Machine(), order
        symbols = {str(f.attrs.get("global_symbol", name)): name for name, f in mod.items()}
        self._by_symbol = {symbol: name for symbol, name in symbols.items() if symbol not in mod}  # by which built modules know them
        self._packed = dict(packed or {})
        self._plans: dict[tuple, Plan] = {}
        self._plain_forms: dict[tir.PrimFunc, tir.PrimFunc] = {}
        self._constants: dict[str, Pointer] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        name = self._by_symbol.get(name, name)
        func = self.mod[name]

        def call(*args: Any) -> Any:
            return self.call(name, args)

        call.__name__, call.__doc__ = str(name), f"interpreted {type(func).__name__} {name}"
        return call

    def __contains__(self, name: object) -> bool:
        return name in self.mod or name in self._by_symbol

    def __call__(self, *args: Any) -> Any:
        """Call ``main``, or the only function."""
        if "main" not in self.mod and len(self.mod) != 1:
            raise InterpretError("the module has no function main", why=f"its functions are {', '.join(self.mod) or 'none'}", hint='name one: runtime["f"](x)')
        return self.call("main" if "main" in self.mod else next(iter(self.mod)), args)

    def call(self, name: str, args: Sequence[Any]) -> Any:
        """Call a function with arrays (or what converts to one), numbers, tuples."""
        func = self.mod[name]
        values = [as_value(a) for a in args]
        with np.errstate(all="ignore"):
            if isinstance(func, graph.Function):
                return GraphEvaluator(self, name).call(func, values)
            if func.attrs.get("kind") == "host" and "num_inputs" in func.attrs:
                return call_host(self, func, values, name)
            return self.call_prim(func, values, name)  # type: ignore[arg-type]

    def call_prim(self, func: tir.PrimFunc, args: Sequence[Any], name: str) -> Any:
        """Call a tensor program with arrays, Pointers and numbers in the order of its parameters."""
        return self.execute(Executor(self, name), func, args)

    def execute(self, ex: Executor, func: tir.PrimFunc, args: Sequence[Any]) -> Any:
        """Bind the arguments in ``ex`` and run the body; returns what ``ret`` gives."""
        func = self._plain(func)
        copies = arguments.bind(ex, func, args)
        try:
            if is_native(func):
                run_native(ex, func)
                return None
            ex.plan = self._plan(ex, func)
            ex.run(func.body)
        except Returned as out:
            return out.value
        finally:
            for copied in copies:
                copied.write_back(self.machine)
        return None

    def _plain(self, func: tir.PrimFunc) -> tir.PrimFunc:
        """The program without jumps, for vectors of one length (any does: the shortest)."""
        if func not in self._plain_forms:
            self._plain_forms[func] = without_jumps(fix_vectors(func, 1))
        return self._plain_forms[func]

    def _plan(self, ex: Executor, func: tir.PrimFunc) -> Plan:
        values = {v: n for v, n in ex.env.items() if type(n) is int and v.dtype.is_int}
        shared = arguments.aliases(ex, func)
        key = (func, tuple(values.values()), tuple(shared.items()))
        if key not in self._plans:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = Plan(func, values, shared)
        return self._plans[key]

    def call_from_program(self, name: str, args: list[Any]) -> Any:
        """A call of another function of the module by a tensor program (pointers and scalars)."""
        if name not in self.mod:
            raise InterpretError(
                f"there is no function {name!r} in the module", hint=f"it has {', '.join(self.mod.keys())}"
            )
        return self.call_prim(self.mod[name], args, name)  # type: ignore[arg-type]

    def own(self, symbol: str) -> str | None:
        """The function of the module that is exported as ``symbol``."""
        return next((name for name, f in self.mod.items() if symbol == f.attrs.get("global_symbol", name)), None)

    def packed(self, name: str) -> Packed:
        """A foreign function; raises InterpretError when nobody registered it."""
        if name in self._packed:
            return self._packed[name]
        found = _registered(name)
        if found is None:
            raise InterpretError(
                f"there is no foreign function {name!r}", hint=f'register it with rd.register_func("{name}")'
            )
        return found

    def constant(self, key: str, array: np.ndarray) -> Pointer:
        """Pointer to a constant's bytes."""
        if key not in self._constants:
            self._constants[key] = Pointer(arguments.storage_of(self.machine, array), 0, array.shape)
        return self._constants[key]


def _registered(name: str) -> Packed | None:
    try:
        from ..runtime.registry import get_func  # on use: programs that call no packed function run without the native library

        return get_func(name)
    except (ImportError, LookupError, ValueError):
        return None


def as_value(a: Any) -> Any:
    """An argument as the interpreter wants it: arrays as ndarray (sharing memory), tuples of those, numbers and objects that are no arrays as they
    are.
    """
    if isinstance(a, np.ndarray | np.generic | int | float | bool | str | Pointer) or a is None:
        return a
    if isinstance(a, tuple | list):
        return tuple(as_value(x) for x in a)
    if hasattr(a, "__dlpack__") and not hasattr(a, "__array__"):
        return np.from_dlpack(a)
    made = np.asarray(a)
    return a if made.dtype == object and made.ndim == 0 else made


def interpret(
    mod: IRModule | tir.PrimFunc | graph.Function,
    *,
    machine: Machine | None = None,
    packed: Mapping[str, Packed] | None = None,
) -> Runtime:
    """A module (or one function, which is then called ``main``) ready to run in the interpreter."""
    if not isinstance(mod, IRModule):
        mod = IRModule({mod.attrs.get("global_symbol", "main"): mod})
    return Runtime(mod, machine, packed)


def run_prim_func(func: tir.PrimFunc, args: Sequence[Any], *, machine: Machine | None = None, order: random.Random | None = None) -> Any:
    """Run one tensor program on arrays and numbers in the order of its parameters; outputs are written in place (``order``: see Runtime)."""
    name = str(func.attrs.get("global_symbol", "main"))
    return Runtime(IRModule({name: func}), machine, order=order).call(name, args)
