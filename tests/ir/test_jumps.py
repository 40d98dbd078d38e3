# SPDX-License-Identifier: Apache-2.0
"""``break`` and ``continue`` mean in a tensor program what they mean in Python, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import IRModule, structural_equal, tir
from roundel.ir.errors import BuildError, ScheduleError, ScriptError
from roundel.ir.jumps import jump, without_jumps
from roundel.ir.visit import statements
from roundel.script import parse

BODIES = {
    "continue_at_the_end_of_a_branch": """
for i in range(12):
    if i % 3 == 0:
        B[i] = 7
        continue
    B[i] = A[i]""",
    "continue_in_the_middle": """
for i in range(12):
    if i % 2 == 0:
        if i % 3 == 0:
            continue
        B[i] = 1
    B[i] = B[i] + A[i]""",
    "break": """
for i in range(12):
    if A[i] > 8:
        break
    B[i] = A[i]""",
    "break_and_continue": """
for i in range(12):
    if i % 5 == 1:
        continue
    if A[i] > 8:
        B[i] = 5
        break
    B[i] = i""",
    "in_both_branches": """
for i in range(12):
    if A[i] > 8:
        B[i] = 1
        break
    else:
        B[i] = 2
        continue
    B[i] = 9""",
    "of_the_inner_loop": """
for i in range(3):
    for j in range(4):
        if A[i * 4 + j] > 6:
            break
        B[i * 4 + j] = 1
    B[i * 4] = B[i * 4] + 3""",
    "of_both_loops": """
for i in range(3):
    for j in range(4):
        if j == 2:
            break
        B[i * 4 + j] = 1
    if i == 1:
        break
    B[i] = 8""",
    "while": """
B[0] = 0
while B[0] < 100:
    B[0] = B[0] + 1
    if B[0] % 2 == 0:
        continue
    B[1] = B[0]
    if B[0] > 10:
        break""",
    "the_whole_body": """
for i in range(12):
    B[i] = 1
    break""",
}
A = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], "int32")


def program(body):
    lines = "\n".join("    " + line for line in body.strip().split("\n"))
    return parse(f'@T.prim_func\ndef f(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):\n{lines}\n')


def in_python(body):
    out = np.full(12, -1, "int32")
    exec(body, {"A": A, "B": out, "range": range})
    return out


@pytest.mark.parametrize("name", BODIES)
def test_as_in_python(name):
    func = program(BODIES[name])
    assert structural_equal(parse(func.script()), func)
    for run in (rd.interpret, rd.build):
        out = np.full(12, -1, "int32")
        run(IRModule({"f": func}))["f"](A, out)
        np.testing.assert_array_equal(out, in_python(BODIES[name]))


@pytest.mark.parametrize("name", BODIES)
def test_nothing_jumps_afterwards(name):
    assert not any(map(jump, statements(without_jumps(program(BODIES[name])).body)))


def test_a_branch_that_ends_in_continue_needs_no_flag():
    made = without_jumps(program(BODIES["continue_at_the_end_of_a_branch"]))
    assert not any(isinstance(s, tir.Allocate) for s in statements(made.body))


def test_a_program_without_jumps_stays_itself():
    func = program("for i in range(12):\n    B[i] = A[i]")
    assert without_jumps(func) is func


def test_iterations_that_run_together_cannot_be_left():
    with pytest.raises(BuildError, match="run at the same time"):
        without_jumps(program("for i in T.parallel(12):\n    if A[i] > 3:\n        break\n    B[i] = 1"))


@pytest.mark.parametrize("body", ["break", "for i in [1, 2]:\n    continue", "if A[0] > 1:\n    break"])
def test_outside_of_loops_is_an_error_of_the_script(body):
    with pytest.raises(ScriptError, match="outside of a loop"):
        program(body)


@pytest.mark.parametrize("primitive", ["parallel", "vectorize", "split"])
def test_schedules_keep_what_a_break_means(primitive):
    mod = IRModule({"f": parse('''
@T.prim_func
def f(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
    for i in range(12):
        if A[i] > 8:
            break
        with T.block("b"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi]
''')})
    sch = rd.Schedule(mod)
    sch.work_on("f")
    (loop,) = sch.get_loops(sch.get_block("b"))
    if primitive != "split":
        with pytest.raises(ScheduleError):
            getattr(sch, primitive)(loop)
        return
    sch.split(loop, [3, 4])
    out = np.full(12, -1, "int32")
    rd.interpret(sch.mod)["f"](A, out)
    np.testing.assert_array_equal(out, [3, 1, 4, 1, 5, *[-1] * 7])
