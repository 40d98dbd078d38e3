# SPDX-License-Identifier: Apache-2.0
"""Flat programs as C, the short form."""

from .flat_c import attack


def test_c_is_what_llvm_and_the_interpreter_are():
    assert list(attack(4, 3)) == []
