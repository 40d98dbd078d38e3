# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers are imported whole: directions, layers, projections, loops over many steps."""

import pytest
import torch

import roundel as rd

LAYERS = {
    "lstm": (torch.nn.LSTM(5, 6, 2, bidirectional=True), (4, 3, 5)),
    "projected": (torch.nn.LSTM(5, 6, 2, proj_size=4, bidirectional=True, batch_first=True), (3, 4, 5)),
    "gru": (torch.nn.GRU(5, 6, 2, bidirectional=True, batch_first=True), (3, 4, 5)),
    "no_bias": (torch.nn.GRU(5, 7, bias=False), (3, 1, 5)),
    "rnn": (torch.nn.RNN(5, 6, 1, nonlinearity="relu"), (4, 2, 5)),
    "no_batch": (torch.nn.LSTM(5, 6), (4, 5)),
    "loop": (torch.nn.LSTM(5, 6, bidirectional=True), (70, 2, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_what_pytorch_gives(name):
    layer, shape = LAYERS[name]
    x = torch.randn(shape)
    program = torch.export.export(layer.eval(), (x,))
    model = rd.compile(program, threads=1)
    want, got = torch.utils._pytree.tree_leaves(layer(x)), model(x)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(torch.as_tensor(a), b, rtol=1e-4, atol=1e-5)


def test_a_batch_that_the_run_tells():
    layer = torch.nn.GRU(3, 4, bidirectional=True).eval()
    model = rd.compile(layer, (torch.randn(6, 2, 3),), dynamic={"input": {1: torch.export.Dim("batch")}}, threads=1)
    for batch in (1, 5):
        x = torch.randn(6, batch, 3)
        for a, b in zip(model(x), layer(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(a), b, rtol=1e-4, atol=1e-5)
