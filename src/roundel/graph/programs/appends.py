# SPDX-License-Identifier: Apache-2.0
"""Which results of a function append to one of its parameters, in every branch that makes them.

    present = concat(past, new)   ->   present = append(past, new)

``append`` computes the same; host/caches gives it memory in which ``past`` lies already. Branches come from hot sizes: each has the
parameter under a type of its own, and makes the result from other new rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ...ir import graph, options, tir
from ...ir.module import IRModule
from ...ir.op import CALL_TIR
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call, operands

Append = tuple[graph.Var, Any, int]
"""What a call appends to, what it appends, and the axis."""


class Flow:
    """Where the variables of a function are made and read, within branches too.

    ``results``: for each result, the variables that are it, one for each way through branches. ``branches``: the same for each ``If``
    that makes results. ``read``: the bindings that read a variable, None for what is no binding; to be handed out as a result, or as
    part of a tuple or branch that is, does not count.
    """

    def __init__(self, func: graph.Function) -> None:
        self.made: dict[graph.Var, graph.Binding] = {}
        self.read: dict[graph.Var, list[graph.Binding | None]] = {}
        self.branches: dict[graph.Var, list[tuple[graph.Var, ...]]] = {}
        self._passed: set[int] = set()  # ids of bindings, tuples and bodies that lead to results
        self._names: dict[graph.Var, list[tuple[graph.Var, ...]]] = {}  # of results, several together perhaps
        self._define(func.body)
        self.results = self._leaves(func.body)
        self._reads(func.body)
        for name, leaves in self._names.items():
            for v in (v for leaf in leaves for v in leaf if name in self.read):
                self.read.setdefault(v, []).append(None)

    def source(self, value: Any) -> Any:
        """The variable that is cast to ``value``."""
        while isinstance(made := self.made.get(value), graph.MatchCast):
            value = made.value
        return value

    def needed(self, var: graph.Var) -> bool:
        """Whether anything reads the variable, or it is a result."""
        return bool(self.read.get(var)) or any(var in leaves for leaves in self.results)

    def readers(self, var: graph.Var) -> list[graph.Binding | None]:
        """What reads the variable under any type."""
        return [r for b in self.read.get(var, ()) for r in (self.readers(b.var) if isinstance(b, graph.MatchCast) else [b])]

    def _define(self, body: graph.SeqExpr) -> None:
        for b in body.bindings:
            self.made[b.var] = b
            for inner in _bodies(b.value):
                self._define(inner)

    def _leaves(self, value: Any) -> list[tuple[graph.Var, ...]]:
        if isinstance(value, graph.SeqExpr | graph.Tuple):
            self._passed.add(id(value))
            parts = value.fields if isinstance(value, graph.Tuple) else (value.body,)
            return [leaf for p in parts for leaf in self._leaves(p)]
        made = self.made.get(value) if isinstance(value, graph.Var) else None
        if isinstance(made, graph.VarBinding) and isinstance(made.value, graph.If | graph.Tuple | graph.Var):
            self._passed.add(id(made))
            if not isinstance(made.value, graph.If):
                self._names[value] = self._leaves(made.value)
            else:
                ways = [self._leaves(branch) for branch in _bodies(made.value)]
                self._names[value] = [tuple(dict.fromkeys(v for leaf in leaves for v in leaf)) for leaves in zip(*ways, strict=True)]
                self.branches[value] = self._names[value]
            return self._names[value]
        return [(value,) if isinstance(value, graph.Var) else ()]

    def _reads(self, body: graph.SeqExpr) -> None:
        for b in body.bindings:
            bodies = _bodies(b.value)
            for inner in bodies:
                self._reads(inner)
            read = [b.value.condition] if bodies else [] if id(b) in self._passed else [b.value]
            self._note(read, b)
        if id(body) not in self._passed:
            self._note([body.body], None)

    def _note(self, values: list[Any], reader: graph.Binding | None) -> None:
        for v in dict.fromkeys(v for value in values for v in variables(value)):
            self.read.setdefault(v, []).append(reader)


def _bodies(value: Any) -> list[graph.SeqExpr]:
    return [value.true_branch, value.false_branch] if isinstance(value, graph.If) else []


def variables(value: Any) -> list[graph.Var]:
    """The variables in an expression."""
    return [value] if isinstance(value, graph.Var) else [v for o in operands(value) for v in variables(o)]


def appending(func: graph.Function, flow: Flow, call: Callable[[Any], Append | None]) -> dict[int, dict[graph.Var, Append]]:
    """The results that append to a parameter that nothing else reads: for each, the calls that make it. ``call`` tells what a call
    appends to."""
    found, handed_out = {}, Counter(v for leaf in flow.results for v in leaf)
    for k, leaf in enumerate(flow.results):
        ways = {v: call(flow.made[v].value) if isinstance(flow.made.get(v), graph.VarBinding) else None for v in leaf}
        pasts = {flow.source(w[0]) if w else None for w in ways.values()}
        past = pasts.pop() if len(pasts) == 1 else None
        if past not in func.params or len({w[2] for w in ways.values() if w}) != 1:
            continue
        alone = past not in handed_out and all(handed_out[v] == 1 and w[0] is not w[1] for v, w in ways.items())
        if alone and set(map(id, flow.readers(past))) == {id(flow.made[v]) for v in ways}:
            found[k] = ways
    return found


def readers(mod: IRModule) -> set[str]:
    """The tensor programs that read what ``append`` makes, or views of it."""
    found, grown = set(), set()
    for b in (b for f in mod.functions.values() if isinstance(f, graph.Function) for b in Flow(f).made.values()):
        if is_call(b.value, CALL_TIR) and "append" in mod[b.value.args[0]].attrs:
            grown.add(b.var)
        elif not _bodies(b.value) and not grown.isdisjoint(variables(b.value)):
            if is_call(b.value, CALL_TIR):
                found.add(b.value.args[0].name)
            if not is_call(b.value, CALL_TIR) or "view" in mod[b.value.args[0]].attrs:
                grown.add(b.var)
    return found


@pass_("grow_caches")
def grow_caches(mod: IRModule) -> IRModule:
    """Results that are an input of symbolic length with something behind it become ``append``, unless the option ``grow`` is off."""
    return _Append(mod).module() if options.get("grow") else mod


class _Append(GraphRewriter):
    def function(self, func: graph.Function) -> graph.Function:
        self.grown = {v for ways in appending(func, Flow(func), _concat).values() for v in ways}
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        return make("append", *call.args[0].fields, axis=call.attrs["axis"] % call.sinfo.ndim) if binding.var in self.grown else call


def _concat(value: Any) -> Append | None:
    """A concatenation of two tensors, the first of symbolic length."""
    if not is_call(value, "concat") or not isinstance(value.args[0], graph.Tuple) or len(value.args[0].fields) != 2:
        return None
    (past, new), axis = value.args[0].fields, value.attrs["axis"] % value.sinfo.ndim
    known = value.sinfo.shape is not None and past.sinfo.shape is not None and value.sinfo.dtype.storage_bits >= 8
    return (past, new, axis) if known and type(past.sinfo.shape[axis]) is tir.Var else None
