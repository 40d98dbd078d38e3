# SPDX-License-Identifier: Apache-2.0
"""Machines that add elsewhere than they multiply and add: which sums become multiply-adds with one."""

import re

import numpy as np
import pytest

import roundel as rd
from roundel import te
from roundel.build.inspect import inspect
from roundel.target import Target


def program(value, name="C"):
    a, b, k = te.placeholder((32, 24), "float32", "A"), te.placeholder((24, 32), "float32", "B"), te.reduce_axis((0, 24), "k")
    return te.create_prim_func([a, b, te.compute((32, 32), lambda i, j: te.sum(value(a[i, k], b[k, j]), axis=k), name)])


DIFFERENCES = program(lambda x, y: te.abs(x - y))
PRODUCTS = program(lambda x, y: x * y)
SUMS = program(lambda x, y: y)


def counted(func, target):
    """Additions and multiply-adds of vectors in the text of a scheduled program."""
    text = inspect(rd.auto_schedule(func, target), target=target).llvm
    return len(re.findall(r"f(?:add|sub) <", text)), len(re.findall(r"call <[^>]*> @llvm\.fma(?:\.|uladd\.)", text))


@pytest.mark.parametrize("target", ["znver2", "znver3", "znver4", "znver5"])
def test_half_of_the_sums_of_sums_are_multiply_adds(target):
    adds, fused = counted(DIFFERENCES, target)
    assert adds > 1 and abs(adds - fused) <= 1


@pytest.mark.parametrize("func, target", [(SUMS, "znver4"), (PRODUCTS, "znver4"), (DIFFERENCES, "sapphirerapids"), (DIFFERENCES, "neoverse-n1"),
                                          (DIFFERENCES, "x86-64"), (DIFFERENCES, "x86-64-v3")])
def test_other_sums_and_machines_without_such_ports_are_left_alone(func, target):
    assert "arithmetic.fence" not in inspect(rd.auto_schedule(func, target), target=target).llvm


def test_the_table_has_ports_of_additions_for_zen_alone():
    assert {n for n in Target.named() if Target(n).add_ports} == {f"znver{k}" for k in range(1, 6)}


@pytest.mark.skipif("fma" not in Target.host().features, reason="needs multiply-adds")
def test_results_round_as_those_of_additions(monkeypatch):
    from roundel.target.spec import MachineSpec

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("f") for s in ((32, 24), (24, 32)))
    a[0, :4], b[:3, 1] = (np.inf, -np.inf, np.nan, -0.0), (np.inf, -0.0, 1e-40)
    found = []
    for apart in (False, True):
        monkeypatch.setattr(MachineSpec, "adds_apart", apart)
        c = np.zeros((32, 32), "f")
        rd.build(rd.auto_schedule(DIFFERENCES))["main"](a, b, c)
        found.append(c)
    np.testing.assert_array_equal(*found)
