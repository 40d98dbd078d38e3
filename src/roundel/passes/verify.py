# SPDX-License-Identifier: Apache-2.0
"""Checks every pass by running the module in the interpreter before and after it, on random inputs.

Only functions that a pass changed run again. A function whose signature changed (its layout, added parameters), or that
disagrees while nobody outside sees it, is judged by its callers instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interp import Runtime, compare
from ..interp.compare import Difference
from ..interp.shadow import shadow_call
from ..ir import graph, tir
from ..ir.errors import CallError, InterpretError, VerifyError
from ..ir.module import IRModule
from ..ir.tir import BaseFunc
from ..ir.visit import children
from .inputs import SIZES, Case, execute, make_case, runnable
from .observers import changed
from .run import Observer
from .well_formed import well_formed

Failure = tuple[str, Difference, Case]


class Verify(Observer):
    """Raises VerifyError after the first pass that makes the module ill-formed or changes results.

    ``skipped`` collects (pass, function, reason) for what could not be run. ``packed``: foreign functions by name.
    """

    def __init__(self, *, seed: int = 0, packed: Any = None) -> None:
        self.seed, self.packed = seed, packed
        self.skipped: list[tuple[str, str, str]] = []
        self._runtimes: dict[int, tuple[IRModule, Runtime]] = {}
        self._results: dict[str, tuple[IRModule, Case, Any]] = {}

    def begin(self, mod: IRModule) -> None:
        self._check_form("the input", mod)

    def after(self, name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        names = changed(before, after)
        if not names:
            return
        self._check_form(name, after)
        failure = self._judge(name, before, after, names)
        if failure is not None:
            function, difference, case = failure
            dims = ", ".join(f"{k} = {v}" for k, v in case.dims.items())
            raise VerifyError(
                f"results differ after pass {name}: {function} {difference}",
                why="\n".join(filter(None, (f"with {dims}" if dims else "", _foreign(before, after)))),
                hint=f"compare `roundel inspect --after {name}` with the pass before it",
            )

    def _check_form(self, name: str, mod: IRModule) -> None:
        problems = well_formed(mod, rebinding=True)
        if problems:
            raise VerifyError(f"the module is ill-formed after pass {name}", why="\n".join(problems[:10]))

    def _judge(self, name: str, before: IRModule, after: IRModule, names: list[str]) -> Failure | None:
        """Directly comparable functions first; what cannot be compared, or differs without being exported, goes to the
        callers.
        """
        callers = _callers(before)
        queue, seen = list(names), set(names)
        while queue:
            function = queue.pop(0)
            failure, settled = self._check(name, before, after, function)
            up = [c for c in callers.get(function, ()) if c in after]
            if failure is not None and not (up and "global_symbol" not in after[function].attrs):
                return failure
            if failure is not None or not settled:
                queue += [c for c in up if c not in seen]
                seen.update(up)
        return None

    def _check(self, name: str, before: IRModule, after: IRModule, function: str) -> tuple[Failure | None, bool]:
        """(the difference if any, whether the function could be compared at all)."""
        old, new = before.functions.get(function), after.functions.get(function)
        if old is None or new is None or not comparable(old, new):
            return None, False
        found = self._reference(name, before, function)
        if found is None:
            return None, False
        case, want = found
        try:
            got = execute(self._runtime(after), function, _adapt(case, new))
        except (InterpretError, CallError) as error:
            return (function, Difference("call", (), f"failed: {error}", "a result", 0.0, -1, 0), case), True
        difference = compare(got, want)
        if difference is not None:
            shadow = shadow_call(before, function, case.copy(), packed=self.packed)
            if shadow is not None:
                difference = compare(got, shadow.value, shadow.magnitude)
        if difference is not None:
            return (function, difference, case), True
        self._results[function] = (after, case, got)
        return None, True

    def _reference(self, name: str, mod: IRModule, function: str) -> tuple[Case, Any] | None:
        """Arguments on which the function before the pass runs, and its results there."""
        known = self._results.get(function)
        if known is not None and known[0].functions.get(function) is mod.functions[function] and known[0] is mod:
            return known[1], known[2]
        func, reason = mod[function], ""
        for sizes in SIZES:
            for positive in (False, True):
                try:
                    case = make_case(func, sizes, self.seed, positive)
                    want = execute(self._runtime(mod), function, case)
                except (InterpretError, CallError) as error:
                    reason = str(error)
                    continue
                if positive or not _mostly_nan(want):
                    self._results[function] = (mod, case, want)
                    return case, want
        self.skipped.append((name, function, reason or "every input gives NaN"))
        return None

    def _runtime(self, mod: IRModule) -> Runtime:
        if id(mod) not in self._runtimes:
            if len(self._runtimes) > 1:
                self._runtimes.pop(next(iter(self._runtimes)))
            self._runtimes[id(mod)] = (mod, Runtime(mod, packed=self.packed))
        return self._runtimes[id(mod)][1]


def _foreign(before: IRModule, after: IRModule) -> str:
    """Which foreign code a pass took, and at which nodes, in words; "" for none."""
    taken = [f"{c.taken} at {c.site!r}" for c in after.choices.made[len(before.choices.made) :] if c.kind == "library" and c.taken != "generated"]
    return f"it takes {', '.join(taken)}" if taken else ""


def comparable(old: BaseFunc, new: BaseFunc) -> bool:
    """Whether the two take the same arguments, so that results can be compared directly."""
    if not (runnable(old) and runnable(new)):
        return False
    return signature(old) == signature(new)


def signature(func: BaseFunc) -> Any:
    """What a caller sees: dtypes and shapes of tensor arguments (symbolic dimensions by order); None parameters are
    numbers.
    """
    numbers: dict[tir.Var, int] = {}

    def dim(e: tir.Expr) -> Any:
        if type(e) is tir.IntImm:
            return e.value
        return ("size", numbers.setdefault(e, len(numbers))) if type(e) is tir.Var else "computed"

    def info(i: graph.StructInfo) -> Any:
        if isinstance(i, graph.TupleInfo):
            return tuple(map(info, i.fields))
        return (str(i.dtype), tuple(map(dim, i.shape or ()))) if isinstance(i, graph.TensorInfo) else type(i).__name__

    if isinstance(func, tir.PrimFunc):
        host = func.attrs.get("kind") == "host" and "num_inputs" in func.attrs
        params = func.params[: int(func.attrs["num_inputs"])] if host else func.params
        buffers = func.buffers
        tensors = tuple((str(buffers[p].dtype), tuple(map(dim, buffers[p].shape))) for p in params if p in buffers)
        return ("value" if host else "in place"), tensors
    return "value", tuple(info(p.sinfo) for p in func.params)  # type: ignore[attr-defined]


def _adapt(case: Case, func: BaseFunc) -> Case:
    """The case for a function that has more or fewer scalar parameters, by name of the dimensions."""
    if not isinstance(func, tir.PrimFunc) or len(case.args) == len(func.params) or func.attrs.get("kind") == "host":
        return case
    tensors = iter([a for a in case.args if isinstance(a, np.ndarray)])
    buffers = func.buffers
    return Case(case.dims, [next(tensors) if p in buffers else case.dims.get(p.name, 0) for p in func.params])


def _mostly_nan(values: Any) -> bool:
    arrays = [
        np.asarray(v)
        for v in (values if isinstance(values, tuple) else (values,))
        if not isinstance(v, tuple | str | None.__class__)
    ]
    floats = [a.astype(np.float64) for a in arrays if a.dtype.kind in "fV" and a.size]
    return any(np.isnan(a).mean() > 0.5 for a in floats)


def _callers(mod: IRModule) -> dict[str, list[str]]:
    """For every function, the functions that refer to it."""
    out: dict[str, list[str]] = {}
    for name, func in mod.items():
        for callee in _references(func):
            if name not in out.setdefault(callee, []):
                out[callee].append(name)
    return out


def _references(func: BaseFunc) -> set[str]:
    """Names of functions that ``func`` calls."""
    found: set[str] = set()
    stack: list[Any] = [func.body]  # type: ignore[attr-defined]
    seen: set[int] = set()
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if isinstance(n, graph.GlobalVar):
            found.add(n.name)
        elif isinstance(n, tir.Call):
            if isinstance(n.op, graph.GlobalVar):
                found.add(n.op.name)
            elif n.op == "parallel_for" and isinstance(n.args[0], tir.StringImm):
                found.add(n.args[0].value)
        stack.extend(children(n))
    return found
