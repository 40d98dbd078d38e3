# SPDX-License-Identifier: Apache-2.0
"""The attack on the rules of the simplifier: a sample of its forms, and those in which something was found."""

from __future__ import annotations

import pytest

from tests.hostile import arithmetic


@pytest.mark.parametrize("seed", range(4))
def test_rules_hold(seed):
    assert list(arithmetic.attack(500, seed)) == []


def test_every_number_is_a_form():
    kinds = {arithmetic.form(n)[0] for n in range(0, arithmetic.FORMS, 99_991)}
    assert kinds == set(arithmetic.KINDS)
    arithmetic.form(arithmetic.FORMS - 1)
