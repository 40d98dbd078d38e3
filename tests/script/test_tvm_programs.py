# SPDX-License-Identifier: Apache-2.0
"""Programs as people wrote them for TVM over the years: they parse, print, parse back to equal programs, and run."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.arith import Analyzer
from roundel.ir import IRModule, assert_structural_equal, free_vars, graph, substitute, tir
from roundel.script import parse, print_script
from script_programs import HEADER
from tvm_programs import GRAPH, TENSOR

ALL = {**TENSOR, **GRAPH}
ARE_SHOWN_ONLY = {
    "reduce_scope": "a reduction across the threads of a GPU",
    "extern_calls": "calls functions that nobody has",
    "undef_assume": "some elements may be anything",
    "ptr_types": "takes raw pointers",
    "ptr_subscript": "takes raw pointers",
    "symbolic": "takes a function",
    "calls": "the result of a packed function has no known shape",
    "relax_old": "takes anything",
    "R_forms": "takes a number that is a size",
    "recursion_while": "calls itself",
}


@pytest.mark.parametrize("name", ALL)
def test_round_trip(name):
    node = parse(HEADER + ALL[name])
    text = print_script(node)
    again = parse(text)
    assert_structural_equal(node, again)
    assert print_script(again) == text


class Inputs:
    """Random arrays for the parameters of a function; every symbolic size is 3."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def array(self, dtype, shape):
        dims = [Analyzer().simplify(substitute(n, {v: tir.const(3, v.dtype) for v in free_vars(n)})).value for n in shape]
        return np.asarray(4 * self.rng.random(dims)).astype(dtype.numpy)

    def value(self, info):
        if isinstance(info, graph.TupleInfo):
            return tuple(map(self.value, info.fields))
        return (3,) * info.ndim if isinstance(info, graph.ShapeInfo) else self.array(info.dtype, info.shape)

    def of(self, func):
        if isinstance(func, graph.Function):
            return [self.value(p.sinfo) for p in func.params]
        return [self.array(func.buffers[p].dtype, func.buffers[p].shape) if p in func.buffers else True if p.dtype.is_bool else 3 for p in func.params]


@rd.register_func("env.linear", override=True)
def _linear(x, w, b, out):
    out[:] = x @ w.T + b


@rd.register_func("env.relu", override=True)
def _relu(x, out):
    out[:] = np.maximum(x, 0)


def results(run, args):
    """What is in the arrays after a call, and what it returns."""
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    out = run(*arrays)
    returned = list(out) if isinstance(out, tuple | list) else [out]
    return [np.asarray(a) for a in (*arrays, *returned) if isinstance(a, np.ndarray) or hasattr(a, "__dlpack__")]


@pytest.mark.parametrize("name", [n for n in ALL if n not in ARE_SHOWN_ONLY])
def test_interpreted_and_compiled(name):
    node = parse(HEADER + ALL[name])
    mod = node if isinstance(node, IRModule) else IRModule({node.attrs["global_symbol"]: node})
    interpreted, built = rd.interpret(node), rd.build(node)
    for function, func in mod.items():
        if "global_symbol" in func.attrs:
            args = Inputs().of(func)
            for want, got in zip(results(interpreted[function], args), results(built[function], args), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_print_and_assert_op(capfd):
    mod = parse(HEADER + '''
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32"), ok: R.Tensor((), "bool")):
        _ = R.print(x, format="x is {}")
        _1 = R.assert_op(ok, format="not ok")
        return x
''')
    x = np.array([1, 2], "float32")
    for run in (rd.interpret(mod)["main"], rd.build(mod)["main"]):
        run(x, np.array(True))
        assert "x is [1. 2.]" in capfd.readouterr().out
        with pytest.raises((rd.RoundelError, RuntimeError), match="not ok"):
            run(x, np.array(False))


def test_functions_inside_see_dimensions_of_their_arguments():
    mod = parse(HEADER + '''
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    @R.function
    def flat(y: R.Tensor(("k", 4), "float32")) -> R.Tensor(("k * 4",), "float32"):
        k = T.int64()
        with R.dataflow():
            z = R.reshape(y, (k * 4,))
            R.output(z)
        return z
    with R.dataflow():
        a = flat(x)
        b = R.add(a, a)
        R.output(b)
    return b
''')
    n = mod.params[0].sinfo.shape[0]
    assert mod.ret_sinfo.shape == (n * 4,)
    got = rd.build(mod)["main"](np.ones((3, 4), "float32"))
    np.testing.assert_array_equal(got, np.full(12, 2, "float32"))
