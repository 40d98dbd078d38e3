# SPDX-License-Identifier: Apache-2.0
"""The tracer programs of ``benchmarks/tracer``: right, and with accumulators in registers (speed is not tested)."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from roundel.build import build, inspect
from roundel.target import Target

FOLDER = Path(__file__).parents[2] / "benchmarks" / "tracer"


@pytest.fixture
def tracer(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("matmul", "conv2d", "report", "tiles", "assembly"):
        sys.modules.pop(name, None)


def check_inner_loop(tracer, mod, target):
    """Register tiles leave no stack access in the inner loop (read off the assembly of x86)."""
    if target.arch != "x86_64":
        return
    loop = tracer("assembly").hottest_loop(inspect(mod, "main", target).assembly)
    assert loop.multiply_adds >= 24 and loop.stack_accesses == 0
    assert not re.search(r"gather|scatter", "\n".join(loop.body))


@pytest.mark.parametrize("name", ["host", "x86-64-v3", "neoverse-n1"])
def test_matmul(tracer, name):
    target = Target(name)
    matmul = tracer("matmul")
    sch, width = matmul.schedule(target, False)
    check_inner_loop(tracer, sch.mod, target)
    if name == "host":
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((768, 768), np.float32) for _ in range(2))
        panels = np.ascontiguousarray(b.reshape(768, 768 // width, width).transpose(1, 0, 2))
        c = np.zeros((768, 768), np.float32)
        build(sch.mod)["main"](a, panels, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["host", "x86-64-v3", "neoverse-n1"])
def test_conv2d(tracer, name):
    target = Target(name)
    conv = tracer("conv2d")
    sch = conv.schedule(target, False)
    check_inner_loop(tracer, sch.mod, target)
    if name == "host":
        arrays, want = conv.operands(target)
        build(sch.mod)["main"](*arrays)
        np.testing.assert_allclose(arrays[-1], want, rtol=1e-3, atol=1e-3)
