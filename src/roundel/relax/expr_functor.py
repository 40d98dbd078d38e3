# SPDX-License-Identifier: Apache-2.0
"""Visitors and mutators of graph functions, with a method for each kind of expression, by TVM's names.

    @mutator
    class ReluToGelu(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            return relax.op.nn.gelu(call.args[0]) if call.op is get_op("nn.relu") else call

    new = ReluToGelu().visit_expr(func)

For new passes ``graph.GraphRewriter`` is the shorter way: it walks a module and keeps what did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from roundel.builder import BlockBuilder
from roundel.ir import IRModule, graph
from roundel.ir.op import OpDef

C = TypeVar("C", bound=type)
_NAMES: dict[type, str] = {
    graph.Constant: "constant", graph.Tuple: "tuple", graph.Var: "var", graph.DataflowVar: "dataflow_var", graph.ShapeExpr: "shape_expr",
    graph.ExternFunc: "extern_func", graph.GlobalVar: "global_var", graph.Function: "function", graph.Call: "call", graph.SeqExpr: "seq_expr",
    graph.If: "if", graph.While: "while", graph.TupleGetItem: "tuple_getitem", graph.PrimValue: "prim_value", graph.StringValue: "string_imm",
    graph.DTypeValue: "data_type_imm", graph.VarBinding: "var_binding", graph.MatchCast: "match_cast", graph.BindingBlock: "binding_block",
    graph.DataflowBlock: "dataflow_block",
}  # fmt: skip


class ExprFunctor:
    """Calls ``visit_call_`` for a call, ``visit_var_`` for a variable, ...; the default of each is ``visit_default``."""

    def visit_expr(self, expr: Any) -> Any:
        """Visit an expression by its kind."""
        return self._visit(expr)

    def visit_binding(self, binding: graph.Binding) -> Any:
        """Visit a binding by its kind."""
        return self._visit(binding)

    def visit_binding_block(self, block: graph.BindingBlock) -> Any:
        """Visit a block by its kind."""
        return self._visit(block)

    def visit_default(self, node: Any) -> Any:
        """What happens to a node without a method of its own."""
        raise NotImplementedError

    def _visit(self, node: Any) -> Any:
        name = "op" if isinstance(node, OpDef) else _NAMES.get(type(node))
        method = getattr(self, f"visit_{name}_", None) if name else None
        return self.visit_default(node) if method is None else method(node)


class PyExprVisitor(ExprFunctor):
    """Walks a function in order; a method that overrides one goes on into the parts by ``super().visit_call_(call)`` or ``visit_default(call)``."""

    def visit_default(self, node: Any) -> None:
        """What is done to a node of a kind without a method of its own: its children are visited."""
        for part in _parts(node):
            self._visit(part)

    def visit_var_def(self, var: graph.Var) -> None:
        """A variable where it is bound."""

    def visit_var_binding_(self, binding: graph.VarBinding) -> None:
        """``var = value``: the value, then the variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: graph.MatchCast) -> None:
        """The value, then the variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_function_(self, func: graph.Function) -> None:
        """The parameters, then the body."""
        for p in func.params:
            self.visit_var_def(p)
        self.visit_expr(func.body)


def _parts(node: Any) -> Sequence[Any]:
    if isinstance(node, graph.Call):
        return (node.op, *node.args)
    if isinstance(node, graph.If):
        return (node.condition, node.true_branch, node.false_branch)
    if isinstance(node, graph.While):
        return (*node.init, node.condition, node.body)
    if isinstance(node, graph.SeqExpr):
        return (*node.blocks, node.body)
    if isinstance(node, graph.BindingBlock):
        return node.bindings
    return (node.tuple_value,) if isinstance(node, graph.TupleGetItem) else node.fields if isinstance(node, graph.Tuple) else ()


class PyExprMutator(ExprFunctor):
    """Builds a function anew, binding by binding, through ``builder_``; what a method returns takes the place of the expression.

    ``mod_`` is the module given; ``builder_.update_func`` puts a function into the one that ``builder_.get()`` returns.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod_, self.builder_ = mod, BlockBuilder(mod)
        self._remap: dict[graph.Var, Any] = {}

    def visit_default(self, node: Any) -> Any:
        """What is done to a node of a kind without a method of its own: its children are rewritten."""
        return node

    def visit_expr_post_order(self, expr: Any) -> Any:
        """The expression with its parts visited, as it is without a method of its own."""
        if isinstance(expr, graph.Call):
            args = tuple(self.visit_expr(a) for a in expr.args)
            op = expr.op if isinstance(expr.op, OpDef) else self.visit_expr(expr.op)
            if op is expr.op and all(a is b for a, b in zip(args, expr.args, strict=True)):
                return expr
            known = expr.sinfo if expr.sinfo_args else graph.ObjectInfo()
            return self.builder_.normalize(expr.replace(op=op, args=args, sinfo=known))
        if isinstance(expr, graph.Tuple):
            fields = tuple(self.visit_expr(f) for f in expr.fields)
            return expr if all(a is b for a, b in zip(fields, expr.fields, strict=True)) else graph.Tuple(fields)
        if isinstance(expr, graph.TupleGetItem):
            return expr.replace(tuple_value=self.visit_expr(expr.tuple_value))
        return getattr(PyExprMutator, f"visit_{_NAMES.get(type(expr), '')}_", PyExprMutator.visit_default)(self, expr)

    visit_call_ = visit_tuple_ = visit_tuple_getitem_ = visit_expr_post_order

    def visit_var_(self, var: graph.Var) -> Any:
        """What stands for the variable by now."""
        return self._remap.get(var, var)

    visit_dataflow_var_ = visit_var_

    def visit_if_(self, expr: graph.If) -> Any:
        """Condition and branches, each a scope of its own."""
        condition = self.visit_expr(expr.condition)
        then, other = (self.visit_with_new_scope(b) for b in (expr.true_branch, expr.false_branch))
        return expr.replace(condition=condition, true_branch=then, false_branch=other)

    def visit_while_(self, expr: graph.While) -> Any:
        """What a loop begins with, its condition and its body."""
        init = tuple(self.visit_expr(v) for v in expr.init)
        return expr.replace(init=init, condition=self.visit_with_new_scope(expr.condition), body=self.visit_with_new_scope(expr.body))

    def visit_function_(self, func: graph.Function) -> graph.Function:
        """A function with a new body; its result info is that of the new result where it changed."""
        body = self.visit_with_new_scope(func.body, func.params)
        return func.replace(body=body, ret_sinfo=func.ret_sinfo if body.sinfo is func.body.sinfo else body.sinfo)

    def visit_with_new_scope(self, expr: Any, params: Sequence[graph.Var] = ()) -> graph.SeqExpr:
        """The expression as a sequence of its own."""
        return self.builder_.body(lambda: self.visit_expr(expr), params)

    def visit_seq_expr_(self, seq: graph.SeqExpr) -> Any:
        """Emits the blocks, then gives the value."""
        for block in seq.blocks:
            self.visit_binding_block(block)
        return self.visit_expr(seq.body)

    def visit_binding_block_(self, block: graph.BindingBlock) -> None:
        """Emits the bindings in a block of the same kind."""
        with self.builder_.dataflow() if isinstance(block, graph.DataflowBlock) else nullcontext():
            for binding in block.bindings:
                self.visit_binding(binding)

    visit_dataflow_block_ = visit_binding_block_

    def visit_var_binding_(self, binding: graph.VarBinding) -> None:
        """Emits the new value; the variable stays where the value has the same struct info."""
        value = self.builder_.normalize(self.visit_expr(binding.value))
        if value.sinfo is binding.value.sinfo:
            self.builder_.emit_normalized(binding.replace(value=value))
        else:
            leaves = self.builder_.current_block_is_dataflow() and not isinstance(binding.var, graph.DataflowVar)
            self.set_var_remap(binding.var, (self.builder_.emit_output if leaves else self.builder_.emit)(value, binding.var.name))

    def visit_match_cast_(self, binding: graph.MatchCast) -> None:
        """Emits the cast of the new value."""
        self.builder_.emit_normalized(binding.replace(value=self.builder_.normalize(self.visit_expr(binding.value))))

    def set_var_remap(self, var: graph.Var, value: Any) -> None:
        """``value`` stands for the variable from here on."""
        self._remap[var] = value

    def get_var_remap(self, var: graph.Var) -> Any:
        """What stands for the variable."""
        return self._remap.get(var, var)

    def lookup_binding(self, var: graph.Var) -> Any:
        """What a variable of the new function is bound to; None for parameters."""
        return self.builder_.lookup_binding(var)


for _class in (PyExprVisitor, PyExprMutator):  # what ``super().visit_call_(call)`` calls: the default of every kind
    for _name in ("op", *_NAMES.values()):
        if not hasattr(_class, f"visit_{_name}_"):
            setattr(_class, f"visit_{_name}_", lambda self, node: self.visit_default(node))


def visitor(cls: C) -> C:
    """The class as it is: decorators of TVM's documentation may stay."""
    return cls


mutator = visitor
__all__ = ["ExprFunctor", "PyExprMutator", "PyExprVisitor", "mutator", "visitor"]
