# SPDX-License-Identifier: Apache-2.0
"""Where intermediate tensors lie while a model runs: read off its host function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..arith import Analyzer
from ..ir import tir
from ..ir.annotations import ARENA
from ..ir.module import IRModule
from ..ir.visit import Visitor, free_vars, on, substitute, walk


def memory(mod: IRModule, name: str = "main", sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Of a host function of a module: ``steps``, the kernels in the order of their calls; ``tensors``, those in the arena, with ``name``, ``offset`` and
    ``nbytes``, and the positions of the ``first`` and ``last`` step that uses them; ``nbytes`` of the arena. ``sizes``: values of symbolic dimensions (1
    where there is none)."""
    plan = _Plan(mod, sizes or {})
    plan.visit(mod[name].body)
    return {"steps": plan.steps, "tensors": plan.tensors, "nbytes": plan.nbytes}


class _Plan(Visitor):
    def __init__(self, mod: IRModule, sizes: Mapping[str, int]) -> None:
        self.mod, self.sizes, self.analyzer = mod, sizes, Analyzer()
        self.steps: list[str] = []
        self.tensors: list[dict[str, Any]] = []
        self.places: dict[tir.Buffer, tuple[int, int]] = {}  # offset and bytes
        self.held: dict[int, dict[str, Any]] = {}  # by offset, what was written there last
        self.arenas: set[tir.Var] = set()
        self.values: dict[tir.Var, tir.Expr] = {}
        self.nbytes = 0

    def number(self, e: tir.Expr) -> int:
        """The value of a size, 0 where it depends on data."""
        for _ in range(8):  # sizes are computed from each other
            known = {v: self.values.get(v, tir.index_const(self.sizes.get(v.name, 1))) for v in free_vars(e)}
            e = self.analyzer.simplify(substitute(e, known)) if known else self.analyzer.simplify(e)
            if isinstance(e, tir.IntImm):
                return int(e.value)
        return 0

    @on(tir.Let)
    def _let(self, let: tir.Let) -> None:
        if let.var.dtype.is_int:
            self.values[let.var] = let.value
        self.generic(let)

    @on(tir.Allocate)
    def _allocate(self, made: tir.Allocate) -> None:
        if made.annotations.get(ARENA):
            self.arenas.add(made.buffer.data)
            self.nbytes = self.number(made.buffer.shape[0])
        self.generic(made)

    @on(tir.DeclBuffer)
    def _declare(self, declared: tir.DeclBuffer) -> None:
        buffer = declared.buffer
        if buffer.data in self.arenas:
            count = 1
            for n in buffer.shape:
                count *= self.number(n)
            offset = 0 if buffer.elem_offset is None else self.number(buffer.elem_offset) * buffer.dtype.nbytes(1)
            self.places[buffer] = offset, buffer.dtype.nbytes(count)
        self.generic(declared)

    @on(tir.Evaluate)
    def _call(self, statement: tir.Evaluate) -> None:
        call = statement.value
        if not isinstance(call, tir.Call):
            return
        touched = [a.args[0].buffer for a in call.args if isinstance(a, tir.Call) and a.op == "address_of"]
        if not touched or isinstance(call.op, str):
            touched = [n.buffer for n in walk(call) if isinstance(n, tir.BufferLoad)]
        if not touched:
            return
        name = call.op if isinstance(call.op, str) else call.op.name
        program = self.mod.functions.get(name)
        written = int(program.attrs.get("num_outputs", 1)) if program is not None else 1
        self.steps.append(name)
        for k, buffer in enumerate(touched):
            self._use(buffer, is_written=k >= len(touched) - written)

    def _use(self, buffer: tir.Buffer, is_written: bool) -> None:
        """A tensor that is read is what was written there last, whatever shape it is seen in."""
        if buffer not in self.places:
            return
        (offset, nbytes), step = self.places[buffer], len(self.steps) - 1
        if is_written or offset not in self.held:
            self.held[offset] = {"name": buffer.name, "offset": offset, "nbytes": nbytes, "first": step, "last": step}
            self.tensors.append(self.held[offset])
        self.held[offset]["last"] = step
