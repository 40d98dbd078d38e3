# SPDX-License-Identifier: Apache-2.0
"""A prototype is what its text says: programs hold the text."""

import pytest

from roundel.ir.prototype import Prototype


@pytest.mark.parametrize("parameters", [(), ("int64_t n",), ("const float *operand0", "float *result", "int64_t number0")])
def test_a_prototype_is_read_back_from_its_text(parameters):
    made = Prototype("my kit: version 2", "void", "scale", parameters)
    assert Prototype.of(str(made)) == made and made.declaration == f"void scale({', '.join(parameters)})"
