# SPDX-License-Identifier: Apache-2.0
"""Rebuilding graph functions binding by binding: the base of graph passes.

    class DropDouble(GraphRewriter):
        def call(self, call, binding):
            if call.op is get_op("nn.relu") and self.producer_op(call.args[0]) is call.op:
                return call.args[0]
            return call

``call`` sees operands already rewritten and may return any expression; nested calls are bound to fresh variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import is_
from typing import Any

from ..ir import graph, tir
from ..ir.choice import Choosing
from ..ir.module import IRModule
from ..ir.node import Span
from ..ir.op import OpDef, get_op
from ..ops.dims import assuming

_ATOMS = (graph.Var, graph.DataflowVar, graph.Constant, graph.ShapeExpr, graph.PrimValue, graph.StringValue, graph.DTypeValue,
          graph.ExternFunc, graph.GlobalVar)


class GraphRewriter:
    """Walks functions in order and rebuilds what changed. ``mod`` is the module so far; passes may add functions to it."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.env: dict[graph.Var, graph.GraphExpr] = {}
        self.values: dict[graph.Var, graph.GraphExpr] = {}  # what a rewritten variable is bound to
        self.span: Span | None = None  # of the binding that is being rewritten
        self.site = ""  # its name: that of the model's node
        self.spans: dict[graph.Var, Span | None] = {}  # of rewritten variables
        self.choosing = Choosing(mod.choices)
        self._out: list[graph.Binding] = []
        self._dataflow = True

    # -- what passes override

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        """The replacement of a call whose operands are rewritten already (default: itself)."""
        return call

    # -- what passes use

    def emit(self, value: graph.GraphExpr, name_hint: str = "lv") -> graph.GraphExpr:
        """Bind ``value`` to a fresh variable in the current block and return it (atoms are returned as they are)."""
        value = self._flatten(value)
        if isinstance(value, _ATOMS):
            return value
        kind = graph.DataflowVar if self._dataflow else graph.Var
        var = kind(name_hint, value.sinfo)
        self._append(var, value)
        return var

    def match_cast(self, value: graph.GraphExpr, sinfo: graph.StructInfo, name_hint: str = "lv") -> graph.Var:
        """Bind ``value`` as one of ``sinfo``, checked at run time; defines the new variables in it."""
        value = self._atom(value)
        var = (graph.DataflowVar if self._dataflow else graph.Var)(name_hint, sinfo)
        self.values[var] = value
        self._out.append(graph.MatchCast(var, value, sinfo))
        return var

    def producer(self, value: Any) -> graph.GraphExpr | None:
        """What a variable is bound to; None for parameters and non-variables, and for what an earlier dataflow block made of variables of its own."""
        return self.values.get(value) if isinstance(value, graph.Var) else None

    def add_function(self, hint: str, func: tir.BaseFunc) -> graph.GlobalVar:
        """Add a function to the module under a fresh name."""
        name = self.mod.unique_name(hint)
        self.mod = self.mod.with_functions({name: func})
        return graph.GlobalVar(name)

    # -- the walk

    def module(self) -> IRModule:
        """The module with all its graph functions rebuilt."""
        with assuming():  # what had to be checked was noted when the function was made
            for name in list(self.mod):
                func = self.mod[name]
                if isinstance(func, graph.Function):
                    rebuilt = self.function(func)  # may add functions to self.mod
                    self.mod = self.mod.with_functions({name: rebuilt})
        return self.mod.replace(choices=self.choosing.choices())

    def function(self, func: graph.Function) -> graph.Function:
        """A rebuilt function; the same object when nothing changed."""
        body = self.seq(func.body)
        if body is func.body:
            return func
        return func.replace(body=body, ret_sinfo=body.sinfo if func.ret_sinfo is not body.sinfo else func.ret_sinfo)

    def seq(self, expr: graph.SeqExpr) -> graph.SeqExpr:
        """A rebuilt sequence of binding blocks."""
        blocks = tuple(b for b in map(self.block, expr.blocks) if b.bindings)
        body = self._operand(expr.body)
        if not isinstance(body, _ATOMS) and isinstance(body, graph.Call):
            raise AssertionError("the body of a sequence is an atom or a tuple")
        if len(blocks) == len(expr.blocks) and all(a is b for a, b in zip(blocks, expr.blocks, strict=True)) and body is expr.body:
            return expr
        return graph.SeqExpr(blocks, body)

    def block(self, block: graph.BindingBlock) -> graph.BindingBlock:
        """A rebuilt binding block."""
        saved, self._out = self._out, []
        flag, self._dataflow = self._dataflow, isinstance(block, graph.DataflowBlock)
        for binding in block.bindings:
            self.binding(binding)
        for made in self._out if self._dataflow else ():
            if any(map(_is_private, operands(made.value))):
                self.values.pop(made.var, None)
        out, self._out, self._dataflow = tuple(self._out), saved, flag
        same = len(out) == len(block.bindings) and all(a is b for a, b in zip(out, block.bindings, strict=True))
        return block if same else block.replace(bindings=out)

    def binding(self, binding: graph.Binding) -> None:
        """Rewrite one binding into the current block."""
        value = self._value(binding.value)
        self.at(binding)
        if isinstance(binding, graph.MatchCast):
            self._append(binding.var, self._flatten(value), binding)
            return
        if isinstance(value, graph.Call):
            value = self.call(value, binding)
        value = self._flatten(value)
        var = binding.var
        local = isinstance(var, graph.DataflowVar) or not self._dataflow or isinstance(value, graph.Constant)
        if isinstance(value, _ATOMS) and local:
            self.env[var] = value
            return
        if var.sinfo is not value.sinfo and isinstance(value, graph.Call | graph.If | graph.While):
            fresh = type(var)(var.name, value.sinfo)
            self.env[var] = fresh
            var = fresh
        self._append(var, value, binding)

    def at(self, binding: graph.Binding) -> None:
        """What is emitted from here on comes from this binding."""
        self.span = binding.span
        self.site = site_of(binding)

    def _append(self, var: graph.Var, value: graph.GraphExpr, binding: graph.Binding | None = None) -> None:
        self.values[var] = value
        self.spans[var] = self.span
        if binding is not None and binding.var is var and binding.value is value:
            self._out.append(binding)
        elif isinstance(binding, graph.MatchCast):
            self._out.append(binding.replace(var=var, value=value))
        else:
            self._out.append(graph.VarBinding(var, value, self.span))

    def _value(self, value: graph.GraphExpr) -> graph.GraphExpr:
        handler = _VALUES.get(type(value))
        return handler(self, value) if handler else self._operand(value)

    def _operand(self, value: Any) -> Any:
        if isinstance(value, graph.Var):
            return self.env.get(value, value)
        if isinstance(value, graph.Tuple):
            fields = tuple(map(self._operand, value.fields))
            return value if all(map(is_, fields, value.fields)) else graph.Tuple(fields)
        if isinstance(value, graph.TupleGetItem):
            whole = self._operand(value.tuple_value)
            made = self.values.get(whole) if isinstance(whole, graph.Var) else whole
            if isinstance(made, graph.Tuple):
                return made.fields[value.index]
            return value if whole is value.tuple_value else graph.TupleGetItem(whole, value.index)
        return value

    def _flatten(self, value: graph.GraphExpr) -> graph.GraphExpr:
        """Nested calls inside operands are bound, so that the result is in A-normal form."""
        if isinstance(value, graph.Call):
            args = tuple(map(self._atom, value.args))
            return value if all(map(is_, args, value.args)) else value.replace(args=args)
        if isinstance(value, graph.Tuple):
            fields = tuple(map(self._atom, value.fields))
            return value if all(map(is_, fields, value.fields)) else graph.Tuple(fields)
        if isinstance(value, graph.TupleGetItem):
            return value.replace(tuple_value=self._atom(value.tuple_value))
        return value

    def _atom(self, value: Any) -> Any:
        if isinstance(value, graph.Tuple):
            return self._flatten(value)
        return value if isinstance(value, _ATOMS) else self.emit(value)


def _call(self: GraphRewriter, value: graph.Call) -> graph.Call:
    args = tuple(map(self._operand, value.args))
    op = self._operand(value.op) if isinstance(value.op, graph.Var) else value.op
    if op is value.op and all(map(is_, args, value.args)):
        return value
    made = value.replace(op=op, args=args)
    if isinstance(op, OpDef) and not made.sinfo_args and not _known(made.sinfo):  # an operand may have become known
        return graph.infer_call(made)
    return made


def _known(info: graph.StructInfo) -> bool:
    """Whether inference has nothing to add."""
    if isinstance(info, graph.TupleInfo):
        return all(map(_known, info.fields))
    return not isinstance(info, graph.TensorInfo) or (info.shape is not None and info.dtype is not None)


def _if(self: GraphRewriter, value: graph.If) -> graph.If:
    return value.replace(condition=self._operand(value.condition), true_branch=_nested(self, value.true_branch),
                         false_branch=_nested(self, value.false_branch))


def _while(self: GraphRewriter, value: graph.While) -> graph.While:
    init = tuple(self._operand(v) for v in value.init)
    return value.replace(init=init if any(a is not b for a, b in zip(init, value.init, strict=True)) else value.init,
                         condition=_nested(self, value.condition), body=_nested(self, value.body))


def _nested(self: GraphRewriter, body: graph.SeqExpr) -> graph.SeqExpr:
    saved, self._out = self._out, []
    out = self.seq(body)
    self._out = saved
    return out


_VALUES: dict[type, Callable[[GraphRewriter, Any], graph.GraphExpr]] = {graph.Call: _call, graph.If: _if, graph.While: _while}


def site_of(binding: graph.Binding) -> str:
    """The name under which choices for a binding are recorded and asked for: the model's node, else the variable."""
    return binding.span.name if binding.span is not None and binding.span.name else binding.var.name


def nodes_of(binding: graph.Binding) -> tuple[str, ...]:
    """The names, as of ``site_of``, of all nodes that a binding computes: several where they were fused."""
    return binding.span.nodes if binding.span is not None and binding.span.nodes else (site_of(binding),)


def uses(func: graph.Function) -> dict[graph.Var, int]:
    """How often each variable is used in the function, its result included (each field of a tuple counts)."""
    count: dict[graph.Var, int] = {}

    def operand(value: Any) -> None:
        if isinstance(value, graph.Var):
            count[value] = count.get(value, 0) + 1
            return
        for child in operands(value):
            operand(child)

    operand(func.body)
    return count


def may_call(mod: IRModule, names: Collection[str]) -> bool:
    """Whether any graph function calls one of the operators, or has branches or loops, which are not looked into. Passes for rare operators ask this first:
    walking a long function costs more."""
    wanted = [get_op(name) for name in names]
    for func in mod.functions.values():
        if isinstance(func, graph.Function) and isinstance(func.body, graph.SeqExpr):
            for block in func.body.blocks:
                for binding in block.bindings:
                    value = binding.value
                    if type(value) is graph.If or type(value) is graph.While or (type(value) is graph.Call and value.op in wanted):
                        return True
    return False


def operands(value: Any) -> list[Any]:
    """Direct operands of a graph expression; of a sequence, its bindings' values and its body."""
    handler = _OPERANDS.get(type(value))
    return handler(value) if handler else []


_OPERANDS: dict[type, Callable[[Any], list[Any]]] = {
    graph.Call: lambda v: [*([v.op] if isinstance(v.op, graph.Var) else []), *v.args],
    graph.Tuple: lambda v: list(v.fields),
    graph.TupleGetItem: lambda v: [v.tuple_value],
    graph.If: lambda v: [v.condition, v.true_branch, v.false_branch],
    graph.While: lambda v: [*v.init, v.condition, v.body],
    graph.SeqExpr: lambda v: [*(b.value for b in v.bindings), v.body],
}


def _is_private(value: Any) -> bool:
    """Whether a value is of variables that nobody knows behind their dataflow block."""
    return isinstance(value, graph.DataflowVar) or (isinstance(value, graph.Tuple) and any(map(_is_private, value.fields)))


def is_call(value: Any, op: OpDef | str) -> bool:
    """Whether ``value`` is a call of this operator."""
    return isinstance(value, graph.Call) and isinstance(value.op, OpDef) and (value.op is op or value.op.name == op)
