# SPDX-License-Identifier: Apache-2.0
"""Whole models of each kind, small and with random weights, at two sizes of one artifact; the ones of libraries are in the other files here,
which take longer and need these libraries."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import roundel as rd

F = nn.functional


class Residual(nn.Module):
    """A residual network: strided convolutions, batch normalisation, pooling, a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.a = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1))
        self.b = nn.Sequential(nn.Conv2d(16, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 24, 3, 1, 1))
        self.short, self.head = nn.Conv2d(16, 24, 1, 2), nn.Linear(24, 10)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(x + self.a(x))
        x = F.relu(self.short(x) + self.b(x))
        return self.head(x.mean((2, 3))).softmax(-1)


class Mobile(nn.Module):
    """Depthwise convolutions, squeeze and excitation, a U shape with a transposed convolution and a join."""

    def __init__(self):
        super().__init__()
        self.up, self.deep, self.down = nn.Conv2d(3, 24, 1), nn.Conv2d(24, 24, 5, 2, 2, groups=24), nn.Conv2d(24, 12, 1)
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)
        self.back, self.last = nn.ConvTranspose2d(12, 8, 2, 2), nn.Conv2d(11, 2, 3, 1, 1)

    def forward(self, x):
        y = F.hardswish(self.deep(F.relu6(self.up(x))))
        y = y * torch.sigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return self.last(torch.cat([self.back(self.down(y)), x], 1))


class Encoder(nn.Module):
    """Token and position embeddings, masked attention, layer normalisation."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.layers = nn.ModuleList(nn.ModuleDict({"qkv": nn.Linear(32, 96), "out": nn.Linear(32, 32), "n1": nn.LayerNorm(32), "up": nn.Linear(32, 64),
                                                   "down": nn.Linear(64, 32), "n2": nn.LayerNorm(32)}) for _ in range(2))

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in layer["qkv"](x).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
            x = layer["n1"](x + layer["out"](y.transpose(1, 2).flatten(2)))
            x = layer["n2"](x + layer["down"](F.gelu(layer["up"](x))))
        return x, torch.tanh(x[:, 0])


class Decoder(nn.Module):
    """Root mean square normalisation, rotary positions, groups of heads, a causal mask, gated layers."""

    def __init__(self):
        super().__init__()
        self.words, self.scale = nn.Embedding(50, 32), nn.Parameter(torch.ones(32))
        self.q, self.kv, self.out = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
        self.gate, self.up, self.down = nn.Linear(32, 48, bias=False), nn.Linear(32, 48, bias=False), nn.Linear(48, 32, bias=False)

    def normal(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

    def turned(self, x):
        angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(4) / 4)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def forward(self, ids):
        x = self.words(ids)
        y = self.normal(x)
        q, (k, v) = self.q(y).unflatten(-1, (4, 8)).transpose(1, 2), self.kv(y).unflatten(-1, (4, 8)).transpose(1, 2).chunk(2, 1)
        k, v = (t.repeat_interleave(2, 1) for t in (self.turned(k), v))
        y = F.scaled_dot_product_attention(self.turned(q), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.normal(x)
        return F.linear(self.normal(x + self.down(F.silu(self.gate(y)) * self.up(y))), self.words.weight)


class Speech(nn.Module):
    """One-dimensional convolutions before a recurrent layer in both directions."""

    def __init__(self):
        super().__init__()
        self.conv, self.lstm, self.head = nn.Conv1d(8, 16, 3, 2, 1), nn.LSTM(16, 12, bidirectional=True, batch_first=True), nn.Linear(24, 9)

    def forward(self, x):
        return self.head(self.lstm(F.gelu(self.conv(x)).transpose(1, 2))[0]).log_softmax(-1)


def ids(*shape):
    return torch.randint(0, 50, shape)


N, L = torch.export.Dim("n", min=1, max=64), torch.export.Dim("l", min=2, max=60)
MODELS = {
    "residual": (Residual, lambda n, l: (torch.randn(n, 3, 48, 40),), ({0: N},)),
    "mobile": (Mobile, lambda n, l: (torch.randn(n, 3, 24, 20),), ({0: N},)),
    "encoder": (Encoder, lambda n, l: (ids(n, l), torch.rand(n, l).ge(0.2) | (torch.arange(l) == 0)), ({0: N, 1: L}, {0: N, 1: L})),
    "decoder": (Decoder, lambda n, l: (ids(n, l),), ({0: N, 1: L},)),
    "speech": (Speech, lambda n, l: (torch.randn(n, 8, 22),), ({0: N},)),
}


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_pytorch(name):
    make, inputs, dims = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    compiled = rd.compile(model, inputs(2, 9), dynamic=dims)
    exact = make().double().eval()
    exact.load_state_dict(model.state_dict())
    for n, l in ((2, 9), (3, 14)):
        args = inputs(n, l)
        got = compiled(*args)
        with torch.no_grad():
            want = exact(*(a.double() if a.is_floating_point() else a for a in args))
        for g, w in zip(got if isinstance(want, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
            error = torch.linalg.vector_norm(torch.as_tensor(g).double() - w) / torch.linalg.vector_norm(w)
            assert error < 2e-5, f"{name} at {n}, {l}: {error:.2g}"


class Projected(nn.Module):
    """How attention ends in XLNet: an einsum whose result gets an axis of one element, and a sum."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1024, 16, 64) * 0.1)

    def forward(self, x, heads):
        return torch.einsum("ibnd,hnd->ibh", heads, self.weight) + x


def test_a_large_product_with_an_axis_of_one_element_behind_it():
    torch.manual_seed(0)
    model, args = Projected().eval(), (torch.randn(128, 1, 1024), torch.randn(128, 1, 16, 64))
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(rd.compile(model, args)(*args)), model(*args), rtol=1e-3, atol=1e-3)
