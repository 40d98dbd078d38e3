# SPDX-License-Identifier: Apache-2.0
"""Python functions of modules: called from graph functions, interpreted and compiled, and calling the module's functions."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import assert_structural_equal
from roundel.ir.errors import RoundelError
from roundel.script import ir as I
from roundel.script import parse
from roundel.script import relax as R

SCALE = 3.0


@I.ir_module
class Module:
    @I.pyfunc
    def sorted_rows(x):
        return np.sort(x, axis=1) * SCALE

    @I.pyfunc
    def both(self, x):
        doubled = self.twice(x)
        return doubled, x.sum(axis=0)

    @R.function
    def twice(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.add(x, x)

    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        y = R.call_py_func("sorted_rows", (R.negative(x),), out_sinfo=R.Tensor((2, 3), "float32"))
        pair = R.call_py_func("both", (y,), out_sinfo=[R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")])
        return R.add(pair[0], pair[1])


def test_python_functions_of_a_module():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    y = np.sort(-x, axis=1) * SCALE
    for run in (rd.interpret(Module)["main"], rd.build(Module)["main"]):
        np.testing.assert_allclose(run(x), 2 * y + y.sum(axis=0))
    assert_structural_equal(parse(Module.script()), Module)


def test_names_that_no_module_has_are_those_of_registered_functions():
    func = parse('@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return R.call_py_func("nobody", (x,), out_sinfo=R.Tensor((2,), "float32"))\n')
    with pytest.raises(RoundelError, match="nobody"):
        rd.interpret(rd.IRModule({"main": func}))(np.ones(2, "float32"))
