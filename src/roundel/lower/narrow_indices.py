# SPDX-License-Identifier: Apache-2.0
"""Loop variables and indices of C source become int32 wherever all that is computed on the way to them is known to fit.

    for i in range(n64(56)):            for i in range(n32(56)):
        A[i * 64 + j] = ...     ->          A[i * 64 + j] = ...        all of int32

Processors of 32 bits take several instructions for what is added, compared and multiplied in 64 bits, and call a function to divide it. LLVM finds
out for itself how many bits of an index count; C compilers do as the source says. What cannot be shown to fit (sizes that only the call tells, indices
that are read from memory) stays in 64 bits.
"""

from __future__ import annotations

from typing import Any

from roundel.arith import bounds
from roundel.ir import IRModule, Rewriter, on, tir
from roundel.ir.dtype import INT32, INT64
from roundel.ir.visit import walk
from roundel.passes import pass_
from roundel.target import Target

LOW, HIGH = bounds.of_dtype(INT32)


class _Ranges:
    """What integer expressions lie in, from the ranges of variables: what `arith.bounds.from_parts` asks of an analyzer."""

    def __init__(self) -> None:
        self.of_vars: dict[tir.Var, bounds.Bounds] = {}
        self.memo: dict[tir.Expr, bounds.Bounds] = {}

    def bounds(self, e: tir.Expr) -> bounds.Bounds:
        """The least and the greatest value."""
        if type(e) is tir.Var:
            return self.of_vars.get(e) or bounds.from_parts(self, e)
        if e not in self.memo:
            self.memo[e] = bounds.from_parts(self, e)
        return self.memo[e]

    def bind(self, v: tir.Var, low: float, high: float) -> None:
        """The range of a variable."""
        self.of_vars[v] = (low, high)


class Narrow(Rewriter):
    """Integers in 32 bits. ``vars``: what stands for variables of 64 bits whose range is known."""

    def __init__(self) -> None:
        self.ranges = _Ranges()
        self.vars: dict[tir.Var, tir.Expr] = {}
        self.found: dict[tir.Expr, tir.Expr | None] = {}

    def bind(self, v: tir.Var, low: float, high: float) -> tir.Var:
        """The variable of 32 bits in place of one that lies in a range."""
        self.forget(v)
        self.ranges.bind(v, low, high)
        self.vars[v] = narrow = tir.Var(v.name, INT32, size=low >= 0)
        return narrow

    def forget(self, v: tir.Var) -> None:
        """Nothing is known of a variable: where another loop had it before, its range may have been another."""
        if self.vars.pop(v, None) is not None:
            del self.ranges.of_vars[v]
            self.ranges.memo.clear()
            self.found.clear()

    # ---- expressions ---------------------------------------------------------------------------------------

    def narrowed(self, e: tir.Expr) -> tir.Expr | None:
        """An integer expression of 64 bits computed in 32, None where that is not known to give the same."""
        if e not in self.found:
            low, high = self.ranges.bounds(e)
            rule = _RULES.get(type(e))
            self.found[e] = rule(self, e) if rule is not None and LOW <= low and high <= HIGH else None
        return self.found[e]

    def parts(self, e: Any, names: tuple[str, ...]) -> tir.Expr | None:
        """The expression with operands of 32 bits."""
        new = {name: self.narrowed(getattr(e, name)) for name in names}
        return None if None in new.values() else e.replace(**new)

    def choice(self, e: tir.Select | tir.IfThenElse) -> tir.Expr | None:
        """One of two values of 32 bits."""
        yes, no = self.narrowed(e.true_value), self.narrowed(e.false_value)
        return None if yes is None or no is None else type(e)(self.rewrite(e.condition), yes, no)

    def widened(self, e: tir.Cast) -> tir.Expr | None:
        """What was made wider to be an index need not be."""
        of = e.value.dtype.element
        if not (of.is_int or of.is_bool) or of.bits > 32 or of == "uint32":
            return None
        value = self.rewrite(e.value)
        return value if of is INT32 else tir.Cast(INT32.with_lanes(e.dtype.lanes), value)

    def rewrite(self, node: Any) -> Any:
        """Data keeps its type; what is an index beside it is narrow as far as it can be."""
        if isinstance(node, tir.Expr) and node.dtype.element is INT64 and type(node) is not tir.Var:
            new = self.narrowed(node) if type(node) is not tir.IntImm else None
            if new is not None:
                return tir.Cast(node.dtype, new)
        return super().rewrite(node)

    def index(self, e: tir.Expr) -> tir.Expr:
        """An expression where any width will do."""
        new = self.narrowed(e) if e.dtype.element is INT64 else None
        return self.rewrite(e) if new is None else new

    @on(tir.Var)
    def _var(self, v: tir.Var) -> tir.Expr:
        return tir.cast(self.vars[v], v.dtype) if v in self.vars else v

    @on(tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)
    def _compare(self, e: tir.BinaryOp) -> tir.Expr:
        new = self.parts(e, ("a", "b")) if e.a.dtype.element is INT64 else None
        return self.generic(e) if new is None else new

    @on(tir.Cast)
    def _cast(self, e: tir.Cast) -> tir.Expr:
        new = self.narrowed(e.value) if e.value.dtype.element is INT64 else None
        return self.generic(e) if new is None else tir.cast(new, e.dtype)

    @on(tir.BufferLoad)
    def _load(self, e: tir.BufferLoad) -> tir.Expr:
        return e.replace(indices=tuple(map(self.index, e.indices)), predicate=None if e.predicate is None else self.rewrite(e.predicate))

    # ---- statements ----------------------------------------------------------------------------------------

    @on(tir.BufferStore)
    def _store(self, s: tir.BufferStore) -> tir.Stmt:
        predicate = None if s.predicate is None else self.rewrite(s.predicate)
        return s.replace(value=self.rewrite(s.value), indices=tuple(map(self.index, s.indices)), predicate=predicate)

    @on(tir.For)
    def _for(self, loop: tir.For) -> tir.Stmt:
        low, extent = self.narrowed(loop.min), self.narrowed(loop.extent)
        (first, _), (_, last) = self.ranges.bounds(loop.min), self.ranges.bounds(tir.Add(loop.min, loop.extent))
        if low is None or extent is None or loop.step is not None or not (LOW <= first and last <= HIGH):
            self.forget(loop.loop_var)
            return self.generic(loop)
        return loop.replace(loop_var=self.bind(loop.loop_var, first, last - 1), min=low, extent=extent, body=self.rewrite(loop.body))

    @on(tir.Let)
    def _let(self, s: tir.Let) -> tir.Stmt:
        value = self.narrowed(s.value) if s.var.dtype is INT64 else None
        if value is None:
            self.forget(s.var)
            return self.generic(s)
        return s.replace(var=self.bind(s.var, *self.ranges.bounds(s.value)), value=value, body=self.rewrite(s.body))


_RULES = {
    tir.IntImm: lambda narrow, e: tir.const(e.value, INT32),
    tir.Var: lambda narrow, e: narrow.vars.get(e),
    tir.Ramp: lambda narrow, e: narrow.parts(e, ("base", "stride")),
    tir.Broadcast: lambda narrow, e: narrow.parts(e, ("value",)),
    **dict.fromkeys((tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max), lambda narrow, e: narrow.parts(e, ("a", "b"))),
    **dict.fromkeys((tir.Select, tir.IfThenElse), Narrow.choice),
    tir.Cast: Narrow.widened,
}


def _narrow(func: tir.PrimFunc, extent: int | None) -> tir.PrimFunc:
    """One program; of a task ``extent`` says how many iterations there are, None where nothing is known of them."""
    narrow, params = Narrow(), func.params
    if extent is not None:
        begin, end = params[:2]
        params = (narrow.bind(begin, 0, extent), narrow.bind(end, 0, extent), *params[2:])
    return func.replace(params=params, body=narrow.rewrite(func.body))


@pass_("narrow_indices")
def narrow_indices(mod: IRModule) -> IRModule:
    """Indices of kernels and tasks in 32 bits, for targets of kind ``c``."""
    if (mod.attrs.get("target") or Target.host()).kind != "c":
        return mod
    programs = {name: f for name, f in mod.items() if isinstance(f, tir.PrimFunc) and f.attrs.get("kind") != "host"}
    extents: dict[str, int | None] = {}
    for f in programs.values():
        for e in walk(f.body):
            if type(e) is tir.Call and e.op == "parallel_for":
                name, extent = e.args[0].value, e.args[1].value if type(e.args[1]) is tir.IntImm and e.args[1].value <= HIGH else None
                extents[name] = extent if extents.get(name, extent) == extent else None
    return mod.with_functions({name: _narrow(f, extents.get(name)) for name, f in programs.items()})
