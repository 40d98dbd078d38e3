# SPDX-License-Identifier: Apache-2.0
"""Some nodes that are not called as the standard has it; ``python -m tests.hostile signatures`` tries as many as one likes."""

import onnx
import pytest

from roundel.frontend.onnx.signature import words_of

from .signatures import attack

ANY_TEXT = {"activation", "default_string", "delimiter", "equation", "locale", "pattern", "update_rule", "to", "value_string", "y"}


def test_nodes_that_are_called_in_another_way_are_refused():
    assert not list(attack(270, seed=12))


@pytest.mark.parametrize("name", sorted({s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain in ("", "ai.onnx.ml")}))
def test_every_attribute_that_is_a_word_has_its_words(name):
    found = {a.name for s in onnx.defs.get_all_schemas_with_history() if s.name == name and s.domain in ("", "ai.onnx.ml")
             for a in s.attributes.values() if a.type.name == "STRING"}
    assert {a for a in found if words_of(name, a) is None} <= ANY_TEXT
