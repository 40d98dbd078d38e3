# SPDX-License-Identifier: Apache-2.0
"""Arguments in tuples and lists, one by one."""

import numpy as np
import pytest
import torch

import roundel as rd
from roundel.ir.errors import CallError
from roundel.runtime.nesting import assemble, flatten, leaves

X, H, C = np.zeros((2, 3), "f"), np.ones((1, 4), "f"), np.full((1, 4), 2, "f")


def test_what_lies_in_tuples():
    assert [v is w for v, w in zip(leaves((X, (H, [C]))), (X, H, C), strict=True)] == [True] * 3
    assert list(leaves(((1.0, 2.0), [[1, 2], [3, 4]], ()))) == [(1.0, 2.0), [[1, 2], [3, 4]], ()]  # arrays themselves


def test_templates():
    assert flatten([0, (2, (1,))], ["a", ("c", ["b"])], 3) == ["a", "b", "c"]
    assert assemble((0, (2, (1,))), ["a", "b", "c"]) == ("a", ("c", ("b",)))
    with pytest.raises(CallError, match="a tuple of 2 was expected, not str"):
        flatten([(0, 1)], ["a"], 2)


def test_states_as_the_module_takes_them():
    layer = torch.nn.LSTM(3, 4).eval()
    x, h, c = torch.randn(5, 2, 3), torch.randn(1, 2, 4), torch.randn(1, 2, 4)
    model = rd.compile(layer, (x, (h, c)), threads=1)
    for given in ((x, h, c), (x, (h, c)), (x, [h.numpy(), c.numpy()])):
        for a, b in zip(model(*given), torch.utils._pytree.tree_leaves(layer(x, (h, c))), strict=True):
            torch.testing.assert_close(torch.as_tensor(a), b, rtol=1e-4, atol=1e-5)
    for wrong in ((x, (h,)), ((x, (h, c)), x), (x, (h, "c"))):
        with pytest.raises(CallError, match=r"takes 3 arguments"):
            model(*wrong)
