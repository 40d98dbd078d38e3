# SPDX-License-Identifier: Apache-2.0
"""Models in C programs that call them wrongly or lose their weights; ``python -m tests.hostile c_programs`` tries more, and emulated machines."""

from __future__ import annotations

import pytest

from .c_programs import attack, installed


def test_c_programs_here():
    assert list(attack(40, seed=1, machines=())) == []


@pytest.mark.slow
@pytest.mark.parametrize("machine", installed())
def test_c_programs_on_other_machines(machine):
    assert list(attack(200, seed=2, machines=(machine,))) == []
