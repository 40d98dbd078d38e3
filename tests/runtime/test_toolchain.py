# SPDX-License-Identifier: Apache-2.0
"""What users are told of tools: what they said of the work, and never of their own insides."""

import importlib.util

import pytest

from roundel.ir.errors import BuildError
from roundel.runtime import toolchain

PANIC = """\
warning: unused argument
error: unable to parse target 'foo'
thread 4711 panic: reached unreachable code
/opt/zig/lib/std/debug.zig:412:14: 0x1038ac0 in assert (main)
    if (!ok) unreachable; // assertion failure
             ^
???:?:?: 0x7f00 in ??? (libc.so.6)
Unwind information for `exe` was not available"""


def test_a_back_trace_of_a_tool_is_left_out():
    assert toolchain.told(PANIC.splitlines()) == ["error: unable to parse target 'foo'"]
    assert toolchain.told(PANIC.splitlines()[2:]) == ["it broke down and said nothing of what it was asked for"]


def test_what_a_tool_says_of_the_work_stays():
    lines = ["main.c:1:2: error: expected ';'", "    int x", "        ^", "1 error generated."]
    assert toolchain.told(lines) == lines and len(toolchain.told([f"line {k}" for k in range(100)])) == 30


def test_a_compiler_for_another_machine_is_one_that_can_link_for_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match="pip install ziglang") as told:
        toolchain.compiler.__wrapped__("aarch64-linux-gnu")
    assert "gcc" not in str(told.value)
