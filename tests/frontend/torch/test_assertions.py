# SPDX-License-Identifier: Apache-2.0
"""What a PyTorch program asserts of its data is checked when it runs: ``torch._check``, classes of one_hot, offsets of bags."""

import pytest
import torch

import roundel as rd


def compiled(module, *example):
    return rd.compile(torch.export.export(module, example), threads=1)


def test_a_number_that_is_read_must_be_what_the_program_checks():
    class Narrow(torch.nn.Module):
        def forward(self, x, k):
            n = k.item()
            torch._check(n >= 0)
            torch._check(n <= x.shape[0])
            return x.narrow(0, 0, n) * 2

    model, x = compiled(Narrow(), torch.ones(5, 3), torch.tensor(2)), torch.ones(5, 3)
    assert torch.equal(model(x, torch.tensor(4)), torch.full((4, 3), 2.0))
    for k, text in ((-1, "u0 >= 0"), (6, "u0 <= 5")):
        with pytest.raises(rd.RoundelError, match=f"Runtime assertion failed for expression {text}"):
            model(x, torch.tensor(k))


class Truth(torch.nn.Module):
    """A truth value read from a tensor chooses a size, and a second one is demanded."""

    def forward(self, x):
        n = torch.sym_ite((x >= 0).all().item(), 3, 2)
        torch._check(n >= 2)
        torch._check(torch.sym_not((x > 9).any().item()))
        return x.new_zeros(n) + x[0]


class Numbers(torch.nn.Module):
    """Floating-point numbers read from tensors are compared, added, and operands of functions of tensors."""

    def forward(self, x):
        total, most = x.sum().item(), x.max().item()
        torch._check(2 * (total + most) > most + 0.5)
        return x * (total + most), torch.full((3,), total), x.clamp(max=total), torch.where(x > most - 1, x, total)


def test_truth_values_and_numbers_that_are_read_are_calculated_with():
    x = torch.rand(8) + 0.1
    model = compiled(Truth(), x)
    assert [len(model(v)) for v in (x, -x)] == [3, 2] and torch.equal(model(x), x[:1].expand(3))
    model = compiled(Numbers(), x)
    for got, want in zip(model(x), Numbers()(x), strict=True):
        torch.testing.assert_close(torch.as_tensor(got), want)
    for wrong, module in ((x + 10, Truth()), (-x, Numbers())):
        with pytest.raises(rd.RoundelError, match="Runtime assertion failed for expression"):
            compiled(module, x)(wrong)


def test_classes_of_one_hot_are_in_range():
    class OneHot(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.one_hot(x, 5)

    model = compiled(OneHot(), torch.tensor([1, 2]))
    assert model(torch.tensor([0, 4])).sum() == 2
    for wrong, text in ((-1, "must be non-negative"), (5, "must be smaller than num_classes")):
        with pytest.raises(rd.RoundelError, match=text):
            model(torch.tensor([1, wrong]))


def test_offsets_of_bags_begin_at_zero_and_do_not_decrease():
    bag = torch.nn.EmbeddingBag(10, 3)
    model, x = compiled(bag, torch.tensor([1, 2, 3]), torch.tensor([0, 2, 2])), torch.tensor([1, 2, 3])
    offsets = torch.tensor([0, 1, 3])
    assert torch.allclose(model(x, offsets), bag(x, offsets))
    for wrong in ([1, 2, 3], [0, 2, 1], [0, 1, 4], [0, -1, 2]):
        with pytest.raises(rd.RoundelError, match="embedding_bag"):
            model(x, torch.tensor(wrong))
