# SPDX-License-Identifier: Apache-2.0
"""Loops. Relay has none: a loop is a function that ends in a branch, one side of which calls the function again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir import graph
from ...ir.dataclass import dataclass
from ...ir.errors import ModelError, UnsupportedError
from ...ops import make
from . import expr as relay
from .nested import form, nested, tensors

if TYPE_CHECKING:
    from .importer import RelayImporter


@dataclass(frozen=True)
class Loop:
    """A function whose body goes on (``again``: the operands of its call of itself) while ``condition`` is ``wanted``, and else gives ``result``.
    ``lets`` are bindings before the branch."""

    function: relay.Function
    name: str
    lets: tuple[tuple[relay.Var, relay.Expr], ...]
    condition: relay.Expr
    wanted: bool
    body: relay.Expr
    result: relay.Expr

    def emitted(self, importer: RelayImporter, args: Sequence[Any]) -> Any:
        """The loop's result, for these operands."""
        outside = importer.values
        start, shape = list(tensors(tuple(args))), form(tuple(args))
        variables = tuple(graph.Var(f"s{k}", t.sinfo) for k, t in enumerate(start))

        def entered(state: Sequence[Any]) -> None:
            importer.values = {**outside, **dict(zip(self.function.params, nested(shape, iter(state)), strict=True))}
            for var, value in self.lets:
                importer.values[var] = importer.value(value)

        def condition() -> Any:
            entered(variables)
            flag = importer.flag(importer.value(self.condition))
            return flag if self.wanted else importer.emit(make("logical_not", flag))

        def body() -> graph.Tuple:
            entered(variables)
            operands = importer.value(_again(self.body))
            if form(operands) != shape:
                raise ModelError(f"{self.name} of the Relay model calls itself with other operands than it was called with",
                                 why=f"{len(operands)} and {len(args)} operands, or tuples of different forms")
            return graph.Tuple(tuple(tensors(operands)))

        checked = set(importer.checked)
        first, again = importer.bb.sequence(condition), importer.bb.sequence(body)
        importer.checked = checked
        for old, new in zip(variables, again.sinfo.fields, strict=True):
            if not isinstance(new, graph.TensorInfo) or old.sinfo.dtype != new.dtype or old.sinfo.shape != new.shape:
                raise UnsupportedError(f"the loop {self.name} of the Relay model changes the type of its state", why=f"{old.sinfo} and {new}")
        out = importer.bb.emit(graph.While(variables, tuple(start), first, again, graph.TupleInfo(tuple(v.sinfo for v in variables))), "loop")
        entered([importer.bb.emit(graph.TupleGetItem(out, k), "loop_result") for k in range(len(variables))])
        try:
            return importer.value(self.result)
        finally:
            importer.values = outside


def as_loop(function: relay.Function, name: str) -> Loop | None:
    """The loop that a function is; None for one that does not call itself."""
    if not _calls(function.body, function, name):
        return None
    lets, body = [], function.body
    while isinstance(body, relay.Let):
        lets.append((body.var, body.value))
        body = body.body
    if isinstance(body, relay.If):
        for wanted, again, result in ((True, body.then, body.otherwise), (False, body.otherwise, body.then)):
            if _ends_in_call(again, function, name) and not _calls(result, function, name):
                return Loop(function, name, tuple(lets), body.condition, wanted, again, result)
    raise UnsupportedError(f"{name} of the Relay model calls itself", why="a function may do that at the end of one side of the branch that it ends in, "
                           "which makes it a loop")


def _is_self(op: Any, function: relay.Function, name: str) -> bool:
    if isinstance(op, relay.GlobalVar):
        return f"@{op.name}" == name
    return op is function or (isinstance(op, relay.Var) and op.name == name)


def _ends_in_call(node: relay.Expr, function: relay.Function, name: str) -> bool:
    while isinstance(node, relay.Let):
        node = node.body
    return isinstance(node, relay.Call) and _is_self(node.op, function, name)


def _again(node: relay.Expr) -> relay.Expr:
    """The operands of the call that a side ends in, as a tuple, behind the same bindings."""
    lets = []
    while isinstance(node, relay.Let):
        lets.append((node.var, node.value))
        node = node.body
    assert isinstance(node, relay.Call)
    result: relay.Expr = relay.Tuple(node.args)
    for var, value in reversed(lets):
        result = relay.Let(var, value, result)
    return result


def _calls(root: relay.Expr, function: relay.Function, name: str) -> bool:
    """Whether an expression calls the function."""
    seen, waiting = set[relay.Expr](), [root]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, relay.Call) and _is_self(node.op, function, name):
            return True
        waiting.extend(relay.parts(node))
    return False
