# SPDX-License-Identifier: Apache-2.0
"""Checks of sizes: no program reads or writes outside of its tensors, whatever the sizes of what it is called with.

    r = call_tir(add, (a, b))      ->    assert_op(n <= m); r = call_tir(add, (a, b))

    for i in range(n): r[i] = a[i] + b[i]      # a, r: (n,), b: (m,)

Each access of a program is to be inside of its dimension. Mostly loops, conditions and known sizes prove it. Otherwise what has to hold of the
sizes (``arith.size_needs``) is asserted before the call, unless the place is not reached: a loop around it is empty, a condition never holds
or there is no result. Positions that depend on data are the business of ``bounds_checks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...arith import Analyzer, compare
from ...ir import graph, tir
from ...ir.dataclass import dataclass
from ...ir.errors import LowerError
from ...ir.escape import assertion
from ...ir.module import IRModule
from ...ir.op import CALL_TIR, CALL_TIR_INPLACE, OpDef
from ...ir.tir import Expr
from ...ir.visit import substitute, walk
from ...ops import make
from ...ops.dims import static
from ...passes import pass_
from ..programs.legalize import VIEWS
from ..programs.merge_programs import bind_shape
from ..rewriter import GraphRewriter, is_call
from .accesses import Need, needs
from .magnitudes import MOST_ELEMENTS, MOST_ITERATIONS, Magnitudes, domains

FALSE = tir.const(False)


@pass_("size_checks")
def size_checks(mod: IRModule) -> IRModule:
    """Have calls of programs fail whose sizes would let them read or write outside of a tensor. Raises LowerError where that is known already."""
    return _Check(mod).module()


class _Check(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.needs: dict[str, list[Need]] = {}
        self.an = Analyzer()  # what has been asserted
        self.called: set[Any] = set()  # programs with the sizes that they have been checked for
        self.domains: dict[str, list[tuple[Expr, ...]]] = {}
        self.possible = Magnitudes()
        self.branches = 0  # of conditions and loops that the current block is in

    def function(self, func: graph.Function) -> graph.Function:
        """A rebuilt function; its arguments lie in memory."""
        self.possible = Magnitudes()
        for param in func.params:
            self.possible.argument(param.sinfo)
        return super().function(func)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        """A rebuilt sequence; what was asserted inside of a branch says nothing about what follows it."""
        saved, self.called = (self.called, self.possible), set(self.called)
        self.possible = self.possible.copy()
        self.branches += 1
        with self.an.scope():
            out = super().seq(expr)
        self.branches -= 1
        self.called, self.possible = saved
        return out

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if is_call(call, CALL_TIR) or is_call(call, CALL_TIR_INPLACE):
            name = call.args[0].name
            func, node = self.mod[name], str(binding.span or name)
            for info in call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,):
                if isinstance(info, graph.TensorInfo) and info.shape is not None:
                    self.require(self.possible.elements(info.shape), node, "a tensor of shape {} would have more than "
                                 f"{MOST_ELEMENTS} elements", info.shape)
            if isinstance(func, tir.PrimFunc):
                self.require_all(func, name, call, node)
        elif isinstance(call.op, OpDef) and call.op.name in VIEWS:
            before, after = (tir.product_of(info.shape) for info in (call.args[0].sinfo, call.sinfo))
            self.check(tir.le(after, before), _Place(str(binding.span or f"R.{call.op.name}"), before))
        return call

    def require_all(self, func: tir.PrimFunc, name: str, call: graph.Call, node: str) -> None:
        """Assert what a program needs, in sizes of the graph. Raises LowerError where no condition on them was found that is enough."""
        if name not in self.needs:
            self.needs[name], self.domains[name] = needs(func), list(domains(func))
        shapes = list(_shapes(func, call))
        scalars = call.args[2].values if len(call.args) > 2 else ()
        key = name, scalars, tuple(shape for _, shape in shapes)
        if key in self.called:
            return
        self.called.add(key)
        known: dict[Any, Expr] = {}
        for buffer, shape in shapes:
            bind_shape(buffer.shape, shape, known)
        known.update(zip((p for p in func.params if p not in func.buffers), scalars, strict=False))
        for buffer, shape in shapes:
            for dim, (declared, actual) in enumerate(zip(buffer.shape, shape, strict=True)):
                if known.get(declared, declared) is not actual:
                    self.check(tir.le(substitute(declared, known), actual), _Place(node, actual, buffer, dim))
        for domain in self.domains[name]:
            domain = tuple(substitute(n, known) for n in domain)
            self.require(self.possible.iterations(domain), node, f"{{}} iterations are more than {MOST_ITERATIONS}, which take years", domain)
        for need in self.needs[name]:
            size = None if need.buffer is None else substitute(need.buffer.shape[need.dim], known)
            if need.condition is None and not need.by_data and not self.an.prove(substitute(need.unless, known)):
                raise LowerError(_Place(node, size, need.buffer, need.dim).unproven(name))
            if need.condition is not None:  # otherwise a position is data: the business of ``bounds_checks``
                unless = tir.logical_or(substitute(need.unless, known), _no_results(call))
                self.check(substitute(need.condition, known), _Place(node, size, need.buffer, need.dim), unless)

    def require(self, condition: Expr | None, node: str, what: str, shape: Sequence[Expr]) -> None:
        """Assert a condition on a shape, if there is one. Raises LowerError where it is known not to hold and is always asked for."""
        if condition is None:
            return
        text = f"{assertion(node)}: {what.format(_shape_text(shape))}"
        if condition is FALSE and self.branches == 1:
            raise LowerError(text)
        self.emit(make("assert_op", graph.PrimValue(condition), format=text), "possible")

    def check(self, condition: Expr, place: _Place, unless: Expr = FALSE) -> None:
        """Assert a condition, unless it is known to hold. Raises LowerError where it cannot hold and is always asked for."""
        an = self.an
        condition, unless = an.simplify(_guarded(condition)), an.simplify(_guarded(unless))
        holds = an.simplify(tir.logical_or(unless, condition))
        if an.prove(holds):
            return
        least = place.least(an, condition)
        text = place.text(least)
        if holds is FALSE and self.branches == 1:
            raise LowerError(text.replace("{0}", "more").replace("{1}", "too few"))
        an.assume(holds)
        sides = ()
        if least is not None and "{0}" in text:
            sides = (graph.PrimValue(tir.if_then_else(unless, tir.index_const(0), least)), graph.PrimValue(place.size))
            holds, sides = tir.le(sides[0].value, sides[1].value), (graph.Tuple(sides),)
        self.emit(make("assert_op", graph.PrimValue(holds), *sides, format=text), "fits")


@dataclass(frozen=True)
class _Place:
    """What a check is of, for its message: a dimension of a program's buffer, or a whole tensor, with ``size`` elements; without one, a division."""

    node: str
    size: Expr | None
    buffer: tir.Buffer | None = None
    dim: int = 0

    def least(self, an: Analyzer, condition: Expr) -> Expr | None:
        """How many elements the condition asks for, if that is what it says."""
        if self.size is None or type(condition) not in (tir.LT, tir.LE):
            return None
        size, difference = an.sum(self.size), compare.difference(an, condition)
        told = all(difference.terms.get(a) == -k for a, k in size.terms.items())
        return an.expr(difference + size) if told else None

    def unproven(self, program: str) -> str:
        """The message where no condition on sizes was found."""
        what = "a division by zero" if self.buffer is None else f"an access outside of dimension {self.dim} of {assertion(self.buffer.name)}"
        return (f"{assertion(self.node)}: {what} cannot be excluded in the program {assertion(program)}; "
                "write the access under a condition that keeps it inside, or give the program small, known sizes")

    def text(self, least: Expr | None) -> str:
        """The message."""
        node = assertion(self.node)
        if self.size is None:
            return f"{node}: a size that is divided by is not positive"
        what = f"dimension {self.dim} of {assertion(self.buffer.name)}" if self.buffer is not None else "the tensor"
        what += f" ({assertion(self.size.name)})" if isinstance(self.size, tir.Var) else ""
        if static(self.size) == 0 or (least is not None and static(least) == 1):
            return f"{node}: {what} is empty, but elements of it are needed"
        if least is None:
            return f"{node}: {what} has fewer elements than are needed"
        return f"{node}: {what} has {{1}} elements, {{0}} are needed"


def _shapes(func: tir.PrimFunc, call: graph.Call) -> Iterator[tuple[tir.Buffer, tuple[Expr, ...]]]:
    """The buffers of a program with the shapes that they have in a call."""
    operands = call.args[1].fields if isinstance(call.args[1], graph.Tuple) else (call.args[1],)
    infos = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    tensors = [info for info in (*(o.sinfo for o in operands), *infos) if isinstance(info, graph.TensorInfo)]
    for buffer, info in zip(func.buffer_params, tensors, strict=False):
        if info.shape is not None and len(info.shape) == buffer.ndim:
            yield buffer, info.shape


def _shape_text(shape: Sequence[Expr]) -> str:
    return assertion(f"[{', '.join(n.script() for n in shape)}]")


def _guarded(condition: Expr) -> Expr:
    """The condition, false where it would divide by zero."""
    divisors = [e.b for e in walk(condition) if isinstance(e, tir.FloorDiv | tir.FloorMod | tir.Div | tir.Mod) and not isinstance(e.b, tir.IntImm)]
    return tir.if_then_else(tir.logical_and(*(tir.gt(d, 0) for d in divisors)), condition, FALSE) if divisors else condition


def _no_results(call: graph.Call) -> Expr:
    """Whether all results are empty: then the program does not run."""
    infos = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    shapes = [info.shape if isinstance(info, graph.TensorInfo) and info.shape is not None else () for info in infos]
    return tir.logical_and(*(tir.logical_or(FALSE, *(tir.le(n, 0) for n in shape)) for shape in shapes))
