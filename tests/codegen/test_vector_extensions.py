# SPDX-License-Identifier: Apache-2.0
"""Vectors in C by the extensions of GCC and Clang: statements are expressions of whole vectors, which stay in registers."""

import re
import subprocess

import numpy as np
import pytest

from roundel import te
from roundel.build import build
from roundel.build.inspect import inspect
from roundel.interp import interpret
from roundel.ir import IRModule, tir
from roundel.lower import lower
from roundel.runtime import library
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

CPU = "x86-64-v4"
KIND = f"c -mcpu={CPU} -mattr=+vector-extensions"
ELEMENTWISE = {
    "a NaN is kept": lambda a, b: te.max_(te.min_(a, b), te.const(0.25, "float32")),
    "chosen by lane": lambda a, b: te.if_then_else(tir.And(a < b, a > te.const(0.0, "float32")), a * b, a / b),
    "a function without a form": lambda a, b: te.exp(a) * b - te.abs(a),
    "other types": lambda a, b: te.cast(te.cast(a * te.const(9.0, "float32"), "int32") * te.const(7, "int32"), "float32") + b,
}


@pytest.mark.parametrize("what", ELEMENTWISE)
@pytest.mark.parametrize("length", [64, 61])
def test_elements_are_those_of_the_interpreter(what, length):
    a, b = (te.placeholder((3, length), "float32", n) for n in "ab")
    func = te.create_prim_func([a, b, te.compute((3, length), lambda i, j: ELEMENTWISE[what](a[i, j], b[i, j]), "c")])
    made, _ = schedule_program(func, Target(CPU), ())
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-3, 3, (3, length)).astype("f") for _ in range(2))
    x[0, 5] = y[1, 7] = np.nan
    want, got = np.empty_like(x), np.empty_like(x)
    interpret(IRModule({"f": func}))["f"](x, y, want)
    build(lower(IRModule({"f": made.with_attr("global_symbol", "f")})), KIND, pipeline=())["f"](x, y, got)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_a_tile_of_registers_stays_in_registers(tmp_path):
    """The inner loop of a product has the multiply-adds of its tile, and stores next to nothing."""
    rows, columns, depth = 28, 64, 96
    x, w, k = te.placeholder((rows, depth), "float32", "x"), te.placeholder((depth, columns), "float32", "w"), te.reduce_axis((0, depth), "k")
    func = te.create_prim_func([x, w, te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")])
    made, _ = schedule_program(func, Target(CPU), (1,))
    text = inspect(IRModule({"main": made}), target=KIND).llvm
    assert "for (int l" not in text
    (tmp_path / "f.c").write_text(text.replace("#define RD_KERNEL static\n", "#define RD_KERNEL\n"))
    made = subprocess.run(["gcc", "-std=c99", "-O2", f"-march={CPU}", f"-I{library.source_dir()}", "-S", "f.c"], cwd=tmp_path, capture_output=True, check=False)
    if b"bad value" in made.stderr:
        pytest.skip("this compiler does not know the processor")
    parts = re.split(r"^\.L\w+:", (tmp_path / "f.s").read_text(), flags=re.M)
    loops = [re.split(r"\n\tj", part)[0] for part in parts if part.count("vfmadd") >= 28]
    assert loops and all(len(re.findall(r"vmov\w+\s+%zmm\d+, [^\n]*\(%rsp\)", loop)) * 8 < loop.count("vfmadd") for loop in loops)


def test_the_assembly_of_c_shows_what_nothing_calls():
    a = te.placeholder((8,), "float32", "a")
    func = te.create_prim_func([a, te.compute((8,), lambda i: a[i] * te.const(3.0, "float32"), "b")])
    assert "mul" in inspect(IRModule({"main": func}), target="c").assembly
