# SPDX-License-Identifier: Apache-2.0
"""Programs that use indices check them: each index comes from memory once, and not a first time for the check.

    flag = index_flag(i, (n,))                   both = call_tir(checked_take, (x, i), (r, flag))
    c = check_indices(i, (n,), flag)      ->     r = check_indices(i, (n,), both[1], both[0])
    r = call_tir(take, (x, c))

This is for scheduled programs in which no other loop is outside of those over the indices; ``checked_loops`` says how they check.
"""

from __future__ import annotations

from typing import Any

from ...ir import graph, tir
from ...ir.dtype import INT64
from ...ir.module import IRModule
from ...ir.op import CALL_TIR
from ...ir.visit import walk
from ...ops.bounds import wide
from ...passes import pass_
from ...target import Target
from ..rewriter import GraphRewriter, is_call, uses
from .checked_loops import Accesses, Checked
from .index_ranges import static


@pass_("checks_in_programs")
def checks_in_programs(mod: IRModule) -> IRModule:
    """Let programs that use checked indices make the checks."""
    return _InPrograms(mod).module()


class _InPrograms(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.target = mod.attrs.get("target") or Target.host()
        self.made: dict[tuple[Any, ...], graph.GlobalVar | None] = {}
        self.count: dict[graph.Var, int] = {}

    def function(self, func: graph.Function) -> graph.Function:
        self.count = uses(func)
        return super().function(func)

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if not is_call(call, CALL_TIR) or not isinstance(call.args[1], graph.Tuple) or not isinstance(call.sinfo, graph.TensorInfo):
            return call
        for position, operand in enumerate(call.args[1].fields):
            check = self.producer(operand)
            if _has_flag(check) and self.count.get(operand) == 1 and any(b.var is operand for b in self._out):
                changed = self.checking(call, position, check)  # type: ignore[arg-type]
                if changed is not None:
                    return changed
        return call

    def checking(self, call: graph.Call, position: int, check: graph.Call) -> graph.Call | None:
        """The call of the program that makes the check, and what fails where it found something; None where there is no such program."""
        limits, negative = check.args[1].values, check.attrs["negative"]
        key = call.args[0].name, position, tuple(map(static, limits)), negative
        if key not in self.made:
            func = self.mod[call.args[0].name]
            program = with_check(func, position, limits, negative, self.target) if isinstance(func, tir.PrimFunc) else None
            self.made[key] = None if program is None else self.add_function(f"checked_{call.args[0].name}", program)
        name = self.made[key]
        if name is None:
            return None
        operands = [check.args[0] if k == position else f for k, f in enumerate(call.args[1].fields)]
        scalars = (*(call.args[2].values if len(call.args) > 2 else ()), *(n for n in limits if static(n) is None))
        info = graph.TupleInfo((call.sinfo, graph.TensorInfo((), self.mod[name.name].buffer_params[-1].dtype)))  # type: ignore[union-attr]
        extra = (graph.ShapeExpr(scalars),) if scalars else ()
        both = self.emit(graph.Call(CALL_TIR, (name, graph.Tuple(tuple(operands)), *extra), sinfo_args=(info,), sinfo=info), "both")
        result, flag = (self.emit(graph.TupleGetItem(both, k), hint) for k, hint in enumerate(("unchecked", "flag")))
        return check.replace(args=(check.args[0], check.args[1], flag, result), sinfo=call.sinfo)


def _has_flag(made: Any) -> bool:
    return is_call(made, "check_indices") and len(made.args) == 3 and isinstance(made.args[2], graph.Var)


def with_check(func: tir.PrimFunc, position: int, limits: tuple[tir.Expr, ...], negative: bool, target: Target) -> tir.PrimFunc | None:
    """The program with a check of its buffer ``position``: a last buffer more, for a number that is negative where an index is not a
    position, and a scalar more for each of the limits that is not a number. None where its loops do not allow that."""
    if func.root_block is None or func.attrs.keys() & {"append", "view", "checks"}:
        return None
    indices = func.buffer_params[position]
    sizes = tuple(n if static(n) is not None else tir.Var(f"limit{k}", INT64) for k, n in enumerate(limits))
    flag = tir.decl_buffer((), wide(indices.dtype, sizes), "flag")
    found = Accesses(indices)
    found.visit(func.body)
    if not found.all_once():
        return None
    root: Any = func.body
    vectors = any(type(n) is tir.For and n.kind is tir.ForKind.VECTORIZED for n in walk(func.body))
    check = Checked(found, sizes, negative and indices.dtype.kind == "int", flag, target.lanes(flag.dtype) if vectors else 1)
    body = check.within(root.block.body)
    if body is None:
        return None
    body = tir.seq(tir.BufferStore(flag, tir.const(0, flag.dtype), ()), body)
    handle = tir.Var("flag_handle", func.buffer_map[-1][0].dtype)
    last = max(k for k, p in enumerate(func.params) if p in func.buffers)
    params = (*func.params[: last + 1], handle, *func.params[last + 1 :], *(n for n in sizes if type(n) is tir.Var))
    return func.replace(params=params, buffer_map=(*func.buffer_map, (handle, flag)), body=root.replace(block=root.block.replace(body=body)),
                        attrs=func.attrs | {"checks": 1})
