# SPDX-License-Identifier: Apache-2.0
"""Expressions as C: compilers find nothing to warn of."""

import subprocess

import pytest
from c_models import COMPILERS, STRICT
from flat_programs import func, loop

from roundel.codegen import Function, backend_of
from roundel.ir import DType, Var, decl_buffer, tir
from roundel.ir.dtype import INT64
from roundel.runtime import library
from roundel.target.spec import MachineSpec

BOOL = DType("bool")
LOGIC = {"and": tir.And, "or": tir.Or, "add": tir.Add, "sub": tir.Sub, "mul": tir.Mul}
LOGIC |= {f"bitwise_{op}": lambda a, b, op=op: tir.Call(f"bitwise_{op}", (a, b), BOOL) for op in ("and", "or", "xor")}


def conditions(a, b):
    """Truth values that a function is called for: comparisons of a quotient, what is made of them, and choices among them."""
    first, second = tir.lt(tir.floordiv(a, b), 1), tir.gt(tir.floormod(a, b), 2)
    yield first, second
    yield tir.Not(first), tir.And(first, second)
    yield tir.Or(first, second), tir.Select(first, second, tir.Not(second))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_logic_of_conditions_is_no_mistake_in_the_eyes_of_a_compiler(compiler, tmp_path):
    i, (a, b) = Var("i", INT64), (decl_buffer((8,), "int64", name) for name in "ab")
    results, body = [], []
    for name, op in LOGIC.items():
        for k, operands in enumerate(conditions(a[i], b[i])):
            results.append(decl_buffer((8,), "bool", f"{name}{k}"))
            body.append(tir.BufferStore(results[-1], op(*operands), (i,)))
            body.append(tir.If(op(*operands), tir.BufferStore(results[-1], tir.const(True), (i,)), None))
    program = func([a, b, *results], loop(i, 8, tir.seq(*body)))
    text = backend_of("c").emit([Function("f", program)], MachineSpec.host(), []).text
    command = [compiler, *STRICT, "-Wno-unused-function", f"-I{library.source_dir()}", "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == 0, done.stderr[:2000]
