# SPDX-License-Identifier: Apache-2.0
"""Rules that a user adds: where they are asked, what they cannot be called, that they go without a trace, models beside the cache."""

from __future__ import annotations

import numpy as np
import pytest

import roundel as rd
from roundel.ir import extensions
from roundel.ir.errors import OptionError
from roundel.strategy import Applied, Sketch, register, rule, unregister
from roundel.strategy.rules import RULES, rules_in_order
from tests.strategy.test_choose import linear


@rule
def as_it_is(program):
    """Takes every program with a reduction and leaves it as it is written."""
    if program.reductions:
        yield Sketch("as_it_is", program.schedule, lambda sch, choice: Applied(sch))


@pytest.fixture
def added():
    yield register(as_it_is)
    unregister(as_it_is)


def test_a_registered_rule_is_asked_first(added):
    assert rules_in_order() == [as_it_is, *RULES]
    model = rd.compile(linear(16, 8, 3))
    x = np.random.default_rng(0).standard_normal((3, 16)).astype("float32")
    np.testing.assert_allclose(model(x), np.broadcast_to(x.sum(1, keepdims=True) + 1, (3, 8)), rtol=1e-5, atol=1e-5)
    kernels = rd.driver.prepare(linear(16, 8, 3))
    assert any(f.attrs.get("scheduled") == "as_it_is" for _, f in kernels.items())


def test_it_may_be_asked_at_any_place():
    register(as_it_is, before="contraction")
    try:
        names = [r.name for r in rules_in_order()]
        assert names.index("as_it_is") + 1 == names.index("contraction")
    finally:
        unregister(as_it_is)
    assert rules_in_order() == RULES


def test_names_are_unique_and_places_exist(added):
    with pytest.raises(OptionError, match="there is a rule 'as_it_is' already"):
        register(as_it_is)
    with pytest.raises(OptionError, match="there is no rule 'nowhere'.*\n.*contraction"):
        register(rule(lambda program: ()), before="nowhere")


def test_what_is_not_registered_cannot_be_taken_away():
    with pytest.raises(OptionError, match="rule 'as_it_is' is not registered"):
        unregister(as_it_is)


def test_models_stay_out_of_the_cache_while_a_rule_is_registered(nothing_added):
    assert not extensions.added()
    register(as_it_is)
    assert extensions.added()
    unregister(as_it_is)
    assert not extensions.added()
