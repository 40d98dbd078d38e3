# SPDX-License-Identifier: Apache-2.0
"""Selecting by an index that is data: a position of the dimension, counted from either end, or an error."""

import numpy as np
import pytest
import torch

import roundel as rd

X = np.arange(20, dtype=np.float32).reshape(4, 5)
FAR = (2**63 - 1, -(2**63), 2**63 - 5, 1 - 2**63, 2**40, -(2**40), 2**31, -(2**31) - 1)


class Rows(torch.nn.Module):
    def forward(self, x, i):
        return x[i]


class Columns(torch.nn.Module):
    def forward(self, x, i):
        return x[:, i]


class Elements(torch.nn.Module):
    def forward(self, x, i):
        return x[i, i]


@pytest.mark.parametrize("program", [Rows, Columns, Elements])
@pytest.mark.parametrize("sizes", ["fixed", "open"])
def test_every_index_is_a_position_or_an_error(program, sizes):
    dynamic = None if sizes == "fixed" else ({0: torch.export.Dim("n"), 1: torch.export.Dim("m")}, {})
    model = rd.compile(program(), [torch.tensor(X), torch.tensor(1)], dynamic=dynamic)
    for index in (*range(-7, 7), *FAR):
        try:
            wanted = program()(torch.tensor(X), torch.tensor(index)).numpy()
        except IndexError:
            with pytest.raises(rd.RoundelError):
                model(X, np.array(index))
        else:
            np.testing.assert_array_equal(model(X, np.array(index)), wanted)
