# SPDX-License-Identifier: Apache-2.0
"""Patterns: what they match, what they capture, what a rewriting leaves."""

import numpy as np
import pytest

from roundel.graph.pattern import commutative, is_const, is_op, rewrite, wildcard
from roundel.graph.tidy.dead_code import eliminate_dead_code
from roundel.ir import graph
from roundel.ops import make

from .functions import calls, function, same_results

X = graph.TensorInfo((4, 6), "float32")


def _rewritten(mod, pattern, replacement):
    return eliminate_dead_code(rewrite(mod, pattern, replacement))


def _const(value):
    return graph.Constant.of(np.float32(value))


def test_the_same_wildcard_is_the_same_value():
    x = wildcard()
    double = lambda m: make("multiply", m[x], _const(2))
    same = function([X, X], lambda bb, a, b: make("add", a, a))
    other = function([X, X], lambda bb, a, b: make("add", a, b))
    assert calls(_rewritten(same, is_op("add")(x, x), double)) == ["multiply"]
    assert calls(_rewritten(other, is_op("add")(x, x), double)) == ["add"]


@pytest.mark.parametrize("swap", [False, True])
def test_commutative_operands(swap):
    x, c = wildcard(), is_const(1)
    mod = function([X], lambda bb, a: make("add", *((_const(1), a) if swap else (a, _const(1)))))
    assert calls(_rewritten(mod, commutative("add", x, c), lambda m: make("exp", m[x]))) == ["exp"]


def test_attributes_and_conditions():
    x = wildcard()
    mod = function([X], lambda bb, a: make("sum", bb.emit(make("sum", a, axis=(1,), keepdims=True)), axis=(0,), keepdims=True))
    pattern = is_op("sum")(x, axis=(1,))
    assert calls(_rewritten(mod, pattern, lambda m: make("max", m[x], axis=(1,), keepdims=True))) == ["max", "sum"]
    wide = is_op("sum")(x).where(lambda v: v.sinfo.shape[0].value == 1)
    assert calls(_rewritten(mod, wide, lambda m: make("min", m[x], axis=(0,), keepdims=True))) == ["sum", "min"]
    assert calls(_rewritten(mod, is_op("sum")(x.has_dtype("int32")), lambda m: m[x])) == ["sum", "sum"]


def test_alternatives_forget_what_failed():
    x = wildcard()
    pattern = is_op("nn.relu")(is_op("exp")(x) | is_op("abs")(x))
    for name in ("exp", "abs", "sqrt"):
        mod = function([X], lambda bb, a, name=name: make("nn.relu", bb.emit(make(name, a))))
        out = _rewritten(mod, pattern, lambda m: make("sigmoid", m[x]))
        assert calls(out) == (["sigmoid"] if name != "sqrt" else ["sqrt", "nn.relu"])


def test_rules_apply_again_to_what_they_make():
    x = wildcard()
    mod = function([X], lambda bb, a: make("negative", bb.emit(make("negative", bb.emit(make("negative", bb.emit(make("negative", a))))))))
    out = _rewritten(mod, is_op("negative")(is_op("negative")(x)), lambda m: m[x])
    assert calls(out) == []
    same_results(mod, out, np.ones((4, 6), "float32"))


def test_a_value_with_other_users_stays_for_them():
    x = wildcard()

    def body(bb, a):
        e = bb.emit(make("exp", a))
        return make("add", bb.emit(make("nn.relu", e)), e)

    mod = function([X], body)
    out = _rewritten(mod, is_op("nn.relu")(is_op("exp")(x)), lambda m: make("exp", m[x]))
    assert "exp" in calls(out)
    same_results(mod, out, np.ones((4, 6), "float32"))
