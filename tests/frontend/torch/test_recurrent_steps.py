# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers whose number of steps only the run tells, and what exporting leaves behind in PyTorch."""

import warnings

import pytest
import torch
from torch.export import Dim

import roundel as rd
from roundel.frontend.torch.recurrent_steps import open_steps

LAYERS = {
    "lstm": torch.nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True),
    "projected": torch.nn.LSTM(5, 6, proj_size=4, batch_first=True),
    "gru": torch.nn.GRU(5, 7, 2, bias=False, bidirectional=True, batch_first=True),
    "tanh": torch.nn.RNN(5, 6, batch_first=True),
    "relu": torch.nn.RNN(5, 6, 2, nonlinearity="relu", batch_first=True),
}


class Tagger(torch.nn.Module):
    """A layer between others, with states that are given."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer, torch.nn.LazyLinear(3)

    def forward(self, x, states):
        y, last = self.layer(torch.tanh(x), states)
        return self.head(y), last


def states_of(layer, batch):
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    h = torch.randn(rows, batch, layer.proj_size or layer.hidden_size)
    return (h, torch.randn(rows, batch, layer.hidden_size)) if isinstance(layer, torch.nn.LSTM) else h


@pytest.mark.parametrize("name", LAYERS)
def test_any_number_of_steps(name):
    layer = LAYERS[name]
    module, x, given = Tagger(layer).eval(), torch.randn(3, 7, 5), states_of(layer, 3)
    module(x, given)
    batch = {1: Dim("batch")}
    dynamic = {"x": {0: Dim("batch"), 1: Dim("steps")}, "states": (batch, batch) if isinstance(given, tuple) else batch}
    model = rd.compile(module, (x, given), dynamic=dynamic, threads=1)
    assert [t.shape[:2] for t in model.inputs[:1]] == [("batch", "steps")]
    for rows, steps in ((1, 1), (2, 70), (5, 3)):
        x, given = torch.randn(rows, steps, 5), states_of(layer, rows)
        flat = (x, *given) if isinstance(given, tuple) else (x, given)
        for a, b in zip(model(*flat), torch.utils._pytree.tree_leaves(module(x, given)), strict=True):
            torch.testing.assert_close(torch.as_tensor(a), b, rtol=1e-4, atol=1e-5)


def test_every_dimension_left_open():
    layer = torch.nn.LSTM(5, 6).eval()
    model = rd.compile(layer, (torch.randn(4, 3, 5),), dynamic=True, threads=1)
    x = torch.randn(11, 2, 5)
    torch.testing.assert_close(torch.as_tensor(model(x)[0]), layer(x)[0], rtol=1e-4, atol=1e-5)


def test_pytorch_is_as_before_afterwards():
    functions = [getattr(torch._VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
    with open_steps(), open_steps():
        assert torch._VF.lstm is not functions[0]
    assert [getattr(torch._VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")] == functions
    layer, x = torch.nn.GRU(3, 4), torch.randn(2, 3, requires_grad=True)
    layer(x)[0].sum().backward()
    assert x.grad is not None


def test_other_threads_keep_the_functions_of_pytorch():
    from concurrent.futures import ThreadPoolExecutor

    layer = torch.nn.LSTM(3, 4)
    with open_steps(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: layer(torch.randn(2, 3))[0].grad_fn is not None).result()


def test_nothing_is_warned_of():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.LayerNorm(8)
            self.gru = torch.nn.GRU(8, 8, batch_first=True)

        def forward(self, x):
            x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
            return torch.nn.functional.gelu(self.gru(x)[0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.compile(Block(), (torch.randn(2, 5, 8),), dynamic=True, threads=1)
