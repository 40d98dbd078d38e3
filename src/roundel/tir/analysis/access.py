# SPDX-License-Identifier: Apache-2.0
"""What a block reads and writes, by what is known of each access; and accesses outside of their buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...arith import Analyzer, block_access
from ...ir import tir
from ...ir.errors import ScheduleError
from ...ir.module import IRModule
from ...ir.tir import Buffer, BufferRegion, Var
from ...ir.visit import Visitor, on, walk

Regions = list[BufferRegion]


def get_block_access_region(block: tir.Block, buffer_var_map: Mapping[Var, Buffer]) -> tuple[Regions, Regions, Regions]:
    """``(reads, writes, opaque)`` of a block: regions that loads and stores name, and buffers whose pointers go elsewhere (whole, or the
    regions of which a view's pointer does). Only buffers of ``buffer_var_map`` (pointer to buffer) are counted."""
    views = {m.buffer: m.source for m in block.match_buffers}
    known = {**buffer_var_map, **{v.data: v for v in views}}
    reads, writes = block_access(block, ())
    opaque: dict[Buffer, BufferRegion] = {}
    for n in walk(block.body):
        if type(n) is Var and n in known:
            buffer = known[n]
            region = views.get(buffer, BufferRegion.full(buffer))
            old = opaque.get(region.buffer)
            opaque[region.buffer] = region if old is None else _union(old, region)
    of_map = set(buffer_var_map.values())
    return [r for r in reads if r.buffer in of_map], [w for w in writes if w.buffer in of_map], list(opaque.values())


def _union(a: BufferRegion, b: BufferRegion) -> BufferRegion:
    from ...arith import region

    return BufferRegion(a.buffer, region.union(a.region, b.region, Analyzer()))


def get_block_read_write_region(block: tir.Block, buffer_var_map: Mapping[Var, Buffer]) -> tuple[Regions, Regions]:
    """``(reads, writes)`` of a block, buffers whose pointers go elsewhere among both; an access pointer says which by its mask."""
    reads, writes = block_access(block, buffer_var_map)
    masks = pointer_masks(block)
    kept_reads = [r for r in reads if masks.get(r.buffer.data, 3) & 1]
    return kept_reads, [w for w in writes if masks.get(w.buffer.data, 3) & 2]


def pointer_masks(block: tir.Block) -> dict[Var, int]:
    """Of pointers that are only handed on by ``access_ptr``: the accesses that those allow together (1 read, 2 write)."""
    masks: dict[Var, int] = {}
    plain: set[Var] = {n.buffer.data for n in walk(block.body) if isinstance(n, tir.BufferLoad | tir.BufferStore)}
    for n in walk(block.body):
        if isinstance(n, tir.Call) and n.op != "access_ptr":
            plain.update(a for a in n.args if type(a) is Var)
        elif isinstance(n, tir.Call) and len(n.args) == 5 and isinstance(n.args[4], tir.IntImm) and type(n.args[1]) is Var:
            masks[n.args[1]] = masks.get(n.args[1], 0) | n.args[4].value
    return {v: m for v, m in masks.items() if v not in plain}


class OOBChecker:
    """A pass that changes nothing: raises ScheduleError for accesses that are outside of their buffer for certain."""

    def __call__(self, mod: IRModule) -> IRModule:
        """The module as it is."""
        for name, func in mod.functions.items():
            if isinstance(func, tir.PrimFunc):
                found = out_of_bounds(func)
                if found:
                    raise ScheduleError(f"{name} accesses {'; '.join(found)}", hint="bound the loop by the buffer's shape, or guard the access")
        return mod


def out_of_bounds(func: tir.PrimFunc) -> list[str]:
    """Accesses that are outside of their buffer in some iteration, in words; what cannot be decided is not among them."""
    checker = _Bounds()
    checker.visit(func.body)
    return checker.found


class _Bounds(Visitor):
    def __init__(self) -> None:
        self.an, self.found = Analyzer(), list[str]()
        self.loose = 0  # conditions and extents around that relate variables to one another

    @on(tir.For)
    def _for(self, s: tir.For) -> None:
        if self.an.prove(s.extent <= 0):
            return
        varies = not isinstance(s.extent, tir.IntImm)
        self.loose += varies
        with self.an.scope():
            self.an.bind(s.loop_var, tir.Range(s.min, s.extent))
            self.visit(s.body)
        self.loose -= varies

    @on(tir.BlockRealize)
    def _realize(self, s: tir.BlockRealize) -> None:
        with self.an.scope():
            for iv, value in zip(s.block.iter_vars, s.iter_values):
                self.an.bind(iv.var, value)
            self.where(s.predicate, s.block)

    @on(tir.Block)
    def _block(self, s: tir.Block) -> None:
        for part in (s.init, s.body):
            if part is not None:
                self.visit(part)

    @on(tir.If)
    def _if(self, s: tir.If) -> None:
        self.visit(s.condition)
        self.where(s.condition, s.then_case)
        if s.else_case is not None:
            self.where(tir.logical_not(s.condition), s.else_case)

    @on(tir.IfThenElse)
    def _choice(self, e: tir.IfThenElse) -> None:
        self.visit(e.condition)
        self.where(e.condition, e.true_value)
        self.where(tir.logical_not(e.condition), e.false_value)

    def where(self, condition: tir.Expr, part: Any) -> None:
        """A part that runs where a condition holds."""
        always = self.an.prove(condition)
        self.loose += not always
        with self.an.constraint(condition):
            self.visit(part)
        self.loose -= not always

    @on(tir.BufferLoad, tir.BufferStore)
    def _access(self, n: Any) -> None:
        for k, (index, size) in enumerate(zip(n.indices, n.buffer.shape)):
            if index.dtype.lanes == 1 and self._outside(index, size):
                low, high = self.an.bounds(index)
                self.found.append(f"buffer {n.buffer.name} at {index.script()} of dimension {k}: from {low} to {high}, of {size.script()}")
        self.generic(n)

    def _outside(self, index: tir.Expr, size: tir.Expr) -> bool:
        """Whether the smallest or the largest value of an index, which some iteration has, lies outside."""
        if self.an.prove(index >= size) or self.an.prove(index < 0):
            return True
        whole = self.an.value(size)
        index = self.an.simplify(index)
        if self.loose or whole is None or not isinstance(index, tir.Var | tir.Add | tir.Sub | tir.Mul):
            return False
        variables = [n for n in walk(index) if type(n) is Var]
        if len(variables) != len(set(variables)) or any(float("inf") in map(abs, self.an.bounds(v)) for v in variables):
            return False
        low, high = self.an.bounds(index)
        return low < 0 or high >= whole
