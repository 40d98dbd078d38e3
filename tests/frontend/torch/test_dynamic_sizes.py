# SPDX-License-Identifier: Apache-2.0
"""``torch.compile(dynamic=True)``: slices, minima and maxima of sizes that broadcast with others, called with sizes on both sides of every bound."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from against import draw

import roundel as rd
from roundel.embed.torch.backend import roundel

F = torch.nn.functional
TABLE, SCORES, BIAS = draw(1, 64, 8), draw(1, 1, 64, 64), draw(64, 8)


def cut_to_the_shorter(x, y):
    n = min(x.shape[0], y.shape[0])
    return x[:n] + y[:n]


def padded_to_the_longer(x, y):
    n = max(x.shape[0], y.shape[0])
    return F.pad(x, (0, 0, 0, n - x.shape[0])) + F.pad(y, (0, 0, 0, n - y.shape[0]))


def masked(x, mask):
    n = x.shape[-2]
    causal = torch.tril(torch.ones(64, 64, dtype=torch.bool))[:n, :n]
    scores = (x @ x.transpose(-1, -2)).masked_fill(~causal, -1e9) + mask[:, None]
    return torch.softmax(scores, -1) @ x


CASES = {
    "positions": (lambda x: x + TABLE[:, : x.shape[1]] + BIAS[: x.shape[1]], [[(2, 7, 8)], [(3, 64, 8)], [(2, 1, 8)], [(1, 9, 8)]]),
    "scores of positions": (lambda q: SCORES[:, :, : q.size(-2), : q.size(-2)] + q @ q.mT, [[(1, 2, 5, 4)], [(2, 2, 64, 4)], [(2, 2, 1, 4)]]),
    "first row": (lambda x: x[:64] + x[0:1], [[(3, 4)], [(64, 4)], [(300, 4)], [(1, 4)], [(2, 4)]]),
    "first row of another": (lambda x, y: x[:1] * y, [[(3, 4), (5, 4)], [(64, 4), (64, 4)], [(1, 4), (1, 4)], [(1, 4), (64, 4)], [(64, 4), (1, 4)]]),
    "first columns": (lambda x, y: x[:, :1] * y[:, :5] + x[:1, :1], [[(3, 4), (3, 5)], [(64, 5), (64, 9)], [(5, 1), (5, 1)], [(1, 1), (1, 1)]]),
    "some rows": (lambda x: x[:2] * x[-2:] + x[-1:], [[(3, 4)], [(2, 4)], [(64, 4)]]),
    "shorter": (cut_to_the_shorter, [[(3, 4), (5, 4)], [(9, 4), (2, 4)], [(64, 4), (1, 4)]]),
    "longer": (padded_to_the_longer, [[(3, 4), (5, 4)], [(6, 4), (2, 4)], [(1, 4), (1, 4)]]),
    "broadcast": (lambda x, y: x * y + 1, [[(4, 8), (4, 8)], [(5, 8), (1, 8)], [(1, 8), (7, 8)], [(64, 3), (1, 3)], [(3, 64), (3, 1)]]),
    "halves": (lambda x: (lambda a, b: a[: b.shape[0]] + b)(*x.chunk(2)), [[(4, 3)], [(7, 3)], [(2, 3)]]),
    "mask": (masked, [[(2, 7, 8), (2, 1, 7)], [(3, 9, 8), (3, 9, 9)], [(1, 1, 8), (1, 1, 1)]]),
    "resized": (lambda x, y: F.interpolate(x, size=y.shape[-2:]) + y, [[(1, 2, 3, 4), (1, 2, 6, 8)], [(1, 2, 5, 5), (1, 2, 9, 7)]]),
    "pooled": (lambda x: F.adaptive_avg_pool2d(x, 1) * x, [[(2, 3, 4, 5)], [(1, 3, 7, 7)], [(4, 3, 1, 1)]]),
    "largest": (lambda x: F.max_pool2d(x, 3, 2, 1), [[(2, 3, 8, 9)], [(1, 3, 7, 7)], [(4, 3, 3, 1)]]),
    "largest of all": (lambda x: F.adaptive_max_pool2d(x, 1) * x, [[(2, 3, 4, 5)], [(1, 3, 7, 7)], [(4, 3, 1, 1)]]),
    "largest of parts": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), [[(2, 3, 4, 5)], [(1, 3, 7, 9)], [(4, 3, 3, 2)]]),
    "bags": (lambda x: F.embedding_bag((x.abs() * 3).long().clamp(max=63), TABLE[0], mode="sum"), [[(3, 4)], [(1, 7)], [(9, 2)]]),
    "stacked": (lambda x, y: torch.cat([x[:1], y, x[1:]]) + x.mean(0, keepdim=True), [[(3, 4), (5, 4)], [(2, 4), (1, 4)], [(64, 4), (7, 4)]]),
    "written rows": (lambda x, y: x.slice_scatter(y, 0, 1), [[(5, 3), (4, 3)], [(8, 2), (7, 2)]]),
    "every other row written": (lambda x, y: x.slice_scatter(y, 0, 1, None, 2), [[(5, 3), (2, 3)], [(8, 3), (4, 3)], [(9, 2), (4, 2)]]),
    "every third column written": (lambda x, y: x.slice_scatter(y, 1, 0, -1, 3), [[(5, 8), (5, 3)], [(2, 12), (2, 4)]]),
    "window": (lambda x: x.unfold(1, 2, 1).sum(-1) + x[:, :1], [[(2, 5)], [(3, 2)], [(1, 64)]]),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    function, calls = CASES[name]
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=roundel, dynamic=True)
    with torch.no_grad():
        for shapes in calls:
            args = [draw(*shape) for shape in shapes]
            torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-5, atol=1e-5)


def test_largest_of_windows_as_a_result():
    """Nobody asks for the places of the largest elements."""
    size = torch.export.Dim.AUTO
    model = torch.nn.MaxPool2d(3, 2, 1)
    compiled = rd.compile(model, (draw(2, 3, 32, 32),), dynamic=({0: size, 2: size, 3: size},))
    for shape in ((2, 3, 32, 32), (1, 3, 7, 9)):
        x = draw(*shape)
        np.testing.assert_array_equal(np.asarray(compiled(x.numpy())), model(x).numpy())


def test_any_number_of_arguments():
    class Sum(torch.nn.Module):
        def forward(self, *tensors):
            return tensors[0] + tensors[1][:, :1]

    model = rd.compile(Sum(), (torch.zeros(4, 3), torch.zeros(4, 5)), dynamic=True)
    x, y = np.ones((6, 2), np.float32), np.ones((6, 9), np.float32)
    np.testing.assert_array_equal(model(x, y), x + 1)


@pytest.mark.parametrize("step", [1, 2])
def test_what_is_written_over_a_slice_has_its_size(step):
    class Written(torch.nn.Module):
        def forward(self, x, y):
            return torch.slice_scatter(x, y, 0, 1, None, step)

    run = rd.compile(Written(), (torch.zeros(5, 3), torch.zeros(4 // step, 3)), dynamic=True)
    for rows in (3, 100):
        with pytest.raises(rd.RoundelError, match="slice_scatter.* the source has another size than the slice"):
            run(torch.zeros(8, 3), torch.zeros(rows, 3))
