# SPDX-License-Identifier: Apache-2.0
"""Visitors, mutators and questions about graph functions, written as TVM's documentation writes them."""

from __future__ import annotations

import numpy as np

import roundel as rd
from roundel import relax
from roundel.ir import assert_structural_equal, get_op, graph
from roundel.passes.well_formed import well_formed
from roundel.relax import analysis
from roundel.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from roundel.script import parse

MODULE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.nn.relu(x)
            unused = R.exp(a)
            b = R.add(a, R.const(1.0, "float32"))
            R.output(b)
        if c:
            d = R.nn.relu(b)
            y = R.negative(d)
        else:
            y = b
        return y
"""
X = np.array([[-2, -1, 0, 3]], "float32")


@mutator
class ReluTo(PyExprMutator):
    def __init__(self, mod, replace):
        super().__init__(mod)
        self.replace = replace

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        return self.replace(call.args[0]) if call.op is get_op("nn.relu") else call

    def transform(self):
        for gv, func in self.mod_.functions_items():
            if isinstance(func, graph.Function):
                self.builder_.update_func(gv, analysis.remove_all_unused(self.visit_expr(func)))
        return self.builder_.get()


def test_a_mutator_replaces_calls_in_blocks_and_branches():
    mod = parse(MODULE)
    new = ReluTo(mod, lambda x: relax.op.negative(x)).transform()
    assert well_formed(new) == []
    names = [b.value.op.name for b in analysis.name_to_binding(new["main"])["a"]]
    assert names == ["negative"] and "unused" not in analysis.name_to_binding(new["main"])
    for flag in (True, False):
        want = 1 - X
        np.testing.assert_array_equal(rd.interpret(new)["main"](X, np.array(flag)), want)
        np.testing.assert_array_equal(rd.compile(new)(X, np.array(flag)), want)


def test_a_mutator_may_change_types_and_bind_more():
    mod = parse(MODULE)
    wide = lambda x: relax.op.astype(relax.op.nn.relu(relax.op.astype(x, "float64")), "float32")
    new = ReluTo(mod, wide).transform()
    assert well_formed(new) == []
    np.testing.assert_array_equal(rd.interpret(new)["main"](X, np.array(False)), np.maximum(X, 0) + 1)


def test_a_mutator_that_changes_nothing():
    func = parse(MODULE)["main"]
    assert_structural_equal(PyExprMutator().visit_expr(func), func)


def test_a_visitor_meets_everything_in_order():
    @visitor
    class Calls(PyExprVisitor):
        def __init__(self):
            self.names, self.defined = [], []

        def visit_call_(self, call):
            self.visit_default(call)
            self.names.append(call.op.name)

        def visit_var_def(self, var):
            self.defined.append(var.name)

    calls = Calls()
    calls.visit_expr(parse(MODULE)["main"])
    assert calls.names == ["nn.relu", "exp", "add", "nn.relu", "negative"]
    assert calls.defined == ["x", "c", "a", "unused", "b", "d", "y", "y"]


def test_questions():
    func = parse(MODULE)["main"]
    assert [v.name for v in analysis.free_vars(func)] == []
    assert {v.name for v in analysis.free_vars(func.body)} == {"x", "c"}
    assert [v.name for v in analysis.defined_symbolic_vars(func)] == ["n"] and analysis.free_symbolic_vars(func) == []
    block = func.body.blocks[0]
    users = {v.name: [u.name for u in use] for v, use in analysis.udchain(block).items()}
    assert users["a"] == ["unused", "b"] and users["b"] == []
    assert not analysis.contains_impure_call(func)
    seen = []
    analysis.post_order_visit(func, seen.append)
    assert seen[-1] is func
