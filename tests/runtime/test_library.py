# SPDX-License-Identifier: Apache-2.0
"""Where the C runtime comes from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import roundel as rd
from roundel.ir import options
from roundel.ir.errors import BuildError
from roundel.runtime import library

PROGRAM = """
from roundel.script import tir as T

@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i in T.serial(4):
        A[i] = T.float32(1)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that was installed, beside a checkout, and a C compiler that compiles nothing."""
    compiler = tmp_path / "broken-cc"
    compiler.write_text("#!/bin/sh\necho 'cannot execute cc1' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(library.toolchain, "compiler", lambda: (str(compiler),))
    monkeypatch.setattr(library, "_PACKAGE", Path(__file__).parents[2] / "src" / "roundel")  # also where the tests use an installed package
    monkeypatch.setattr(library, "_installed", lambda: tmp_path)
    shutil.copytree(library.source_dir(), tmp_path / "csrc")
    (tmp_path / "lib").mkdir()
    for name in library._LIBRARIES:
        (tmp_path / "lib" / name).touch()
    with options.override(cache=False):
        yield tmp_path


def test_an_installed_runtime_of_the_same_sources_serves_where_none_can_be_compiled(installed):
    assert library.folder() == installed / "lib"


@pytest.mark.parametrize("ahead", [True, False])
def test_an_installed_runtime_of_other_sources_does_not_and_the_error_says_what_the_compiler_said(installed, ahead, monkeypatch):
    header = installed / "csrc" / "roundel.h"
    header.write_text(header.read_text().replace("#define RD_ABI", "#define RD_OLD_ABI"))
    monkeypatch.setattr(library, "runtime", library.runtime.__wrapped__)
    with pytest.raises(BuildError, match="C runtime cannot be compiled") as error:
        library.folder() if ahead else rd.build(rd.script.parse(PROGRAM))
    assert "cannot execute cc1" in str(error.value) and "CC" in str(error.value)
