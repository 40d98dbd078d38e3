# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions by their phases: weights that are data, groups, strides of 1, and shapes that do not divide, against PyTorch."""

import numpy as np
import pytest
import torch

import roundel as rd
from roundel.graph.layout.transposed_convolutions import Phased
from roundel.graph.layout.transposed_convolutions import transposed_convolutions as by_phases

CASES = [  # data, weights, whether the weights are data, attributes
    ((2, 6, 5, 7), (6, 4, 3, 3), True, {"stride": 2, "padding": 1, "output_padding": 1}),
    ((1, 8, 4, 6), (8, 3, 4, 5), True, {"stride": (2, 3), "padding": (1, 2), "groups": 2}),
    ((1, 6, 5, 3), (6, 1, 4, 4), False, {"stride": 2, "padding": 1, "groups": 6}),
    ((2, 4, 9), (4, 6, 5), True, {"stride": 4, "padding": 5}),
    ((1, 6, 9), (6, 2, 2), False, {"stride": 3, "groups": 3, "output_padding": 2}),
    ((1, 4, 3, 5, 4), (4, 3, 2, 3, 2), True, {"stride": (1, 2, 2), "padding": (0, 1, 0), "groups": 2}),
    ((1, 5, 6, 7), (5, 4, 3, 2), False, {"stride": 1, "padding": (2, 0), "dilation": (2, 3)}),
    ((1, 5, 6, 7), (5, 4, 3, 3), False, {"stride": 1, "padding": 3}),
]


@pytest.mark.parametrize(("shape", "kernel", "is_data", "attrs"), CASES, ids=str)
def test_phases_are_the_transposed_convolution(shape, kernel, is_data, attrs):
    function = (torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d, torch.nn.functional.conv_transpose3d)[len(shape) - 3]

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kernel", torch.randn(kernel))

        def forward(self, x, scale):
            return function(x, self.kernel * scale if is_data else self.kernel, **attrs) * scale

    inputs = torch.randn(shape), torch.tensor(0.5)
    mod = rd.import_model(Module(), inputs)
    assert "transpose" in mod.script() and "_transpose" not in by_phases(mod).script().replace("permute_dims", "")
    torch.manual_seed(1)
    module = Module()
    torch.testing.assert_close(torch.as_tensor(np.asarray(rd.compile(module, inputs, threads=1)(*inputs))), module(*inputs), rtol=1e-4, atol=1e-4)


def test_what_padding_cuts_off_is_not_computed():
    """As far as the phases allow: results before the first that is wanted."""
    assert Phased(3, 2, 1, before=1, after=0).cut == 0 and Phased(3, 1, 2, before=4, after=4).cut == 0
    assert Phased(4, 2, 1, before=1, after=1).cut == 1 and Phased(4, 2, 1, before=1, after=1).padding == (1, 1)
