# SPDX-License-Identifier: Apache-2.0
"""Every pass of the pipeline keeps what a program computes; the end is in flat form."""

from __future__ import annotations

import numpy as np
import pytest
from lower_helpers import ALL, DYNAMIC, SIZED, arguments

from roundel.interp import interpret
from roundel.ir import IRModule
from roundel.lower import PIPELINE, check_flat, shape_params


def same_after_every_pass(func, dims=None):
    dims = dims or {}
    mod = IRModule({"main": func})
    given = arguments(func, dims)
    want = [a.copy() for a in given]
    interpret(mod)["main"](*want)
    scalars = [dims[v.name] for v in shape_params(func)]
    last = mod
    for step in PIPELINE:
        mod = step(mod)
        if mod is last:
            continue
        last = mod
        got = [a.copy() for a in given]
        extra = scalars if len(mod["main"].params) > len(got) else []
        interpret(mod)["main"](*got, *extra)
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5, err_msg=f"after {step.name}")
    for f in mod.functions.values():
        check_flat(f)
    return mod


@pytest.mark.parametrize("name", [n for n in ALL if n not in DYNAMIC])
def test_every_pass_keeps_results(name):
    same_after_every_pass(ALL[name])


@pytest.mark.parametrize(("name", "dims"), SIZED, ids=str)
def test_dynamic(name, dims):
    same_after_every_pass(ALL[name], dims)
