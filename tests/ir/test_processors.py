# SPDX-License-Identifier: Apache-2.0
"""One table says what processors are called by whom; no other file repeats it."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

import roundel as rd
from roundel.ir.processors import FAMILIES, OF_ELF, family_of, this_family
from roundel.runtime import toolchain


@pytest.mark.parametrize(("said", "family"), [
    ("x86_64-unknown-linux-gnu", "x86_64"), ("AMD64", "x86_64"), ("arm64-apple-macosx", "aarch64"), ("aarch64", "aarch64"), ("armv7l", "arm"),
    ("armv7-unknown-linux-gnueabihf", "arm"), ("i386-linux-gnu", "i686"), ("riscv64-linux-musl", "riscv64"), ("s390x-linux-gnu", "s390x"),
])
def test_families_by_all_their_names(said, family):
    assert family_of(said) == family


def test_machines_with_linux_that_can_be_named_have_a_family():
    triples = [rd.Target(name).triple for name in rd.Target.named()]
    assert {family_of(t) for t in triples if "linux" in t} == set(FAMILIES)
    assert len(OF_ELF) == len(FAMILIES)


def test_this_machine(monkeypatch):
    for system, family in {"AMD64": "x86_64", "arm64": "aarch64", "armv7l": "arm", "riscv64": "riscv64"}.items():
        monkeypatch.setattr(platform, "machine", lambda system=system: system)
        assert this_family() == family


@pytest.mark.parametrize(("triple", "given"), [
    ("arm-linux-gnueabihf", ["-target", "arm-linux-gnueabihf", "-mcpu=generic+v7a+vfp3d16"]),
    ("i686-linux-gnu", ["-target", "x86-linux-gnu"]),
    ("x86_64-linux-gnu.2.17", ["-target", "x86_64-linux-gnu.2.17"]),
    ("riscv64-linux-musl", ["-target", "riscv64-linux-musl"]),
])
def test_what_zig_is_told(triple, given):
    pytest.importorskip("ziglang")
    assert list(toolchain.compiler(triple))[-len(given) :] == given


def test_the_table_stands_in_one_place():
    sources = Path(rd.__file__).parent
    assert [str(p.relative_to(sources)) for p in sources.rglob("*.py") if re.search(r"[\"']AMD64[\"']", p.read_text())] == ["ir/processors.py"]
