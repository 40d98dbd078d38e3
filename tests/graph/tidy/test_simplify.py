# SPDX-License-Identifier: Apache-2.0
"""Canonicalisation, dead code, common subexpressions, constant folding."""

import numpy as np
import pytest

from roundel.graph.pattern import commutative, is_op, rewrite, wildcard
from roundel.graph.tidy.common_subexpressions import eliminate_common_subexpressions
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.graph.tidy.fold_constants import fold_constants
from roundel.graph.tidy.simplify import simplify
from roundel.ir import graph
from roundel.ops import make

from ..functions import calls, function, same_results

X = graph.TensorInfo((4, 6), "float32")


def _const(value):
    return graph.Constant.of(np.asarray(value, "float32"))


@pytest.mark.parametrize("body", [
    lambda bb, x: make("add", x, _const(0)), lambda bb, x: make("multiply", _const(1), x), lambda bb, x: make("divide", x, _const(1)),
    lambda bb, x: make("power", x, _const(1)), lambda bb, x: make("astype", x, dtype="float32"),
])
def test_units_disappear(body):
    mod = function([X], lambda bb, x: make("nn.relu", bb.emit(body(bb, x))))
    out = eliminate_dead_code(simplify(mod))
    assert calls(out) == ["nn.relu"]
    same_results(mod, out, np.random.default_rng(0).standard_normal((4, 6)).astype("float32"))


def test_a_unit_that_broadcasts_stays():
    mod = function([graph.TensorInfo((1, 6), "float32")], lambda bb, x: make("add", x, _const(np.zeros((4, 6)))))
    assert calls(simplify(mod)) == ["add"]


def test_equal_calls_are_one():
    def body(bb, x):
        return make("add", bb.emit(make("exp", x)), bb.emit(make("exp", x)))

    mod = function([X], body)
    out = eliminate_dead_code(eliminate_common_subexpressions(mod))
    assert calls(out) == ["exp", "add"]


def test_constants_are_folded():
    def body(bb, x):
        return make("multiply", x, bb.emit(make("add", _const(1), _const(2))))

    mod = function([X], body)
    out = eliminate_dead_code(fold_constants(mod))
    assert calls(out) == ["multiply"]
    same_results(mod, out, np.ones((4, 6), "float32"))


def test_a_pass_by_pattern():
    x, b = wildcard(), wildcard()
    pattern = is_op("nn.relu")(commutative("add", x, b))
    mod = function([X, X], lambda bb, a, c: make("nn.relu", bb.emit(make("add", a, c))))
    out = eliminate_dead_code(rewrite(mod, pattern, lambda m: make("maximum", m[x], m[b])))
    assert calls(out) == ["maximum"]


@pytest.mark.parametrize("form", ["x * (erf + 1) * half", "x * half * (erf + 1)"])
def test_gelu_written_out_is_gelu(form):
    def body(bb, x):
        e = bb.emit(make("erf", bb.emit(make("divide", x, _const(np.float32(np.sqrt(2)))))))
        e = bb.emit(make("add", e, _const(np.float32(1))))
        first, second = (e, _const(np.float32(0.5))) if form.endswith("half") else (_const(np.float32(0.5)), e)
        return make("multiply", bb.emit(make("multiply", x, first)), second)

    mod = function([X], body)
    out = eliminate_dead_code(simplify(mod))
    assert calls(out) == ["nn.gelu"]
    same_results(mod, out, np.linspace(-4, 4, 24, dtype="float32").reshape(4, 6))
