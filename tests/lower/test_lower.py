# SPDX-License-Identifier: Apache-2.0
"""Every pass of the pipeline keeps what a program computes; the end is in flat form."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from roundel.interp import interpret
from roundel.ir import IRModule, free_vars, tir
from roundel.ir.tir import PrimFunc
from roundel.lower import PIPELINE, check_flat, shape_params

_spec = importlib.util.spec_from_file_location("lower_programs", Path(__file__).with_name("programs.py"))
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)
ALL = {name: f for name, f in vars(programs).items() if isinstance(f, PrimFunc)}
DYNAMIC = {name: f for name, f in ALL.items() if shape_params(f)}


def arguments(func, dims, seed=0):
    rng = np.random.default_rng(seed)
    sizes = {v: tir.index_const(dims[v.name]) for b in func.buffer_params for s in b.shape for v in free_vars(s)}
    out = []
    for b in func.buffer_params:
        shape = [sizes[s].value if type(s) is tir.Var else s.value for s in b.shape]
        if b.dtype.is_float:
            out.append(rng.standard_normal(shape).astype(b.dtype.numpy))
        elif b.dtype.is_bool:
            out.append(rng.integers(0, 2, shape).astype(bool))
        else:
            out.append(rng.integers(0, 8, shape).astype(b.dtype.numpy))
    return out


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


@pytest.mark.parametrize("n", [1, 5, 16, 17, 33, 0])
def test_dynamic_vector(n):
    same_after_every_pass(programs.exp_dynamic, {"n": n})


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 8), (2, 17), (4, 7)])
def test_dynamic_rows(n, m):
    same_after_every_pass(programs.row_bias_dynamic, {"n": n, "m": m})
