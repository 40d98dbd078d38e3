# SPDX-License-Identifier: Apache-2.0
"""A file names every feature without which its code is an illegal instruction, and the runtime knows each of them."""

import re
from pathlib import Path

import pytest

from roundel.build.build import compile_module
from roundel.codegen.llvm.features import checked_features
from roundel.ir import IRModule
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target
from roundel.target.spec import MachineSpec

from ..strategy.product.test_tile_products import product

NEVER_BY_CHOICE = {"aes", "amx-tile", "avx512vp2intersect", "crc", "cx16", "pclmul", "vaes", "vpclmulqdq"}
"""Only intrinsics use them, which generated code has none of: a virtual machine may hide them."""


def test_what_the_runtime_can_check_is_demanded():
    known = set(re.findall(r'\{"([a-z0-9.-]+)",', (Path(__file__).parents[2] / "csrc" / "cpu.c").read_text()))
    spec = MachineSpec("", "", ",".join(f"+{name}" for name in sorted(known)))
    assert set(checked_features(spec)) == known - NEVER_BY_CHOICE


def test_features_of_the_named_machines_are_demanded():
    assert {"avx2", "fma", "bmi", "lzcnt", "movbe", "popcnt"} <= set(checked_features(MachineSpec("", "", Target("x86-64-v3").llvm_features)))


@pytest.mark.parametrize("rows, types, demanded", [(512, ("uint8", "int8", "int32"), {"amx-int8"}), (512, ("bfloat16", "bfloat16", "float32"), {"amx-bf16"}),
                                                   (1, ("uint8", "int8", "int32"), set())])
def test_tile_registers_are_demanded_by_what_uses_them(rows, types, demanded):
    func = product(rows, 64, 64, types).with_attr("decisions", {"sketch": "tile_products" if demanded else "dot_products"})
    made, _ = schedule_program(func, Target("sapphirerapids"), (1,))
    built = compile_module(IRModule({"main": made}), Target("sapphirerapids"))
    assert {f for f in built.metadata["features"] if f.startswith("amx")} == demanded and "avx512vnni" in built.metadata["features"]
