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
    assert [v is w for v, w in zip(leaves((X, (H, [C])), "xhc"), (X, H, C), strict=True)] == [True] * 3
    assert leaves(((1.0, 2.0), [[1, 2], [3, 4]], ()), "abc") == [(1.0, 2.0), [[1, 2], [3, 4]], ()]  # arrays themselves


@pytest.mark.parametrize("keys", [("b", "a_b", "s"), ("s", "a_b", "b"), ("a_b", "s", "b")])
def test_dictionaries_are_in_the_order_of_the_names(keys):
    parts = {"b": X, "a_b": H, "s": (C, X)}
    given = leaves((C, {k: parts[k] for k in keys}, H), ["first", "d_a_b", "d_b", "d_s_0", "d_s_1", "last"])
    assert [v is w for v, w in zip(given, (C, H, X, C, X, H), strict=True)] == [True] * 6


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


class OfDictionaries(torch.nn.Module):
    def forward(self, given, shift):
        return {"y": given["x"] * given["scale"] + shift, "state": (given["x"] - 1, None), "x-1": [shift]}


def test_dictionaries_as_the_module_takes_and_returns_them():
    x, scale, shift = torch.arange(3.0), torch.full((3,), 2.0), torch.ones(3)
    model = rd.compile(OfDictionaries(), ({"x": x, "scale": scale}, shift), threads=1)
    assert [t.name for t in model.outputs] == ["y", "state_0", "x_1_0"]
    names = [t.name for t in model.inputs]
    want = [x * scale + shift, x - 1, shift]
    by_name = dict(zip(names, (x, scale, shift) if names[0].endswith("x") else (scale, x, shift)))
    for given in (({"scale": scale, "x": x}, shift), ({"x": x, "scale": scale}, shift), (by_name,)):
        for a, b in zip(model(*given), want, strict=True):
            assert torch.equal(torch.as_tensor(a), b)
    for wrong in (({"x": x}, shift), ({"x": x, "scale": scale},)):
        with pytest.raises(CallError, match="takes 3 arguments"):
            model(*wrong)
