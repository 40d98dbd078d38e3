# SPDX-License-Identifier: Apache-2.0
"""Every data type is loaded, computed with, converted and stored as the interpreter does it, in scalars and in vectors."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest

import roundel as rd
from roundel.build import inspect
from roundel.ir.dtype import DType
from roundel.script import parse

DTYPES = (
    "bool int2 uint2 int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn"
).split()

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((13,), "{d}"), B: T.Buffer((13,), "{d}"), F: T.Buffer((13,), "float32"), I: T.Buffer((13,), "int32"),
         add: T.Buffer((13,), "{d}"), sub: T.Buffer((13,), "{d}"), mul: T.Buffer((13,), "{d}"), top: T.Buffer((13,), "{d}"),
         less: T.Buffer((13,), "bool"), chosen: T.Buffer((13,), "{d}"), to_float: T.Buffer((13,), "float32"),
         to_int: T.Buffer((13,), "int32"), of_float: T.Buffer((13,), "{d}"), of_int: T.Buffer((13,), "{d}"),
         turned: T.Buffer((5, 7), "{d}"), M: T.Buffer((7, 5), "{d}")):
    for i in T.{kind}(13):
        with T.block("values"):
            v = T.axis.spatial(13, i)
            {numbers}
            less[v] = A[v] <= B[v]
            chosen[v] = T.if_then_else(I[v] < 0, A[v], B[v])
            to_float[v] = T.cast(A[v], "float32")
            to_int[v] = T.cast(A[v], "int32")
            of_float[v] = T.cast(F[v], "{d}")
            of_int[v] = T.cast(I[v], "{d}")
    for i, j in T.grid(5, 7):
        with T.block("turned"):
            vi, vj = T.axis.remap("SS", [i, j])
            turned[vi, vj] = M[vj, vi]
"""
NUMBERS = "add[v] = A[v] + B[v]; sub[v] = A[v] - B[v]; mul[v] = A[v] * B[v]; top[v] = T.max(A[v], B[v])"
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-8, 3e38, 0.75], "float32")


def values(rng, dtype, shape):
    """Any values of a type, all bit patterns of those of few bits."""
    dtype = DType(dtype)
    if dtype.is_bool:
        return rng.random(shape) > 0.5
    if dtype.is_float:
        return (4 * rng.standard_normal(shape)).astype("float32").astype(dtype.numpy)
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    bound = min(low + (1 << dtype.bits) - 1, 2**63 - 1)
    return rng.integers(low, bound, shape, endpoint=True).astype(dtype.numpy)


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_interpreted(dtype, kind):
    check(program(dtype, kind))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code for an x86-64")
@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2", "uint64", "float64"])
def test_as_interpreted_on_plain_machines(dtype, machine):
    """Also where an instruction is missing: no function of a compiler's runtime library stands in for it."""
    check(program(dtype, "vectorized"), machine)


def program(dtype, kind):
    return parse(PROGRAM.format(d=dtype, kind=kind, numbers="pass" if dtype == "bool" else NUMBERS))


def check(func, target=None):
    dtype = func.buffer_params[0].dtype
    rng = np.random.default_rng(0)
    arrays = [values(rng, b.dtype, [n.value for n in b.shape]) for b in func.buffer_params]
    arrays[2][:8] = SPECIAL  # some too large for narrow types
    if dtype == "float4_e2m1fn":
        arrays[2][4] = 1.0  # a type without NaN
    if DType(dtype).is_float and dtype != "float4_e2m1fn":
        with np.errstate(over="ignore"):
            arrays[0][:8] = SPECIAL.astype(arrays[0].dtype)
    want, got = [a.copy() for a in arrays], [a.copy() for a in arrays]
    rd.interpret(func)["main"](*want)
    rd.build(func, target=target)["main"](*got)
    for b, w, g in zip(func.buffer_params, want, got, strict=True):
        np.testing.assert_array_equal(_wide(g), _wide(w), err_msg=b.name)


def _wide(a):
    return a if a.dtype.kind in "biu" else a.astype("float64")


RUNTIME = re.compile(r"\b__(?:extend|trunc|fix|fixuns|float|floatun|u?div|u?mod|mul)\w*(?:[hsdtx]f|bf|[sdt]i)\d?\b")
"""Names of functions in a compiler's runtime library (libgcc, compiler-rt)."""


@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3", "cortex-a72", "neoverse-v1", "rv64gcv", "wasm32"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int64", "uint64", "float64"])
def test_code_needs_no_runtime_library_of_a_compiler(dtype, machine):
    for kind in ("serial", "vectorized"):
        assert not RUNTIME.findall(inspect(program(dtype, kind), target=machine).assembly)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code for an x86-64")
def test_every_float16_without_instructions_for_it():
    """All of them to float32; from there all numbers that lie between two of them or a bit beside the middle, and beyond the largest."""
    codes = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = np.sort(codes[np.isfinite(codes)].astype("float32"))
    middle = (finite[1:] + finite[:-1]) / 2
    singles = np.concatenate([codes.astype("float32"), middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf)),
                              np.array([65519, 65520, 65536, 3e38, 1e-10, -1e-45], "float32")])
    source = """
@T.prim_func
def main(A: T.Buffer(({n},), "{a}"), B: T.Buffer(({n},), "{b}")):
    for i in range({n}):
        with T.block("cast"):
            v = T.axis.spatial({n}, i)
            B[v] = T.cast(A[v], "{b}")
"""
    for given, kind in ((codes, "float32"), (singles, "float16"), (singles.astype("float64"), "float16")):
        out = np.empty(given.size, kind)
        text = source.format(n=given.size, a=given.dtype, b=kind)
        rd.build(parse(text), target="x86-64")["main"](given, out)
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(out.astype("float64"), given.astype(kind).astype("float64"))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["serial", "vectorized"])
def test_floats_that_are_rounded_moved_and_cut_off_to_bytes(dtype, kind):
    """Halves, limits and what is beyond, NaN and infinities, with zero points that are odd or even, and limits that are not the type's own."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    given = np.concatenate([np.arange(-300, 300, 0.5), np.random.default_rng(0).standard_normal(300) * 200,
                            [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 8388609, 0.49999997]])
    given = np.resize(given.astype("float32"), 96 * 16)
    rounded = "T.nearbyint(A[v])"
    forms = ["A[v]", rounded, f"T.min(T.max({rounded}, T.float32({low})), T.float32({high}))"]
    forms += [f"T.max(T.min({rounded} + T.float32({zero}), T.float32({high - cut})), T.float32({low + cut}))"
              for zero, cut in ((117, 0), (-4, 0), (0.5, 0), (3, 7))]
    outs = ", ".join(f'B{k}: T.Buffer(({given.size},), "{dtype}")' for k in range(len(forms)))
    stores = "; ".join(f'B{k}[v] = T.cast({form}, "{dtype}")' for k, form in enumerate(forms))
    text = f"""
@T.prim_func
def main(A: T.Buffer(({given.size},), "float32"), {outs}):
    for i in range({given.size // 16}):
        for j in T.{kind}(16):
            with T.block("bytes"):
                v = T.axis.spatial({given.size}, i * 16 + j)
                {stores}
"""
    made, wanted = ([np.empty(given.size, dtype) for _ in forms] for _ in range(2))
    rd.build(parse(text))["main"](given, *made)
    rd.interpret(parse(text))["main"](given, *wanted)
    for form, a, b in zip(forms, made, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=form)
