# SPDX-License-Identifier: Apache-2.0
"""LLVM text that a loop is annotated with is compiled with the program that calls its functions."""

import numpy as np
import pytest

import roundel as rd
from roundel.ir import IRModule
from roundel.ir.errors import BuildError
from roundel.runtime.toolchain import llvm_text
from roundel.schedule import Schedule
from roundel.script import tir as T

TWICE = "define float @mine(float %x) {\n  %y = fadd float %x, %x\n  ret float %y\n}\n"
SQUARE = "define float @mine(float %x) {\n  %y = fmul float %x, %x\n  ret float %y\n}\n"
X = np.float32([1, -2, 3, 4, 5, 6, 7, 8])


@T.prim_func
def mapped(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.call_extern("float32", "mine", A[vi])


def _with(text, change=lambda sch, loop: None):
    sch = Schedule(mapped)
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.annotate(i, "pragma_import_llvm", text)
    change(sch, i)
    return sch.func


def _run(mod, name):
    out = np.zeros(8, np.float32)
    rd.build(mod)[name](X, out)
    return out


def test_programs_have_functions_of_one_name_of_their_own():
    mod = IRModule({"twice": _with(TWICE), "square": _with(SQUARE)})
    np.testing.assert_array_equal(_run(mod, "twice"), 2 * X)
    np.testing.assert_array_equal(_run(mod, "square"), X * X)


@pytest.mark.parametrize("kind", ["parallel", "unroll"])
def test_it_stays_where_the_loop_changes(kind):
    assert np.array_equal(_run(IRModule({"main": _with(TWICE, lambda sch, i: getattr(sch, kind)(i))}), "main"), 2 * X)


def test_of_another_machine_and_of_c():
    np.testing.assert_array_equal(_run(IRModule({"main": _with('target triple = "x86_64-unknown-linux-other"\n' + TWICE)}), "main"), 2 * X)
    try:
        text = llvm_text("float mine(float x) { return x + 1; }\n")
    except BuildError:
        pytest.skip("no compiler that makes LLVM text")
    np.testing.assert_array_equal(_run(IRModule({"main": _with(text)}), "main"), X + 1)


def test_a_programs_attribute_brings_text_too_and_the_interpreter_runs_it():
    for value in (SQUARE, (SQUARE,)):
        program = mapped.with_attr("import_llvm", value)
        np.testing.assert_array_equal(_run(IRModule({"main": program}), "main"), X * X)
        out = np.zeros(8, np.float32)
        rd.interpret(IRModule({"main": program}))["main"](X, out)
        np.testing.assert_array_equal(out, X * X)


@pytest.mark.parametrize("value", ["float mine(float x) { return x + 1; }\n", ("float mine(float x) { return x + 1; }\n",)])
def test_so_does_one_with_c_text(value):
    np.testing.assert_array_equal(_run(IRModule({"main": mapped.with_attr("import_c", value)}), "main"), X + 1)


def test_text_that_is_none_is_refused():
    with pytest.raises(BuildError, match="pragma_import_llvm"):
        _run(IRModule({"main": _with("define float @mine(")}), "main")
