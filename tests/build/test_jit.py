# SPDX-License-Identifier: Apache-2.0
"""Linking in memory, however a process's memory is divided and whoever else links: code that runs or an error, never the process's end.

LLVM ends the process where a part of an object is out of another's reach, so each case runs in a process of its own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import roundel


@pytest.mark.skipif(sys.platform != "linux", reason="needs to know how memory is divided")
@pytest.mark.parametrize("case", ["holes_far_from_the_rest", "no_memory", "threads_that_collect_garbage"])
def test_links_or_says_why(case):
    paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    command = [sys.executable, "-X", "faulthandler", "-c", f"import hard_processes; hard_processes.{case}()"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr


def test_one_place_chooses_the_linker():
    package = Path(roundel.__file__).parent
    assert [f.name for f in package.rglob("*.py") if re.search("create_(lljit|mcjit)_compiler", f.read_text(encoding="utf-8"))] == ["linker.py"]
