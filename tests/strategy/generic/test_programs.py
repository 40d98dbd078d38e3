# SPDX-License-Identifier: Apache-2.0
"""Programs that no rule was written for: scheduled, right and lowered at every vector width and for every kind of machine."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from benchmarks.more_programs import PROGRAMS
from benchmarks.programs import arrays

import roundel as rd
from roundel import te
from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import lower
from roundel.strategy.choose import attempt
from roundel.strategy.generic.generic import generic
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

HOST = Target.host()
NARROW = Target("llvm -mcpu=x86-64 -vector-width=32")  # one lane of float32
WIDTHS = {1: NARROW, 4: Target("x86-64"), 8: Target("x86-64-v3"), 16: Target("x86-64-v4")}


def scheduled(func, target):
    """By the generic rule where it fits, and else by the rule that does."""
    found = attempt(generic, func, target)
    return found.applied.func.with_attr("scheduled", "generic") if found.fits else schedule_program(func, target)[0]


def is_right(program, func, run):
    data = arrays(func, seed=zlib.crc32(program.name.encode()))
    wanted = program.reference(*data[:-1])
    data[-1][...] = np.nan
    run(*data)
    np.testing.assert_allclose(data[-1], wanted, rtol=2e-4, atol=2e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same_when_scheduled(name, lanes):
    program = PROGRAMS[name]
    func = program.func(**program.small)
    is_right(program, func, interpret(IRModule({"main": scheduled(func, WIDTHS[lanes])}))["main"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_prime_sizes_run(name):
    program = PROGRAMS[name]
    funcs = {f"f{lanes}": scheduled(program.func(**program.prime), target).with_attr("global_symbol", f"f{lanes}") for lanes, target in WIDTHS.items()}
    library = rd.build(IRModule(funcs))
    for key in funcs:
        is_right(program, program.func(**program.prime), library[key])


@pytest.mark.parametrize("target, share", [("znver1", 0), ("apple-m1", 1), ("rv64gcv", 2), ("wasm32", 3)])
def test_programs_lower_for_named_machines(target, share):
    for program in list(PROGRAMS.values())[share::4]:
        lower(IRModule({"main": scheduled(program.func(**program.small), Target(target))}))


def test_a_product_is_not_computed_again_for_every_column():
    func, _ = schedule_program(PROGRAMS["three_products"].func(), HOST)
    assert func.attrs["scheduled"] == "generic"


def test_operands_that_are_strided_along_the_lanes_are_turned():
    func, _ = schedule_program(PROGRAMS["product_of_rows"].func(), HOST)
    assert func.attrs["scheduled"] == "generic" and "B_global" in func.script()


def test_small_programs_are_left_to_the_first_rule_that_fits():
    program = PROGRAMS["product_of_rows"]
    func, _ = schedule_program(program.func(**program.small), HOST)
    assert func.attrs["scheduled"] == "rows"


@pytest.mark.parametrize("n, m, k", [(5, 7, 3), (1, 17, 4), (33, 64, 1)])
def test_sizes_may_be_symbolic(n, m, k):
    rows, columns, depth = te.size_var("rows"), te.size_var("columns"), te.size_var("depth")
    a, b, r = te.placeholder((rows, depth), "float32", "A"), te.placeholder((depth, columns), "float32", "B"), te.reduce_axis((0, depth), "r")
    func = te.create_prim_func([a, b, te.compute((rows, columns), lambda i, j: te.max(a[i, r] + b[r, j], axis=r), "Y")])
    made = scheduled(func.with_attr("global_symbol", "main"), HOST)
    assert made.attrs["scheduled"] == "generic"
    x, y, out = np.random.default_rng(0).random((n, k), np.float32), np.random.default_rng(1).random((k, m), np.float32), np.empty((n, m), np.float32)
    for run in (interpret(IRModule({"main": made}))["main"], rd.build(IRModule({"main": made}))["main"]):
        run(x, y, out)
        np.testing.assert_allclose(out, (x[:, :, None] + y[None]).max(1), rtol=1e-6)


def test_a_user_may_ask_for_it():
    func = PROGRAMS["triangle_product"].func().with_attr("decisions", {"sketch": "generic", "rows": 4, "vectors": 2})
    made, _ = schedule_program(func, HOST)
    assert made.attrs["scheduled"] == "generic"
