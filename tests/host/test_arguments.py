# SPDX-License-Identifier: Apache-2.0
"""Parameters of graph functions: what they have to tell to be compiled."""

import pytest

import roundel as rd
from roundel.ir.errors import RoundelError
from roundel.script import from_source


@pytest.mark.parametrize(("info", "lacks", "whole"), [
    ('R.Tensor(ndim=2, dtype="float32")', "its sizes", 'R.Tensor(("n0", "n1"), "float32")'),
    ("R.Tensor(ndim=1)", "its sizes and element type", 'R.Tensor(("n0",), "float32")'),
    ('R.Tensor(dtype="int8")', "its rank", 'R.Tensor(("n0",), "int8")'),
    ('R.Tensor(("n", 3))', "its element type", 'R.Tensor(("n", 3), "float32")'),
])  # fmt: skip
@pytest.mark.parametrize("body", ["x", "R.add(x, x)"])
def test_what_a_parameter_does_not_tell_is_named_and_the_hint_compiles(info, lacks, whole, body):
    text = "@R.function\ndef main(x: {}):\n    y = {}\n    return y\n"
    with pytest.raises(RoundelError, match=lacks) as error:
        rd.build(from_source(text.format(info, body)))
    assert whole in str(error.value)
    assert rd.interpret(from_source(text.format(whole, body))) is not None
