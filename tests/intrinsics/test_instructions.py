# SPDX-License-Identifier: Apache-2.0
"""Instructions for products of narrow numbers: implementations equal descriptions, in the interpreter and on the processor, and become one instruction."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import roundel as rd
from roundel.build.inspect import inspect
from roundel.interp import interpret
from roundel.intrinsics import TensorIntrin
from roundel.intrinsics.registry import SCALAR
from roundel.ir import IRModule
from roundel.target import Target

PRODUCTS = [i for i in TensorIntrin.all() if ("dot_" in i.name or "product_" in i.name) and not i.storage]
MNEMONICS = {"avx512vnni.": r"vpdp(busd|wssd)", "avxvnni.": r"\{vex\}\s+vpdp(busd|wssd)", "avxvnniint8.": "vpdpbssd", "avx512bf16.": "vdpbf16ps",
             "avx512fp16.": r"vfmadd\d+ph", "neon.fmla.": "fmla", "rvv.": r"vwmacc\.v[vx]",
             "sse2.": "pmaddwd", "avx2.": "vpmaddwd", "avx512bw.": "vpmaddwd", "neon.sdot.": "sdot", "neon.udot.": "udot", "neon.usdot.": "usdot",
             "neon.bfdot.": "bfdot", "neon.smmla.": "smmla", "neon.ummla.": "ummla", "neon.usmmla.": "usmmla",
             "neon.bfmmla.": "bfmmla", "mve.": r"vmla(da)?va\.s(8|16)", "simd128.": r"i32x4\.dot_i16x8_s"}
MACHINES = {"avx512vnni.": "cascadelake", "avxvnni.": "alderlake", "avxvnniint8.": "alderlake -mattr=+avxvnniint8", "avx512bf16.": "znver4",
            "avx512fp16.": "sapphirerapids", "rvv.": "rv64gcv", "sse2.": "x86-64", "avx2.": "haswell", "avx512bw.": "skylake-avx512", "neon.": "neoverse-v1",
            "simd128.": "wasm32", "mve.": "llvm -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55 -mattr=+mve.fp"}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def machine_with(intrin):
    """A machine of the table that has the instruction."""
    return Target(next((name for prefix, name in MACHINES.items() if intrin.name.startswith(prefix)), "x86-64-v3"))


def operands(intrin, kind):
    """Values of every operand: the ends of the type's range, or numbers at random."""
    rng, out = np.random.default_rng(len(kind)), []
    for buffer in intrin.desc.buffer_params:
        shape, dtype = [n.value for n in buffer.shape], str(buffer.dtype)
        if buffer.dtype.is_int:
            info = np.iinfo(dtype)
            ends = [info.min, info.max, 0, 1, max(info.min, -127), min(info.max, 127), min(info.max, 255)]
            picked = {"ends": rng.choice(ends, shape), "least": np.full(shape, info.min), "largest": np.full(shape, info.max),
                      "random": rng.integers(info.min, info.max, shape, endpoint=True)}.get(kind)
            out.append(np.asarray(picked if picked is not None else rng.integers(-5, 5, shape) % 100).astype(dtype))
            continue
        numbers = {"ends": rng.choice([0.0, -0.0, 1.0, -3.0, 1e18, -1e18, 1e-18], shape), "least": np.full(shape, -1e15), "largest": np.full(shape, 1e15),
                   "special": rng.choice([np.nan, np.inf, -np.inf, 1.0, -2.0, 0.0], shape), "tiny": rng.choice([1e-40, -3e-39, 1e-38, 2.0], shape)}
        with np.errstate(over="ignore"):
            out.append(numbers.get(kind, rng.standard_normal(shape)).astype(BFLOAT16 if dtype == "bfloat16" else dtype))
    return out


def sums_of_products(a, b):
    """Of a dot product in lanes, or of the rows of two matrices."""
    return (b * a).sum(-1) if a.ndim == 1 else (a[:, None, :] * b[None, :, :]).sum(-1)


def agree(intrin, made, values, wanted):
    if wanted.dtype.kind == "i":
        np.testing.assert_array_equal(made, wanted)
        return
    a, b, c = (np.abs(np.nan_to_num(x.astype(np.float64), posinf=0, neginf=0)) for x in values)
    lost = 2e-38 * (1 + a.max() + b.max()) * a.size if intrin.flushes_denormals else 0.0  # what counts as zero, times the other factor
    bound = 4 * np.finfo(wanted.dtype).eps * (c + sums_of_products(a, b)) + lost + float(np.finfo(wanted.dtype).smallest_subnormal)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    np.testing.assert_array_equal(made[~finite], wanted[~finite])
    assert np.all(np.abs(made[finite].astype(np.float64) - wanted[finite]) <= np.broadcast_to(bound, wanted.shape)[finite])


def described(intrin, values):
    """What the description computes, with sums in float64 where they are floats."""
    a, b, c = values
    with np.errstate(all="ignore"):
        if c.dtype.kind == "i":
            return (c.astype(np.int64) + sums_of_products(a.astype(np.int64), b.astype(np.int64))).astype(np.int32)
        return (c.astype(np.float64) + sums_of_products(a.astype(np.float64), b.astype(np.float64))).astype(c.dtype)


KINDS = ["random", "normal", "ends", "least", "largest", "special", "tiny"]


@pytest.mark.parametrize("intrin", PRODUCTS, ids=lambda i: i.name)
def test_implementation_computes_what_the_description_says(intrin):
    for kind in KINDS:
        a, b, c = values = operands(intrin, kind)
        for program in (intrin.desc, intrin.impl):
            made = c.copy()
            interpret(IRModule({"main": program.with_attr("global_symbol", "main")}))["main"](a, b, made)
            agree(intrin, made, values, described(intrin, values))


@pytest.mark.parametrize("intrin", [i for i in PRODUCTS if i.runs_on(Target.host())], ids=lambda i: i.name)
def test_the_processor_computes_what_the_description_says(intrin):
    run = rd.build(IRModule({"main": intrin.impl.with_attr("global_symbol", "main")}), threads=1)["main"]
    for kind in KINDS:
        a, b, c = values = operands(intrin, kind)
        made = c.copy()
        run(a, b, made)
        agree(intrin, made, values, described(intrin, values))


@pytest.mark.parametrize("intrin", [i for i in PRODUCTS if i.needs and SCALAR not in i.needs], ids=lambda i: i.name)
def test_it_becomes_the_instruction(intrin):
    target = machine_with(intrin)
    assert intrin.runs_on(target) and not intrin.runs_on(Target("cortex-a53" if intrin.needs == ("sse2",) else "x86-64"))
    text = inspect(intrin.impl.with_attr("global_symbol", "main"), target=target).assembly
    mnemonic = next(m for prefix, m in MNEMONICS.items() if intrin.name.startswith(prefix))
    assert len(re.findall(rf"^\s*{mnemonic}\b", text, re.MULTILINE)) == 1
    assert intrin.cost is not None
