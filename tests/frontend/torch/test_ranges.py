# SPDX-License-Identifier: Apache-2.0
"""The ranges of torch.export's dimensions are kept: a size outside is an error that names dimension, value and range."""

import numpy as np
import pytest
import torch

import roundel as rd
from roundel.ir.errors import RunError


class Positions(torch.nn.Module):
    """Adds what belongs to each of at most 512 places."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.ones(512, 4))

    def forward(self, x):
        return x + self.table[: x.shape[0]]


@pytest.mark.parametrize(("dim", "wrong", "said"), [
    (torch.export.Dim("seq", max=512), 600, "dimension 'seq' is 600, outside of the range that the model was exported for: 0 to 512"),
    (torch.export.Dim("seq", min=1, max=512), 0, "dimension 'seq' is 0, outside of the range that the model was exported for: 1 to 512"),
    (torch.export.Dim("seq", min=4, max=512), 3, "dimension 'seq' is 3, outside of the range that the model was exported for: 4 to 512")])
def test_sizes_outside_of_the_range(dim, wrong, said):
    model = rd.compile(Positions(), [torch.zeros(8, 4)], dynamic=({0: dim},))
    for size in (4, 512):
        np.testing.assert_array_equal(model(np.zeros((size, 4), np.float32)), np.ones((size, 4), np.float32))
    with pytest.raises(RunError, match=said):
        model(np.zeros((wrong, 4), np.float32))


def test_a_range_that_the_program_does_not_need():
    model = rd.compile(torch.nn.ReLU(), [torch.zeros(8)], dynamic=({0: torch.export.Dim("n", max=100)},))
    assert model(np.zeros(100, np.float32)).shape == (100,)
    assert model(np.zeros(1, np.float32)).shape == (1,)
    with pytest.raises(RunError, match="dimension 'n' is 101"):
        model(np.zeros(101, np.float32))
