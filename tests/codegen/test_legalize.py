# SPDX-License-Identifier: Apache-2.0
"""Expansions as a pass: the interpreter runs what they are made of, and agrees."""

import ml_dtypes
import numpy as np
import pytest
from flat_programs import func, loop

from roundel.codegen.expand import EXPANSIONS, decode, encode, legalize_math
from roundel.interp import run_prim_func
from roundel.ir import DType, Var, decl_buffer, tir, walk
from roundel.ir.dtype import INT64


def apply(fn, x, out):
    A, B, i = decl_buffer(x.shape, DType(x.dtype), "A"), decl_buffer(x.shape, out, "B"), Var("i", INT64)
    return func([A, B], loop(i, x.size, tir.BufferStore(B, fn(A[i]), (i,))))


@pytest.mark.parametrize("name", sorted(set(EXPANSIONS) - {"pow", "atan2", "fmod"}))
def test_interpreted_expansion_equals_the_function(name):
    ends = {"acosh": (1, 50), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.9, 0.9), "log1p": (-0.9, 6), **dict.fromkeys(("log", "log2", "log10"), (0.01, 50))}
    low, high = ends.get(name, (-6, 6))
    x = np.linspace(low, high, 101).astype("f")
    program = apply(lambda v: tir.call(name, v), x, "float32")
    expanded = legalize_math(program)
    assert not any(type(n) is tir.Call and n.op == name for n in walk(expanded.body))
    want, got = np.zeros_like(x), np.zeros_like(x)
    run_prim_func(program, [x, want])
    run_prim_func(expanded, [x, got])
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_interpreted_remainders_equal_the_function():
    x = np.linspace(-6, 6, 101).astype("f")
    program = apply(lambda v: tir.call("fmod", v, tir.const(0.75, "float32")), x, "float32")
    expanded = legalize_math(program)
    assert not any(type(n) is tir.Call and n.op == "fmod" for n in walk(expanded.body))
    got = np.zeros_like(x)
    run_prim_func(expanded, [x, got])
    np.testing.assert_array_equal(got, np.fmod(x, np.float32(0.75)))


def test_nothing_to_expand_changes_nothing():
    program = apply(lambda v: v + 1.0, np.zeros(3, "f"), "float32")
    assert legalize_math(program) is program


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_interpreted_conversions(dtype):
    kind = getattr(ml_dtypes, dtype)
    x = (np.random.default_rng(0).standard_normal(200) * 50).astype("f")
    got = np.zeros(200, kind)
    run_prim_func(apply(lambda v: encode(v, DType(dtype)), x, dtype), [x, got])
    np.testing.assert_array_equal(got.astype("f"), x.astype(kind).astype("f"))
    wide = np.zeros(200, "f")
    run_prim_func(apply(decode, got, "float32"), [got, wide])
    np.testing.assert_array_equal(wide, got.astype("f"))
