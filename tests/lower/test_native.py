# SPDX-License-Identifier: Apache-2.0
"""Lowered programs, compiled, agree with the interpreter on the original."""

from __future__ import annotations

import numpy as np
import pytest
from lower_helpers import ALL, DYNAMIC, SIZED, arguments

from roundel.build import build
from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import lower
from roundel.script import tir as T


def same_native(func, dims=None):
    mod = IRModule({"main": func})
    want = arguments(func, dims or {})
    got = [a.copy() for a in want]
    interpret(mod)["main"](*want)
    name = func.attrs["global_symbol"]
    build(mod)[name](*got)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in ALL if n not in DYNAMIC])
def test_native(name):
    same_native(ALL[name])


@pytest.mark.parametrize(("name", "dims"), SIZED, ids=str)
def test_dynamic(name, dims):
    same_native(ALL[name], dims)


def test_elements_that_share_a_byte_are_written_by_one_thread():
    @T.prim_func
    def narrow(A: T.Buffer((300, 7), "int32"), B: T.Buffer((300, 7), "int4")):
        for i in T.parallel(300):
            for j in range(7):
                with T.sblock("narrow"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.Cast("int4", A[vi, vj])

    assert set(lower(IRModule({"main": narrow}))) == {"main"}
    same_native(narrow)
