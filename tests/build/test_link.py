# SPDX-License-Identifier: Apache-2.0
"""Which machine and C library a file is linked for."""

import platform
from types import SimpleNamespace

import pytest

import roundel as rd
from roundel.build import kept, link
from roundel.ir.errors import BuildError
from roundel.runtime import toolchain

from ..docs import small_model

HERE = platform.machine()


@pytest.mark.parametrize(("triple", "linked_for"), [
    (None, None), (f"{HERE}-unknown-linux-gnu", None), (f"{HERE}-linux-gnu", None), (f"{HERE}-unknown-linux", None),
    (f"{HERE}-linux-musl", f"{HERE}-linux-musl"), (f"{HERE}-linux-gnu.2.17", f"{HERE}-linux-gnu.2.17"),
    ("riscv64-unknown-linux-gnu", "riscv64-linux-gnu"), ("riscv64-linux-musl", "riscv64-linux-musl"),
])
def test_another_processor_or_c_library_is_linked_by_zig(triple, linked_for, monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    assert link.foreign_triple(triple) == linked_for


def test_where_musl_is_the_machines_own(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert link.foreign_triple(f"{HERE}-alpine-linux-musl") is None
    assert link.foreign_triple(f"{HERE}-linux-gnu") == f"{HERE}-linux-gnu"


def test_other_systems_are_refused():
    with pytest.raises(BuildError, match="cannot be linked here"):
        link.foreign_triple("x86_64-unknown-freebsd")


def test_a_model_of_the_cache_is_linked_for_its_target(tmp_path, monkeypatch):
    """What was compiled for an older C library is saved for it, although this machine's linker made the entry that runs here."""
    small_model.write(tmp_path / "model.onnx")
    asked = []

    def linked(objects, weights, out, target=None, **options):
        asked.append(target)
        return link.link(objects, weights, out, **options)

    monkeypatch.setattr(kept, "link", linked)
    target = rd.Target(f"llvm -mtriple={HERE}-linux-gnu -mcpu={'x86-64' if HERE == 'x86_64' else 'cortex-a72'}")
    rd.compile(tmp_path / "model.onnx", target=target).save(tmp_path / "model.so")
    assert asked == [target]


def test_what_links_for_each_machine(monkeypatch):
    """Those that nothing links for are not offered where something is to be written, and are where something is looked at."""
    from roundel.cli.arguments import _targets

    board, here = "riscv64-unknown-linux-gnu", f"{HERE}-unknown-linux-gnu"
    offered = {command: _targets(SimpleNamespace(info_name=command), "") for command in ("compile", "explain")}
    assert link.linker_of("x86_64-unknown-freebsd") is None and "apple-m1" in offered["explain"]
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    toolchain.compiler.cache_clear()
    try:
        assert link.linker_of(board) is None and "rv64gc" not in _targets(SimpleNamespace(info_name="compile"), "")
        assert link.linker_of(here) in ("cc", "gcc", "clang")
        with pytest.raises(BuildError, match="pip install ziglang"):
            toolchain.compiler("riscv64-linux-gnu")
    finally:
        toolchain.compiler.cache_clear()
