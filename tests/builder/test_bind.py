# SPDX-License-Identifier: Apache-2.0
"""Parameters and symbolic dimensions given for good: the function that is left computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import relax
from roundel.ir.errors import RoundelError
from roundel.script import parse

LINEAR = """
@R.function
def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32"), b: R.Tensor(("m",), "float32")):
    n = T.int64()
    k = T.int64()
    m = T.int64()
    with R.dataflow():
        y = R.add(R.matmul(x, w), b)
        z = R.reshape(y, R.shape([n * m]))
        R.output(z)
    return z
"""
X = np.arange(6, dtype="float32").reshape(2, 3)
W, B = np.ones((3, 4), "float32"), np.arange(4, dtype="float32")


def run(func, *args):
    return rd.interpret(rd.IRModule({"main": func}))["main"](*args)


def test_weights_become_constants_and_tell_their_sizes():
    func = parse(LINEAR).bind_params({"w": W, "b": B})
    assert [p.name for p in func.params] == ["x"]
    n = func.params[0].sinfo.shape[0]
    assert func.params[0].sinfo == relax.TensorStructInfo([n, 3], "float32")
    assert func.ret_sinfo == relax.TensorStructInfo([n * 4], "float32")
    np.testing.assert_array_equal(run(func, X), (X @ W + B).ravel())
    np.testing.assert_array_equal(rd.compile(rd.IRModule({"main": func}))(X), (X @ W + B).ravel())
    assert parse(func.script()) is not None


def test_dimensions_become_numbers():
    func = parse(LINEAR).bind_sizes({"n": 2, "m": 4})
    k = func.params[0].sinfo.shape[1]
    assert func.params[1].sinfo == relax.TensorStructInfo([k, 4], "float32")
    assert func.ret_sinfo == relax.TensorStructInfo([8], "float32")
    np.testing.assert_array_equal(run(func, X, W, B), (X @ W + B).ravel())


def test_by_variable():
    func = parse(LINEAR)
    n = func.params[0].sinfo.shape[0]
    assert func.bind_sizes({n: 7}).params[0].sinfo.shape[0].value == 7
    assert [p.name for p in func.bind_params({func.params[2]: B}).params] == ["x", "w"]
    assert func.bind_params({}) is func


@pytest.mark.parametrize("change, said", [
    (lambda f: f.bind_params({"v": W}), "no single parameter 'v'.*\n.*x, w, b"),
    (lambda f: f.bind_params({"w": W.astype("float64")}), "w does not fit"),
    (lambda f: f.bind_params({"w": W[0]}), "w does not fit"),
    (lambda f: f.bind_params({"w": W, "b": B[:3]}), "does not fit"),
    (lambda f: f.bind_symbolic_vars({"q": 3}), "no single symbolic dimension 'q'"),
    (lambda f: f.bind_sizes({relax.Var("x"): 3}), "x is no symbolic dimension"),
])  # fmt: skip
def test_what_does_not_fit_is_told(change, said):
    with pytest.raises(RoundelError, match=said):
        change(parse(LINEAR))
