# SPDX-License-Identifier: Apache-2.0
"""Constants are laid out at compile time as the schedules of the programs that read them want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.constants import ConstData, in_order
from ..ir.module import IRModule
from ..ir.op import CALL_TIR
from ..ir.visit import free_vars, substitute


def constant_params(mod: IRModule) -> dict[str, tuple[int, ...]]:
    """For each tensor program the positions of operands that are constants at every call of it."""
    seen: dict[str, list[set[int]]] = {}
    for _, value in calls_of(mod):
        fields = value.args[1].fields
        seen.setdefault(value.args[0].name, []).append({k for k, a in enumerate(fields) if isinstance(a, graph.Constant)})
    return {name: tuple(sorted(set.intersection(*found))) for name, found in seen.items()}


def calls_of(mod: IRModule, decided: Callable[[graph.GraphExpr], bool | None] = lambda condition: None) -> list[tuple[graph.VarBinding, graph.Call]]:
    """Every call of a tensor program in the graph functions, with its binding. ``decided`` tells which branch of a conditional value runs
    (None: either may)."""
    out = []
    for _, func in mod.items():
        if isinstance(func, graph.Function):
            stack: list[Any] = [func.body]
            while stack:
                seq = stack.pop()
                for binding in seq.bindings:
                    value = binding.value
                    if isinstance(value, graph.Call) and value.op is CALL_TIR:
                        out.append((binding, value))
                    elif isinstance(value, graph.If):
                        taken = decided(value.condition)
                        stack += [b for b, when in ((value.true_branch, True), (value.false_branch, False)) if taken in (None, when)]
                    elif isinstance(value, graph.While):
                        stack += [value.condition, value.body]
    return out


def repack(mod: IRModule, layouts: Mapping[str, Mapping[int, tir.IndexMap]]) -> IRModule:
    """The module with constants laid out at the calls of these programs."""
    done: dict[tuple, graph.Constant] = {}

    def operand(name: str, position: int, value: Any) -> Any:
        index_map = layouts[name].get(position)
        if index_map is None:
            return value
        key = (id(value.data), repr(index_map.final_indices), index_map.initial_indices)
        if key not in done:
            done[key] = _packed(value, mod[name].buffer_params[position].shape, index_map)
        return done[key]

    class Repack:
        def seq(self, seq: graph.SeqExpr) -> graph.SeqExpr:
            blocks = tuple(b.replace(bindings=tuple(self.binding(x) for x in b.bindings)) for b in seq.blocks)
            return seq.replace(blocks=blocks)

        def binding(self, binding: graph.Binding) -> graph.Binding:
            value = binding.value
            if isinstance(value, graph.If):
                value = value.replace(true_branch=self.seq(value.true_branch), false_branch=self.seq(value.false_branch))
            elif isinstance(value, graph.While):
                value = value.replace(condition=self.seq(value.condition), body=self.seq(value.body))
            elif isinstance(value, graph.Call) and value.op is CALL_TIR and value.args[0].name in layouts:
                name = value.args[0].name
                fields = tuple(operand(name, k, a) for k, a in enumerate(value.args[1].fields))
                value = value.replace(args=(value.args[0], graph.Tuple(fields), *value.args[2:]))
            return binding if value is binding.value else binding.replace(value=value)

    if not layouts:
        return mod
    return mod.with_functions({n: f.replace(body=Repack().seq(f.body)) for n, f in mod.items() if isinstance(f, graph.Function)})


def _packed(value: graph.Constant, shape: Sequence[tir.Expr], index_map: tir.IndexMap) -> graph.Constant:
    extents = tuple(s.value for s in shape)
    source = value.data
    fused = _bases(index_map)
    parts = [f.value if isinstance(f, tir.IntImm) else (fused.index(_base(f)), _step(f)) for f in index_map.final_indices]
    if any(not isinstance(b, tir.Var) for b in fused):
        parts.append(repr([_coefficients(b, index_map.initial_indices) for b in fused]))
    data = ConstData.derived(lambda a: relayout(a, index_map, extents), (source,), f"relayout {parts}", shape=extents, dtype=source.dtype)
    return graph.Constant(data, graph.TensorInfo(extents, source.dtype))


def relayout(array: np.ndarray, index_map: tir.IndexMap, shape: Sequence[int]) -> np.ndarray:
    """The array laid out by an index map whose results are pieces of indices, ``i``, ``i // c``, ``i % c``, ``i % d // c``, or 0, where i is an index or
    several fused; padding is zero."""
    bases = _bases(index_map)
    parts = [(bases.index(_base(f)), _step(f)) for f in index_map.final_indices if not isinstance(f, tir.IntImm)]
    array = _with_fused_axes(array, [_coefficients(b, index_map.initial_indices) for b in bases])
    steps = {axis: sorted({1} | {step for a, step in parts if a == axis}, reverse=True) for axis in range(array.ndim)}
    pads: list[tuple[int, int]] = []
    split: list[int] = []
    place: dict[tuple[int, int], int] = {}
    for axis, n in enumerate(array.shape):
        sizes = steps[axis]
        pads.append((0, -n % sizes[0]))
        for step, whole in zip(sizes, (n + pads[-1][1], *sizes), strict=False):
            place[axis, step] = len(split)
            split.append(whole // step)
    if any(p[1] for p in pads):
        array = np.pad(array, pads)
    order = [place[p] for p in parts]
    order += [k for k, n in enumerate(split) if k not in order and n == 1]  # axes of extent 1 may be left out, or added as index 0
    moved = array.reshape(split).transpose(order)
    kept = [n for n, f in zip(shape, index_map.final_indices, strict=True) if not isinstance(f, tir.IntImm)]  # i % c of fewer than c elements is as short
    return in_order(moved[tuple(slice(n) for n in kept)]).reshape(tuple(shape))


def _bases(index_map: tir.IndexMap) -> list[tir.Expr]:
    """The indices, or several of them fused, that an index map takes pieces of."""
    found = dict.fromkeys(_base(f) for f in index_map.final_indices if not isinstance(f, tir.IntImm))
    used = frozenset().union(*map(free_vars, found)) if found else frozenset()
    return [*found, *(v for v in index_map.initial_indices if v not in used)]


def _base(e: tir.Expr) -> tir.Expr:
    """What an expression is a piece of."""
    for kind in (tir.FloorDiv, tir.FloorMod):
        if type(e) is kind and isinstance(e.b, tir.IntImm):
            e = e.a
    return e


def _step(e: tir.Expr) -> int:
    """How many elements of it one step of the piece moves along."""
    return e.b.value if type(e) is tir.FloorDiv and isinstance(e.b, tir.IntImm) else 1


def _coefficients(base: tir.Expr, variables: Sequence[tir.Var]) -> dict[int, int]:
    """How far each index moves a sum of them, by its position. Raises ValueError for what is no sum."""
    if isinstance(base, tir.Var):
        return {variables.index(base): 1}
    zero = dict.fromkeys(variables, tir.index_const(0))
    out = {}
    for k, v in enumerate(variables):
        if v in free_vars(base):
            step = Analyzer().simplify(substitute(base, {**zero, v: tir.index_const(1)}))
            if not isinstance(step, tir.IntImm):
                raise ValueError(f"{base!r} is no sum of indices")
            out[k] = step.value
    return out


def _with_fused_axes(array: np.ndarray, bases: Sequence[dict[int, int]]) -> np.ndarray:
    """An axis for each of these sums of indices, which follow each other without gaps."""
    order = [sorted(b, key=lambda k: -b[k]) for b in bases]
    sizes = [int(np.prod([array.shape[k] for k in axes], dtype=np.int64)) for axes in order]
    return array.transpose([k for axes in order for k in axes]).reshape(sizes)
