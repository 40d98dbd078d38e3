# SPDX-License-Identifier: Apache-2.0
"""One operator on each machine that is installed; ``python -m tests.hostile emulated --count N`` tries as many as one likes."""

from tests.boards.machines import MACHINES

from .emulated import attack


def test_operators_on_other_machines():
    assert not list(attack(len(MACHINES), seed=5))
