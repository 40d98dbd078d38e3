# SPDX-License-Identifier: Apache-2.0
"""Kernels to objects, each lowered and compiled in a worker process: where the time of compiling a model goes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from ..codegen import backend_of
from ..ir import IRModule, graph, tir
from ..ir.errors import RoundelError
from ..ir.visit import statements
from ..lower import lower
from ..lower.facts import facts_of
from ..passes.progress import report
from ..target import Target
from ..target.spec import MachineSpec
from . import compiler, object_cache
from .ahead import current, request
from .units import Unit, Units

WORTH = 150  # statements (of block form) of a module that are worth sharing among processes
WORTH_STARTING = 24  # operators of a model that are sure to make so many


class Compiled(NamedTuple):
    """A kernel: its symbol, the constants that it refers to, and objects by symbol (its own and those of what it calls)."""

    symbol: str
    constants: dict[str, int]
    objects: dict[str, bytes]


def compile_text(text: str, spec: MachineSpec, pipeline: str) -> bytes:
    """The object that the machine's code generator makes of a text. Raises BuildError."""
    return backend_of(spec.backend).object(text, spec, pipeline)


def compile_unit(unit: Unit, spec: MachineSpec) -> bytes:
    """The object of a unit, from the cache or made in this process."""
    key = object_cache.object_key(unit.text, spec, unit.pipeline)
    found = object_cache.load(key)
    if found is None:
        found = compile_text(unit.text, spec, unit.pipeline)
        object_cache.store(key, found)
    return found


def compile_kernel(
    functions: Mapping[str, tir.PrimFunc], name: str, spec: MachineSpec, generate: Callable[[Unit, MachineSpec], bytes] = compile_unit
) -> Compiled:
    """The kernel ``name``, scheduled or lowered; ``functions`` holds it and what it calls. Raises BuildError."""
    target = Target({"kind": spec.backend, "triple": spec.triple, "cpu": spec.cpu})
    units = Units(lower(IRModule(dict(functions), {"target": target})), spec)
    objects = {unit.symbol: generate(unit, spec) for unit in units.unit(name)}
    return Compiled(units.symbols[name], units.constants[name], objects)


def start_processes(mod: IRModule) -> bool:
    """Start worker processes where a module of graph functions is going to have work for them: they get ready meanwhile. Whether there are any."""
    calls = sum(len(b.bindings) for f in mod.functions.values() if isinstance(f, graph.Function) for b in f.body.blocks)
    return calls >= WORTH_STARTING and compiler.start()


def worth_sharing(mod: IRModule) -> bool:
    """Whether the kernels of a module are so many that processes should share the work."""
    kernels = [f for f in mod.functions.values() if isinstance(f, tir.PrimFunc) and f.attrs.get("kind") != "host"]
    if not any(f.attrs.get("kind") == "host" for f in mod.functions.values()) or any("global_symbol" in f.attrs for f in kernels):
        return False
    return len(kernels) > 3 and compiler.size() > 1 and sum(_size(f) for f in kernels) > WORTH


def _size(func: tir.PrimFunc) -> int:
    return sum(1 for _ in statements(func.body))


def compile_kernels(mod: IRModule, spec: MachineSpec, meanwhile: Callable[[], object] = lambda: None) -> tuple[Units, dict[str, bytes]]:
    """All kernels of the module: symbols and constants as ``Units`` has them, objects by symbol.

    Worker processes take the largest first, this one ``meanwhile`` does what else there is to do, then the smallest. What a worker
    cannot take, or fails with, is done here, so that errors are the same.
    """
    kernels = {n: f for n, f in mod.items() if isinstance(f, tir.PrimFunc) and f.attrs.get("kind") != "host"}
    waiting: dict[str, Future[Compiled]] = {}
    begun = current()
    asked = {} if begun is None else {n: f for n in kernels if (f := begun.found(n, kernels[n], spec)) is not None}
    for name in sorted(kernels, key=lambda n: -_size(kernels[n])):
        message, answer = asked.get(name) or (request(_closure(kernels, name), name, spec), None)
        if message is not None:
            waiting[name] = answer or compiler.pool().ask(message, name, spec)
    foreign = spec.triple != MachineSpec.host().triple

    def here(name: str) -> Compiled:
        return compile_kernel(_closure(kernels, name), name, spec, lambda u, s: compiler.compile_units([u], s, isolated=foreign)[0])

    meanwhile()
    own: dict[str, Compiled] = {}
    for name in reversed(waiting):
        if waiting[name].cancel():
            report("kernels", len(own), len(kernels))
            own[name] = here(name)
    if not all(answer.done() for answer in waiting.values()):
        gc.collect(0)  # what ``rare_collection`` put off: rather now, while others work, than at the end
    units = Units(mod, spec)
    objects: dict[str, Any] = {}
    for name in kernels:
        report("kernels", len(units.symbols), len(kernels))
        try:
            made = own[name] if name in own else waiting[name].result()
        except compiler.Died:
            raise
        except (KeyError, RoundelError):
            made = here(name)
        units.symbols[name], units.constants[name] = made.symbol, made.constants
        objects |= made.objects
    return units, objects


def _closure(kernels: Mapping[str, tir.PrimFunc], name: str) -> dict[str, Any]:
    """The kernel and what it calls, directly or not."""
    found: dict[str, Any] = {}
    todo = [name]
    while todo:
        n = todo.pop()
        if n not in found and n in kernels:
            found[n] = kernels[n]
            todo += facts_of(kernels[n]).callees
    return found
