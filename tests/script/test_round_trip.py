# SPDX-License-Identifier: Apache-2.0
"""Whatever program is generated, its script parses back to an equal program, and prints the same again."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundel.ir import IRModule, assert_structural_equal, tir
from roundel.ir.dtype import INT64
from roundel.script import parse, print_script
from strategies import Scope, graph_functions, tensor_programs

RANDOM = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def check(node):
    text = print_script(node)
    again = parse(text)
    assert_structural_equal(node, again)
    assert print_script(again) == text


@RANDOM
@given(tensor_programs())
def test_tensor_programs(func):
    check(func)


@RANDOM
@given(tensor_programs(runnable=True))
def test_runnable_programs(func):
    check(func)


@RANDOM
@given(graph_functions())
def test_graph_functions(func):
    check(func)


@RANDOM
@given(st.lists(st.one_of(tensor_programs(), graph_functions()), max_size=3), st.sampled_from(["f", "main", "a.b"]))
def test_modules(functions, name):
    check(IRModule({f"{name}{k}": f for k, f in enumerate(functions)}))


@RANDOM
@given(st.data())
def test_expressions(data):
    a, b, n = tir.Var("a", INT64), tir.Var("b", tir.decl_buffer((4,), "float32").dtype), tir.Var("n", INT64, True)
    buffer = tir.decl_buffer((4, 4), "float32", "B")
    scope = Scope(data.draw, [a, b, n], [buffer])
    exprs = [scope.expr(d, 4) for d in (INT64, b.dtype)]
    param = tir.Var("B", buffer.data.dtype)
    check(tir.PrimFunc((param, a, b), tir.seq(*(tir.Evaluate(e) for e in exprs)), ((param, buffer),)))
