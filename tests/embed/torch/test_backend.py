# SPDX-License-Identifier: Apache-2.0
"""``torch.compile`` with Roundel's backend: graph breaks, dynamic sizes, mutation, parameters that change, gradients."""

from __future__ import annotations

import math
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import torch

from roundel.embed.torch import backend
from roundel.embed.torch.backend import roundel


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(7, 5), torch.nn.LayerNorm(5)

    def forward(self, x):
        y = self.norm(self.linear(x))
        if y.sum() > 1e9:  # a graph break
            y = y * 2
        return torch.relu(y).t(), x.shape[0] * 2


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def same(compiled, eager, *inputs):
    found, expected = compiled(*inputs), eager(*inputs)
    torch.testing.assert_close(found, expected)
    return found, expected


def test_the_entry_point_is_the_backend():
    entry = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["entry-points"]["torch_dynamo_backends"]["roundel"]
    module, name = entry.split(":")
    assert getattr(import_module(module), name) is roundel


def test_a_module_at_several_sizes():
    module = Layers().eval()
    compiled = torch.compile(module, backend=roundel)
    with torch.no_grad():
        for rows in (3, 4, 9):
            found, expected = same(compiled, module, torch.randn(rows, 7))
            assert found[0].stride() == expected[0].stride()


def test_parameters_that_change_are_noticed():
    module, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    compiled = torch.compile(module, backend=roundel)
    with torch.no_grad():
        for _ in range(4):
            same(compiled, module, x)
            module.weight.add_(1)
        module.load_state_dict(torch.nn.Linear(3, 2).state_dict())
        same(compiled, module, x)


def test_parameters_that_change_unseen_are_noticed():
    module, x = torch.nn.Linear(30, 20), torch.randn(4, 30)
    compiled = torch.compile(module, backend=roundel)
    with torch.no_grad():
        same(compiled, module, x)
        module.weight.data.mul_(1.001)
        same(compiled, module, x)
        module.bias.numpy()[:] = 0
        same(compiled, module, x)


def test_gradients():
    module, x = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh()), torch.randn(4, 7)
    torch.compile(module, backend=roundel)(x).square().sum().backward()
    found = module[0].weight.grad.clone()
    module.zero_grad()
    module(x).square().sum().backward()
    torch.testing.assert_close(found, module[0].weight.grad)


def test_inputs_changed_in_place():
    @torch.compile(backend=roundel)
    def step(state, x):
        state.mul_(0.5).add_(x)
        state[1:] += 1
        return state * x.sum(), state.shape[0] + 1

    state, x = torch.randn(4), torch.randn(4)
    expected = state * 0.5 + x
    expected[1:] += 1
    found, size = step(state, x)
    torch.testing.assert_close(state, expected)
    torch.testing.assert_close(found, expected * x.sum())
    assert size == 5


def test_a_size_that_no_tensor_tells():
    def head(x, n):
        return x[:n] + n

    compiled = torch.compile(head, backend=roundel, dynamic=True)
    for n in (3, 5, 2):
        same(compiled, head, torch.arange(10.0), n)


def test_views_and_inputs_as_results():
    def outputs(x, y):
        return x, y.t(), (x + 1)[None], None, 3

    same(torch.compile(outputs, backend=roundel), outputs, torch.randn(2, 3), torch.randn(2, 3))


def test_results_that_are_views_and_share_memory():
    def outputs(x, k):
        y = x + 1
        return x[k:], y, y[1:].t(), x.t() * k, y.view(-1)[k:]

    compiled = torch.compile(outputs, backend=roundel, dynamic=True)
    for n in (3, 4):
        x = torch.randn(n, 5)
        found, expected = same(compiled, outputs, x, n - 1)
        assert [(f.stride(), f.storage_offset()) for f in found] == [(e.stride(), e.storage_offset()) for e in expected]
        assert [f.untyped_storage().data_ptr() for f in (found[0], found[2], found[4])] == [t.untyped_storage().data_ptr() for t in (x, found[1], found[1])]


def test_floating_point_numbers_that_sizes_make():
    def several(x):
        n, half = x.shape[0], int(x.shape[0] * 1.7)
        scaled = torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])
        return scaled, torch.arange(0, n, dtype=torch.float32) / math.sqrt(n), torch.ones(half, 2), torch.eye(n), n / 2

    compiled = torch.compile(several, backend=roundel, dynamic=True)
    for n in (4, 10, 7):
        same(compiled, several, torch.randn(n, n + 2))


def test_unknown_options_are_errors():
    with pytest.raises(Exception, match="no option 'fast'"):
        torch.compile(torch.sin, backend=roundel, options={"fast": True})(torch.ones(2))


def test_complex_numbers_random_numbers_and_expanded_results():
    def several(z, x):
        return torch.fft.fft(z) * z.conj(), x + torch.rand_like(x), (x + 1)[:, :1].expand(4, 3).t()

    compiled, z, x = torch.compile(several, backend=roundel), torch.randn(2, 8, dtype=torch.complex64), torch.randn(4, 3)
    torch.manual_seed(1)
    found = compiled(z, x)
    torch.manual_seed(1)
    expected = several(z, x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert [f.stride() for f in found] == [e.stride() for e in expected]


@pytest.mark.parametrize("number", [float, int])
def test_numbers_that_change_from_call_to_call(number):
    def scaled(x, s):
        return x * s, s + 1

    compiled = torch.compile(scaled, backend=roundel)
    for s in (3, 4, 5):
        same(compiled, scaled, torch.arange(4.0), number(s))


@torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
def test_sizes_that_depend_on_data():
    def chosen(x, i):
        return x[x > 0] * 2, x.narrow(0, i.item(), 1) + 1, i.item(), x[0].item()

    compiled = torch.compile(chosen, backend=roundel)
    for i in (0, 3):
        same(compiled, chosen, torch.randn(5, generator=torch.Generator().manual_seed(i)), torch.tensor(i))


def test_checked_factorisations():
    def solved(a, b):
        a = a @ a.t() + torch.eye(4)
        return torch.linalg.solve(a, b), torch.linalg.cholesky(a)

    same(torch.compile(solved, backend=roundel), solved, torch.randn(4, 4), torch.randn(4, 2))


def test_control_flow():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))

    compiled = torch.compile(branch, backend=roundel)
    for sign in (1, -1):
        same(compiled, branch, torch.ones(3) * sign)


def test_a_function_of_each_score_of_attention():
    from torch.nn.attention.flex_attention import flex_attention

    slopes = torch.tensor([0.5, 0.25])

    def attend(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s + slopes[h] * (j - i), -float("inf")), return_lse=True)

    same(torch.compile(attend, backend=roundel), attend, *torch.randn(3, 2, 2, 5, 4))


def test_buffers_that_the_model_changes_are_inputs(monkeypatch):
    """Such a model is compiled once."""
    compilations, compile_ = [], backend.CompiledGraph._compile
    monkeypatch.setattr(backend.CompiledGraph, "_compile", lambda self, constants: (compilations.append(len(constants)), compile_(self, constants)))

    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x):
            self.seen.add_(x.sum(0))
            return self.linear(x) + self.seen

    eager = Counting()
    other = Counting()
    other.load_state_dict(eager.state_dict())
    compiled = torch.compile(other, backend=roundel)
    with torch.no_grad():
        for _ in range(4):
            same(compiled, eager, torch.randn(3, 4))
            torch.testing.assert_close(other.seen, eager.seen)
    assert compilations == [2]


def test_operators_of_the_user_run_in_pytorch():
    @torch.library.custom_op("acme::halves", mutates_args=())
    def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[: len(x) // 2].clone(), x[len(x) // 2 :].clone()

    @torch.library.custom_op("acme::count", mutates_args=("counter",))
    def count(counter: torch.Tensor, by: int) -> None:
        counter.add_(by)

    halves.register_fake(lambda x: (x.new_empty(len(x) // 2, *x.shape[1:]), x.new_empty(len(x) - len(x) // 2, *x.shape[1:])))

    def step(x, counter):
        first, second = halves(x * 2)
        mine = first.sum(0)
        count(counter, 3)
        count(mine, 1)
        return mine + second, counter * 2

    compiled = torch.compile(step, backend=roundel, dynamic=True)
    for rows in (5, 8):
        x, counters = torch.randn(rows, 3), [torch.zeros(3), torch.zeros(3)]
        torch.testing.assert_close(compiled(x, counters[0]), step(x, counters[1]))
        torch.testing.assert_close(*counters)


def test_numbers_that_a_program_read_are_divided():
    """Dynamo's graph has another name for a division than torch.export's."""

    def scaled(x):
        return x - 3.0 / (x.max().item() + 1)

    x = torch.rand(5)
    torch.testing.assert_close(torch.compile(scaled, backend=roundel)(x), scaled(x))
