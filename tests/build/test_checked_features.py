# SPDX-License-Identifier: Apache-2.0
"""A file names every feature without which its code is an illegal instruction, and the runtime knows each of them."""

import re
from pathlib import Path

from roundel.codegen.llvm.features import checked_features
from roundel.target import Target
from roundel.target.spec import MachineSpec

NEVER_BY_CHOICE = {"aes", "amx-tile", "avx512vp2intersect", "crc", "cx16", "pclmul", "vaes", "vpclmulqdq"}
"""Only intrinsics use them, which generated code has none of: a virtual machine may hide them."""


def test_what_the_runtime_can_check_is_demanded():
    known = set(re.findall(r'\{"([a-z0-9.-]+)",', (Path(__file__).parents[2] / "csrc" / "cpu.c").read_text()))
    spec = MachineSpec("", "", ",".join(f"+{name}" for name in sorted(known)))
    assert set(checked_features(spec)) == known - NEVER_BY_CHOICE


def test_features_of_the_named_machines_are_demanded():
    assert {"avx2", "fma", "bmi", "lzcnt", "movbe", "popcnt"} <= set(checked_features(MachineSpec("", "", Target("x86-64-v3").llvm_features)))
