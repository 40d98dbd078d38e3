# SPDX-License-Identifier: Apache-2.0
"""What is told of each kernel: by which instruction it is computed, or why by none."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.script import ir as I
from roundel.script import relax as R


def product(dtype, total, weights=True):
    w = np.ones((64, 32), np.float32 if dtype == "float32" else np.int8)

    @I.ir_module
    class Constant:
        @R.function
        def main(x: R.Tensor((48, 64), dtype)):
            with R.dataflow():
                y = R.nn.relu(R.matmul(x, R.const(w), out_dtype=total))
                R.output(y)
            return y

    @I.ir_module
    class Data:
        @R.function
        def main(x: R.Tensor((48, 64), dtype), y: R.Tensor((64, 32), "int8")):
            with R.dataflow():
                z = R.nn.relu(R.matmul(x, y, out_dtype="int32"))
                R.output(z)
            return z

    return Constant if weights else Data


@pytest.mark.parametrize(("target", "precision", "instruction"), [
    ("cascadelake", None, "avx512vnni.dot_16x4_u8i8i32"), ("neoverse-v1", None, "neon.usdot.dot_4x4_u8i8i32"),
    ("sapphirerapids", None, "amx.product_16x16x64_u8i8i32"),
    ("sapphirerapids", "bfloat16", "amx.product_16x16x32_bf16bf16f32"),
])
def test_the_instruction_of_each_product_is_named(target, precision, instruction):
    types = ("uint8", "int32") if precision is None else ("float32", None)
    found = rd.explain(product(*types), target=target, threads=1, precision=precision)
    (row,) = [r for r in found.kernels if r["instructions"]]
    assert row["instructions"][0].startswith(instruction)
    assert f"  by {instruction}" in str(found)


def test_why_no_instruction_is_used_is_told():
    found = rd.explain(product("uint8", "int32", weights=False), target="cascadelake", threads=1)
    assert not any(r["instructions"] for r in found.kernels)
    assert "not by avx512vnni.dot_16x4_u8i8i32: " in str(found) and "is no constant" in str(found)
