# SPDX-License-Identifier: Apache-2.0
"""Mistakes between the levels: Python's numbers, elements of tensor programs, values of graph functions, modules. Each message has the place,
the cause and the way out."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel import relax, te, tir
from roundel.arith import Analyzer
from roundel.ir.errors import RoundelError, ScriptError
from roundel.script import parse

HEAD = "import math\nimport numpy as np\nfrom roundel.script import relax as R, tir as T\n\n\n"
DATA = te.placeholder((4, 8), name="data")
K = te.reduce_axis((0, 8), "k")


def _program(body):
    lines = "\n".join("    " + line for line in body.split("\n"))
    return parse(f'{HEAD}@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n{lines}\n')


PROGRAMS = {
    "NumPy": ("for i in range(8):\n    B[i] = np.exp(A[i])", [":9:16:", "numpy.exp computes with numbers", "T.exp"]),
    "math": ("for i in range(8):\n    B[i] = math.sqrt(A[i])", [":9:16:", "math.sqrt computes with numbers", "T.sqrt"]),
    "a whole buffer": ("A += 1", [":8:5:", "buffer A stands where one of its elements is meant", "A[i]"]),
    "a whole buffer in a product": ("for i in range(8):\n    B[i] = A * A[i]", [":9:16:", "one of its elements"]),
    "elements in turn": ("for i, v in enumerate(A):\n    B[i] = v", [":8:17:", "no sequence", "for i in range(8)"]),
    "an attribute": ("for i in range(A.shpae[0]):\n    B[i] = A[i]", [":8:20:", "shpae", "did you mean shape?"]),
    "a list": ("xs = [1, 2]\nfor i in range(8):\n    B[i] = A[i] + xs", [":10:16:", "a list is neither a number nor an expression"]),
    "an integer's exponential": ("for i in range(8):\n    B[i] = T.exp(i)", [":9:16:", "exp is of floating-point numbers, not of int64", 'astype("float32")']),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_tensor_programs(name):
    body, said = PROGRAMS[name]
    with pytest.raises(ScriptError) as caught:
        _program(body)
    for part in said:
        assert part in str(caught.value)


def test_an_intrinsic_in_a_graph_function():
    with pytest.raises(ScriptError, match=r"(?s):7:12:.*T.exp is of tensor programs.*R.exp"):
        parse(f'{HEAD}@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return T.exp(x)\n'.replace("\n\n\n@", "\n\n@"))


EXPRESSIONS = {
    "too few indices": (lambda: te.compute((4,), lambda i: DATA[i] + 1), ["data has 2 dimensions and is indexed with 1", "data[i, j] is one element"]),
    "a reduction over another axis": (lambda: te.create_prim_func([DATA, te.compute((4,), lambda i: te.sum(DATA[i, K], axis=te.reduce_axis((0, 8), "j")))]),
                                      ["'compute' uses k, which is none of its axes", "axis=k"]),
    "Python's max": (lambda: te.compute((4, 8), lambda i, j: max(DATA[i, j], 0.0)),
                     ["has no truth value", "if_then_else(condition, a, b), max and min of te or T"]),
    "Python's if": (lambda: te.compute((4, 8), lambda i, j: DATA[i, j] if DATA[i, j] > 0 else 0.0), ["has no truth value"]),
    "a shape for what is known": (lambda: relax.Var("x", (4, 8)), ["struct info", "(4, 8)", 'R.Tensor((4, 8), "float32")']),
    "a number for a name": (lambda: tir.Var(1, "int32"), ["text for a name, not 1"]),
    "bits of a float": (lambda: ~tir.const(1.5), ["integers and bools, not of float32"]),
    "a bound number": (lambda: Analyzer().bind(3, tir.Range(0, 4)), ["what is bound is a variable, not 3"]),
    "a pass of a function": (lambda: rd.passes.get_pass("simplify")(te.create_prim_func([DATA])),
                             ["the pass simplify takes a module, not a PrimFunc", "IRModule("]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_in_python(name):
    make, said = EXPRESSIONS[name]
    with pytest.raises((RoundelError, TypeError)) as caught:
        make()
    for part in said:
        assert part in str(caught.value)


def test_an_unknown_llvm_intrinsic_is_named():
    func = _program('A[0:4] = T.call_llvm_pure_intrin("float32x4", "llvm.dummy.v4f32", A[0:4])')
    with pytest.raises(RoundelError, match=r"(?s)LLVM has no intrinsic llvm.dummy.v4f32.*llvm.sqrt.f32"):
        rd.build(func)
    done = _program('A[0:4] = T.call_llvm_pure_intrin("float32x4", "llvm.sqrt.v4f32", A[0:4])')
    data = np.full(8, 4, np.float32)
    rd.build(done)["main"](data, data.copy())
    assert data.tolist() == [2] * 4 + [4] * 4
