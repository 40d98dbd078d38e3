# SPDX-License-Identifier: Apache-2.0
"""Neighbouring composite functions of one code generator as one region, which the code generator takes over as a whole.

        lv = cls.fused_matmul(x, w)         # Composite: lib.matmul          out = cls.fused_matmul_relu_lib(x, w)
        out = cls.fused_relu(lv)            # Composite: lib.relu       ->   # Codegen: lib; inside of it the two composite functions

A region is convex: no value leaves it and comes back into it, so that it can be called as one. What lies between composite functions stays
outside; branches and loops are left alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from roundel.ir import graph, structural_equal
from roundel.ir.module import IRModule
from roundel.ir.op import OpDef
from roundel.ir.visit import walk

from .outline import Renamed, outline, sizes_in

COMPOSITE, CODEGEN = "Composite", "Codegen"


def merge_composites(mod: IRModule) -> IRModule:
    """The module with regions in place of calls of composite functions: exported functions with the attribute ``Codegen``, each of which holds
    its composite functions. Composite functions that nothing calls any more are gone."""
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function) and not {COMPOSITE, CODEGEN} & func.attrs.keys():
            mod = _Regions(mod, name, func).module()
    called = {n.name for _, f in mod.items() for n in walk(f) if isinstance(n, graph.GlobalVar)}
    dead = [n for n, f in mod.items() if COMPOSITE in f.attrs and "global_symbol" not in f.attrs and n not in called]
    return mod.with_functions(dict.fromkeys(dead)) if dead else mod


def for_codegen(mod: IRModule, call: graph.Call) -> tuple[IRModule, graph.Call]:
    """The call of a composite function as that of a region of its own."""
    var = graph.Var("gv", call.sinfo)
    mod, made = _region(mod, [graph.VarBinding(var, call)], [var])
    return mod.with_functions({call.op.name: None}), made  # type: ignore[union-attr]


def codegen_of(mod: IRModule, value: Any) -> str | None:
    """Which code generator a value is for: that of the composite function that it calls; None where it calls none."""
    callee = mod.functions.get(value.op.name) if isinstance(value, graph.Call) and isinstance(value.op, graph.GlobalVar) else None
    return None if callee is None or COMPOSITE not in callee.attrs else str(callee.attrs[COMPOSITE]).partition(".")[0]


class _Regions:
    """One function of a module."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function) -> None:
        self.mod, self.name, self.func = mod, name, func

    def module(self) -> IRModule:
        """The module with the function's calls of composite functions in regions."""
        blocks, changed = [], False
        for block in self.func.body.blocks:
            if any(codegen_of(self.mod, b.value) for b in block.bindings):
                changed = True
                others = [b.value for other in self.func.body.blocks if other is not block for b in other.bindings]
                block = self._block(block, {v for value in (*others, self.func.body.body) for v in _operands(value)})
            blocks.append(block)
        return self.mod.with_functions({self.name: self.func.replace(body=graph.SeqExpr(tuple(blocks), self.func.body.body))}) if changed else self.mod

    def _block(self, block: graph.BindingBlock, elsewhere: set[graph.Var]) -> graph.BindingBlock:
        plain = not isinstance(block, graph.DataflowBlock)
        places = Partition(self.mod, block)
        made: list[graph.Binding] = []
        for members in places.in_order():
            bindings = [block.bindings[k] for k in members]
            if places.names[places.region[members[0]]] is None:
                made += bindings
                continue
            inside = set(members)
            results = [b.var for k, b in zip(members, bindings, strict=True) if b.var in elsewhere or (not plain and not isinstance(b.var, graph.DataflowVar))
                       or any(user not in inside for user in places.users[k])]
            made += self._called(bindings, results or [bindings[-1].var], graph.Var if plain else graph.DataflowVar)
        return type(block)(tuple(made))

    def _called(self, bindings: Sequence[Any], results: Sequence[graph.Var], kind: type) -> list[graph.Binding]:
        """The call of a region of these bindings, and what takes its results apart."""
        self.mod, call = _region(self.mod, bindings, results)
        span = bindings[-1].span
        if len(results) == 1:
            return [graph.VarBinding(results[0], call, span)]
        whole = kind("lv", call.sinfo)
        return [graph.VarBinding(whole, call, span), *(graph.VarBinding(v, graph.TupleGetItem(whole, k), span) for k, v in enumerate(results))]


def _region(mod: IRModule, bindings: Sequence[Any], results: Sequence[graph.Var]) -> tuple[IRModule, graph.Call]:
    """The module with an exported function that holds the composite functions that these bindings call, and the call of it."""
    codegen = next(filter(None, (codegen_of(mod, b.value) for b in bindings)))
    callees = [b.value.op.name for b in bindings if codegen_of(mod, b.value)]
    func, operands = outline(bindings, results, {CODEGEN: codegen}, dataflow=False)
    local: dict[str, graph.Var] = {}
    body: list[graph.Binding] = []
    for b in func.body.bindings:
        value: Any = b.value
        if codegen_of(mod, value):
            name = value.op.name
            if name not in local:
                inside = _copied(mod[name])
                local[name] = graph.Var("lv", inside.sinfo)
                body.append(graph.VarBinding(local[name], inside))
            b = b.replace(value=value.replace(op=local[name]))
        body.append(b)
    func = func.replace(body=graph.SeqExpr((graph.BindingBlock(tuple(body)),), func.body.body))
    stem, number = "_".join(["fused", *(name.removeprefix("fused_") for name in callees)]), 0
    while True:  # a name that is free, or that of an equal region
        symbol = f"{stem}{number or ''}_{codegen}"
        named = func.replace(attrs=func.attrs | {"global_symbol": symbol})
        if symbol in mod and structural_equal(mod[symbol], named):
            break
        if symbol not in mod and f"{stem}{number or ''}" not in mod:
            mod = mod.with_functions({symbol: named})
            break
        number += 1
    return mod, graph.Call(graph.GlobalVar(symbol), operands, sinfo=func.ret_sinfo)


def _copied(func: graph.Function) -> graph.Function:
    """A composite function with variables of its own, to stand inside of another one."""
    own = Renamed({v: type(v)(v.name, v.sinfo) for v in (*func.params, *(b.var for b in func.body.bindings))})
    params = tuple(own.table[p] for p in func.params)
    return graph.Function(params, own.rewrite(func.body), func.ret_sinfo, func.is_pure, func.attrs.without("Primitive", "global_symbol"))


class Partition:
    """The bindings of a block in regions: calls of composite functions together with their neighbours for the same code generator, every other
    binding by itself. ``region[k]`` is that of binding ``k``, ``members`` and ``names`` are the bindings and the code generator (or None) of each."""

    def __init__(self, mod: IRModule, block: graph.BindingBlock) -> None:
        self.bindings = block.bindings
        self.needs = _needs(mod, block)
        self.users: list[set[int]] = [set() for _ in self.needs]
        for k, found in enumerate(self.needs):
            for j in found:
                self.users[j].add(k)
        self.region: list[int] = []
        self.members: dict[int, list[int]] = {}
        self.names: dict[int, str | None] = {}
        for k, b in enumerate(self.bindings):
            self.region.append(k)
            self.members[k], self.names[k] = [k], codegen_of(mod, b.value)
            for region in self._wanted(k):
                self._join(self.region[k], region)

    def in_order(self) -> list[list[int]]:
        """The bindings of each region, regions in an order in which they can be computed: as near as possible to that of the block."""
        waiting = {r: self._sources(r) for r in self.members}
        ready = [(self.members[r][-1], r) for r, found in waiting.items() if not found]
        heapq.heapify(ready)
        out = []
        while ready:
            _, region = heapq.heappop(ready)
            out.append(self.members[region])
            for other in {self.region[u] for m in self.members[region] for u in self.users[m]} - {region}:
                waiting[other].discard(region)
                if not waiting[other]:
                    heapq.heappush(ready, (self.members[other][-1], other))
        return out

    def _wanted(self, k: int) -> list[int]:
        """The regions that binding ``k`` becomes a part of: those of its operands, but for such that another operand comes behind, since values
        would leave them and come back."""
        around = list(dict.fromkeys(self.region[j] for j in sorted(self.needs[k])))
        if self.names[k] is not None:
            before = self._before(around)
            return [r for r in around if self.names[r] == self.names[k] and r not in before]
        value = self.bindings[k].value
        if isinstance(value, graph.TupleGetItem) and len(around) == 1 and self._only_fields(*self.needs[k]):
            return [r for r in around if self.names[r] is not None]
        if isinstance(value, graph.Tuple) and len(around) == 1 and len(set(_operands(value))) == len(self.needs[k]) and self._only_fields(k):
            return [r for r in around if self.names[r] is not None]
        if isinstance(value, graph.Var) and len(around) == 1 and self.users[next(iter(self.needs[k]))] == {k}:  # another name
            return [r for r in around if self.names[r] is not None]
        return []

    def _only_fields(self, k: int) -> bool:
        """Whether all that uses a tuple takes a field of it."""
        return isinstance(self.bindings[k].var, graph.DataflowVar) and bool(self.users[k]) and all(
            isinstance(self.bindings[u].value, graph.TupleGetItem) for u in self.users[k])

    def _join(self, a: int, b: int) -> None:
        self.members[b] = sorted(self.members[b] + self.members.pop(a))
        self.names.pop(a)
        for m in self.members[b]:
            self.region[m] = b

    def _sources(self, region: int) -> set[int]:
        """The other regions whose values it uses."""
        return {self.region[j] for m in self.members[region] for j in self.needs[m]} - {region}

    def _before(self, regions: Iterable[int]) -> set[int]:
        """The regions whose values are needed for what these regions use."""
        found: set[int] = set()
        todo = list(regions)
        while todo:
            new = self._sources(todo.pop()) - found
            found |= new
            todo += new
        return found


def _needs(mod: IRModule, block: graph.BindingBlock) -> list[set[int]]:
    """For each binding those of the block that it needs: they make what it uses or tell a size, or come before it because both have effects."""
    makers: dict[Any, int] = {}
    out: list[set[int]] = []
    last: int | None = None
    for k, b in enumerate(block.bindings):
        used = {*_operands(b.value), *sizes_in(b.value), *sizes_in(b.var.sinfo)}
        out.append({makers[v] for v in used if v in makers})
        if not isinstance(block, graph.DataflowBlock) and not _is_pure(mod, b):
            if last is not None:
                out[k].add(last)
            last = k
        makers[b.var] = k
        if isinstance(b, graph.MatchCast):
            makers |= {v: k for v in sizes_in(b.sinfo) if v not in makers and v not in sizes_in(b.value)}
    return out


def _operands(value: Any) -> list[graph.Var]:
    return [n for n in walk(value) if isinstance(n, graph.Var)]


def _is_pure(mod: IRModule, b: Any) -> bool:
    if isinstance(b.value, graph.Call):
        return codegen_of(mod, b.value) is not None or (isinstance(b.value.op, OpDef) and b.value.op.pure)
    return isinstance(b, graph.VarBinding) and not isinstance(b.value, graph.If | graph.While)


__all__ = ["Partition", "codegen_of", "for_codegen", "merge_composites"]
